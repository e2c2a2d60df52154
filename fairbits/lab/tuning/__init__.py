"""Bayesian optimisation of any estimator; a search can be stopped and resumed."""

from importlib.util import find_spec

from fairbits.errors import MissingExtraError

if find_spec("optuna") is None:
    raise MissingExtraError("A search", "experiments")

from fairbits.lab.tuning.search import Search, Trial
from fairbits.lab.tuning.search_space import Layers, Objective
from fairbits.lab.tuning.tuned import TunedClassifier, best_trial
from fairbits.settings import SearchRange

__all__ = ["Layers", "Objective", "Search", "SearchRange", "Trial", "TunedClassifier", "best_trial"]
