"""Read a table from a file, and say what is wrong with one that cannot be read; write one, whole or not at all."""

import difflib
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype, is_object_dtype, is_string_dtype

from fairbits.errors import InputError, MissingExtraError
from fairbits.storage import whole_file
from fairbits.tables.text_form import text_form

TEXT_ENDINGS = (".csv", ".tsv", ".txt", ".data", ".csv.gz", ".tsv.gz")
PARQUET_ENDINGS = (".parquet", ".pq")
DATE_SHARE = 0.95  # of the texts of a column that must be dates for it to be one
NUMBER_SHARE = 0.5  # of the texts of a column that are numbers: perhaps all should be
DATE = r"\d{4}-\d{2}-\d{2}"
OTHER_DATE = r"(\d{4}[./-]\d{1,2}[./-]\d{1,2}|\d{1,2}[./-]\d{1,2}[./-](\d{4}|\d{2}))(\D|$)"
AROUND_NUMBERS = r"[,\s'€$£%]"
PIECE_ROWS = 50_000
# Texts that pandas reads as a missing value by default; columns that are read verbatim keep them.
MISSING = [
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
]


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
            raise InputError(f"There is no file {path}.")
        if path.is_dir():
            raise InputError(f"{path} is a folder.", remedy="Name a CSV or Parquet file.")
        if not path.name.lower().endswith((*TEXT_ENDINGS, *PARQUET_ENDINGS)):
            endings = ", ".join((*TEXT_ENDINGS, *PARQUET_ENDINGS))
            raise InputError(f"{path} does not end in any of {endings}.", remedy="Save the table as CSV or Parquet.")
        self._state = self._look()
        self._parquet = _parquet_file(path) if _is_parquet(path) else None
        if self._parquet is not None:
            names = self._parquet.schema_arrow.names
            self.names, self.notes = [name for name in names if not name.startswith("__index_level_")], []
        else:
            form = text_form(path, separator, encoding)
            self.names, self.notes, self._form = form.names, form.notes, form._asdict()
        _check_names(self.names, path)

    def has_changed(self) -> bool:
        """Return whether somebody has written to the file since it was opened."""
        return self._look() != self._state

    def _look(self) -> tuple[int, int]:
        found = self.path.stat()
        return found.st_size, found.st_mtime_ns

    def check_columns(self, names: Sequence[str], reason: str = "") -> None:
        """Raise InputError if the table lacks a column, with the name that comes nearest."""
        check_columns(self.path, self.names, names, reason)

    def read(self, columns: Sequence[str] | None = None) -> ReadTable:
        """Return the whole table, or some columns that must be there, with dates and large numbers parsed."""
        wanted = self.names if columns is None else list(columns)
        if self._parquet is None:
            (frame,) = self._parsed()
        else:
            frame = self._parquet.read(columns=wanted).to_pandas(ignore_metadata=True)
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
        if self._parquet is not None:
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
        form = {**self._form, "header": 0, "index_col": False, "low_memory": False}  # part by part, a column is mixed
        try:
            with pd.read_csv(self.path.absolute(), iterator=True, **form, **options) as frames:
                yield from frames
        except (pd.errors.ParserError, ValueError, OverflowError) as error:
            first = str(error).strip().splitlines()[0].rstrip(".")
            raise InputError(f"{self.path} cannot be read as a table: {first}.") from None


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
            alike = [other for other in names if other.lower() == name.lower()]
            near = difflib.get_close_matches(name, names, n=1) or alike
            hint = f"did you mean {near[0]!r}?" if near else f"its columns are {', '.join(names[:30])}."
            raise InputError(f"{table} has no column {name!r}{', ' + reason if reason else ''}; {hint}")


def _check_names(names: list[str], path: Path) -> None:
    twice = pd.Index(names)[pd.Index(names).duplicated()]
    if len(twice):
        raise InputError(
            f"{path} has more than one column named {twice[0]!r}.",
            remedy="Rename or drop one of them. If the first line holds values, put a line of column names above it.",
        )
    if "" in names:
        raise InputError(
            f"Column {names.index('') + 1} of {path} has no name.",
            remedy="Name it, or leave it out of the file. (pandas writes such a column without index=False.)",
        )
    values = [name for name in names if name not in MISSING]
    if names and pd.to_numeric(pd.Series(values), errors="coerce").notna().all():
        raise InputError(f"The first line of {path} holds numbers, not names.", remedy="Put the column names there.")
    if len(names) < 2:
        raise InputError(f"{path} has one column; it needs a label, a sensitive column and others to predict from.")


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


def write_table(path: Path, pieces: Iterable[pd.DataFrame]) -> None:
    """Write a table of pieces with the same columns, CSV or Parquet by its ending, whole or not at all."""
    with whole_file(path) as file:
        if _is_parquet(path):
            _write_parquet(file, pieces)
            return
        for number, piece in enumerate(pieces):
            piece.to_csv(file, index=False, header=number == 0)


def _write_parquet(file: BinaryIO, pieces: Iterable[pd.DataFrame]) -> None:
    pa = _pyarrow()
    tables = (pa.Table.from_pandas(piece, preserve_index=False) for piece in pieces)
    first = next(tables)  # a column that is empty in it may have text further down
    schema = pa.schema([f.with_type(pa.string()) if pa.types.is_null(f.type) else f for f in first.schema])
    with pa.parquet.ParquetWriter(file, schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table.cast(schema))
