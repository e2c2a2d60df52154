"""Columns of pandas, polars, pyarrow and numpy tables, and what `TableEncoder` learns about each of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

import narwhals as nw
import numpy as np
import pandas as pd
from pandas.api import types
from pydantic import Field

from fairbits.errors import InputError, InputTypeError

# What pandas finds inside an object column that is not text; anything else is read as categories.
OBJECT_KINDS = {
    **dict.fromkeys(["integer", "floating", "mixed-integer-float", "decimal"], "number"),
    **dict.fromkeys(["date", "datetime", "datetime64", "timedelta", "timedelta64"], "date"),
}


class ColumnsMismatchError(InputError):
    """The columns are not those that an encoder was fitted to."""

    def __init__(self, problem: str, *, found: list[str], fitted: list[str], remedy: str = ""):
        super().__init__(problem, remedy=remedy)
        self.found, self.fitted = found, fitted


def as_frame(table: Any) -> Any:
    """Return a pandas, polars or pyarrow table as a frame of narwhals, anything else as it is.

    `frame[:, i]` is a column and `frame[rows]` some rows, as of a 2-d array.
    """
    if hasattr(table, "collect"):
        raise InputTypeError(f"This table is a {type(table).__name__}.", remedy="Pass the result of its collect().")
    try:
        return nw.from_native(table, eager_only=True, pass_through=True)
    except ValueError:  # two columns of one name
        names = pd.Index(getattr(table, "column_names", table.columns))  # the first is pyarrow's
        twice = names[names.duplicated()][0]
        raise InputError(f"More than one column is named {twice!r}.", remedy="Rename or drop one of them.") from None


def one_column(values: Any) -> Any:
    """Return pandas and pyarrow columns as a Series, everything else (polars, arrays, lists) as an array."""
    if isinstance(values, (pd.Index, pd.api.extensions.ExtensionArray)):
        return pd.Series(values)
    series = nw.from_native(values, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        if series.implementation.is_pyarrow():  # narwhals' own to_pandas and to_numpy lose missing categories
            return series.to_native().to_pandas()
        return series.to_native() if series.implementation.is_pandas() else series.to_numpy()
    return values if isinstance(values, np.ndarray) else array_of(values)


def array_of(values: Sequence) -> np.ndarray:
    """Turn a list into an array without turning its numbers into text: mixed lists become object arrays.

    >>> array_of([1, "a"])
    array([1, 'a'], dtype=object)
    """
    array = np.asarray(values)
    return array if array.dtype.kind in "biufcmMO" else np.asarray(values, dtype=object)


def take_rows(part: Any, rows: np.ndarray) -> Any:
    """Return the rows at some positions of an argument of `fit`: array, frame, list, dict of columns or None."""
    if part is None:
        return None
    if isinstance(part, dict):
        return {name: take_rows(column, rows) for name, column in part.items()}
    table = nw.from_native(part, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(table, (nw.DataFrame, nw.Series)):
        return table[rows].to_native()
    return [part[row] for row in rows] if isinstance(part, (list, tuple)) else part[rows]


def column_kind(values: Any) -> str:
    """Return how a column is read: "number", "date" or "category" (text, booleans, categoricals, mixtures).

    >>> column_kind(np.array([1, 2])), column_kind(np.array([True, False])), column_kind(np.array(["a", 1.0]))
    ('number', 'category', 'category')
    """
    dtype = values.dtype
    if types.is_complex_dtype(dtype):
        raise InputError("Complex data not supported.", remedy="Pass real and imaginary parts as two columns.")
    if types.is_object_dtype(dtype):
        return OBJECT_KINDS.get(types.infer_dtype(values, skipna=True), "category")
    if types.is_datetime64_any_dtype(dtype) or types.is_timedelta64_dtype(dtype):
        return "date"
    return "number" if types.is_numeric_dtype(dtype) and not types.is_bool_dtype(dtype) else "category"


def absent(values: Any) -> np.ndarray:
    """Return which values are missing, or are infinite numbers.  (n,) bool"""
    return ~np.isfinite(as_numbers(values)) if column_kind(values) == "number" else np.asarray(pd.isna(values))


def as_numbers(values: Any) -> np.ndarray:
    """Return a column as float64, NaN where missing; text that spells a number is read as that number.

    >>> as_numbers(np.array([1, None, "2.5"], dtype=object))
    array([1. , nan, 2.5])
    """
    if column_kind(values) == "date":
        raise InputError("could not convert dates to numbers")
    return pd.Series(values).to_numpy(dtype=np.float64, na_value=np.nan)


def as_microseconds(values: Any) -> np.ndarray:
    """Return a column of dates (since 1970, UTC) or durations as float64 microseconds, NaN where missing.

    >>> as_microseconds(np.array(["1970-01-02", "NaT"], dtype="datetime64[D]"))
    array([8.64e+10,      nan])
    """
    series = pd.Series(values)
    lengths = "timedelta" in types.infer_dtype(series, skipna=True)
    times = pd.to_timedelta(series) if lengths else pd.to_datetime(series, utc=True)
    ticks = times.dt.as_unit("us").to_numpy("timedelta64[us]" if lengths else "datetime64[us]")
    return np.where(np.isnat(ticks), np.nan, ticks.view(np.int64))


def as_codes(values: Any) -> tuple[np.ndarray, Any]:
    """Return codes (-1 where missing) and the distinct values they stand for, in order of appearance.

    >>> codes, distinct = as_codes(np.array(["b", None, "a", "b"], dtype=object))
    >>> codes.tolist(), list(distinct)
    ([0, -1, 1, 0], ['b', 'a'])
    """
    # Inside mixed object columns 1 and True are equal to a hash table: compare them by their text.
    if types.is_object_dtype(values.dtype) and types.infer_dtype(values, skipna=True).startswith("mixed"):
        values = pd.Series(values).map(label, na_action="ignore").to_numpy(object)
    return pd.factorize(values)


def label_places(values: Any, labels: Sequence[str], *, unseen: int = -1, missing: int = -1) -> np.ndarray:
    """Return the place of each value among the labels.  (n,)

    >>> label_places(np.array(["b", None, "a", "c"], dtype=object), ["a", "b"], unseen=2).tolist()
    [1, -1, 0, 2]
    """
    codes, distinct = as_codes(values)
    places = {text: i for i, text in enumerate(labels)}
    return np.array([places.get(label(v), unseen) for v in distinct] + [missing], dtype=np.int64)[codes]


def label(value: Any) -> str:
    """Return the text of one value; whole floats as integers, so that 1 and 1.0 are one category.

    >>> label(1.0), label(0.5), label(True), label("x")
    ('1', '0.5', 'True', 'x')
    """
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if not types.is_scalar(value):
        problem = f"each cell argument must be a string or a number, found a {type(value).__name__}: {value!r}."
        raise InputTypeError(problem)
    whole = isinstance(value, (float, np.floating)) and float(value).is_integer()
    return str(int(value)) if whole else str(value)


class DroppedColumn(Exception):
    """Why a column is left out; `TableEncoder.fit` catches it."""


def fewest_rows(rules: Any, n_rows: int) -> int:
    """Return how many rows a value needs to be kept: the `min_category_rows` of an encoder, less in a small table."""
    return min(rules.min_category_rows, n_rows // 10)


@dataclass(frozen=True)
class NumberFeature:
    """A number, or a date or duration in seconds, scaled: (x - center) / scale; `fill` replaces what is not finite.

    A `scale` of 0 is a column with one value and gaps: only the missing-indicator is written.
    """

    kind: Literal["number", "date"]
    center: float
    scale: Annotated[float, Field(ge=0)]
    fill: float
    indicator: bool

    @classmethod
    def fit(cls, values: Any, rules: Any) -> Self:
        """Learn a column by the `impute` and `min_category_rows` of an encoder."""
        kind: Literal["number", "date"] = "date" if column_kind(values) == "date" else "number"
        x = _seconds_or_numbers(kind, values)
        seen = np.sort(x[np.isfinite(x)])  # sums over them do not depend on the order of the rows
        if not len(seen):
            raise DroppedColumn("no value: every row is missing or infinite")
        if len(seen) < fewest_rows(rules, len(x)):
            raise DroppedColumn(f"rare: only {len(seen)} of {len(x)} rows have a value")
        low, high, gaps = seen[0], seen[-1], len(seen) < len(x)
        # The middle and the half-range first: no overflow at the ends of float64, and exactly 0 for a constant.
        half = high / 2 - low / 2
        z = (seen - (low + half)) / half if half else np.zeros(1)  # within [-1, 1]
        center, scale = float(low + half + half * z.mean()), float(half * z.std())
        if scale == 0 and not gaps:
            value = str(np.datetime64(int(center), "s").astype("datetime64[D]")) if kind == "date" else label(center)
            raise DroppedColumn(f"constant: {value} in every row")
        as_many = len(seen) >= 100 and high - low == len(seen) - 1  # as rows: are they 5, 6, 7, ... in some order?
        if as_many and np.array_equal(seen, np.arange(low, high + 1)):
            raise DroppedColumn("identifier: whole numbers without a gap, each once")
        fill = center if rules.impute == "mean" else float(np.median(seen))
        return cls(kind, center, scale, fill, indicator=gaps)

    @property
    def suffixes(self) -> list[str]:
        return [""] * (self.scale > 0) + [" (missing)"] * self.indicator

    def write(self, values: Any, out: np.ndarray) -> None:
        x = _seconds_or_numbers(self.kind, values)
        seen = np.isfinite(x)
        if self.indicator:
            out[:, -1] = ~seen
        if self.scale > 0:
            limit = np.finfo(out.dtype).max
            with np.errstate(over="ignore"):
                out[:, 0] = np.clip((np.where(seen, x, self.fill) - self.center) / self.scale, -limit, limit)

    def level(self, values: Any) -> np.ndarray:
        x = _seconds_or_numbers(self.kind, values)
        return np.where(np.isfinite(x), x, np.nan)

    def describe(self) -> str:
        mean, fill, spread = f"{self.center:g}", f"{self.fill:g}", f"{self.scale:g}"
        if self.kind == "date":
            mean, fill = (str(np.datetime64(int(x), "s").astype("datetime64[D]")) for x in (self.center, self.fill))
            spread = f"{self.scale / 86_400:.1f} days"
        gaps = f", missing as {fill} and marked" if self.indicator else ""
        return f"{self.kind}, mean {mean}, standard deviation {spread}{gaps}"


def _seconds_or_numbers(kind: str, values: Any) -> np.ndarray:
    now = column_kind(values)
    if kind == "number" and now == "date":
        raise InputError("held numbers in fit and holds dates now.", remedy="Pass numbers again.")
    if kind == "date" and now != "date" and not pd.isna(values).all():
        raise InputError("held dates in fit and does not now.", remedy="Use pandas.to_datetime first.")
    return as_numbers(values) if kind == "number" else as_microseconds(values) / 1e6


@dataclass(frozen=True)
class CategoryFeature:
    """One-hot texts, then `(other)` for the merged rare ones, then `(missing)`, each only if fit saw any.

    Texts unseen in fit count as `(other)` where it exists and are all zeros where it does not. Merged texts
    are not kept: a model file should not carry the rare values of the people it was trained on.
    """

    kind: Literal["category"]
    categories: list[str]
    other: bool
    missing: bool

    @classmethod
    def fit(cls, values: Any, rules: Any) -> Self:
        """Learn a column by the `max_categories`, `min_category_rows` and `identifier_share` of an encoder."""
        codes, distinct = as_codes(values)
        seen = int(np.count_nonzero(codes >= 0))
        if not seen:
            raise DroppedColumn("no value: every row is missing")
        share = np.inf if rules.identifier_share is None else rules.identifier_share
        if len(distinct) > rules.max_categories and len(distinct) >= share * seen:
            raise DroppedColumn(f"identifier: {len(distinct)} distinct values in {seen} rows")
        counts = np.bincount(codes[codes >= 0], minlength=len(distinct))
        counts = pd.Series(counts, index=[label(v) for v in distinct], dtype=np.int64).groupby(level=0).sum()
        missing = seen < len(codes)
        if len(counts) == 1 and not missing:
            raise DroppedColumn(f"constant: {counts.index[0]!r} in every row")
        kept = counts[counts >= fewest_rows(rules, len(codes))]
        if len(kept) > rules.max_categories - (len(kept) < len(counts)):
            # Equal counts stay in alphabetical order, so that the choice does not depend on row order.
            kept = kept.sort_values(ascending=False, kind="stable")[: rules.max_categories - 1]
        if not len(kept) and not missing:
            raise DroppedColumn(f"rare: none of its {len(counts)} values is frequent enough")
        return cls("category", sorted(map(str, kept.index)), len(kept) < len(counts), missing)

    @property
    def suffixes(self) -> list[str]:
        return ["=" + c for c in self.categories] + ["=(other)"] * self.other + ["=(missing)"] * self.missing

    def write(self, values: Any, out: np.ndarray) -> None:
        unseen, missing = len(self.categories) if self.other else -1, out.shape[1] - 1 if self.missing else -1
        place = label_places(values, self.categories, unseen=unseen, missing=missing)
        rows = np.flatnonzero(place >= 0)
        out[rows, place[rows]] = 1

    def level(self, values: Any) -> np.ndarray:
        place = label_places(values, self.categories, unseen=len(self.categories) if self.other else -1)
        return np.where(place < 0, np.nan, place)

    def describe(self) -> str:
        rare = ", rare ones merged" if self.other else ""
        return f"category, {len(self.categories)} kept{rare}{'; missing is one more' if self.missing else ''}"


Feature = NumberFeature | CategoryFeature
FEATURES: dict[str, type[Feature]] = {"category": CategoryFeature, "date": NumberFeature, "number": NumberFeature}
