"""fairbits: rows become a few random bits that forget the sensitive attribute, and say how much they still tell."""

from fairbits.encoding import TableEncoder
from fairbits.estimators import (
    BinaryBernoulliClassifier,
    BinaryMIClassifier,
    MissingSensitiveFeaturesWarning,
    SensitiveFeatureInXWarning,
    VanillaClassifier,
)
from fairbits.path import TradeoffPath

__version__ = "0.1.0"

__all__ = [
    "BinaryBernoulliClassifier",
    "BinaryMIClassifier",
    "MissingSensitiveFeaturesWarning",
    "SensitiveFeatureInXWarning",
    "TableEncoder",
    "TradeoffPath",
    "VanillaClassifier",
]
