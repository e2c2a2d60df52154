"""What you may pass to a measure: arrays, lists, pandas and polars, as numbers, labels or groups."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbits.errors import InputError

MAX_GROUPS = 1000  # time grows with the pairs of groups; more is a continuous column by mistake


def as_scores(values: Any, name: str) -> NDArray:
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
        remedy = "Drop or fill rows with NaN or infinity."
        raise InputError(f"{name} is {scores[row]} in row {row}.", remedy=remedy)
    return scores.reshape(len(scores), -1)


def as_groups(values: Any, other: str, n_rows: int, name: str = "sensitive_features") -> tuple[NDArray[np.intp], int]:
    """Return each row's group 0..K-1 and K >= 2; several columns intersect."""
    first, *more = [encoded(column, name) for column in columns_of(values, name)]
    labels, codes = first
    for inner, inner_codes in more:
        labels, codes = np.unique(codes * len(inner) + inner_codes, return_inverse=True)  # cells with rows
    check_rows(name, len(codes), other, n_rows)
    if len(labels) < 2:
        raise InputError(f"{name} has one group, {first[0]}.", remedy="Pass rows of at least 2 groups.")
    if len(labels) > MAX_GROUPS:
        raise InputError(f"{name} has {len(labels)} groups, over {MAX_GROUPS}.", remedy="Bin numbers or merge groups.")
    return codes, len(labels)


def as_labels(values: Any, name: str) -> tuple[list, NDArray[np.intp]]:
    """Return the sorted labels of the only column and each row's position among them."""
    columns = columns_of(values, name)
    if len(columns) != 1:
        raise InputError(f"{name} has {len(columns)} columns.", remedy="Pass one label per row.")
    return encoded(columns[0], name)


def columns_of(values: Any, name: str) -> list[Any]:
    """Return the columns of a frame, series, array or list; lists become objects, so that NaN stays NaN."""
    if hasattr(values, "columns"):
        return [values[column] for column in values.columns]
    if hasattr(values, "factorize") or hasattr(values, "to_list"):
        return [values]
    array = values if isinstance(values, np.ndarray) else np.asarray(values, dtype=object)
    if array.ndim not in (1, 2) or array.size == 0:
        raise InputError(f"{name} must have shape (n,) or (n, columns), got {array.shape}.", remedy="Reshape it.")
    return list(array.reshape(len(array), -1).T)


def encoded(column: Any, name: str) -> tuple[list, NDArray[np.intp]]:
    """Return the sorted labels of a column and each row's position among them."""
    if isinstance(column, np.ndarray) and column.dtype.kind == "U":
        found, codes = _unique_text(column)
    else:
        if hasattr(column, "to_list") and not hasattr(column, "factorize"):  # polars
            column = np.array(column.to_list(), dtype=object)
        codes, found = pd.factorize(column)
    if (codes < 0).any():
        remedy = "Drop those rows or give them a label of their own."
        raise InputError(f"{name} has missing values.", remedy=remedy)
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


def check_rows(name: str, n: int, other: str, n_other: int) -> None:
    """Raise unless two arguments have equally many rows."""
    if n != n_other:
        raise InputError(f"{name} has {n} rows and {other} has {n_other}.", remedy="Pass one value per row to both.")
