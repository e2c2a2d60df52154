"""What may be passed to a measure: arrays, lists, pandas and polars, as numbers, labels or groups."""

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairbits.errors import InputError

MAX_GROUPS = 1000  # time grows with the pairs of groups; more is a continuous column by mistake


def as_scores(values: Any, name: str) -> NDArray:
    """Return finite floats of shape (n, C), C = 1 for one dimension."""
    try:
        scores = np.asarray(values)
        scores = scores if scores.dtype in (np.float32, np.float64) else scores.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be numbers without missing values: {error}") from error
    if scores.ndim not in (1, 2) or scores.size == 0:
        raise InputError(f"{name} must have shape (n,) or (n, C) with n > 0, got {scores.shape}; reshape it")
    if not np.isfinite(scores).all():
        row = np.argwhere(~np.isfinite(scores))[0, 0]
        raise InputError(f"{name} is {scores[row]} in row {row}; drop or fill rows with NaN or infinity")
    return scores.reshape(len(scores), -1)


def is_soft(y_pred: Any) -> bool:
    """Return whether predictions are numbers to average rather than labels to count."""
    kind = getattr(getattr(y_pred, "dtype", None), "kind", None)  # pandas' nullable floats become objects
    values = np.asarray(y_pred, dtype=float if kind == "f" else None)
    fractional = values.dtype.kind == "f" and bool((values % 1 != 0).any())
    return fractional or (values.ndim == 2 and values.shape[1] > 1)


def as_groups(values: Any, other: str, n_rows: int, name: str = "sensitive_features") -> tuple[NDArray[np.intp], int]:
    """Return each row's group 0..K-1 and K >= 2; several columns intersect."""
    first, *more = [encoded(column, name) for column in columns_of(values, name)]
    labels, codes = first
    for inner, inner_codes in more:
        labels, codes = np.unique(codes * len(inner) + inner_codes, return_inverse=True)  # cells with rows
    check_rows(name, len(codes), other, n_rows)
    if len(labels) < 2:
        raise InputError(f"{name} has one group, {first[0]}; pass rows of at least 2 groups")
    if len(labels) > MAX_GROUPS:
        raise InputError(f"{name} has {len(labels)} groups, over {MAX_GROUPS}; bin numbers or merge groups")
    return codes, len(labels)


def as_labels(values: Any, name: str) -> tuple[list, NDArray[np.intp]]:
    columns = columns_of(values, name)
    if len(columns) != 1:
        raise InputError(f"{name} has {len(columns)} columns; pass one label per row")
    return encoded(columns[0], name)


def columns_of(values: Any, name: str) -> list[Any]:
    """Return the columns of a frame, series, array or list; lists as objects, lest NaN turn into text."""
    if hasattr(values, "columns"):
        return [values[column] for column in values.columns]
    if hasattr(values, "factorize") or hasattr(values, "to_list"):
        return [values]
    array = values if isinstance(values, np.ndarray) else np.asarray(values, dtype=object)
    if array.ndim not in (1, 2) or array.size == 0:
        raise InputError(f"{name} must have shape (n,) or (n, columns), got {array.shape}; reshape it")
    return list(array.reshape(len(array), -1).T)


def encoded(column: Any, name: str) -> tuple[list, NDArray[np.intp]]:
    """Return the sorted labels of a column and each row's position among them."""
    if hasattr(column, "factorize"):  # pandas, without a pass over Python objects
        codes, found = column.factorize()
        labels = [*found, None] if (codes < 0).any() else list(found)
    elif isinstance(column, np.ndarray) and column.dtype != object:
        found, codes = _unique(column)
        labels = list(found)
    else:  # polars, lists, objects: hashing is far faster than np.unique's comparisons
        values = column.to_list() if hasattr(column, "to_list") else column.tolist()
        position = {label: i for i, label in enumerate(dict.fromkeys(values))}
        labels, codes = list(position), np.fromiter(map(position.__getitem__, values), np.intp, len(values))
    if any(map(_is_missing, labels)):
        raise InputError(f"{name} has missing values; drop those rows or give them a label of their own")
    try:
        order = sorted(range(len(labels)), key=labels.__getitem__)
    except TypeError:  # labels of several types
        order = sorted(range(len(labels)), key=lambda i: str(labels[i]))
    return [labels[i] for i in order], np.argsort(order)[codes]


def _unique(column: NDArray) -> tuple[NDArray, NDArray]:
    """Return np.unique with inverse, first trying the labels of about 1000 rows: text is slow to sort."""
    labels = np.unique(column[:: len(column) // 1000 + 1])
    codes = np.minimum(np.searchsorted(labels, column), len(labels) - 1)
    if (labels[codes] == column).all():
        return labels, codes
    return np.unique(column, return_inverse=True)


def _is_missing(label: Any) -> bool:
    return label is None or (not isinstance(label, str) and str(label) in ("nan", "NaT", "<NA>"))


def check_rows(name: str, n: int, other: str, n_other: int) -> None:
    if n != n_other:
        raise InputError(f"{name} has {n} rows and {other} has {n_other}; pass one value per row to both")


def check_classes(labels: list, n_columns: int) -> None:
    if len(labels) < 2:
        raise InputError(f"y_true has one class, {labels}; pass rows of at least 2 classes")
    if len(labels) != max(2, n_columns):
        raise InputError(
            f"y_true has {len(labels)} classes, {labels[:5]}, and y_score {n_columns} columns; pass 1 column "
            "for 2 classes, otherwise one for each class in y_true, in sorted order"
        )


def check_thresholds(n_thresholds: int | None, scores: NDArray) -> None:
    if n_thresholds is None:
        return
    if not isinstance(n_thresholds, Integral) or n_thresholds < 1:
        raise InputError(f"n_thresholds must be a whole number from 1 or None (exact), got {n_thresholds!r}")
    low, high = scores.min(), scores.max()
    if low < -1e-6 or high > 1 + 1e-6:  # float32 softmax may pass 1 by rounding
        raise InputError(
            f"y_score ranges from {low} to {high} but thresholds from 0 to 1; pass probabilities, or n_thresholds=None"
        )
