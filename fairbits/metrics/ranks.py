"""Scores that see the order of predictions alone: a signed GPA, and an AUDC that squeezing the scores cannot lower."""

from itertools import combinations
from typing import Any

import numpy as np
from scipy.stats import rankdata

from fairbits.metrics.gaps import auc, discrimination_curve_area


def signed_pairwise_gap(y_true: Any, y_score: Any, *, sensitive_features: Any) -> float:
    """Return the GPA of binary labels with its sign: 0 is best, above 0 the first group's positives rank higher.

    ``A_ij - A_ji`` with i before j in sorted order, of the pair of groups where it is largest in size; its size is
    `group_pairwise_accuracy_gap`. nan where fewer than two groups have positives and negatives.

    >>> signed_pairwise_gap([1, 0, 1, 0], [0.9, 0.6, 0.5, 0.1], sensitive_features=list("aabb"))
    1.0
    >>> signed_pairwise_gap([1, 0, 1, 0], [0.9, 0.6, 0.5, 0.1], sensitive_features=list("bbaa"))
    -1.0
    """
    y, score, groups = (np.asarray(values) for values in (y_true, y_score, sensitive_features))
    positive = y == np.unique(y)[-1]
    cells = [(score[positive & (groups == g)], score[~positive & (groups == g)]) for g in np.unique(groups)]
    both = [cell for cell in cells if len(cell[0]) and len(cell[1])]
    gaps = [_wins(p, other_n) - _wins(other_p, n) for (p, n), (other_p, other_n) in combinations(both, 2)]
    return max(gaps, key=abs, default=float("nan"))


def _wins(positives: np.ndarray, negatives: np.ndarray) -> float:
    """Return P(score of a positive > score of a negative), ties counting 1/2."""
    return auc(np.repeat([1, 0], [len(positives), len(negatives)]), np.concatenate([positives, negatives]))


def rank_curve_area(y_score: Any, *, sensitive_features: Any) -> float:
    """Return the AUDC of the scores' ranks, as shares of the rows: from 0 (best) to 1.

    The mean over all selection rates q of the disparity of selecting the q highest scores. Unlike the AUDC it is the
    same for all scores of one order.

    >>> s = [1, 1, 0, 0]
    >>> rank_curve_area([0.9, 0.8, 0.2, 0.1], sensitive_features=s)
    0.5
    >>> rank_curve_area([0.509, 0.508, 0.502, 0.501], sensitive_features=s)
    0.5
    """
    ranks = (rankdata(np.asarray(y_score)) - 0.5) / len(y_score)
    return discrimination_curve_area(ranks, sensitive_features=sensitive_features, n_thresholds=None)
