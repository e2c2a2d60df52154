"""Methods to compare with; those of other libraries need ``pip install 'fairbits[compare]'``."""

from fairbits.rivals.adapter import ComparedClassifier
from fairbits.rivals.aif360_adapter import AIF360LFRClassifier
from fairbits.rivals.fairlearn_adapters import (
    ExponentiatedGradientClassifier,
    FairlearnAdversarialClassifier,
    ThresholdOptimizerClassifier,
)

__all__ = [
    "AIF360LFRClassifier",
    "ComparedClassifier",
    "ExponentiatedGradientClassifier",
    "FairlearnAdversarialClassifier",
    "ThresholdOptimizerClassifier",
]
