"""Scores of predictions: AUC, and the paper's GPA, yDiscrim, AUDC and ADRG, of which less is better."""

from fairbits.metrics.gaps import UndefinedGapError as UndefinedGapError
from fairbits.metrics.gaps import auc as auc
from fairbits.metrics.gaps import discrimination as discrimination
from fairbits.metrics.gaps import discrimination_curve_area as discrimination_curve_area
from fairbits.metrics.gaps import group_pairwise_accuracy_gap as group_pairwise_accuracy_gap
from fairbits.metrics.gaps import paper_objective as paper_objective
from fairbits.metrics.gaps import random_guess_distance as random_guess_distance
