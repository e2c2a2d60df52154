"""Methods in the scikit-learn contract: a method is a network and a loss."""

from fairbits.estimators.adversarial import AdversarialClassifier
from fairbits.estimators.base import InvariantClassifier
from fairbits.estimators.bernoulli import BinaryBernoulliClassifier
from fairbits.estimators.coarse import fit_coarse_code
from fairbits.estimators.code import CodeClassifier, RepeatedDrawWarning
from fairbits.estimators.concerns import CollapsedCodeWarning, SaturatedPenaltyWarning, VanishedClassWarning
from fairbits.estimators.entangling import EnDClassifier
from fairbits.estimators.fitting import fit_stack
from fairbits.estimators.hsic import HSICClassifier
from fairbits.estimators.inputs import MissingSensitiveFeaturesWarning, SensitiveFeatureInXWarning
from fairbits.estimators.learned_mixin import LearnedMixinClassifier
from fairbits.estimators.lfr import LFRClassifier
from fairbits.estimators.mi import BinaryMIClassifier
from fairbits.estimators.parity import ParityClassifier
from fairbits.estimators.penalised import PenalisedClassifier
from fairbits.estimators.rebias import ReBiasClassifier
from fairbits.estimators.rubi import RUBiClassifier
from fairbits.estimators.settings import check_settings, search_ranges, setting, tunable
from fairbits.estimators.vanilla import VanillaClassifier
from fairbits.estimators.vfae import VFAEClassifier
from fairbits.estimators.vib import VIBClassifier

__all__ = [
    "AdversarialClassifier",
    "BinaryBernoulliClassifier",
    "BinaryMIClassifier",
    "CodeClassifier",
    "CollapsedCodeWarning",
    "EnDClassifier",
    "HSICClassifier",
    "InvariantClassifier",
    "LFRClassifier",
    "LearnedMixinClassifier",
    "MissingSensitiveFeaturesWarning",
    "ParityClassifier",
    "PenalisedClassifier",
    "RUBiClassifier",
    "ReBiasClassifier",
    "RepeatedDrawWarning",
    "SaturatedPenaltyWarning",
    "SensitiveFeatureInXWarning",
    "VFAEClassifier",
    "VIBClassifier",
    "VanillaClassifier",
    "VanishedClassWarning",
    "check_settings",
    "fit_coarse_code",
    "fit_stack",
    "search_ranges",
    "setting",
    "tunable",
]
