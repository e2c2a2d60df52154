"""Methods in the scikit-learn contract: a method is a network and a loss."""

from fairbits.estimators.base import InvariantClassifier as InvariantClassifier
from fairbits.estimators.base import VanillaClassifier as VanillaClassifier
from fairbits.estimators.base import VanishedClassWarning as VanishedClassWarning
from fairbits.estimators.binary import BinaryBernoulliClassifier as BinaryBernoulliClassifier
from fairbits.estimators.binary import BinaryMIClassifier as BinaryMIClassifier
from fairbits.estimators.binary import PenalisedCodeClassifier as PenalisedCodeClassifier
from fairbits.estimators.binary import SaturatedPenaltyWarning as SaturatedPenaltyWarning
from fairbits.estimators.certified import CertifiedClassifier as CertifiedClassifier
from fairbits.estimators.codes import CodeClassifier as CodeClassifier
from fairbits.estimators.codes import CollapsedCodeWarning as CollapsedCodeWarning
from fairbits.estimators.codes import fit_coarse_code as fit_coarse_code
from fairbits.estimators.debiased import DebiasedBernoulliClassifier as DebiasedBernoulliClassifier
from fairbits.estimators.debiased import DebiasedMIClassifier as DebiasedMIClassifier
from fairbits.estimators.exact_code import ExactCodeClassifier as ExactCodeClassifier
from fairbits.estimators.fair_code import FairCodeClassifier as FairCodeClassifier
from fairbits.estimators.fitting import fit_stack as fit_stack
from fairbits.estimators.inputs import MissingSensitiveFeaturesWarning as MissingSensitiveFeaturesWarning
from fairbits.estimators.inputs import SensitiveFeatureInXWarning as SensitiveFeatureInXWarning
from fairbits.estimators.linear_code import LinearCodeClassifier as LinearCodeClassifier
from fairbits.estimators.promises import NotCertifiedError as NotCertifiedError
from fairbits.estimators.tradeoff_path import TradeoffPath as TradeoffPath
from fairbits.settings import check_settings as check_settings
from fairbits.settings import search_ranges as search_ranges
from fairbits.settings import setting as setting
from fairbits.settings import tunable as tunable
from fairbits.training import Schedule as Schedule
