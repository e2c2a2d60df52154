"""Methods to compare with; those of other libraries need ``pip install 'fairbits[compare]'``."""

from fairbits.rivals.adapter import ComparedClassifier
from fairbits.rivals.bayes_rule import BayesRuleClassifier
from fairbits.rivals.other_libraries import (
    AIF360LFRClassifier,
    ExponentiatedGradientClassifier,
    FairlearnAdversarialClassifier,
    ThresholdOptimizerClassifier,
)
from fairbits.rivals.posterior_rule import PosteriorRule
from fairbits.rivals.programme_code import LinearProgrammeCode

__all__ = [
    "AIF360LFRClassifier",
    "BayesRuleClassifier",
    "ComparedClassifier",
    "ExponentiatedGradientClassifier",
    "FairlearnAdversarialClassifier",
    "LinearProgrammeCode",
    "PosteriorRule",
    "ThresholdOptimizerClassifier",
]
