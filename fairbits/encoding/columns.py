"""Pull columns out of pandas, polars and numpy tables, as numbers with NaN or as codes with text labels."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from fairbits.errors import InputError

# What pandas finds inside an object column that is not text; anything else is read as categories.
OBJECT_KINDS = {
    **dict.fromkeys(["integer", "floating", "mixed-integer-float", "decimal"], "number"),
    **dict.fromkeys(["date", "datetime", "datetime64", "timedelta", "timedelta64"], "date"),
}


def is_frame(table: Any) -> bool:
    """Tell whether `table` is a data frame (pandas, polars, or alike), found by its methods, not its type."""
    return all(hasattr(table, name) for name in ("to_numpy", "columns", "__getitem__"))


def column_at(table: Any, position: int) -> Any:
    """Return one column of a frame or 2-d array, as a pandas Series or a 1-d array."""
    if isinstance(table, pd.DataFrame):
        return table.iloc[:, position]
    return one_column(table[table.columns[position]] if is_frame(table) else table[:, position])


def rows_at(table: Any, rows: np.ndarray) -> Any:
    """Return some rows of a frame or 2-d array."""
    return table.iloc[rows] if isinstance(table, pd.DataFrame) else table[rows]


def one_column(values: Any) -> Any:
    """Return pandas objects as a Series and everything else (polars, arrays, lists) as a 1-d array."""
    if isinstance(values, (pd.Series, pd.Index, pd.api.extensions.ExtensionArray)):
        return pd.Series(values)
    if hasattr(values, "to_numpy"):
        return values.to_numpy()
    return values if isinstance(values, np.ndarray) else array_of(values)


def array_of(values: Sequence) -> np.ndarray:
    """Turn a list into an array without turning its numbers into text: mixed lists become object arrays.

    >>> array_of([1, "a"])
    array([1, 'a'], dtype=object)
    """
    array = np.asarray(values)
    return array if array.dtype.kind in "biufcmMO" else np.asarray(values, dtype=object)


def column_kind(values: Any) -> str:
    """Say how a column is read: "number", "date" or "category" (text, booleans, categoricals, mixtures).

    >>> column_kind(np.array([1, 2])), column_kind(np.array([True, False])), column_kind(np.array(["a", 1.0]))
    ('number', 'category', 'category')
    """
    dtype = values.dtype
    if types.is_complex_dtype(dtype):
        raise InputError("Complex data not supported; pass real and imaginary parts as two columns")
    if types.is_object_dtype(dtype):
        return OBJECT_KINDS.get(types.infer_dtype(values, skipna=True), "category")
    if types.is_datetime64_any_dtype(dtype) or types.is_timedelta64_dtype(dtype):
        return "date"
    return "number" if types.is_numeric_dtype(dtype) and not types.is_bool_dtype(dtype) else "category"


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


def as_seconds(values: Any) -> np.ndarray:
    """Return a column of dates (since 1970, UTC) or durations as float64 seconds, NaN where missing.

    >>> as_seconds(np.array(["1970-01-02", "NaT"], dtype="datetime64[D]"))
    array([86400.,    nan])
    """
    series = pd.Series(values)
    lengths = "timedelta" in types.infer_dtype(series, skipna=True)
    times = pd.to_timedelta(series) if lengths else pd.to_datetime(series, utc=True)
    ticks = times.dt.as_unit("us").to_numpy("timedelta64[us]" if lengths else "datetime64[us]")
    return np.where(np.isnat(ticks), np.nan, ticks.view(np.int64) / 1e6)


def as_codes(values: Any) -> tuple[np.ndarray, Any]:
    """Return codes (-1 where missing) and the distinct values they stand for, in order of appearance.

    >>> codes, distinct = as_codes(np.array(["b", None, "a", "b"], dtype=object))
    >>> codes.tolist(), list(distinct)
    ([0, -1, 1, 0], ['b', 'a'])
    """
    # Inside mixed object columns 1 and True are equal to a hash table: tell them apart by their text.
    if types.is_object_dtype(values.dtype) and types.infer_dtype(values, skipna=True).startswith("mixed"):
        values = np.asarray(values, dtype=object)
        absent = pd.isna(values)
        texts = [None if gone else label(v) for v, gone in zip(values, absent, strict=True)]
        values = np.array(texts, dtype=object)
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
        raise TypeError(f"each cell argument must be a string or a number, {found}")
    whole = isinstance(value, (float, np.floating)) and float(value).is_integer()
    return str(int(value)) if whole else str(value)
