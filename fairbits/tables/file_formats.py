"""How tables stand in files: which formats there are, how text is cut into columns, and how a table is written."""

import codecs
import csv
import gzip
import io
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterable
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd

from fairbits.errors import InputError, MissingExtraError
from fairbits.storage import whole_file

TEXT_ENDINGS = (".csv", ".tsv", ".txt", ".data", ".csv.gz", ".tsv.gz")
PARQUET_ENDINGS = (".parquet", ".pq")
SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "space"}
BINARY_STARTS = {b"PK\x03\x04": "an Excel or zip file", b"\xd0\xcf\x11\xe0": "an old Excel file", b"%PDF": "a PDF"}
DECIMAL_COMMA = re.compile(r"[+-]?\d+,(\d{1,2}|\d{4,})")  # three digits after a comma may be thousands
DECIMAL_POINT = re.compile(r"[+-]?\d+\.\d+")
SNIFFED_LINES = 50
HEAD_BYTES = 2**18  # the block looked at to find separator and names; the others are only known to be text
NUMBER_TEXT = re.compile(r"[+-]?[\d.,]*\d[\d.,]*([eE][+-]?\d+)?")
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # in spreadsheets


class TextEncodingError(InputError):
    """A file is not text in the encoding it was read with."""


class SeparatorError(InputError):
    """No character separates the columns of a file."""


def text_form(path: Path, separator: str | None, encoding: str | None) -> tuple[dict[str, Any], list[str]]:
    """Read a text file once, block by block; raise InputError if it is not text.

    Returns how to cut it into columns, in the words of `pandas.read_csv`, and notes on what is unusual.
    """
    try:
        with gzip.open(path) if path.name.lower().endswith(".gz") else path.open("rb") as file:
            head, encoding = _checked_text(file, path, encoding)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise InputError(f"{path} is not compressed with gzip, or is cut off.") from None
    if separator is not None and len(separator) != 1:
        raise InputError("must be a single character, such as ';'.", argument="separator", value=separator)
    separator = separator or _separator(head, path)
    try:
        header = next(csv.reader(io.StringIO(head, newline=""), delimiter=separator), [])
    except csv.Error as error:
        problem = f"The first line of {path} cannot be read: {error}."
        raise InputError(problem, remedy="Look for a quote in it that is never closed.") from None
    decimal, notes = ".", []
    if separator != ",":  # a comma that separates nothing is the decimal sign if some number has one, and none a point
        cells = [cell.strip() for row in _rows(io.StringIO(head, newline=""), separator) for cell in row]
        comma = any(map(DECIMAL_COMMA.fullmatch, cells)) and not any(map(DECIMAL_POINT.fullmatch, cells))
        decimal = "," if comma else "."
        notes = [f"Columns are separated by {SEPARATORS.get(separator, repr(separator))}."]
        notes += ["Numbers have a decimal comma."] * comma
    names = [name.strip() for name in header]
    return {"encoding": encoding, "sep": separator, "decimal": decimal, "names": names, "header": 0}, notes


def _checked_text(file: BinaryIO | gzip.GzipFile, path: Path, encoding: str | None) -> tuple[str, str]:
    """Decode all of a file, keeping its first lines only; return these and the encoding."""
    beginning = file.read(HEAD_BYTES)
    encoding = _encoding(beginning, path, encoding)
    decoder = codecs.getincrementaldecoder(encoding)()
    wide = codecs.lookup(encoding).name.startswith(("utf-16", "utf-32"))
    head, before = "", 0  # bytes before this block
    for block in chain([beginning], iter(partial(file.read, HEAD_BYTES), b""), [b""]):
        if not wide and b"\0" in block:
            problem = f"{path} holds binary data, not text (byte {before + block.index(0)} is 0)."
            raise InputError(problem, remedy="Save the table as CSV.")
        left_over = len(decoder.getstate()[0])
        try:
            text = decoder.decode(block, final=not block)
        except UnicodeError as error:
            why, name = str(error), "UTF-8" if encoding == "utf-8-sig" else encoding
            if isinstance(error, UnicodeDecodeError):
                why = f"byte {before - left_over + error.start} is 0x{error.object[error.start]:02x}"
            remedy = "Save it as UTF-8, or pass another encoding, such as encoding='latin-1'."
            raise TextEncodingError(f"{path} is not {name} text ({why}).", remedy=remedy) from None
        head = head if before else text
        before += len(block)
    if not head.strip():
        raise InputError(f"{path} is empty.", remedy="It needs a line of column names, and rows below it.")
    whole_lines = head[: max(head.rfind("\n"), head.rfind("\r")) + 1]
    return (head if len(beginning) < HEAD_BYTES else whole_lines or head), encoding


def _encoding(beginning: bytes, path: Path, encoding: str | None) -> str:
    for start, kind in BINARY_STARTS.items():
        if beginning.startswith(start):
            raise InputError(f"{path} is {kind}, despite its name.", remedy="Save the table as CSV.")
    if encoding is None:
        return "utf-16" if beginning.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    try:
        "".encode(encoding)  # not all codecs are of text
    except LookupError:
        raise InputError("is unknown.", argument="encoding", value=encoding, remedy="Try latin-1 or utf-16.") from None
    return encoding


def _rows(lines: Iterable[str], separator: str) -> list[list[str]]:
    """Cut lines into cells; a field without end leaves none."""
    try:
        return list(csv.reader(lines, delimiter=separator))
    except csv.Error:
        return []


def _separator(head: str, path: Path) -> str:
    """Return the separator that cuts the first lines into the most columns, nearly always the same number.

    A space counts only if nothing else separates the columns, because values contain spaces, too.
    """
    lines, columns = head.splitlines()[:SNIFFED_LINES], {}
    for separator in SEPARATORS:
        widths = [len(row) for row in _rows(lines, separator)]
        filled = Counter(filter(None, widths))
        width, agreeing = max(filled.items(), key=lambda pair: pair[1], default=(0, 0))
        if width > 1 and widths[0] > 1 and agreeing >= 0.8 * filled.total():
            columns[separator] = width
    if not columns:
        raise SeparatorError(
            f"{path} has one column only, lines of many different lengths, or a quote that is never closed. Its first "
            f"line is {lines[0][:60]!r}.",
            remedy="Pass separator=... if it is not a comma, semicolon, tab, bar or space.",
        )
    return max(columns, key=lambda separator: (separator != " ", columns[separator]))


def is_parquet(path: Path) -> bool:
    """Return whether a file is Parquet by its name."""
    return path.name.lower().endswith(PARQUET_ENDINGS)


def need_pyarrow() -> Any:
    """Return pyarrow, or raise InputError if it is not installed."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("A Parquet file", "tables") from None
    return pyarrow


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
