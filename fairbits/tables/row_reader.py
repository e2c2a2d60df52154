"""Rows of a new table, encoded as a fitted model reads them, a piece of the table at a time."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from fairbits.encoding.column_features import CategoryFeature, Feature
from fairbits.encoding.columns import as_codes, column_kind, label
from fairbits.errors import InputError
from fairbits.tables.fitted_model import FittedModel
from fairbits.tables.table_file import DATE_SHARE, TableFile, as_dates, no_column

TRUTHS = {"true": "True", "false": "False"}
NAMED_VALUES = 3


class Piece(NamedTuple):
    """Some rows, encoded as the method takes them, and the columns you asked for along with them."""

    X: np.ndarray  # (n, features) float32
    carried: pd.DataFrame


class RowReader:
    """Reads the columns a model needs from a file; `notes` lists what was unusual, once all is read."""

    def __init__(self, model: FittedModel, table: TableFile):
        self.model, self.table = model, table
        self.rows = 0
        self._present: Counter[str] = Counter()
        self._unseen: dict[str, Counter[str]] = {}
        check_columns(table, model.columns, "which the model reads")

    def pieces(self, verbatim: Sequence[str] = ()) -> Iterator[Piece]:
        """Yield encoded rows, with some columns as the file has them."""
        check_columns(self.table, verbatim)
        features, encoder = self.model.features, self.model.encoder
        texts = [name for name, feature in features.items() if feature.kind != "number"]
        for read in self.table.pieces(list(features), texts=texts, verbatim=verbatim):
            frame = pd.DataFrame({name: self._column(read[name], feature) for name, feature in features.items()})
            self.rows += len(frame)
            everything = frame.reindex(columns=list(encoder.feature_names_in_))  # transform skips what fit dropped
            X = np.asarray(encoder.transform(everything)) + np.float32(0)  # no -0: equal rows have equal bytes
            yield Piece(X, read[list(verbatim)])
        if not self.rows:
            raise InputError(f"{self.table.path} has column names but no rows.")

    def encoded(self) -> np.ndarray:
        """Return all rows as the method takes them.  (n, features) float32"""
        return np.concatenate([piece.X for piece in self.pieces()])

    @property
    def notes(self) -> list[str]:
        """Return which values the model has never seen, and which columns are empty."""
        notes = list(self.table.notes)
        for name, values in self._unseen.items():
            shown = ", ".join(repr(value[:40]) for value, _ in values.most_common(NAMED_VALUES))
            more = f" and {len(values) - NAMED_VALUES} more" if len(values) > NAMED_VALUES else ""
            notes.append(
                f"{name} has values the model has not seen in its fit: {shown}{more}, in {values.total():,} of "
                f"{self.rows:,} rows; they count as none of those it knows."
            )
        empty = [name for name in self.model.columns if not self._present[name]]
        return notes + [f"{name} is missing in every row; the model takes its usual value." for name in empty]

    def _column(self, column: pd.Series, feature: Feature) -> pd.Series:
        """Return a column as the kind it was in the fit."""
        name = str(column.name)
        self._present[name] += int(column.notna().sum())
        if isinstance(feature, CategoryFeature):
            column = _truths(column, feature)
            self._note_unseen(name, column, feature)
            return column
        if feature.kind == "number":
            return fitted_numbers(column, self.table, "numbers", rows_before=self.rows)
        if column_kind(column) == "date":  # or a duration, of a Parquet file
            return column
        dates = as_dates(column.astype("str"))
        wrong = (column.notna() & dates.isna()).to_numpy()
        if wrong.sum() > (1 - DATE_SHARE) * column.notna().sum():
            raise _other_kind(column, wrong, self.table, "dates such as 2026-01-31", self.rows)
        return dates

    def _note_unseen(self, name: str, column: pd.Series, feature: CategoryFeature) -> None:
        if feature.other:  # fit merged rare values and does not know their names
            return
        codes, distinct = as_codes(column)
        known = set(feature.categories)
        counts = np.bincount(codes[codes >= 0], minlength=len(distinct))
        sizes = {label(value): int(count) for value, count in zip(distinct, counts, strict=True)}
        if new := {text: size for text, size in sizes.items() if text not in known}:
            self._unseen.setdefault(name, Counter()).update(new)


def fitted_numbers(column: pd.Series, table: TableFile, held: str, *, rows_before: int = 0) -> pd.Series:
    """Return a column of a table as numbers, as it was in fit; raise InputError at the first value that is none."""
    if pd.api.types.is_datetime64_any_dtype(column):
        raise _other_kind(column, np.ones(len(column), dtype=bool), table, held, rows_before)
    if pd.api.types.is_numeric_dtype(column):
        return column
    numbers = pd.to_numeric(column.astype(object), errors="coerce")
    wrong = (column.notna() & numbers.isna()).to_numpy()
    if wrong.any():
        raise _other_kind(column, wrong, table, held, rows_before)
    return numbers.astype(np.float64)


def _other_kind(column: pd.Series, wrong: np.ndarray, table: TableFile, held: str, rows_before: int) -> InputError:
    first = int(np.flatnonzero(wrong)[0])
    return InputError(
        f"Column {column.name!r} of {table.path} held {held} when the model was fitted; in row "
        f"{rows_before + first + 1} it is {str(column.iloc[first])[:40]!r}.",
        remedy="Correct it, or leave it empty if it is not known.",
    )


def _truths(column: pd.Series, feature: CategoryFeature) -> pd.Series:
    """Return texts that spell true and false as the fit wrote them, if it saw only these."""
    if not set(feature.categories) <= set(TRUTHS.values()) or pd.api.types.is_bool_dtype(column):
        return column
    return column.map(lambda text: TRUTHS.get(str(text).lower(), text), na_action="ignore")


def check_columns(table: TableFile, names: Sequence[str], reason: str = "") -> None:
    """Raise InputError if a table lacks a column, with the name that comes nearest."""
    for name in names:
        if name not in table.names:
            raise InputError(no_column(table.path, name, table.names, reason))
