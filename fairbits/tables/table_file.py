"""Read a table from a file or a folder of files, whole or some rows at a time, and say what is wrong with one."""

import gzip
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from glob import glob
from itertools import chain, repeat
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype, is_numeric_dtype, is_object_dtype, is_string_dtype

from fairbits.encoding.columns import column_kind
from fairbits.errors import InputError, did_you_mean
from fairbits.tables.file_formats import PARQUET_ENDINGS, TEXT_ENDINGS, is_parquet, need_pyarrow, text_form

EXCEL_ENDINGS = (".xlsx", ".xls", ".xlsm", ".ods")
WILD = "*?["  # signs of a pattern
HIDDEN = ("_", ".")  # how names of files that hold no rows begin
DATE_SHARE = 0.95  # of the texts of a column that must be dates for it to be one
NUMBER_SHARE = 0.5  # of the texts of a column that are numbers: perhaps all should be
DATE = r"\d{4}-\d{2}-\d{2}"
OTHER_DATE = r"(\d{4}[./-]\d{1,2}[./-]\d{1,2}|\d{1,2}[./-]\d{1,2}[./-](\d{4}|\d{2}))(\D|$)"
AROUND_NUMBERS = r"[,\s'€$£%]"
PIECE_ROWS, PART_ROWS = 50_000, 1_000_000
COUNTED_BYTES, ENDS = 2**20, 2**16
# Texts that pandas reads as a missing value by default; columns that are read verbatim keep them.
MISSING = [
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
]
Names = Sequence[str]
Pair = tuple[pd.DataFrame, pd.DataFrame]


class ReadTable(NamedTuple):
    """A table, and notes on how it was read."""

    frame: pd.DataFrame
    notes: list[str]


class TablePart(NamedTuple):
    """Rows that one worker reads: of a file, or of the row groups `first` to `last` (exclusive) of a Parquet file."""

    path: str
    first: int = 0
    last: int | None = None


class Table(ABC):
    """Columns by name: `read` returns all rows, `pieces` and `pairs` some of them at a time, in order."""

    path: Path
    reading: dict[str, Any]  # separator and encoding, as they were passed
    names: list[str]
    notes: list[str]
    wrong_dates = 1 - DATE_SHARE  # share of the values of a column that may be none, and count as missing

    def check_columns(self, names: Names, reason: str = "") -> None:
        """Raise InputError if the table lacks a column, with the name that comes nearest."""
        check_columns(self.path, self.names, names, reason)

    def read(self, columns: Names | None = None) -> ReadTable:
        """Return the whole table, or some columns that must be there, with dates and large numbers parsed."""
        frame = self.raw(self.names if columns is None else list(columns))
        if not len(frame):
            raise InputError(f"{self.path} has column names but no rows.")
        return parsed(frame, self.notes)

    def pieces(self, columns: Names, *, texts: Names = (), verbatim: Names = ()) -> Iterator[pd.DataFrame]:
        """Yield some columns, `PIECE_ROWS` rows at a time, so that a table need not fit into memory.

        Of a CSV, `texts` stay text; `verbatim` columns do, too, and keep words such as NA as they are.
        """
        return (piece for piece, _ in self.pairs(columns, texts=texts, verbatim=verbatim))

    @abstractmethod
    def pairs(
        self, columns: Names, beside: Names = (), *, texts: Names = (), verbatim: Names = (), dates: bool = True
    ) -> Iterator[Pair]:
        """Yield `pieces`, and the columns `beside` as `read` returns them, or dates as texts if not `dates`."""

    @abstractmethod
    def raw(self, columns: list[str]) -> pd.DataFrame:
        """Return columns of all rows as the file has them."""

    @abstractmethod
    def parts(self) -> list[TablePart]:
        """Return parts of the table in order: each is a `TableFile` of its own."""

    @abstractmethod
    def most_rows(self) -> int:
        """Return how many rows there are, or of text a number that is not smaller."""

    @abstractmethod
    def state(self) -> list[list[Any]]:
        """Return the name and size of each file, and a digest of its beginning and end."""

    @abstractmethod
    def check_unchanged(self) -> None:
        """Raise InputError if somebody has written to a file since it was opened."""


class TableFile(Table):
    """A table on the disk, CSV (also compressed) or Parquet: opening it reads its names, `read` and `pieces` its rows.

    Without a separator the first lines show it; without an encoding it is UTF-8, with or without a byte-order mark.
    Of a Parquet file, `groups` are the first row group to read and the one after the last.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        separator: str | None = None,
        encoding: str | None = None,
        groups: tuple[int, int | None] = (0, None),
    ):
        self.path, self.reading = (path := Path(path)), {"separator": separator, "encoding": encoding}
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
        self._opened, self._groups = path.stat(), slice(*groups)
        self._parquet = _parquet_file(path) if is_parquet(path) else None
        self._form, self.notes = ({}, []) if self._parquet else text_form(path, separator, encoding)
        stored = self._parquet.schema_arrow.names if self._parquet else []
        self.names = self._form.get("names") or [name for name in stored if not name.startswith("__index_level_")]
        _check_names(self.names, path)

    def check_unchanged(self) -> None:
        now, then = self.path.stat(), self._opened
        if (now.st_size, now.st_mtime_ns) != (then.st_size, then.st_mtime_ns):
            raise InputError(f"{self.path} changed while it was read.")

    def state(self) -> list[list[Any]]:
        with self.path.open("rb") as file:
            ends = file.read(ENDS)
            file.seek(max(self._opened.st_size - ENDS, 0))
            ends += file.read(ENDS)
        return [[self.path.name, self._opened.st_size, hashlib.sha256(ends).hexdigest()]]

    def most_rows(self) -> int:
        if self._parquet:
            return self._parquet.metadata.num_rows
        with gzip.open(self.path) if self.path.name.lower().endswith(".gz") else self.path.open("rb") as file:
            blocks = iter(partial(file.read, COUNTED_BYTES), b"")
            return sum(block.count(b"\n") + block.count(b"\r") for block in blocks) + 1

    def parts(self) -> list[TablePart]:
        if not self._parquet:
            return [TablePart(str(self.path))]
        found, first, rows = [], 0, 0
        for group in range(n := self._parquet.num_row_groups):
            rows += self._parquet.metadata.row_group(group).num_rows
            if rows >= PART_ROWS or group == n - 1:
                found.append(TablePart(str(self.path), first, group + 1))
                first, rows = group + 1, 0
        return found

    def raw(self, columns: list[str]) -> pd.DataFrame:
        if self._parquet:
            return self._parquet.read(columns=columns).to_pandas(ignore_metadata=True)[columns]
        (frame,) = self._parsed()
        return frame[columns]

    def pairs(
        self, columns: Names, beside: Names = (), *, texts: Names = (), verbatim: Names = (), dates: bool = True
    ) -> Iterator[Pair]:
        own, others = list(dict.fromkeys([*columns, *texts, *verbatim])), list(beside)
        if self._parquet:
            read = list(dict.fromkeys([*own, *others]))
            groups = list(range(self._parquet.num_row_groups))[self._groups]
            with _parquet_file(self.path) as file:  # an open file keeps what it has read last
                for batch in file.iter_batches(PIECE_ROWS, row_groups=groups, columns=read):
                    more = batch.select(others).to_pandas(ignore_metadata=True)
                    if dates:
                        parse_dates(more)
                    yield batch.select(own).to_pandas()[own], more
            return
        seen_otherwise = set(others) & {*texts, *verbatim}
        together = self._text_pieces([*own, *others] if not seen_otherwise else own, texts, verbatim)
        apart = self._text_pieces(others) if seen_otherwise else repeat(None)
        for piece, more in zip(together, apart, strict=bool(seen_otherwise)):
            extra = (piece if more is None else more)[others].copy()
            if dates:
                parse_dates(extra)
            yield piece[own], extra

    def _text_pieces(self, columns: Names, texts: Names = (), verbatim: Names = ()) -> Iterator[pd.DataFrame]:
        kinds = dict.fromkeys([*texts, *verbatim], str)
        missing = {name: MISSING for name in self.names if name not in verbatim}
        for piece in self._parsed(chunksize=PIECE_ROWS, dtype=kinds, keep_default_na=False, na_values=missing):
            if len(piece):
                yield piece[list(dict.fromkeys(columns))].reset_index(drop=True)

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


class TableFolder(Table):
    """The files of a folder and of those in it, or those that match a pattern, in the order of their names."""

    def __init__(self, path: str | Path, **reading: Any):
        self.path, self.reading = Path(path), reading
        inside = self.path.rglob("*") if self.path.is_dir() else map(Path, glob(str(path), recursive=True))
        names = sorted(file for file in inside if file.is_file() and _holds_rows(file, self.path))
        if not names:
            problem = f"There is no CSV or Parquet file in {path}." if self.path.is_dir() else f"No file is {path}."
            raise InputError(problem, remedy="Name a file, a folder of files or a pattern such as 'rows/*.parquet'.")
        self.files = [TableFile(name, **reading) for name in names]
        first = self.files[0]
        self.names, self.notes = first.names, list(dict.fromkeys(chain(*(file.notes for file in self.files))))
        self.notes = [f"Read {len(names):,} files from {path}.", *self.notes] if len(names) > 1 else self.notes
        for file in self.files:
            if differing := sorted(set(file.names) ^ set(self.names)):
                has = file if differing[0] in file.names else first
                lacks = first if has is file else file
                problem = f"{has.path} has a column {differing[0]!r} and {lacks.path} has none."
                raise InputError(problem, remedy="Keep files with the same columns in one folder.")

    def check_unchanged(self) -> None:
        for file in self.files:
            file.check_unchanged()

    def state(self) -> list[list[Any]]:
        return [state for file in self.files for state in file.state()]

    def most_rows(self) -> int:
        return sum(file.most_rows() for file in self.files)

    def parts(self) -> list[TablePart]:
        return [part for file in self.files for part in file.parts()]

    def raw(self, columns: list[str]) -> pd.DataFrame:
        return pd.concat([file.raw(columns) for file in self.files], ignore_index=True)

    def pairs(self, columns: Names, beside: Names = (), **kinds: Any) -> Iterator[Pair]:
        return chain.from_iterable(file.pairs(columns, beside, **kinds) for file in self.files)


def _holds_rows(file: Path, folder: Path) -> bool:
    """Return whether a file is a table by its name, and no part of its way from the folder is hidden."""
    way = file.relative_to(folder).parts if folder.is_dir() else file.parts[-1:]
    return file.name.lower().endswith((*TEXT_ENDINGS, *PARQUET_ENDINGS)) and not any(
        name.startswith(HIDDEN) for name in way
    )


def open_table(path: str | Path, **reading: Any) -> Table:
    """Open a table: a file, a folder of files, or a pattern with * that names several."""
    if not Path(path).is_dir() and (Path(path).exists() or not any(sign in str(path) for sign in WILD)):
        return TableFile(path, **reading)
    return TableFolder(Path(path), **reading)


def missing_table(path: str | Path, known: Names) -> str:
    """Return what a path may have meant, if it is none."""
    return "" if Path(path).exists() or any(sign in str(path) for sign in WILD) else did_you_mean(str(path), known)


def parse_dates(frame: pd.DataFrame) -> list[str]:
    """Turn texts that are dates into dates, and huge whole numbers into floats; return the names of the dates."""
    dates = []
    for name, column in list(frame.items()):
        texts = _texts(column)
        if column.dtype == object and infer_dtype(column, skipna=True) == "integer":
            frame[name] = column.astype(np.float64)  # pandas keeps whole numbers beyond 64 bits as objects
        elif len(texts) and _share(texts, DATE) >= DATE_SHARE and as_dates(texts).notna().mean() >= DATE_SHARE:
            frame[name] = as_dates(column)
            dates.append(str(name))
    return dates


def parsed(frame: pd.DataFrame, notes: list[str]) -> ReadTable:
    """Return a frame with its dates parsed, and more notes; without a value, as model cards repeat them."""
    dates = parse_dates(frame)
    doubts = [note for _, column in frame.items() if len(texts := _texts(column)) for note in _doubts(texts)]
    return ReadTable(frame, [*notes, *[f"Read as dates: {', '.join(dates)}."] * bool(dates), *doubts])


def _texts(column: pd.Series) -> pd.Series:
    return column.dropna().astype(str) if is_object_dtype(column) or is_string_dtype(column) else column[:0]


def _parquet_file(path: Path) -> Any:
    pa = need_pyarrow()
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


def check_columns(table: str | Path, names: Names, wanted: Names, reason: str = "") -> None:
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


KINDS: dict[str, tuple[str, Callable[[pd.Series], pd.Series]]] = {  # words and conversion
    "number": ("numbers", partial(pd.to_numeric, errors="coerce")),
    "date": ("dates such as 2026-01-31", as_dates),
    "sensitive": ("numbers or dates such as 2026-01-31", partial(pd.to_numeric, errors="coerce")),
}


def as_fitted(column: pd.Series, kind: str, table: Table, *, rows_before: int = 0) -> pd.Series:
    """Return a column as the kind it was in the fit; raise InputError if too many of its values are of another."""
    held, converted = KINDS[kind]
    if column_kind(column) == "date" if kind == "date" else is_numeric_dtype(column):
        return column  # dates of a Parquet file may be durations
    values = converted(column.astype("str"))
    wrong = (column.notna() & values.isna()).to_numpy()
    if wrong.sum() > (table.wrong_dates if kind == "date" else 0.0) * column.notna().sum():
        first = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"Column {column.name!r} of {table.path} held {held} when the model was fitted; in row "
            f"{rows_before + first + 1} it is {str(column.iloc[first])[:40]!r}.",
            remedy="Correct it, or leave it empty if it is not known.",
        )
    return values


def _share(texts: pd.Series, pattern: str) -> float:
    return texts.head(100).str.match(pattern).mean()


def _doubts(texts: pd.Series) -> list[str]:
    """Return a note if texts look like dates or numbers."""
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
