"""The paper's measures of predictions and scores: GPA, yDiscrim, AUDC and ADRG. Of each, less is better."""

from fairbits.metrics.gaps import (
    discrimination,
    discrimination_curve_area,
    group_pairwise_accuracy_gap,
    paper_objective,
    random_guess_distance,
)

__all__ = [
    "discrimination",
    "discrimination_curve_area",
    "group_pairwise_accuracy_gap",
    "paper_objective",
    "random_guess_distance",
]
