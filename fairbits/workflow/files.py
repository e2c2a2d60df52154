"""Read a table from a file, and say in a sentence what is wrong with one that cannot be read."""

import codecs
import csv
import gzip
import io
import warnings
import zlib
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

TEXT_ENDINGS = (".csv", ".tsv", ".txt", ".data", ".csv.gz", ".tsv.gz")
PARQUET_ENDINGS = (".parquet", ".pq")
SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
BINARY_STARTS = {b"PK\x03\x04": "an Excel or zip file", b"\xd0\xcf\x11\xe0": "an old Excel file", b"%PDF": "a PDF"}
SNIFFED_LINES = 50
DATE_SHARE = 0.95  # of the texts of a column that must be dates for it to be one


class ReadTable(NamedTuple):
    """A table and what was decided in reading it."""

    frame: pd.DataFrame
    notes: list[str]


def read_file(path: str | Path, *, separator: str | None = None, encoding: str | None = None) -> ReadTable:
    """Read a CSV (also compressed) or Parquet file.

    Parameters
    ----------
    separator : of the columns; found from the first lines if None
    encoding : of the text; UTF-8, with or without a byte-order mark, if None
    """
    path = Path(path)
    if not path.exists():
        raise ValueError(f"There is no file {path}.")
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a CSV or Parquet file.")
    name = path.name.lower()
    if name.endswith(PARQUET_ENDINGS):
        return _checked(_parquet(path), [], path)
    if not name.endswith(TEXT_ENDINGS):
        endings = ", ".join((*TEXT_ENDINGS, *PARQUET_ENDINGS))
        raise ValueError(f"{path} ends in none of {endings}; save the table as CSV or Parquet.")
    text = _text(path, encoding)
    separator = separator or _separator(text, path)
    notes = [] if separator == "," else [f"Columns are separated by {SEPARATORS.get(separator, repr(separator))}."]
    return _checked(_csv(text, separator, path), notes, path)


def _text(path: Path, encoding: str | None) -> str:
    content = path.read_bytes()
    if path.name.lower().endswith(".gz"):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error):
            raise ValueError(f"{path} is not compressed by gzip, or is cut off.") from None
    if not content.strip():
        raise ValueError(f"{path} is empty.")
    for start, kind in BINARY_STARTS.items():
        if content.startswith(start):
            raise ValueError(f"{path} is {kind}, whatever its name says; save the table as CSV.")
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = encoding or "utf-16"
    elif b"\0" in content[:100_000]:
        raise ValueError(f"{path} holds binary data, not text; save the table as CSV.")
    try:
        return content.decode(encoding or "utf-8-sig")
    except LookupError:
        raise ValueError(f"--encoding {encoding} is unknown; try latin-1 or utf-16.") from None
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not {encoding or 'UTF-8'} text (byte {error.start} is 0x{content[error.start]:02x}); save it "
            "as UTF-8, or say --encoding latin-1."
        ) from None


def _separator(text: str, path: Path) -> str:
    """Return the separator that cuts the first lines into the most columns, the same number in each."""
    lines = text.splitlines()[:SNIFFED_LINES]
    columns = {}
    for separator in SEPARATORS:
        counts = Counter(len(row) for row in csv.reader(lines, delimiter=separator) if row)
        width, agreeing = counts.most_common(1)[0]
        if agreeing >= 0.8 * counts.total():
            columns[separator] = width
    best = max(columns, key=lambda separator: columns[separator], default=",")
    if columns.get(best, 1) < 2:
        raise ValueError(
            f"{path} has one column only, lines of many different lengths, or a quote that is never closed. Its first "
            f"line is {lines[0][:60]!r}; say --separator if it is none of comma, semicolon, tab and bar."
        )
    return best


def _csv(text: str, separator: str, path: Path) -> pd.DataFrame:
    header = next(csv.reader(io.StringIO(text), delimiter=separator), [])
    _check_names([name.strip() for name in header], path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about columns of several types, which become text
            frame = pd.read_csv(io.StringIO(text), sep=separator, low_memory=False, index_col=False)
    except (pd.errors.ParserError, ValueError, OverflowError) as error:
        raise ValueError(f"{path} cannot be read as a table: {str(error).strip().splitlines()[0]}") from None
    return frame.rename(columns=lambda name: str(name).strip())


def _parquet(path: Path) -> pd.DataFrame:
    try:
        frame = pd.read_parquet(path)
    except ImportError:
        raise ValueError("Parquet files need pyarrow: pip install 'fairbits[tables]'.") from None
    except (ValueError, OSError, NotImplementedError) as error:  # of pyarrow, too
        raise ValueError(f"{path} is no readable Parquet file: {str(error).splitlines()[0]}") from None
    _check_names([str(name) for name in frame.columns], path)
    return frame.rename(columns=str).reset_index(drop=True)


def _check_names(names: list[str], path: Path) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"{path} has more than one column named {twice[0]!r}; rename or drop one of them.")
    if "" in names:
        raise ValueError(f"Column {names.index('') + 1} of {path} has no name; give it one.")
    if names and all(_is_number(name) for name in names):
        raise ValueError(f"The first line of {path} holds numbers, not names; put the names of the columns there.")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _checked(frame: pd.DataFrame, notes: list[str], path: Path) -> ReadTable:
    if not len(frame):
        raise ValueError(f"{path} has names of columns but no rows.")
    if frame.shape[1] < 2:
        raise ValueError(f"{path} has one column; a label, a sensitive column and others to predict from are needed.")
    dates = [name for name in frame.columns if _holds_dates(frame[name])]
    for name in dates:
        frame[name] = pd.to_datetime(frame[name], format="ISO8601", errors="coerce", utc=True).dt.tz_localize(None)
    frame = frame.apply(_plain_numbers)
    if dates:
        notes = [*notes, f"Read as dates: {', '.join(dates)}."]
    return ReadTable(frame, notes)


def _holds_dates(column: pd.Series) -> bool:
    """Say whether nearly all texts of a column are dates as 2026-11-16, with a time or without."""
    if not (pd.api.types.is_object_dtype(column) or pd.api.types.is_string_dtype(column)):
        return False
    texts = column.dropna().astype(str)
    if not len(texts) or not texts.head(100).str.match(r"\d{4}-\d{2}-\d{2}").mean() >= DATE_SHARE:
        return False
    return bool(pd.to_datetime(texts, format="ISO8601", errors="coerce", utc=True).notna().mean() >= DATE_SHARE)


def _plain_numbers(column: pd.Series) -> pd.Series:
    """Turn whole numbers beyond 64 bits, which pandas keeps as objects, into floats."""
    if column.dtype != object or not len(column.dropna()):
        return column
    if column.dropna().map(lambda v: isinstance(v, int) and not isinstance(v, bool)).all():
        return column.map(float, na_action="ignore").astype(np.float64)
    return column
