"""Methods in the scikit-learn contract: a method is a network and a loss."""

from fairbits.estimators.base import InvariantClassifier
from fairbits.estimators.bernoulli import BinaryBernoulliClassifier
from fairbits.estimators.code import CodeClassifier
from fairbits.estimators.fitting import fit_stack
from fairbits.estimators.inputs import MissingSensitiveFeaturesWarning, SensitiveFeatureInXWarning
from fairbits.estimators.mi import BinaryMIClassifier
from fairbits.estimators.settings import check_settings, search_ranges, setting, tunable
from fairbits.estimators.vanilla import VanillaClassifier

__all__ = [
    "BinaryBernoulliClassifier",
    "BinaryMIClassifier",
    "CodeClassifier",
    "InvariantClassifier",
    "MissingSensitiveFeaturesWarning",
    "SensitiveFeatureInXWarning",
    "VanillaClassifier",
    "check_settings",
    "fit_stack",
    "search_ranges",
    "setting",
    "tunable",
]
