"""Rivals of other libraries under the same calls as our methods; they need ``pip install 'fairbits[compare]'``."""

from fairbits.compare.adversarial import FairlearnAdversarialClassifier
from fairbits.compare.base import ComparedClassifier
from fairbits.compare.lfr import AIF360LFRClassifier
from fairbits.compare.reductions import ExponentiatedGradientClassifier
from fairbits.compare.thresholds import ThresholdOptimizerClassifier

__all__ = [
    "AIF360LFRClassifier",
    "ComparedClassifier",
    "ExponentiatedGradientClassifier",
    "FairlearnAdversarialClassifier",
    "ThresholdOptimizerClassifier",
]
