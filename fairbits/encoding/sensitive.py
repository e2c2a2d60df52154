"""Turn `sensitive_features` into groups 0..K-1 with names."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fairbits.encoding.columns import (
    as_codes,
    as_numbers,
    column_at,
    column_kind,
    is_frame,
    label,
    one_column,
)
from fairbits.errors import InputError

MAX_LABELS = 50


class BinnedSensitiveFeaturesWarning(UserWarning):
    """A sensitive column of numbers was cut into bins at its quantiles."""


def default_names(n_columns: int) -> list[str]:
    """Return the names given to columns that come without: `sensitive_features`, or `s0`, `s1`, ..."""
    return ["sensitive_features"] if n_columns == 1 else [f"s{i}" for i in range(n_columns)]


def sensitive_columns(sensitive_features: Any) -> dict[str, Any]:
    """Return the columns of a 1-d or 2-d array, list, Series, frame or dict by name.

    >>> list(sensitive_columns({"sex": ["F", "M"], "age": [20, 30]})), list(sensitive_columns(["F", "M"]))
    (['sex', 'age'], ['sensitive_features'])
    """
    if sensitive_features is None or isinstance(sensitive_features, str):
        raise TypeError(f"sensitive_features={sensitive_features!r} is not a column; pass one value per row")
    if isinstance(sensitive_features, Mapping):
        pairs = [(key, one_column(values)) for key, values in sensitive_features.items()]
    elif is_frame(sensitive_features):
        names = sensitive_features.columns
        pairs = [(name, column_at(sensitive_features, i)) for i, name in enumerate(names)]
    else:
        pairs = _unframed(sensitive_features)
    columns = {str(name): values for name, values in pairs}
    if not columns or len(columns) < len(pairs):
        found = [str(name) for name, _ in pairs]
        raise InputError(f"sensitive_features has the columns {found}; pass one or more, each name once")
    return columns


def _unframed(sensitive_features: Any) -> list[tuple[str, Any]]:
    values = one_column(sensitive_features)
    if values.ndim == 1:
        name = getattr(sensitive_features, "name", None)
        return [(default_names(1)[0] if name in (None, "") else name, values)]
    if values.ndim != 2:
        raise InputError(f"sensitive_features has shape {values.shape}; pass (n,) or (n, columns)")
    return list(zip(default_names(values.shape[1]), values.T, strict=True))


def check_length(columns: dict[str, Any], n_rows: int | None = None) -> None:
    """Raise unless every sensitive column has `n_rows` values (of the first column, if None).

    >>> check_length({"sex": ["F", "M"]}, n_rows=2)
    """
    wanted = len(next(iter(columns.values()))) if n_rows is None else n_rows
    if wanted == 0:
        raise InputError("sensitive_features has 0 rows; pass one value per row of X")
    for name, values in columns.items():
        if len(values) != wanted:
            raise InputError(
                f"sensitive_features: {name!r} has {len(values)} values for {wanted} rows of X; "
                "pass the values themselves, one per row of X"
            )


def check_complete(name: str, values: Any) -> None:
    """Raise if a sensitive column has missing or infinite values."""
    bad = pd.isna(values) if column_kind(values) != "number" else ~np.isfinite(as_numbers(values))
    n_bad = int(np.count_nonzero(bad))
    if n_bad:
        raise InputError(
            f"sensitive_features: {name!r} is missing (or infinite) in {n_bad} of {len(values)} rows; "
            "drop these rows or make it a category of its own, such as 'unknown'"
        )


def quantile_edges(x: np.ndarray, n_bins: int) -> list[float]:
    """Return the edges of at most `n_bins` bins [a, b) of about equal size, cut at values of `x`.

    Ties never straddle a cut; where they swallow all quantiles two bins remain.

    >>> quantile_edges(np.arange(8.0), 4), quantile_edges(np.array([0, 0, 0, 0, 5, 9.0]), 2)
    ([0.0, 2.0, 4.0, 6.0, 7.0], [0.0, 5.0, 9.0])
    """
    cuts = np.quantile(x, np.arange(1, n_bins) / n_bins, method="higher")
    above_lowest = x[x > x.min()].min()
    return [float(edge) for edge in (x.min(), *np.unique(np.maximum(cuts, above_lowest)), x.max())]


def bin_labels(edges: list[float]) -> list[str]:
    """Return `[a, b)` per bin, the last one closed, edges to 6 digits unless that makes two alike."""
    texts = [label(edge) if abs(edge) < 1e9 and edge.is_integer() else f"{edge:.6g}" for edge in edges]
    if len(set(texts[:-1])) < len(edges) - 1:
        texts = [repr(edge) for edge in edges]
    return intervals(texts)


def intervals(texts: list[str]) -> list[str]:
    """Return `[a, b)` between each two edges, the last one closed.

    >>> intervals(["1960", "1970", "1980"])
    ['[1960, 1970)', '[1970, 1980]']
    """
    ends = [")"] * (len(texts) - 2) + ["]"]
    return [f"[{low}, {high}{end}" for low, high, end in zip(texts, texts[1:], ends, strict=False)]


@dataclass(frozen=True)
class SensitiveColumn:
    """One sensitive column: the labels of its values, and the edges if its numbers were binned."""

    name: str
    labels: list[str]
    edges: list[float] | None = None

    @classmethod
    def fit(cls, name: str, values: Any, *, n_bins: int, max_values: int) -> "SensitiveColumn":
        check_complete(name, values)
        if column_kind(values) != "number":
            return cls(name, cls._checked(name, sorted({label(v) for v in as_codes(values)[1]})))
        x = as_numbers(values)
        distinct = np.sort(pd.unique(x))
        if len(distinct) <= max_values:
            return cls(name, cls._checked(name, [label(v) for v in distinct]))
        column = cls(name, bin_labels(edges := quantile_edges(x, n_bins)), edges)
        column._warn(len(distinct), max_values)
        return column

    @staticmethod
    def _checked(name: str, labels: list[str]) -> list[str]:
        if len(labels) > MAX_LABELS:
            raise InputError(
                f"sensitive_features: {name!r} has {len(labels)} distinct values ({', '.join(labels[:3])}, "
                f"...), more than {MAX_LABELS} groups; merge them into fewer, or leave an identifier out"
            )
        return labels

    def _warn(self, n_distinct: int, max_values: int) -> None:
        message = (
            f"sensitive_features: {self.name!r} has {n_distinct} distinct numbers, more than "
            f"max_values={max_values}; it was cut at its quantiles into {', '.join(self.labels)}. To "
            "choose the groups yourself pass categories, for example pandas.cut(values, edges).astype(str)"
        )
        warnings.warn(message, BinnedSensitiveFeaturesWarning, stacklevel=5)

    def codes(self, values: Any) -> np.ndarray:
        """Return 0..K-1 per row; numbers beyond the outer edges belong to the outer bins."""
        check_complete(self.name, values)
        if self.edges is not None:
            return np.searchsorted(self.edges[1:-1], self._numbers(values), side="right")
        codes, distinct = as_codes(values)
        places = {text: i for i, text in enumerate(self.labels)}
        place = np.array([places.get(label(v), -1) for v in distinct], dtype=np.int64)[codes]
        if place.min(initial=0) < 0:
            unseen = np.flatnonzero(place < 0)
            self._raise_unseen(label(distinct[codes[unseen[0]]]), len(unseen))
        return place

    def _numbers(self, values: Any) -> np.ndarray:
        try:
            return as_numbers(values)
        except ValueError as error:
            message = f"sensitive_features: {self.name!r} held numbers in fit: {error}; pass numbers again"
            raise InputError(message) from error

    def _raise_unseen(self, text: str, n_rows: int) -> None:
        raise InputError(
            f"sensitive_features: {self.name!r} is {text!r}, unseen in fit ({n_rows} rows of unseen groups); "
            f"known are {self.labels}: merge it into one of them, drop its rows, or fit with it"
        )

    def titled(self, code: int) -> str:
        """Return `sex=Female` or `age in [17, 28)`."""
        return f"{self.name}{'=' if self.edges is None else ' in '}{self.labels[code]}"

    def group_names(self) -> list[str]:
        """Return the names of the groups this column makes on its own."""
        return self.labels if self.edges is None else [self.titled(code) for code in range(len(self.labels))]
