"""Read a table from a file, and say what is wrong with one that cannot be read; write one, whole or not at all."""

import codecs
import csv
import gzip
import io
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype, is_object_dtype, is_string_dtype

from fairbits.errors import InputError, MissingExtraError, did_you_mean
from fairbits.storage import whole_file

TEXT_ENDINGS = (".csv", ".tsv", ".txt", ".data", ".csv.gz", ".tsv.gz")
PARQUET_ENDINGS = (".parquet", ".pq")
EXCEL_ENDINGS = (".xlsx", ".xls", ".xlsm", ".ods")
DATE_SHARE = 0.95  # of the texts of a column that must be dates for it to be one
NUMBER_SHARE = 0.5  # of the texts of a column that are numbers: perhaps all should be
DATE = r"\d{4}-\d{2}-\d{2}"
OTHER_DATE = r"(\d{4}[./-]\d{1,2}[./-]\d{1,2}|\d{1,2}[./-]\d{1,2}[./-](\d{4}|\d{2}))(\D|$)"
AROUND_NUMBERS = r"[,\s'€$£%]"
PIECE_ROWS = 50_000
SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "space"}
BINARY_STARTS = {b"PK\x03\x04": "an Excel or zip file", b"\xd0\xcf\x11\xe0": "an old Excel file", b"%PDF": "a PDF"}
DECIMAL_COMMA = re.compile(r"[+-]?\d+,(\d{1,2}|\d{4,})")  # three digits after a comma may be thousands
DECIMAL_POINT = re.compile(r"[+-]?\d+\.\d+")
NUMBER_TEXT = re.compile(r"[+-]?[\d.,]*\d[\d.,]*([eE][+-]?\d+)?")
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # in spreadsheets
SNIFFED_LINES = 50
HEAD_BYTES = 2**18  # the block looked at to find separator and names; the others are only known to be text
# Texts that pandas reads as a missing value by default; columns that are read verbatim keep them.
MISSING = [
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
]


class TextEncodingError(InputError):
    """A file is not text in the encoding it was read with."""


class SeparatorError(InputError):
    """No character separates the columns of a file."""


class ReadTable(NamedTuple):
    """A table, and notes on how it was read."""

    frame: pd.DataFrame
    notes: list[str]


class TableFile:
    """A table on the disk, CSV (also compressed) or Parquet: opening it reads its names, `read` and `pieces` its rows.

    Without a separator the first lines show it; without an encoding it is UTF-8, with or without a byte-order mark.
    """

    def __init__(self, path: str | Path, *, separator: str | None = None, encoding: str | None = None):
        self.path = path = Path(path)
        if not path.exists():
            beside = [file.name for file in path.parent.iterdir()] if path.parent.is_dir() else []
            near = did_you_mean(path.name, beside)
            remedy = "" if near else "Name a CSV or Parquet file."
            raise InputError(f"There is no file {path}. {near}".strip(), remedy=remedy)
        if path.is_dir():
            raise InputError(f"{path} is a folder.", remedy="Name a CSV or Parquet file.")
        if path.suffix.lower() in EXCEL_ENDINGS:
            raise InputError(f"{path} is an Excel file.", remedy="Save the table as CSV or Parquet.")
        endings = (*TEXT_ENDINGS, *PARQUET_ENDINGS)
        if not path.name.lower().endswith(endings):
            problem = f"{path} does not end in any of {', '.join(endings)}."
            raise InputError(problem, remedy="Save the table as CSV or Parquet.")
        self._opened = path.stat()
        self._parquet = _parquet_file(path) if _is_parquet(path) else None
        self._form, self.notes = ({}, []) if self._parquet else _text_form(path, separator, encoding)
        stored = self._parquet.schema_arrow.names if self._parquet else []
        self.names = self._form.get("names") or [name for name in stored if not name.startswith("__index_level_")]
        _check_names(self.names, path)

    def check_unchanged(self) -> None:
        """Raise InputError if somebody has written to the file since it was opened."""
        now, then = self.path.stat(), self._opened
        if (now.st_size, now.st_mtime_ns) != (then.st_size, then.st_mtime_ns):
            raise InputError(f"{self.path} changed while it was read.")

    def check_columns(self, names: Sequence[str], reason: str = "") -> None:
        """Raise InputError if the table lacks a column, with the name that comes nearest."""
        check_columns(self.path, self.names, names, reason)

    def read(self, columns: Sequence[str] | None = None) -> ReadTable:
        """Return the whole table, or some columns that must be there, with dates and large numbers parsed."""
        wanted = self.names if columns is None else list(columns)
        if self._parquet:
            frame = self._parquet.read(columns=wanted).to_pandas(ignore_metadata=True)
        else:
            (frame,) = self._parsed()
        frame = frame[wanted]
        if not len(frame):
            raise InputError(f"{self.path} has column names but no rows.")
        dates, doubts = [], []
        for name, column in list(frame.items()):
            texts = column.dropna().astype(str) if is_object_dtype(column) or is_string_dtype(column) else column[:0]
            if column.dtype == object and infer_dtype(column, skipna=True) == "integer":
                frame[name] = column.astype(np.float64)  # pandas keeps whole numbers beyond 64 bits as objects
            elif len(texts) and _share(texts, DATE) >= DATE_SHARE and as_dates(texts).notna().mean() >= DATE_SHARE:
                frame[name] = as_dates(column)
                dates.append(name)
            elif len(texts):
                doubts += _doubts(texts)
        return ReadTable(frame, [*self.notes, *[f"Read as dates: {', '.join(dates)}."] * bool(dates), *doubts])

    def pieces(
        self, columns: Sequence[str], *, texts: Sequence[str] = (), verbatim: Sequence[str] = ()
    ) -> Iterator[pd.DataFrame]:
        """Yield some columns, `PIECE_ROWS` rows at a time, so that a table need not fit into memory.

        Of a CSV, `texts` stay text; `verbatim` columns do, too, and keep words such as NA as they are.
        """
        wanted = list(dict.fromkeys([*columns, *texts, *verbatim]))
        if self._parquet:
            for batch in self._parquet.iter_batches(PIECE_ROWS, columns=wanted):
                yield batch.to_pandas()[wanted]
            return
        kinds = dict.fromkeys([*texts, *verbatim], str)
        missing = {name: MISSING for name in self.names if name not in verbatim}
        for piece in self._parsed(chunksize=PIECE_ROWS, dtype=kinds, keep_default_na=False, na_values=missing):
            if len(piece):
                yield piece[wanted].reset_index(drop=True)

    def _parsed(self, **options: Any) -> Iterator[pd.DataFrame]:
        """Yield the frames of a text file, one unless you pass a `chunksize`.

        It parses all columns, because only then pandas notices a line that has too many.
        """
        options |= {"iterator": True, "index_col": False, "low_memory": False}  # else a column may become mixed
        try:
            with pd.read_csv(self.path.absolute(), **self._form, **options) as frames:
                yield from frames
        except (pd.errors.ParserError, ValueError, OverflowError) as error:
            first = str(error).strip().splitlines()[0].rstrip(".")
            raise InputError(f"{self.path} cannot be read as a table: {first}.") from None


def _text_form(path: Path, separator: str | None, encoding: str | None) -> tuple[dict[str, Any], list[str]]:
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


def _is_parquet(path: Path) -> bool:
    return path.name.lower().endswith(PARQUET_ENDINGS)


def _pyarrow() -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("A Parquet file", "tables") from None
    return pyarrow


def _parquet_file(path: Path) -> Any:
    pa = _pyarrow()
    try:
        opened = pa.parquet.ParquetFile(path)
    except (ValueError, OSError, NotImplementedError) as error:  # pyarrow's own errors are among them
        first = str(error).splitlines()[0].rstrip(".")
        raise InputError(f"{path} is not a readable Parquet file: {first}.") from None
    nested = [field.name for field in opened.schema_arrow if pa.types.is_nested(field.type)]
    if nested:
        problem = f"Column {nested[0]!r} of {path} holds lists or records, not single values."
        raise InputError(problem, remedy="Leave it out of the file, or split it into columns.")
    return opened


def check_columns(table: str | Path, names: Sequence[str], wanted: Sequence[str], reason: str = "") -> None:
    """Raise InputError if a column is not among the names of a table, with the name that comes nearest."""
    for name in wanted:
        if name not in names:
            near, lacks = did_you_mean(name, names), f"{table} has no column {name!r}{', ' + reason if reason else ''}"
            hint = near[:1].lower() + near[1:] if near else f"its columns are {', '.join(names[:30])}."
            values = pd.to_numeric(pd.Series(names), errors="coerce").notna().any()  # instead of names?
            remedy = "If its first line holds values, put a line of column names above it." * bool(values and not near)
            raise InputError(f"{lacks}; {hint}", remedy=remedy)


def _check_names(names: list[str], path: Path) -> None:
    twice = pd.Index(names)[pd.Index(names).duplicated()]
    if len(twice):
        remedy = "Rename or drop one of them. If the first line holds values, put a line of column names above it."
        raise InputError(f"{path} has more than one column named {twice[0]!r}.", remedy=remedy)
    if "" in names:
        remedy = "Name it, or leave it out of the file. (pandas writes such a column without index=False.)"
        raise InputError(f"Column {names.index('') + 1} of {path} has no name.", remedy=remedy)
    values = [name for name in names if name not in MISSING]
    if names and pd.to_numeric(pd.Series(values), errors="coerce").notna().all():
        raise InputError(f"The first line of {path} holds numbers, not names.", remedy="Put the column names there.")
    if len(names) < 2:
        problem = f"{path} has one column, {names[0]!r}; it needs a label, a sensitive column and others."
        raise InputError(problem, remedy="If it has more, pass the --separator between them, or leave that out.")


def as_dates(texts: pd.Series) -> pd.Series:
    """Return texts such as 2026-11-16, with a time or without, as dates; anything else is missing."""
    return pd.to_datetime(texts, format="ISO8601", errors="coerce", utc=True).dt.tz_localize(None)


def _share(texts: pd.Series, pattern: str) -> float:
    return texts.head(100).str.match(pattern).mean()


def _doubts(texts: pd.Series) -> list[str]:
    """Return a note if texts look like dates or numbers; without a value, as model cards repeat it."""
    if _share(texts, OTHER_DATE) >= DATE_SHARE:
        return [f"{texts.name} is read as text. If it is a date, write it as 2026-01-31."]
    bare = texts.head(1000).str.replace(AROUND_NUMBERS, "", regex=True)
    others = texts[pd.to_numeric(texts, errors="coerce").isna()]
    if pd.to_numeric(bare, errors="coerce").notna().mean() < NUMBER_SHARE or not len(others):
        return []
    return [
        f"{texts.name} is read as text: {len(others):,} of {len(texts):,} values are not numbers, the first in row "
        f"{others.index[0] + 1}. If it should be a number, correct them or leave them empty."
    ]


def check_output(path: Path) -> None:
    """Raise InputError unless a new table can be written there."""
    if not path.name.lower().endswith((".csv", *PARQUET_ENDINGS)):
        raise InputError(f"{path} ends in neither .csv nor .parquet.", remedy="Name a file such as out.csv.")
    if _is_parquet(path):
        _pyarrow()
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
        if _is_parquet(path):
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
    pa = _pyarrow()
    tables = (pa.Table.from_pandas(piece, preserve_index=False) for piece in pieces)
    first = next(tables)  # a column that is empty in it may have text further down
    schema = pa.schema([f.with_type(pa.string()) if pa.types.is_null(f.type) else f for f in first.schema])
    with pa.parquet.ParquetWriter(file, schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table.cast(schema))
