"""Rivals of other libraries under the same calls as our methods; they need ``pip install 'fairbits[compare]'``."""

from fairbits.rivals.adapter import ComparedClassifier
from fairbits.rivals.aif360_lfr import AIF360LFRClassifier
from fairbits.rivals.fairlearn_adversarial import FairlearnAdversarialClassifier
from fairbits.rivals.fairlearn_reductions import ExponentiatedGradientClassifier
from fairbits.rivals.fairlearn_thresholds import ThresholdOptimizerClassifier

__all__ = [
    "AIF360LFRClassifier",
    "ComparedClassifier",
    "ExponentiatedGradientClassifier",
    "FairlearnAdversarialClassifier",
    "ThresholdOptimizerClassifier",
]
