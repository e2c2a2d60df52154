"""Bayesian optimisation of any estimator, resumable."""

from fairbits.estimators.settings import SearchRange
from fairbits.tuning.objectives import Objective
from fairbits.tuning.search import Search, Trial
from fairbits.tuning.space import Layers
from fairbits.tuning.tuned import TunedClassifier, best_trial

__all__ = ["Layers", "Objective", "Search", "SearchRange", "Trial", "TunedClassifier", "best_trial"]
