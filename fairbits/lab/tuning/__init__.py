"""Bayesian optimisation of any estimator, resumable."""

from importlib.util import find_spec

if find_spec("optuna") is None:
    raise ImportError("A search needs Optuna: pip install 'fairbits[experiments]'.")

from fairbits.estimators.settings import SearchRange
from fairbits.lab.tuning.objectives import Objective
from fairbits.lab.tuning.search import Search, Trial
from fairbits.lab.tuning.space import Layers
from fairbits.lab.tuning.tuned import TunedClassifier, best_trial

__all__ = ["Layers", "Objective", "Search", "SearchRange", "Trial", "TunedClassifier", "best_trial"]
