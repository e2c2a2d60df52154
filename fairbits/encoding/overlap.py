"""Find sensitive columns that were left inside the table."""

from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import pandas as pd

from fairbits.encoding.columns import array_of, as_codes, as_frame, as_numbers, column_kind, one_column, take_rows
from fairbits.encoding.sensitive import MAX_LABELS, check_length, default_names, sensitive_columns

SAMPLE_ROWS = 2_000
FEWEST_ROWS = 10  # below, two columns of distinct numbers are in the same order too easily


class Overlap(NamedTuple):
    """A column of X that repeats a sensitive column; its text is a sentence.

    >>> print(Overlap("gender", "sex", "is one-to-one with"))
    column 'gender' is one-to-one with the sensitive column 'sex'
    """

    column: str
    sensitive: str
    how: str

    def __str__(self) -> str:
        return f"column {self.column!r} {self.how} the sensitive column {self.sensitive!r}"


def sensitive_in_table(X: Any, sensitive_features: Any) -> list[Overlap]:
    """Return the columns of X that are named as, one-to-one with, or mark one value of a sensitive column.

    Columns without names are called by their position; missing values count as a value. A sensitive column
    that hardly repeats is one-to-one with every other such column: of these only numbers in the same or the
    reverse order are returned.

    >>> table = pd.DataFrame({"gender": [0, 1, 0, 1], "age": [20, 30, 20, 40]})
    >>> [str(found) for found in sensitive_in_table(table, pd.Series(["F", "M", "F", "M"], name="sex"))]
    ["column 'gender' is one-to-one with the sensitive column 'sex'"]
    """
    X = as_frame(X)
    X = X if isinstance(X, (nw.DataFrame, np.ndarray)) else array_of(X)
    columns = sensitive_columns(sensitive_features)
    check_length(columns, X.shape[0])
    named = isinstance(X, nw.DataFrame) and list(columns) != default_names(len(columns))
    return [found for name, values in columns.items() for found in _overlaps(X, name, values, named)]


def _overlaps(X: Any, sensitive: str, values: Any, named: bool) -> list[Overlap]:
    codes, n_values = _all_codes(values)
    relation, rows = _coded, np.linspace(0, len(codes) - 1, min(SAMPLE_ROWS, len(codes))).astype(np.int64)
    if n_values > len(codes) / 2:
        relation = _ranked
    else:  # look at the first row of each value, too
        rows = np.union1d(rows, pd.Series(codes).drop_duplicates().index)
    sample, part = X[rows], take_rows(values, rows)  # a relation of all rows holds there, too
    found = []
    for position, name in enumerate(map(str, X.columns if isinstance(X, nw.DataFrame) else range(X.shape[1]))):
        if named and name == sensitive and _all_codes(one_column(X[:, position]))[1] > 1:
            found.append(Overlap(name, sensitive, "has the name of"))
        elif relation(one_column(sample[:, position]), part) and (how := relation(one_column(X[:, position]), values)):
            found.append(Overlap(name, sensitive, how))
    return found


def _all_codes(values: Any) -> tuple[np.ndarray, int]:
    """Return codes 0..K-1, missing values being one more value, and K."""
    codes, distinct = as_codes(values)
    gaps = codes < 0
    return np.where(gaps, len(distinct), codes), len(distinct) + bool(gaps.any())


def _coded(x: Any, s: Any) -> str | None:
    """Compare columns as partitions of the rows: how does `x` repeat `s`, if at all?"""
    x_codes, n_x = _all_codes(x)
    s_codes, n_s = _all_codes(s)
    pairs = pd.unique(x_codes * n_s + s_codes)
    if n_x < 2 or len(pairs) > n_s:  # constant, or not a function of s
        return None
    if n_x == n_s:
        return "is one-to-one with"
    marks = n_x == 2 and n_s <= MAX_LABELS and 1 in np.bincount(pairs // n_s)
    return "marks one value of" if marks else None


def _ranked(x: Any, s: Any) -> str | None:
    """Compare columns of numbers by the order they put the rows in, ties included."""
    if len(s) < FEWEST_ROWS or {column_kind(x), column_kind(s)} != {"number"}:
        return None
    s = as_numbers(s)
    x, s = as_numbers(x)[order := np.argsort(s)], s[order]
    up, down, same = x[1:] > x[:-1], x[1:] < x[:-1], s[1:] == s[:-1]
    return "is one-to-one with" if (up != same).all() or (down != same).all() else None
