# The one list of public names: the package loads each when it is first used, type checkers read it here.
# A new method is one file and one line here.
from .auditing.auditor import Audit as Audit
from .auditing.auditor import audit as audit
from .certificate.certificate_monitor import CertificateMonitor as CertificateMonitor
from .certificate.certificate_record import Certificate as Certificate
from .certificate.certificate_state import CertificateState as CertificateState
from .certificate.certification import certify as certify
from .certificate.releasing import release as release
from .encoding.table_encoder import TableEncoder as TableEncoder
from .errors import InputError as InputError
from .estimators.base import VanillaClassifier as VanillaClassifier
from .estimators.binary import BinaryBernoulliClassifier as BinaryBernoulliClassifier
from .estimators.binary import BinaryMIClassifier as BinaryMIClassifier
from .estimators.certified import CertifiedClassifier as CertifiedClassifier
from .estimators.codes import fit_coarse_code as fit_coarse_code
from .estimators.debiased import DebiasedBernoulliClassifier as DebiasedBernoulliClassifier
from .estimators.debiased import DebiasedMIClassifier as DebiasedMIClassifier
from .estimators.exact_code import ExactCodeClassifier as ExactCodeClassifier
from .estimators.fair_code import FairCodeClassifier as FairCodeClassifier
from .estimators.inputs import MissingSensitiveFeaturesWarning as MissingSensitiveFeaturesWarning
from .estimators.inputs import SensitiveFeatureInXWarning as SensitiveFeatureInXWarning
from .estimators.linear_code import LinearCodeClassifier as LinearCodeClassifier
from .estimators.posterior import PosteriorEncoder as PosteriorEncoder
from .estimators.promises import NotCertifiedError as NotCertifiedError
from .estimators.tradeoff_path import TradeoffPath as TradeoffPath
from .modelfile.manifest import ModelFileError as ModelFileError
from .modelfile.onnx_export import export_onnx as export_onnx
from .modelfile.save_and_load import load as load
from .modelfile.save_and_load import save as save
from .rivals.adversarial import AdversarialClassifier as AdversarialClassifier
from .rivals.bias_balanced import BiasBalancedClassifier as BiasBalancedClassifier
from .rivals.contrastive import BiasContrastiveClassifier as BiasContrastiveClassifier
from .rivals.contrastive import FairKLClassifier as FairKLClassifier
from .rivals.end import EnDClassifier as EnDClassifier
from .rivals.hsic import HSICClassifier as HSICClassifier
from .rivals.learned_mixin import LearnedMixinClassifier as LearnedMixinClassifier
from .rivals.lfr import LFRClassifier as LFRClassifier
from .rivals.parity import ParityClassifier as ParityClassifier
from .rivals.rebias import ReBiasClassifier as ReBiasClassifier
from .rivals.rubi import RUBiClassifier as RUBiClassifier
from .rivals.vfae import VFAEClassifier as VFAEClassifier
from .rivals.vib import VIBClassifier as VIBClassifier
from .training.batches import Schedule as Schedule

__version__: str
__all__: list[str]
