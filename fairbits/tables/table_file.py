"""Read a table from a file, and say what is wrong with one that cannot be read."""

import difflib
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fairbits.errors import InputError, MissingExtraError
from fairbits.tables.text_form import TextForm, text_form

TEXT_ENDINGS = (".csv", ".tsv", ".txt", ".data", ".csv.gz", ".tsv.gz")
PARQUET_ENDINGS = (".parquet", ".pq")
DATE_SHARE = 0.95  # of the texts of a column that must be dates for it to be one
NUMBER_SHARE = 0.5  # of the texts of a column that are numbers: perhaps all should be
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


def read_file(path: str | Path, *, separator: str | None = None, encoding: str | None = None) -> ReadTable:
    """Read a CSV (also compressed) or Parquet file; the parameters are those of `TableFile`."""
    return TableFile(path, separator=separator, encoding=encoding).read()


class TableFile:
    """A table on the disk: opening it reads the names of its columns, `read` and `pieces` read rows.

    Parameters
    ----------
    separator : of the columns; None detects it from the first lines
    encoding : of the text; None is UTF-8, with or without a byte-order mark
    """

    def __init__(self, path: str | Path, *, separator: str | None = None, encoding: str | None = None):
        self.path = _existing(path)
        self._state = self._look()
        self.form: TextForm | None = None
        if self.path.name.lower().endswith(PARQUET_ENDINGS):
            self.names, self.notes = _parquet_names(self.path), []
        else:
            self.form = text_form(self.path, separator, encoding)
            self.names, self.notes = self.form.names, self.form.notes
        _check_names(self.names, self.path)

    def has_changed(self) -> bool:
        """Return whether somebody has written to the file since it was opened."""
        return self._look() != self._state

    def _look(self) -> tuple[int, int]:
        found = self.path.stat()
        return found.st_size, found.st_mtime_ns

    def read(self, columns: Sequence[str] | None = None) -> ReadTable:
        """Return the whole table, or some columns that must be there, with dates and large numbers parsed."""
        return _checked(self._frame(self.names if columns is None else list(columns)), self.notes, self.path)

    def _frame(self, wanted: list[str]) -> pd.DataFrame:
        """Return some columns; one of several types is text."""
        if self.form is None:
            return _parquet_file(self.path).read(columns=wanted).to_pandas(ignore_metadata=True)[wanted]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pd.errors.DtypeWarning)  # about columns of several types
            (frame,) = self._parsed(self.form)
        frame = frame[wanted]
        mixed = [name for name in wanted if pd.api.types.infer_dtype(frame[name], skipna=True).startswith("mixed")]
        if mixed:  # pandas parses part by part; a column that is text in one part is text in all
            (texts,) = self._parsed(self.form, usecols=mixed, dtype=str)
            frame = frame.assign(**{name: texts[name] for name in mixed})
        return frame

    def pieces(
        self, columns: Sequence[str], *, texts: Sequence[str] = (), verbatim: Sequence[str] = ()
    ) -> Iterator[pd.DataFrame]:
        """Yield some columns, `PIECE_ROWS` rows at a time, so that a table need not fit into memory.

        Parameters
        ----------
        texts : columns of a CSV to leave as text
        verbatim : columns to leave as text, and words such as NA in them as they are
        """
        wanted = list(dict.fromkeys([*columns, *texts, *verbatim]))
        if self.form is None:
            for batch in _parquet_file(self.path).iter_batches(PIECE_ROWS, columns=wanted):
                yield batch.to_pandas()[wanted]
            return
        options = {
            "dtype": dict.fromkeys([*texts, *verbatim], str),
            "keep_default_na": False,
            "na_values": {name: MISSING for name in self.names if name not in verbatim},
        }
        for piece in self._parsed(self.form, chunksize=PIECE_ROWS, low_memory=False, **options):
            if len(piece):
                yield piece[wanted].reset_index(drop=True)

    def _parsed(self, form: TextForm, **options: Any) -> Iterator[pd.DataFrame]:
        """Yield the frames of a text file, one unless you pass a `chunksize`.

        It parses all columns, because only then pandas notices a line that has too many.
        """
        as_found = {"sep": form.separator, "decimal": form.decimal, "names": form.names, "header": 0}
        try:
            with form.opened() as text:
                found = pd.read_csv(text, index_col=False, **as_found, **options)
                yield from [found] if isinstance(found, pd.DataFrame) else found
        except (pd.errors.ParserError, ValueError, OverflowError) as error:
            first = str(error).strip().splitlines()[0].rstrip(".")
            raise InputError(f"{self.path} cannot be read as a table: {first}.") from None


def _existing(path: str | Path) -> Path:
    path = Path(path)
    if not path.exists():
        raise InputError(f"There is no file {path}.")
    if path.is_dir():
        raise InputError(f"{path} is a folder.", remedy="Name a CSV or Parquet file.")
    if not path.name.lower().endswith((*TEXT_ENDINGS, *PARQUET_ENDINGS)):
        endings = ", ".join((*TEXT_ENDINGS, *PARQUET_ENDINGS))
        raise InputError(f"{path} does not end in any of {endings}.", remedy="Save the table as CSV or Parquet.")
    return path


def parquet_module() -> Any:
    """Return `pyarrow.parquet`, or raise if it is not installed."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError("A Parquet file", "tables") from None
    return parquet


def _parquet_file(path: Path) -> Any:
    parquet = parquet_module()
    try:
        return parquet.ParquetFile(path)
    except (ValueError, OSError, NotImplementedError) as error:  # pyarrow's own errors are among them
        first = str(error).splitlines()[0].rstrip(".")
        raise InputError(f"{path} is not a readable Parquet file: {first}.") from None


def _parquet_names(path: Path) -> list[str]:
    schema = _parquet_file(path).schema_arrow
    from pyarrow import types

    nested = [field.name for field in schema if types.is_nested(field.type)]
    if nested:
        raise InputError(
            f"Column {nested[0]!r} of {path} holds lists or records, not single values.",
            remedy="Leave it out of the file, or split it into columns.",
        )
    return [name for name in schema.names if not name.startswith("__index_level_")]


def no_column(table: str | Path, name: str, names: Sequence[str], reason: str = "") -> str:
    """Return a sentence about a column that is not there, with the name that comes nearest."""
    near = difflib.get_close_matches(name, names, n=1) or [other for other in names if other.lower() == name.lower()]
    hint = f"did you mean {near[0]!r}?" if near else f"its columns are {', '.join(names[:30])}."
    return f"{table} has no column {name!r}{', ' + reason if reason else ''}; {hint}"


def _check_names(names: list[str], path: Path) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(
            f"{path} has more than one column named {twice[0]!r}.",
            remedy="Rename or drop one of them. If the first line holds values, put a line of column names above it.",
        )
    if "" in names:
        raise InputError(
            f"Column {names.index('') + 1} of {path} has no name.",
            remedy="Name it, or leave it out of the file. (pandas writes such a column without index=False.)",
        )
    if names and all(_is_number(name) for name in names):
        raise InputError(f"The first line of {path} holds numbers, not names.", remedy="Put the column names there.")
    if len(names) < 2:
        raise InputError(f"{path} has one column; it needs a label, a sensitive column and others to predict from.")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _checked(frame: pd.DataFrame, notes: list[str], path: Path) -> ReadTable:
    if not len(frame):
        raise InputError(f"{path} has column names but no rows.")
    dates = [name for name in frame.columns if _holds_dates(frame[name])]
    for name in dates:
        frame[name] = as_dates(frame[name])
    for name, column in frame.items():  # pandas keeps whole numbers beyond 64 bits as objects
        if column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) == "integer":
            frame[name] = column.astype(np.float64)
    if dates:
        notes = [*notes, f"Read as dates: {', '.join(dates)}."]
    return ReadTable(frame, [*notes, *(note for name in frame.columns for note in _doubts(frame[name]))])


def as_dates(texts: pd.Series) -> pd.Series:
    """Return texts such as 2026-11-16, with a time or without, as dates; anything else is missing."""
    return pd.to_datetime(texts, format="ISO8601", errors="coerce", utc=True).dt.tz_localize(None)


def _texts(column: pd.Series) -> pd.Series:
    """Return the texts of a column, nothing if it holds something else."""
    if not (pd.api.types.is_object_dtype(column) or pd.api.types.is_string_dtype(column)):
        return pd.Series(dtype=str)
    return column.dropna().astype(str)


def _doubts(column: pd.Series) -> list[str]:
    """Return a note if a column of text looks like dates or numbers; without a value, as model cards repeat it."""
    texts = _texts(column)
    if not len(texts):
        return []
    if texts.head(100).str.match(OTHER_DATE).mean() >= DATE_SHARE:
        return [f"{column.name} is read as text. If it is a date, write it as 2026-01-31."]
    bare = texts.head(1000).str.replace(AROUND_NUMBERS, "", regex=True)
    if pd.to_numeric(bare, errors="coerce").notna().mean() < NUMBER_SHARE:
        return []
    others = texts[pd.to_numeric(texts, errors="coerce").isna()]
    if not len(others):
        return []
    return [
        f"{column.name} is read as text: {len(others):,} of {len(texts):,} values are not numbers, the first in row "
        f"{others.index[0] + 1}. If it should be a number, correct them or leave them empty."
    ]


def _holds_dates(column: pd.Series) -> bool:
    """Return whether nearly all texts of a column are dates."""
    texts = _texts(column)
    look = texts.head(100).str.match(r"\d{4}-\d{2}-\d{2}").mean()  # NaN if there are no texts
    return bool(look >= DATE_SHARE and as_dates(texts).notna().mean() >= DATE_SHARE)
