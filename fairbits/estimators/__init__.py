"""Methods in the scikit-learn contract: a method is a network and a loss."""

from fairbits.estimators.base import InvariantClassifier, VanishedClassWarning
from fairbits.estimators.binary import (
    BinaryBernoulliClassifier,
    BinaryMIClassifier,
    CodeClassifier,
    CollapsedCodeWarning,
    SaturatedPenaltyWarning,
)
from fairbits.estimators.certified import CertifiedClassifier, NotCertifiedError
from fairbits.estimators.coarse import fit_coarse_code
from fairbits.estimators.debiased import DebiasedBernoulliClassifier, DebiasedMIClassifier
from fairbits.estimators.fitting import fit_stack
from fairbits.estimators.inputs import MissingSensitiveFeaturesWarning, SensitiveFeatureInXWarning
from fairbits.estimators.settings import check_settings, search_ranges, setting, tunable
from fairbits.estimators.tradeoff_path import TradeoffPath
from fairbits.estimators.vanilla import VanillaClassifier
from fairbits.training import Schedule

__all__ = [
    "BinaryBernoulliClassifier",
    "BinaryMIClassifier",
    "CertifiedClassifier",
    "CodeClassifier",
    "CollapsedCodeWarning",
    "DebiasedBernoulliClassifier",
    "DebiasedMIClassifier",
    "InvariantClassifier",
    "MissingSensitiveFeaturesWarning",
    "NotCertifiedError",
    "SaturatedPenaltyWarning",
    "Schedule",
    "SensitiveFeatureInXWarning",
    "TradeoffPath",
    "VanillaClassifier",
    "VanishedClassWarning",
    "check_settings",
    "fit_coarse_code",
    "fit_stack",
    "search_ranges",
    "setting",
    "tunable",
]
