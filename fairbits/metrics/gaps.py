"""The paper's measures of predictions and scores: GPA, yDiscrim, AUDC and ADRG. Of each, less is better."""

from itertools import combinations
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist

from fairbits.errors import InputError
from fairbits.metrics.metric_inputs import as_groups, as_labels, as_scores, check_rows, columns_of, encoded


class UndefinedGapError(InputError):
    """Too few groups have both positives and negatives to compare their pairwise accuracy.

    Attributes
    ----------
    groups : int
        The number of groups in the rows.
    """

    def __init__(self, groups: int):
        self.groups = groups
        super().__init__(
            f"GPA is undefined: fewer than 2 of the {groups} groups have both positives and negatives.",
            remedy="Pass more rows, or merge groups.",
        )


def group_pairwise_accuracy_gap(y_true: Any, y_score: Any, *, sensitive_features: Any) -> float:
    """Return the gap between groups of the pairwise accuracy, the paper's GPA: from 0 (best) to 1.

    ``max_ij |A_ij - A_ji|``, ``A_ij = P(score of a positive of group i > score of a negative of group j)``, ties
    counting 1/2 (Narasimhan et al. 2020). Only the order of the scores matters.

    Parameters
    ----------
    y_true : (n,) labels; of two, either may be called positive, the gap is the same.
    y_score : (n,) scores for two labels, or (n, C) with a column for each of the C labels in `y_true`, in sorted
        order: then the maximum over classes, each against the rest.
    sensitive_features : (n,) groups, or several columns whose intersections are the groups.

    Notes
    -----
    A pair is defined when both groups have positives and negatives. Undefined pairs are left out of the maximum (for
    C columns, class by class); if none is defined, an `UndefinedGapError` says so.

    Examples
    --------
    >>> group_pairwise_accuracy_gap([1, 0, 1, 0], [0.9, 0.6, 0.5, 0.1], sensitive_features=list("aabb"))
    1.0
    """
    scores = as_scores(y_score, "y_score")
    labels, classes = as_labels(y_true, "y_true")
    check_rows("y_true", len(classes), "y_score", len(scores))
    if len(labels) < 2:
        raise InputError(f"y_true has one class, {labels}.", remedy="Pass rows of at least 2 classes.")
    n_columns = scores.shape[1]
    if len(labels) != max(2, n_columns):
        raise InputError(
            f"y_true has {len(labels)} classes, {labels[:5]}, and y_score {n_columns} columns.",
            remedy="Pass 1 column for 2 classes, otherwise one for each class in y_true, in sorted order.",
        )
    groups, n_groups = as_groups(sensitive_features, "y_score", len(scores))
    columns = enumerate(scores.T) if n_columns > 1 else [(1, scores[:, 0])]
    gaps = [_pairwise_gap(column, classes == c, groups, n_groups) for c, column in columns]
    if np.isnan(gaps).all():
        raise UndefinedGapError(n_groups)
    return float(np.nanmax(gaps))


def discrimination(y_pred: Any, *, sensitive_features: Any) -> float:
    """Return the gap between groups of the mean prediction, the paper's yDiscrim: from 0 (best) to 1.

    ``max_ij |mean(y_pred in group i) - mean(y_pred in group j)|`` (Zemel et al. 2013), the demographic parity
    difference. For labels other than 0 and 1, or more than two, the largest gap of a label's rate.

    Parameters
    ----------
    y_pred : (n,) labels; (n,) floats that are not all whole (probabilities), to be averaged; or (n, C), a column per
        class: the largest gap of a column's mean.
    sensitive_features : (n,) groups, or several columns whose intersections are the groups.

    Examples
    --------
    >>> discrimination([1, 1, 1, 0], sensitive_features=["a", "a", "b", "b"])
    0.5
    """
    kind = getattr(getattr(y_pred, "dtype", None), "kind", None)  # pandas' nullable floats become objects
    values = np.asarray(y_pred, dtype=float if kind == "f" else None)
    fractional = values.dtype.kind == "f" and bool((values % 1 != 0).any())
    if fractional or (values.ndim == 2 and values.shape[1] > 1):
        scores = as_scores(y_pred, "y_pred")
        groups, n_groups = as_groups(sensitive_features, "y_pred", len(scores))
        sums = np.array([np.bincount(groups, column) for column in scores.T])  # (C, K)
    else:
        labels, classes = as_labels(y_pred, "y_pred")
        groups, n_groups = as_groups(sensitive_features, "y_pred", len(classes))
        cells = np.bincount(classes * n_groups + groups, minlength=len(labels) * n_groups)
        sums = cells.reshape(-1, n_groups)
    return float(np.ptp(sums / np.bincount(groups), axis=1).max())


def discrimination_curve_area(y_score: Any, *, sensitive_features: Any, n_thresholds: int | None = 100) -> float:
    """Return the area under the discrimination curve, the paper's AUDC: from 0 (best) to 1 for probabilities.

    ``max_ij integral |P(score >= t in group i) - P(score >= t in group j)| dt``: the largest 1-Wasserstein distance
    between two groups' scores. Squashing the scores lowers it while their order stays.

    Parameters
    ----------
    y_score : (n,) scores, or (n, C), a column per class: the maximum over columns.
    sensitive_features : (n,) groups, or several columns whose intersections are the groups.
    n_thresholds : take yDiscrim's mean over so many equispaced thresholds, the midpoints of equal parts of [0, 1]. It
        is within ``1 / n_thresholds`` of the exact area, and for scores of 0 and 1 it is yDiscrim. None integrates
        exactly, over scores of any range.

    Examples
    --------
    >>> round(discrimination_curve_area([0.5, 0.7, 0.1, 0.3], sensitive_features=["a", "a", "b", "b"]), 6)
    0.4
    """
    scores = as_scores(y_score, "y_score")
    if n_thresholds is not None:
        if not isinstance(n_thresholds, Integral) or n_thresholds < 1:
            problem = "must be a whole number from 1, or None (exact)."
            raise InputError(problem, argument="n_thresholds", value=n_thresholds)
        low, high = scores.min(), scores.max()
        if low < -1e-6 or high > 1 + 1e-6:  # float32 softmax may pass 1 by rounding
            problem = f"y_score ranges from {low} to {high}, but thresholds from 0 to 1."
            raise InputError(problem, remedy="Pass probabilities, or n_thresholds=None.")
    groups, n_groups = as_groups(sensitive_features, "y_score", len(scores))
    return max(_area(_sorted_cells(column, groups, n_groups), n_thresholds) for column in scores.T)


def random_guess_distance(s_true: Any, s_pred: Any) -> float:
    """Return how far predictions of S are from guessing the largest group, the paper's ADRG: 0 is best.

    ``|accuracy(s_true, s_pred) - share of the largest group in s_true|``: an accuracy below that share counts like one
    above. With several columns a row is right when all are.

    Examples
    --------
    >>> random_guess_distance(["a", "a", "a", "b"], ["a", "a", "a", "b"])
    0.25
    """
    true, predicted = columns_of(s_true, "s_true"), columns_of(s_pred, "s_pred")
    if len(true) != len(predicted):
        problem = f"s_true has {len(true)} columns and s_pred {len(predicted)}."
        raise InputError(problem, remedy="Pass the same columns.")
    hits = np.all([_hits(*pair) for pair in zip(true, predicted, strict=True)], axis=0)
    groups, _ = as_groups(s_true, "s_pred", len(hits), name="s_true")
    return float(abs(hits.mean() - np.bincount(groups).max() / len(hits)))


def _hits(true: Any, predicted: Any) -> NDArray:
    """Return which rows are predicted right."""
    (labels, t), (guesses, p) = encoded(true, "s_true"), encoded(predicted, "s_pred")
    check_rows("s_pred", len(p), "s_true", len(t))
    same = np.array([[bool(label == guess) for guess in guesses] for label in labels])
    if not same.any():
        problem = f"s_pred has no label of s_true: {guesses[:3]} against {labels[:3]}."
        raise InputError(problem, remedy="Code both the same way.")
    return same[t, p]


def _pairwise_gap(score: NDArray, positive: NDArray, groups: NDArray, n_groups: int) -> float:
    """Return max |A_ij - A_ji|, or nan when fewer than two groups have positives and negatives."""
    cells = _sorted_cells(score, 2 * groups + positive, 2 * n_groups)
    both = [(p, n) for n, p in zip(cells[0::2], cells[1::2], strict=True) if len(p) and len(n)]
    if len(both) < 2:
        return np.nan
    sizes = np.array([(len(p), len(n)) for p, n in both])
    positives, starts = np.concatenate([p for p, _ in both]), np.cumsum(sizes[:, 0]) - sizes[:, 0]

    def doubled_wins(negatives: NDArray) -> NDArray:  # of each group's positives; whole also with ties
        sides = [np.searchsorted(negatives, positives, side) for side in ("left", "right")]
        return np.add.reduceat(sides[0] + sides[1], starts)

    wins = np.array([doubled_wins(n) for _, n in both])  # (j, i)
    accuracy = wins / (2 * np.outer(sizes[:, 1], sizes[:, 0]))
    return float(np.abs(accuracy - accuracy.T).max())


def _area(cells: list[NDArray], n_thresholds: int | None) -> float:
    """Return the largest area between two groups' curves: maximum over pairs after integration."""
    if n_thresholds is None:
        return max(_wasserstein(a, b) for a, b in combinations(cells, 2))
    thresholds = (np.arange(n_thresholds) + 0.5) / n_thresholds
    below = np.array([np.searchsorted(cell, thresholds) / len(cell) for cell in cells])  # (K, n_thresholds)
    return float(pdist(below, "cityblock").max() / n_thresholds)


def _wasserstein(a: NDArray, b: NDArray) -> float:
    grid = np.sort(np.concatenate([a, b]).astype(np.float64))
    below = [np.searchsorted(sample, grid[:-1], "right") / len(sample) for sample in (a, b)]
    return float(np.abs(below[0] - below[1]) @ np.diff(grid))


def _sorted_cells(values: NDArray, codes: NDArray, n_codes: int) -> list[NDArray]:
    """Return the sorted values of each code; codes of one or two bytes get numpy's radix sort."""
    order = np.argsort(codes.astype(np.min_scalar_type(n_codes)), kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=n_codes))
    return [np.sort(cell) for cell in np.split(values[order], ends[:-1])]
