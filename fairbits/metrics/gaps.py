"""Scores of predictions in arrays, lists, pandas or polars: AUC, and the paper's GPA, yDiscrim, AUDC and ADRG."""

from collections.abc import Mapping
from itertools import combinations
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.spatial.distance import pdist
from scipy.stats import binomtest, rankdata, wasserstein_distance
from sklearn.metrics import roc_auc_score

from fairbits.errors import InputError

MAX_GROUPS = 1000  # time grows with the pairs of groups; more is a continuous column by mistake


class UndefinedGapError(InputError):
    """Too few of the `groups` (their number) have both positives and negatives to compare their pairwise accuracy."""

    def __init__(self, groups: int):
        self.groups = groups
        super().__init__(
            f"GPA is undefined: fewer than 2 of the {groups} groups have both positives and negatives.",
            remedy="Pass more rows, or merge groups.",
        )


def auc(y_true: Any, y_score: Any) -> float:
    """Return scikit-learn's area under the ROC curve: from 0 to 1 (best), 0.5 is chance.

    For more than two labels the mean over labels, each against the rest. Of two labels (n,), the last in sorted order
    is positive. Scores are (n,) for two labels, or (n, C) probabilities, a column per label in sorted order.

    >>> auc(["no", "no", "yes", "yes"], [0.1, 0.4, 0.35, 0.8])
    0.75
    """
    scores, labels, numbers = _scores_and_labels(y_true, y_score)
    if len(labels) != 2 or scores.shape[1] > 2:
        return float(roc_auc_score(numbers, scores if scores.shape[1] > 2 else scores[:, -1], multi_class="ovr"))
    positive = numbers == 1  # by ranks, in a tenth of scikit-learn's time
    wins = int(positive.sum())
    return float((rankdata(scores[:, -1])[positive].sum() / wins - (wins + 1) / 2) / (len(numbers) - wins))


def group_pairwise_accuracy_gap(y_true: Any, y_score: Any, *, sensitive_features: Any) -> float:
    """Return the gap between groups of the pairwise accuracy, the paper's GPA: from 0 (best) to 1.

    ``max_ij |A_ij - A_ji|``, ``A_ij = P(score of a positive of group i > score of a negative of group j)``, ties
    counting 1/2 (Narasimhan et al. 2020), over pairs of groups that have positives and negatives; if there are none, an
    `UndefinedGapError` says so. Scores are (n,) for two labels, or (n, C) with a column for each of the C labels in
    `y_true`, in sorted order: then the maximum over classes, each against the rest. Sensitive features are (n,) groups,
    or several columns whose intersections are the groups, in all measures.

    >>> group_pairwise_accuracy_gap([1, 0, 1, 0], [0.9, 0.6, 0.5, 0.1], sensitive_features=list("aabb"))
    1.0
    """
    scores, labels, classes = _scores_and_labels(y_true, y_score)
    if len(labels) < 2:
        raise InputError(f"y_true has one class, {labels}.", remedy="Pass rows of at least 2 classes.")
    n_columns = scores.shape[1]
    if len(labels) != max(2, n_columns):
        raise InputError(
            f"y_true has {len(labels)} classes, {labels[:5]}, and y_score {n_columns} columns.",
            remedy="Pass 1 column for 2 classes, otherwise one for each class in y_true, in sorted order.",
        )
    groups, n_groups = _as_groups(sensitive_features, "y_score", len(scores))
    columns = enumerate(scores.T) if n_columns > 1 else [(1, scores[:, 0])]
    gaps = [_pairwise_gap(column, classes == c, groups, n_groups) for c, column in columns]
    if np.isnan(gaps).all():
        raise UndefinedGapError(n_groups)
    return float(np.nanmax(gaps))


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


def discrimination(y_pred: Any, *, sensitive_features: Any) -> float:
    """Return the gap between the mean predictions of groups, the paper's yDiscrim: from 0 (best) to 1.

    ``max_ij |mean(y_pred in group i) - mean(y_pred in group j)|`` (Zemel et al. 2013), the demographic parity
    difference. Predictions are (n,) labels: the largest gap of a label's rate; (n,) floats that are not all whole
    (probabilities); or (n, C), a column per class: the largest gap of a column's mean.

    >>> discrimination([1, 1, 1, 0], sensitive_features=["a", "a", "b", "b"])
    0.5
    """
    kind = getattr(getattr(y_pred, "dtype", None), "kind", None)  # pandas' nullable floats become objects
    values = np.asarray(y_pred, dtype=float if kind == "f" else None)
    fractional = values.dtype.kind == "f" and bool((values % 1 != 0).any())
    if fractional or (values.ndim == 2 and values.shape[1] > 1):
        scores = _as_scores(y_pred, "y_pred")
        groups, _ = _as_groups(sensitive_features, "y_pred", len(scores))
        sums = np.array([np.bincount(groups, column) for column in scores.T])  # (C, K)
    else:
        labels, classes = _as_labels(y_pred, "y_pred")
        groups, n_groups = _as_groups(sensitive_features, "y_pred", len(classes))
        sums = np.bincount(classes * n_groups + groups, minlength=len(labels) * n_groups).reshape(-1, n_groups)
    return float(np.ptp(sums / np.bincount(groups), axis=1).max())


def discrimination_curve_area(y_score: Any, *, sensitive_features: Any, n_thresholds: int | None = 100) -> float:
    """Return the area under the discrimination curve, the paper's AUDC: from 0 (best) to 1 for probabilities.

    ``max_ij integral |P(score >= t in group i) - P(score >= t in group j)| dt``: the largest 1-Wasserstein distance
    between two groups' scores (n,); of (n, C), a column per class, the maximum. `n_thresholds` takes yDiscrim's mean
    over the midpoints of so many equal parts of [0, 1], within ``1 / n_thresholds`` of the exact area. None integrates
    exactly, over scores of any range.

    >>> round(discrimination_curve_area([0.5, 0.7, 0.1, 0.3], sensitive_features=["a", "a", "b", "b"]), 6)
    0.4
    """
    scores = _as_scores(y_score, "y_score")
    if n_thresholds is not None:
        if not isinstance(n_thresholds, Integral) or n_thresholds < 1:
            problem = "must be a whole number from 1, or None (exact)."
            raise InputError(problem, argument="n_thresholds", value=n_thresholds)
        if scores.min() < -1e-6 or scores.max() > 1 + 1e-6:  # float32 softmax may pass 1 by rounding
            problem = f"y_score ranges from {scores.min()} to {scores.max()}, but thresholds from 0 to 1."
            raise InputError(problem, remedy="Pass probabilities, or n_thresholds=None.")
    groups, n_groups = _as_groups(sensitive_features, "y_score", len(scores))
    return max(_area(_sorted_cells(column, groups, n_groups), n_thresholds) for column in scores.T)


def _area(cells: list[NDArray], n_thresholds: int | None) -> float:
    """Return the largest area between two groups' curves: maximum over pairs after integration."""
    if n_thresholds is None:
        return max(float(wasserstein_distance(a, b)) for a, b in combinations(cells, 2))
    thresholds = (np.arange(n_thresholds) + 0.5) / n_thresholds
    below = np.array([np.searchsorted(cell, thresholds) / len(cell) for cell in cells])  # (K, n_thresholds)
    return float(pdist(below, "cityblock").max() / n_thresholds)


def _sorted_cells(values: NDArray, codes: NDArray, n_codes: int) -> list[NDArray]:
    """Return the sorted values of each code; codes of one or two bytes get numpy's radix sort."""
    order = np.argsort(codes.astype(np.min_scalar_type(n_codes)), kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=n_codes))
    return [np.sort(cell) for cell in np.split(values[order], ends[:-1])]


def random_guess_distance(s_true: Any, s_pred: Any) -> float:
    """Return how far predictions of S are from guessing the largest group, the paper's ADRG: 0 is best.

    ``|accuracy(s_true, s_pred) - share of the largest group in s_true|``: an accuracy below that share counts like one
    above. With several columns a row is right when all are.

    >>> random_guess_distance(["a", "a", "a", "b"], ["a", "a", "a", "b"])
    0.25
    """
    true, predicted = _columns_of(s_true, "s_true"), _columns_of(s_pred, "s_pred")
    if len(true) != len(predicted):
        problem = f"s_true has {len(true)} columns and s_pred {len(predicted)}."
        raise InputError(problem, remedy="Pass the same columns.")
    hits = np.all([_hits(*pair) for pair in zip(true, predicted, strict=True)], axis=0)
    groups, _ = _as_groups(s_true, "s_pred", len(hits), name="s_true")
    return float(abs(hits.mean() - np.bincount(groups).max() / len(hits)))


def _hits(true: Any, predicted: Any) -> NDArray:
    """Return which rows are predicted right."""
    (labels, t), (guesses, p) = _encoded(true, "s_true"), _encoded(predicted, "s_pred")
    _check_rows("s_pred", len(p), "s_true", len(t))
    same = np.array([[bool(label == guess) for guess in guesses] for label in labels])
    if not same.any():
        problem = f"s_pred has no label of s_true: {guesses[:3]} against {labels[:3]}."
        raise InputError(problem, remedy="Code both the same way.")
    return same[t, p]


def prediction_scores(probabilities: np.ndarray, classes: np.ndarray, y: np.ndarray, s: np.ndarray) -> dict[str, float]:
    """Return AUC and accuracy (more is better), GPA, AUDC and yDiscrim (less is better) of predicted probabilities.

    Probabilities are (n, classes), `classes` the label of each column, y (n,) labels and s (n, columns) group numbers;
    the worst of several columns counts, and without columns the gaps are 0.
    """
    score = probabilities[:, 1] if probabilities.shape[1] == 2 else probabilities
    labels = classes[probabilities.argmax(1)]
    return {
        "auc": auc(y, score),
        "accuracy": float(np.mean(y == labels)),
        "gpa": max((group_pairwise_accuracy_gap(y, score, sensitive_features=column) for column in s.T), default=0.0),
        "audc": max((discrimination_curve_area(score, sensitive_features=column) for column in s.T), default=0.0),
        "discrimination": max((discrimination(labels, sensitive_features=column) for column in s.T), default=0.0),
    }


def mcnemar_p_value(y_true: Any, first: Any, second: Any) -> float:
    """Return the p-value of McNemar's exact one-sided test: are the first predictions right more often than the second?

    Rows where both are right, or both wrong, say nothing. Of the others, the first is right in about half by chance.

    >>> mcnemar_p_value(np.array([1, 1, 1, 1, 1, 0]), np.array([1, 1, 1, 1, 1, 0]), np.zeros(6))
    0.03125
    """
    right, other = np.equal(first, y_true), np.equal(second, y_true)
    gained, lost = int((right & ~other).sum()), int((other & ~right).sum())
    return p_value_of_counts(gained, lost)


def p_value_of_counts(gained: int, lost: int) -> float:
    """Return the p-value of `mcnemar_p_value` from the rows where the first alone, or the second alone, is right."""
    return float(binomtest(gained, gained + lost, alternative="greater").pvalue) if gained + lost else 1.0


def paper_objective(scores: Mapping[str, float]) -> float:
    """Return the paper's search objective, AUC + (1 - GPA) + (1 - AUDC), of a model's scores: more is better."""
    return scores["auc"] + (1 - scores["gpa"]) + (1 - scores["audc"])


def _scores_and_labels(y_true: Any, y_score: Any) -> tuple[NDArray, list, NDArray[np.intp]]:
    """Return finite scores (n, C), the sorted labels, and each row's position among them."""
    scores = _as_scores(y_score, "y_score")
    labels, numbers = _as_labels(y_true, "y_true")
    _check_rows("y_true", len(numbers), "y_score", len(scores))
    return scores, labels, numbers


def _as_scores(values: Any, name: str) -> NDArray:
    """Return finite floats of shape (n, C), C = 1 for one dimension."""
    try:
        scores = np.asarray(values)
        scores = scores if scores.dtype in (np.float32, np.float64) else scores.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be numbers without missing values: {error}.") from error
    if scores.ndim not in (1, 2) or scores.size == 0:
        raise InputError(f"{name} must have shape (n,) or (n, C) with n > 0, got {scores.shape}.", remedy="Reshape it.")
    if not np.isfinite(scores).all():
        row = np.argwhere(~np.isfinite(scores))[0, 0]
        raise InputError(f"{name} is {scores[row]} in row {row}.", remedy="Drop or fill rows with NaN or infinity.")
    return scores.reshape(len(scores), -1)


def _as_groups(values: Any, other: str, n_rows: int, name: str = "sensitive_features") -> tuple[NDArray[np.intp], int]:
    """Return each row's group 0..K-1 and K >= 2; several columns intersect."""
    first, *more = [_encoded(column, name) for column in _columns_of(values, name)]
    labels, codes = first
    for inner, inner_codes in more:
        labels, codes = np.unique(codes * len(inner) + inner_codes, return_inverse=True)  # cells with rows
    _check_rows(name, len(codes), other, n_rows)
    if len(labels) < 2:
        raise InputError(f"{name} has one group, {first[0]}.", remedy="Pass rows of at least 2 groups.")
    if len(labels) > MAX_GROUPS:
        raise InputError(f"{name} has {len(labels)} groups, over {MAX_GROUPS}.", remedy="Bin numbers or merge groups.")
    return codes, len(labels)


def _as_labels(values: Any, name: str) -> tuple[list, NDArray[np.intp]]:
    columns = _columns_of(values, name)
    if len(columns) != 1:
        raise InputError(f"{name} has {len(columns)} columns.", remedy="Pass one label per row.")
    return _encoded(columns[0], name)


def _columns_of(values: Any, name: str) -> list[Any]:
    """Return the columns of a frame, series, array or list; lists become objects, so that NaN stays NaN."""
    if hasattr(values, "columns"):
        return [column for label in values.columns for column in _columns_of(values[label], name)]
    if hasattr(values, "factorize"):  # pandas knows its own
        return [values]
    array = np.asarray(values, dtype=None if hasattr(values, "__array__") else object)
    if array.ndim not in (1, 2) or array.size == 0:
        raise InputError(f"{name} must have shape (n,) or (n, columns), got {array.shape}.", remedy="Reshape it.")
    return list(array.reshape(len(array), -1).T)


def _encoded(column: Any, name: str) -> tuple[list, NDArray[np.intp]]:
    """Return the sorted labels of a column and each row's position among them."""
    if isinstance(column, np.ndarray) and column.dtype.kind == "U":
        found, codes = _unique_text(column)
    else:
        codes, found = pd.factorize(column)
    if (codes < 0).any():
        raise InputError(f"{name} has missing values.", remedy="Drop those rows or give them a label of their own.")
    labels = list(found)
    try:
        order = sorted(range(len(labels)), key=labels.__getitem__)
    except TypeError:  # labels of several types
        order = sorted(range(len(labels)), key=lambda i: str(labels[i]))
    return [labels[i] for i in order], np.argsort(order)[codes]


def _unique_text(column: NDArray) -> tuple[NDArray, NDArray]:
    """Return np.unique with inverse, first trying the labels of about 1000 rows: text is slow to sort."""
    labels = np.unique(column[:: len(column) // 1000 + 1])
    codes = np.minimum(np.searchsorted(labels, column), len(labels) - 1)
    return (labels, codes) if (labels[codes] == column).all() else np.unique(column, return_inverse=True)


def _check_rows(name: str, n: int, other: str, n_other: int) -> None:
    if n != n_other:
        raise InputError(f"{name} has {n} rows and {other} has {n_other}.", remedy="Pass one value per row to both.")
