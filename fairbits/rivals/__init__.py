"""Methods to compare with; those of other libraries need ``pip install 'fairbits[compare]'``."""

from fairbits.rivals.adapter import ComparedClassifier
from fairbits.rivals.other_libraries import (
    AIF360LFRClassifier,
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
