"""fairbits: rows become a few random bits that forget the sensitive attribute, and say how much they still tell."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairbits.auditing import Audit, audit
    from fairbits.certificate import Certificate, certify
    from fairbits.certified import CertifiedClassifier, NotCertifiedError
    from fairbits.encoding import TableEncoder
    from fairbits.estimators import (
        AdversarialClassifier,
        BinaryBernoulliClassifier,
        BinaryMIClassifier,
        EnDClassifier,
        HSICClassifier,
        LearnedMixinClassifier,
        LFRClassifier,
        MissingSensitiveFeaturesWarning,
        ParityClassifier,
        ReBiasClassifier,
        RUBiClassifier,
        SensitiveFeatureInXWarning,
        VanillaClassifier,
        VFAEClassifier,
        VIBClassifier,
        fit_coarse_code,
    )
    from fairbits.export import export_onnx
    from fairbits.modelfile import ModelFileError, load, save
    from fairbits.path import TradeoffPath

__version__ = "0.1.0"

__all__ = [
    "AdversarialClassifier",
    "Audit",
    "BinaryBernoulliClassifier",
    "BinaryMIClassifier",
    "Certificate",
    "CertifiedClassifier",
    "EnDClassifier",
    "HSICClassifier",
    "LFRClassifier",
    "LearnedMixinClassifier",
    "MissingSensitiveFeaturesWarning",
    "ModelFileError",
    "NotCertifiedError",
    "ParityClassifier",
    "RUBiClassifier",
    "ReBiasClassifier",
    "SensitiveFeatureInXWarning",
    "TableEncoder",
    "TradeoffPath",
    "VFAEClassifier",
    "VIBClassifier",
    "VanillaClassifier",
    "audit",
    "certify",
    "export_onnx",
    "fit_coarse_code",
    "load",
    "save",
]

# Loaded when first asked for: torch and scikit-learn take seconds, and `fairbits --help` needs neither.
_HOMES = {
    "Audit": "auditing",
    "Certificate": "certificate",
    "CertifiedClassifier": "certified",
    "ModelFileError": "modelfile",
    "NotCertifiedError": "certified",
    "TableEncoder": "encoding",
    "TradeoffPath": "path",
    "audit": "auditing",
    "certify": "certificate",
    "export_onnx": "export",
    "load": "modelfile",
    "save": "modelfile",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'fairbits' has no attribute {name!r}")
    return getattr(import_module(f"fairbits.{_HOMES.get(name, 'estimators')}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
