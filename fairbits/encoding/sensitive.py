"""Turn sensitive columns into groups 0..K-1 with names."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from fairbits.encoding.columns import absent, as_codes, as_frame, as_numbers, column_kind, label, one_column
from fairbits.errors import InputError, InputTypeError, InputWarning

MAX_LABELS = 50


class UnseenGroupError(InputError):
    """Rows belong to a group that fit did not see: `group` of `column`, one of `rows` rows of unseen groups."""

    def __init__(self, column: str, group: str, rows: int, remedy: str):
        about = f"Group {group!r} of the sensitive column {column!r} was unseen in fit"
        super().__init__(f"{about} ({rows} rows of unseen groups).", remedy=remedy)
        self.column, self.group, self.rows = column, group, rows


class BinnedSensitiveFeaturesWarning(InputWarning):
    """A sensitive `column` with `distinct` different numbers was cut at its quantiles into groups, the `labels`."""

    def __init__(self, column: str, distinct: int, labels: list[str]):
        super().__init__(
            f"The sensitive column {column!r} has {distinct} distinct numbers and was cut at its quantiles into "
            f"{', '.join(labels)}.",
            remedy="To choose the groups yourself, pass categories, such as pandas.cut(values, edges).astype(str).",
        )
        self.column, self.distinct, self.labels = column, distinct, labels


def default_names(n_columns: int) -> list[str]:
    """Return the names given to columns that come without: `sensitive_features`, or `s0`, `s1`, ..."""
    return ["sensitive_features"] if n_columns == 1 else [f"s{i}" for i in range(n_columns)]


def sensitive_columns(sensitive_features: Any) -> dict[str, Any]:
    """Return the columns of a 1-d or 2-d array, list, Series, frame or dict by name.

    >>> list(sensitive_columns({"sex": ["F", "M"], "age": [20, 30]})), list(sensitive_columns(["F", "M"]))
    (['sex', 'age'], ['sensitive_features'])
    """
    if sensitive_features is None or isinstance(sensitive_features, str):
        raise InputTypeError(
            "is not a column.",
            argument="sensitive_features",
            value=sensitive_features,
            remedy="Pass one value per row.",
        )
    frame = as_frame(sensitive_features)
    if isinstance(sensitive_features, Mapping):
        pairs = [(key, one_column(values)) for key, values in sensitive_features.items()]
    elif isinstance(frame, nw.DataFrame):
        pairs = [(name, one_column(frame[:, i])) for i, name in enumerate(frame.columns)]
    else:
        pairs = _unframed(sensitive_features)
    columns = {str(name): values for name, values in pairs}
    if not columns or len(columns) < len(pairs):
        found = [str(name) for name, _ in pairs]
        raise InputError(f"The sensitive columns are {found}.", remedy="Pass one or more, each name once.")
    return columns


def _unframed(sensitive_features: Any) -> list[tuple[Any, Any]]:
    values = one_column(sensitive_features)
    if values.ndim == 1:
        name = getattr(sensitive_features, "name", None)
        return [(default_names(1)[0] if name in (None, "") else name, values)]
    if values.ndim != 2:
        raise InputError(f"The sensitive columns have the shape {values.shape}.", remedy="Pass (n,) or (n, columns).")
    return list(zip(default_names(values.shape[1]), values.T, strict=True))


def check_length(columns: dict[str, Any], n_rows: int | None = None) -> None:
    """Raise unless every sensitive column has `n_rows` values (as many as the first column, if None).

    >>> check_length({"sex": ["F", "M"]}, n_rows=2)
    """
    wanted = len(next(iter(columns.values()))) if n_rows is None else n_rows
    if wanted == 0:
        raise InputError("The sensitive columns have 0 rows.", remedy="Pass one value per row of X.")
    for name, values in columns.items():
        if len(values) != wanted:
            raise InputError(
                f"The sensitive column {name!r} has {len(values)} values for {wanted} rows.",
                remedy="Pass the values themselves, one per row of X, not names of columns.",
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
    """Return the names of bins, with edges to 6 digits unless that makes two alike."""
    texts = [label(edge) if abs(edge) < 1e9 and edge.is_integer() else f"{edge:.6g}" for edge in edges]
    return intervals(texts if len(set(texts[:-1])) == len(edges) - 1 else [repr(edge) for edge in edges])


def intervals(texts: list[str]) -> list[str]:
    """Return `[a, b)` between each two edges, the last one closed.

    >>> intervals(["1960", "1970", "1980"])
    ['[1960, 1970)', '[1970, 1980]']
    """
    pairs = [f"[{low}, {high}" for low, high in pairwise(texts)]
    return [f"{pair})" for pair in pairs[:-1]] + [f"{pairs[-1]}]"]


@dataclass(frozen=True)
class SensitiveColumn:
    """One sensitive column: the labels of its values, and the edges if its numbers were binned."""

    name: str
    labels: list[str]
    edges: list[float] | None = None

    @classmethod
    def fit(cls, name: str, values: Any, *, n_bins: int, max_values: int) -> "SensitiveColumn":
        check_complete(name, values)
        if column_kind(values) == "number":
            distinct = np.sort(pd.unique(x := as_numbers(values)))
            if len(distinct) > max_values:
                column = cls(name, bin_labels(edges := quantile_edges(x, n_bins)), edges)
                warnings.warn(BinnedSensitiveFeaturesWarning(name, len(distinct), column.labels), stacklevel=4)
                return column
            labels = [label(v) for v in distinct]
        else:
            labels = sorted({label(v) for v in as_codes(values)[1]})
        if len(labels) > MAX_LABELS:
            raise InputError(
                f"The sensitive column {name!r} has {len(labels)} distinct values ({', '.join(labels[:3])}, ...), more "
                f"than {MAX_LABELS} groups.",
                remedy="Merge them into fewer, or leave the column out if it identifies people.",
            )
        return cls(name, labels)

    def codes(self, values: Any) -> np.ndarray:
        """Return 0..K-1 per row; numbers beyond the outer edges belong to the outer bins."""
        check_complete(self.name, values)
        if self.edges is not None:
            try:
                return np.searchsorted(self.edges[1:-1], as_numbers(values), side="right")
            except ValueError as error:
                problem = f"The sensitive column {self.name!r} held numbers in fit: {error}."
                raise InputError(problem, remedy="Pass numbers again.") from error
        codes, distinct = as_codes(values)
        places = {text: i for i, text in enumerate(self.labels)}
        place = np.array([places.get(label(v), -1) for v in distinct], dtype=np.int64)[codes]
        unseen = np.flatnonzero(place < 0)
        if len(unseen):
            remedy = f"Known are {self.labels}: merge it into one of them, drop its rows, or fit with it."
            raise UnseenGroupError(self.name, label(distinct[codes[unseen[0]]]), len(unseen), remedy)
        return place

    def titled(self, code: int) -> str:
        """Return `sex=Female` or `age in [17, 28)`."""
        return f"{self.name}{'=' if self.edges is None else ' in '}{self.labels[code]}"

    def group_names(self) -> list[str]:
        """Return the names of the groups this column makes on its own."""
        return self.labels if self.edges is None else [self.titled(code) for code in range(len(self.labels))]


def check_complete(name: str, values: Any) -> None:
    """Raise if a sensitive column has missing values or infinite numbers."""
    missing = int(np.count_nonzero(absent(values)))
    if missing:
        raise InputError(
            f"The sensitive column {name!r} is missing (or infinite) in {missing} of {len(values)} rows.",
            remedy="Drop these rows or give them a category of their own, such as 'unknown'.",
        )
