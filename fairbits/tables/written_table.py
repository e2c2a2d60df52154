"""Write a table, CSV or Parquet, whole or not at all."""

import csv
import os
import re
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd

from fairbits.errors import InputError
from fairbits.storage import whole_file
from fairbits.tables.table_file import PARQUET_ENDINGS, is_parquet, need_pyarrow

NUMBER_TEXT = re.compile(r"[+-]?[\d.,]*\d[\d.,]*([eE][+-]?\d+)?")
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # in spreadsheets


def check_pyarrow() -> None:
    """Raise InputError if Parquet parts cannot be written."""
    need_pyarrow()


def check_output(path: Path) -> None:
    """Raise InputError unless a new table can be written there."""
    if not path.name.lower().endswith((".csv", *PARQUET_ENDINGS)):
        raise InputError(f"{path} ends in neither .csv nor .parquet.", remedy="Name a file such as out.csv.")
    if is_parquet(path):
        need_pyarrow()
    check_place(path)


def check_place(path: Path) -> None:
    """Raise InputError if there is something at a path already, or its folder cannot be written."""
    if os.path.lexists(path):
        raise InputError(f"{path} exists and is left as it is.", remedy="Name another file, or move that one away.")
    if not path.parent.is_dir():
        raise InputError(f"There is no folder {path.parent} to write {path.name} to.", remedy="Make it first.")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"The folder {path.parent} cannot be written.", remedy="Name a file elsewhere.")


def write_table(path: Path, pieces: Iterable[pd.DataFrame], *, safe_cells: bool = False) -> None:
    """Write a table of pieces with the same columns, CSV or Parquet by its ending, whole or not at all.

    With `safe_cells`, no text in a CSV is one that a spreadsheet would run as a formula.
    """
    quoting = csv.QUOTE_NONNUMERIC if safe_cells else csv.QUOTE_MINIMAL  # a carriage return would end a bare cell
    with whole_file(path) as file:
        if is_parquet(path):
            _write_parquet(file, pieces)
            return
        for number, piece in enumerate(pieces):
            if safe_cells:
                texts = piece.select_dtypes(exclude=["number", "bool"])
                safe = {name: texts[name].astype(object).map(safe_cell) for name in texts}
                piece = piece.assign(**safe).rename(columns=safe_cell)
            piece.to_csv(file, index=False, header=number == 0, quoting=quoting)


def safe_cell(value: Any) -> Any:
    """Return a text with a quote before it if it begins like a formula and is not a number; anything else as it is.

    >>> [safe_cell(value) for value in ("=1+2", "@SUM(A1)", "-2,5", "+1e3", "a-b", -4)]
    ["'=1+2", "'@SUM(A1)", '-2,5', '+1e3', 'a-b', -4]
    """
    runs = isinstance(value, str) and value.startswith(FORMULA_STARTS) and not NUMBER_TEXT.fullmatch(value)
    return f"'{value}" if runs else value


def _write_parquet(file: BinaryIO, pieces: Iterable[pd.DataFrame]) -> None:
    pa = need_pyarrow()
    tables = (pa.Table.from_pandas(piece, preserve_index=False) for piece in pieces)
    first = next(tables)  # a column that is empty in it may have text further down
    schema = pa.schema([f.with_type(pa.string()) if pa.types.is_null(f.type) else f for f in first.schema])
    with pa.parquet.ParquetWriter(file, schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table.cast(schema))
