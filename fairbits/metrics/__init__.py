"""Scores of predictions: AUC, and the paper's GPA, yDiscrim, AUDC and ADRG, of which less is better."""

from fairbits.metrics.gaps import (
    UndefinedGapError,
    discrimination,
    discrimination_curve_area,
    group_pairwise_accuracy_gap,
    random_guess_distance,
)
from fairbits.metrics.prediction import auc, paper_objective

__all__ = [
    "UndefinedGapError",
    "auc",
    "discrimination",
    "discrimination_curve_area",
    "group_pairwise_accuracy_gap",
    "paper_objective",
    "random_guess_distance",
]
