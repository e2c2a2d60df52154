"""Sensitive columns become group numbers 0..K-1 with names, crossed or each on its own."""

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Self

import narwhals as nw
import numpy as np
import pandas as pd
from sklearn.exceptions import NotFittedError

from fairbits.encoding.columns import (
    ColumnsMismatchError,
    absent,
    as_codes,
    as_frame,
    as_numbers,
    column_kind,
    label,
    label_places,
    one_column,
)
from fairbits.errors import InputError, InputTypeError, InputWarning
from fairbits.settings import check_settings, setting
from fairbits.storage import need

MAX_LABELS = 50
MAX_TEXT = 2**25  # characters of all names that are made of other names: a long one times many


class UnseenGroupError(InputError):
    """Rows belong to a group that fit did not see: `group` of `column`, one of `rows` rows of unseen groups."""

    def __init__(self, column: str, group: str, rows: int, remedy: str):
        about = f"Group {group!r} of the sensitive column {column!r} was unseen in fit"
        super().__init__(f"{about} ({rows} rows of unseen groups).", remedy=remedy)
        self.column, self.group, self.rows = column, group, rows


class SmallGroupError(InputError):
    """A `group` of a sensitive `column` has `rows` rows, fewer than `least`."""

    def __init__(self, group: str, column: str, rows: int, least: int, remedy: str):
        super().__init__(f"Group {group!r} of {column!r} has {rows} rows; at least {least} are needed.", remedy=remedy)
        self.group, self.column, self.rows, self.least = group, column, rows, least


class BinnedSensitiveFeaturesWarning(InputWarning):
    """A sensitive `column` with `distinct` different numbers was cut at its quantiles into groups, the `labels`."""

    def __init__(self, column: str, distinct: int, labels: list[str]):
        about = f"The sensitive column {column!r} has {distinct} distinct numbers and was cut at its quantiles into"
        remedy = "To choose the groups yourself, pass categories, such as pandas.cut(values, edges).astype(str)."
        super().__init__(f"{about} {', '.join(labels)}.", remedy=remedy)
        self.column, self.distinct, self.labels = column, distinct, labels


def default_names(n_columns: int) -> list[str]:
    """Return the names given to columns that come without: `sensitive_features`, or `s0`, `s1`, ..."""
    return ["sensitive_features"] if n_columns == 1 else [f"s{i}" for i in range(n_columns)]


def sensitive_columns(sensitive_features: Any, n_rows: int | None = None) -> dict[str, Any]:
    """Return the columns of a 1-d or 2-d array, list, Series, frame or dict by name, all of `n_rows` values.

    >>> list(sensitive_columns({"sex": ["F", "M"], "age": [20, 30]})), list(sensitive_columns(["F", "M"]))
    (['sex', 'age'], ['sensitive_features'])
    """
    if sensitive_features is None or isinstance(sensitive_features, str):
        about = {"argument": "sensitive_features", "value": sensitive_features}
        raise InputTypeError("is not a column.", **about, remedy="Pass one value per row.")
    frame = as_frame(sensitive_features)
    if isinstance(sensitive_features, Mapping):
        pairs = [(key, one_column(values)) for key, values in sensitive_features.items()]
    elif isinstance(frame, nw.DataFrame):
        pairs = [(name, one_column(frame[:, i])) for i, name in enumerate(frame.columns)]
    else:
        values = one_column(sensitive_features)
        if values.ndim not in (1, 2):
            problem = f"The sensitive columns have the shape {values.shape}."
            raise InputError(problem, remedy="Pass (n,) or (n, columns).")
        parts, name = [values] if values.ndim == 1 else list(values.T), getattr(sensitive_features, "name", None)
        pairs = list(zip(default_names(len(parts)) if name in (None, "") else [name], parts, strict=True))
    columns = {str(name): values for name, values in pairs}
    if not columns or len(columns) < len(pairs):
        found = [str(name) for name, _ in pairs]
        raise InputError(f"The sensitive columns are {found}.", remedy="Pass one or more, each name once.")
    wanted = len(pairs[0][1]) if n_rows is None else n_rows
    if wanted == 0:
        raise InputError("The sensitive columns have 0 rows.", remedy="Pass one value per row of X.")
    for name, values in columns.items():
        if len(values) != wanted:
            problem = f"The sensitive column {name!r} has {len(values)} values for {wanted} rows."
            raise InputError(problem, remedy="Pass the values themselves, one per row of X, not names of columns.")
    return columns


def quantile_cuts(x: np.ndarray, n_bins: int, counts: np.ndarray | None = None) -> list[float]:
    """Return where to cut `x` into at most `n_bins` bins of about equal size: values of `x`, not its ends.

    Ties never straddle a cut; where they swallow all quantiles two bins remain. `counts` say how often a value occurs.

    >>> quantile_cuts(np.arange(8.0), 4), quantile_cuts(np.array([0, 0, 0, 0, 5, 9.0]), 2)
    ([2.0, 4.0, 6.0], [5.0])
    >>> quantile_cuts(np.array([0, 5, 9.0]), 2, counts=np.array([4, 1, 1]))
    [5.0]
    """
    order, counts = np.argsort(x), np.ones(len(x), np.int64) if counts is None else counts
    ends = counts[order].cumsum()
    places = np.ceil(np.arange(1, n_bins) / n_bins * (ends[-1] - 1))  # as numpy.quantile(method="higher") has them
    cuts = x[order][np.searchsorted(ends, places, side="right")]
    return [float(cut) for cut in np.unique(np.maximum(cuts, x[x > x.min()].min()))]


def bin_labels(cuts: list[float], *, closed: bool = False) -> list[str]:
    """Return the names of bins, with cuts to 6 digits unless that makes two alike; `closed` by all their edges.

    >>> bin_labels([30.0, 45.5])
    ['under 30', '30 to under 45.5', '45.5 and over']
    """
    texts = [label(cut) if abs(cut) < 1e9 and cut.is_integer() else f"{cut:.6g}" for cut in cuts]
    own = texts[:-1] if closed else texts
    texts = texts if len(set(own)) == len(own) else [repr(cut) for cut in cuts]
    return closed_intervals(texts) if closed else open_intervals(texts)


def open_intervals(texts: list[str], below: str = "under", above: str = "and over") -> list[str]:
    """Return names of bins that say nothing about the least and the largest value.

    >>> open_intervals(["1960", "1970"], "before", "or later")
    ['before 1960', '1960 to before 1970', '1970 or later']
    """
    between = [f"{low} to {below} {high}" for low, high in pairwise(texts)]
    return [f"{below} {texts[0]}", *between, f"{texts[-1]} {above}"]


def closed_intervals(texts: list[str]) -> list[str]:
    """Return `[a, b)` between each two edges, the last one closed, as versions 0.1 and 0.2 named bins.

    >>> closed_intervals(["1960", "1970", "1980"])
    ['[1960, 1970)', '[1970, 1980]']
    """
    pairs = [f"[{low}, {high}" for low, high in pairwise(texts)]
    return [f"{pair})" for pair in pairs[:-1]] + [f"{pairs[-1]}]"]


@dataclass(frozen=True)
class SensitiveColumn:
    """One sensitive column: the labels of its values, and the edges between its bins if its numbers were binned."""

    name: str
    labels: list[str]
    edges: list[float] | None = None

    @classmethod
    def fit(cls, name: str, values: Any, rules: Any) -> Self:
        """Learn a column by the `n_bins` and `max_values` of an encoder."""
        check_complete(name, values)
        if column_kind(values) == "number":
            distinct = np.sort(pd.unique(x := as_numbers(values)))
            if len(distinct) > rules.max_values:
                column = cls(name, bin_labels(edges := quantile_cuts(x, rules.n_bins)), edges)
                warnings.warn(BinnedSensitiveFeaturesWarning(name, len(distinct), column.labels), stacklevel=4)
                return column
            labels = [label(v) for v in distinct]
        elif getattr(values.dtype, "ordered", False):
            found = {label(v) for v in as_codes(values)[1]}
            labels = [text for text in map(label, values.dtype.categories) if text in found]
        else:
            labels = sorted({label(v) for v in as_codes(values)[1]})
        if len(labels) > MAX_LABELS:
            some = f"{len(labels)} distinct values ({', '.join(labels[:3])}, ...)"
            problem = f"The sensitive column {name!r} has {some}, more than {MAX_LABELS} groups."
            raise InputError(problem, remedy="Merge them into fewer, or leave the column out if it identifies people.")
        return cls(name, labels)

    def codes(self, values: Any) -> np.ndarray:
        """Return 0..K-1 per row."""
        check_complete(self.name, values)
        if self.edges is not None:
            try:
                return np.searchsorted(self.edges, as_numbers(values), side="right")
            except ValueError as error:
                problem = f"The sensitive column {self.name!r} held numbers in fit: {error}."
                raise InputError(problem, remedy="Pass numbers again.") from error
        place = label_places(values, self.labels)
        unseen = np.flatnonzero(place < 0)
        if len(unseen):
            remedy = f"Known are {self.labels}: merge it into one of them, drop its rows, or fit with it."
            raise UnseenGroupError(self.name, label(pd.Series(values).iloc[unseen[0]]), len(unseen), remedy)
        return place

    def titled(self, code: int) -> str:
        """Return `sex=Female` or `age under 28`."""
        return f"{self.name}{'=' if self.edges is None else ' '}{self.labels[code]}"

    def group_names(self) -> list[str]:
        """Return the names of the groups this column makes on its own."""
        return self.labels if self.edges is None else [self.titled(code) for code in range(len(self.labels))]


def check_complete(name: str, values: Any) -> None:
    """Raise if a sensitive column has missing values or infinite numbers."""
    if missing := int(np.count_nonzero(absent(values))):
        problem = f"The sensitive column {name!r} is missing (or infinite) in {missing} of {len(values)} rows."
        raise InputError(problem, remedy="Drop these rows or give them a category of their own, such as 'unknown'.")


@dataclass(eq=False)
class GroupEncoder:
    """Encode `sensitive_features` as group numbers 0..K-1.

    Accepts 1-d and 2-d arrays, lists, columns and frames of pandas, polars and pyarrow, and dicts of columns. A column
    of numbers with more than `max_values` distinct ones is cut at its quantiles, with a warning that states the bins.
    Missing values, a single group, and groups under `min_group_size` raise InputError.

    Parameters
    ----------
    groups : {"intersection", "each"}, cross the columns, or take each on its own.
    n_bins : int, quantile bins of a column of numbers.
    max_values : int, distinct numbers a column may have without being binned.
    min_group_size : int, rows every group must have in fit.

    Attributes
    ----------
    columns_ : list of str, the sensitive columns.
    titles_ : list of str, what to call each coded column: `sex x race` for an intersection.
    names_ : list of lists of str, group names per coded column ("intersection" has one coded column).
    sizes_ : list of lists of int, rows per group in fit.
    levels_ : list, what was learnt per sensitive column: name, labels, and the edges between bins of numbers. The
        labels of ordered categories are in their order. No least or largest number is kept.

    Examples
    --------
    >>> encoder = GroupEncoder(min_group_size=1)
    >>> encoder.fit({"sex": ["F", "M", "F"], "race": ["B", "B", "W"]}).names_
    [['sex=F, race=B', 'sex=F, race=W', 'sex=M, race=B']]
    >>> encoder.transform({"sex": ["M", "F"], "race": ["B", "W"]}).tolist()
    [[2], [1]]
    """

    groups: str = setting("intersection", one_of=("intersection", "each"))
    n_bins: int = setting(4, at_least=2, whole=True)
    max_values: int = setting(10, at_least=2, whole=True)
    min_group_size: int = setting(10, at_least=1, whole=True)

    def fit(self, sensitive_features: Any, *, n_rows: int | None = None) -> Self:
        """Learn the groups; if you pass `n_rows`, every column must have so many values."""
        check_settings(self)
        columns = sensitive_columns(sensitive_features, n_rows)
        self.levels_ = [SensitiveColumn.fit(name, values, self) for name, values in columns.items()]
        numbers = self._numbers(columns)
        self.sizes_ = [np.unique(column, return_counts=True)[1].tolist() for column in numbers.T]
        self.cells_ = np.unique(numbers) if self.groups == "intersection" else None
        self._check_sizes()
        return self

    def transform(self, sensitive_features: Any, *, n_rows: int | None = None) -> np.ndarray:
        """Return int64 codes (n, C): C = 1 for "intersection", the number of columns for "each"."""
        if not hasattr(self, "levels_"):
            raise NotFittedError("GroupEncoder has not learnt any groups yet; call fit first")
        columns, own = sensitive_columns(sensitive_features, n_rows), self.columns_
        unnamed, found = default_names(len(own)), list(columns)
        if set(found) != set(own):  # then take unnamed columns by position
            if len(found) != len(own) or unnamed not in (found, own):
                problem = f"The sensitive columns are {found}; fit had {own}."
                raise ColumnsMismatchError(problem, found=found, fitted=own, remedy="Pass the columns of fit.")
            columns = dict(zip(own, columns.values(), strict=True))
        numbers = self._numbers(columns)
        if self.cells_ is None:
            return numbers
        places = np.searchsorted(self.cells_, numbers).clip(max=len(self.cells_) - 1)
        unseen = numbers[self.cells_[places] != numbers]
        if len(unseen):
            remedy = "Drop these rows, merge categories, or fit with groups='each'."
            raise UnseenGroupError(self.titles_[0], self._crossed_name(unseen[0]), len(unseen), remedy)
        return places

    def restore(self, levels: list[SensitiveColumn], cells: list[int] | None) -> Self:
        """Know the groups that a file holds; raise ValueError if no fit can have learnt them.

        Versions 0.1 and 0.2 also kept the outer edges of bins, which are left out.
        """
        check_settings(self)
        shape = [len(level.labels) for level in levels]
        need(len({level.name for level in levels}) == len(shape) > 0, "two sensitive columns have the same name")
        self.levels_ = []
        for level, n in zip(levels, shape, strict=True):
            column, edges = f"the sensitive column {level.name[:40]!r}", level.edges
            need(0 < n == len(set(level.labels)), f"two labels of {column} are the same, or it has none")
            rising = edges is None or (len(edges) in (n - 1, n + 1) and edges == sorted(edges))
            need(rising, f"the edges of {column} do not rise between its bins")
            self.levels_.append(level if edges is None or len(edges) < n else replace(level, edges=edges[1:-1]))
        need(
            (cells is not None) == (self.groups == "intersection"), "cells are for groups='intersection', needed there"
        )
        if cells is not None:
            combinations = math.prod(shape)
            rising = bool(cells) and cells == sorted(set(cells)) and cells[-1] < combinations
            need(rising, "the cells are not numbers of combinations in rising order")
            need(len(shape) > 1 or len(cells) == shape[0], f"{len(cells)} cells for a column of {shape[0]} groups")
            longest = sum(len(level.name) + max(map(len, level.labels)) + 6 for level in levels)
            short = combinations < 2**63 and len(cells) * longest <= MAX_TEXT
            need(short, "the names of the crossed groups would be too long")
        self.cells_ = None if cells is None else np.array(cells, dtype=np.int64)
        return self

    @property
    def columns_(self) -> list[str]:
        return [level.name for level in self.levels_]

    @property
    def titles_(self) -> list[str]:
        return self.columns_ if self.cells_ is None else [" x ".join(self.columns_)]

    @property
    def names_(self) -> list[list[str]]:
        if self.cells_ is None or len(self.levels_) == 1:
            return [level.group_names() for level in self.levels_]
        return [[self._crossed_name(cell) for cell in self.cells_]]

    @property
    def _shape(self) -> tuple[int, ...]:
        return tuple(len(level.labels) for level in self.levels_)

    def _numbers(self, columns: dict[str, Any]) -> np.ndarray:
        """Return the codes of every column (n, columns), or of the combinations among all that are possible (n, 1)."""
        codes = np.column_stack([level.codes(columns[level.name]) for level in self.levels_]).astype(np.int64)
        return codes if self.groups == "each" else np.ravel_multi_index(tuple(codes.T), self._shape)[:, None]

    def _crossed_name(self, cell: int) -> str:
        codes = np.unravel_index(cell, self._shape)
        return ", ".join(level.titled(int(code)) for level, code in zip(self.levels_, codes, strict=True))

    def _check_sizes(self) -> None:
        crossed = len(self.titles_) < len(self.columns_)
        for title, names, sizes in zip(self.titles_, self.names_, self.sizes_, strict=True):
            if len(names) < 2:
                problem = f"The sensitive column {title!r} has only one group, {names[0]!r}."
                raise InputError(problem, remedy="Pass rows of two or more groups, or leave the column out.")
            small = int(np.argmin(sizes))
            if sizes[small] < self.min_group_size:
                each = "Use groups='each' (every column on its own), merge" if crossed else "Merge"
                remedy = f"{each} categories, or lower min_group_size={self.min_group_size}."
                raise SmallGroupError(names[small], title, sizes[small], self.min_group_size, remedy)
