"""Columns of pandas, polars, pyarrow and numpy tables: as numbers with NaN, or as codes with text labels."""

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from pandas.api import types

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
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        return values.astype(np.float64, copy=False)
    if isinstance(values, pd.Series) and types.is_numeric_dtype(values.dtype):
        return values.to_numpy(dtype=np.float64, na_value=np.nan)
    present = ~np.asarray(pd.isna(values))
    numbers = np.full(len(values), np.nan)
    numbers[present] = np.asarray(values, dtype=object)[present].astype(np.float64)
    return numbers


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


def label(value: Any) -> str:
    """Return the text of one value; whole floats as integers, so that 1 and 1.0 are one category.

    >>> label(1.0), label(0.5), label(True), label("x")
    ('1', '0.5', 'True', 'x')
    """
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if not types.is_scalar(value):
        found = f"found a {type(value).__name__}: {value!r}"
        raise InputTypeError(f"each cell argument must be a string or a number, {found}.")
    whole = isinstance(value, (float, np.floating)) and float(value).is_integer()
    return str(int(value)) if whole else str(value)
