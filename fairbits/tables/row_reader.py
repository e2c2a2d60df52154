"""Rows of a new table as a fitted model reads them: encoded a piece at a time, and in the groups it knows."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from fairbits.encoding.columns import CategoryFeature, Feature, as_codes, as_numbers, column_kind, label
from fairbits.encoding.group_encoder import SensitiveColumn
from fairbits.errors import InputError
from fairbits.tables.fitted_model import FittedModel
from fairbits.tables.table_file import DATE_SHARE, TableFile, as_dates, no_column
from fairbits.tables.task import UNKNOWN, as_groups

TRUTHS = {"true": "True", "false": "False"}
NAMED_VALUES = 3
LEAST_KNOWN = 0.5  # share of the rows of known groups; with fewer the column is probably another one


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
                f"{self.rows:,} rows; it treats them as unknown."
            )
        empty = [name for name in self.model.columns if not self._present[name]]
        return notes + [f"{name} is missing in every row; the model fills in its usual value." for name in empty]

    def _column(self, column: pd.Series, feature: Feature) -> pd.Series:
        """Return a column as the kind it was in the fit."""
        name = str(column.name)
        self._present[name] += int(column.notna().sum())
        if isinstance(feature, CategoryFeature):
            column = _truths(column, feature)
            self._note_unseen(name, column, feature)
            return column
        if feature.kind == "number":
            return _fitted_numbers(column, self.table, "numbers", rows_before=self.rows)
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


def _fitted_numbers(column: pd.Series, table: TableFile, held: str, *, rows_before: int = 0) -> pd.Series:
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


class KnownGroups(NamedTuple):
    """Sensitive columns, which of the rows have a group the model knows, and notes on the others."""

    s: pd.DataFrame  # of the known rows
    known: np.ndarray  # (n,) bool
    notes: list[str]


def known_groups(model: FittedModel, table: TableFile) -> KnownGroups:
    """Read the sensitive columns of a model from a table; leave out rows of groups it was not fitted to."""
    encoder, bins = model.groups, (model.record or {}).get("task", {}).get("bins", {})
    check_columns(table, encoder.columns_, "which the model was fitted to protect")
    read = table.read(encoder.columns_).frame
    s = pd.DataFrame({level.name: _sensitive_column(level, read[level.name], bins, table) for level in encoder.levels_})
    known, notes = np.ones(len(s), dtype=bool), []
    for level in encoder.levels_:
        values = s[level.name]
        own = values.notna() if level.edges is not None else values.isin(level.labels)
        known &= own.to_numpy()
        if own.all():
            continue
        if level.edges is not None:
            notes.append(f"{level.name} is missing in {(~own).sum()} rows: left out.")
        else:
            shown = ", ".join(values[~own].value_counts().index[:3])
            notes.append(f"{(~own).sum()} rows have a {level.name} that the model does not know ({shown}): left out.")
    if encoder.cells_ is not None and len(encoder.levels_) > 1 and known.any():
        codes = tuple(level.codes(s.loc[known, level.name]) for level in encoder.levels_)
        cells = np.ravel_multi_index(codes, [len(level.labels) for level in encoder.levels_])
        crossed = np.isin(cells, encoder.cells_)
        if not crossed.all():
            notes.append(f"{(~crossed).sum()} rows have a combination that the model does not know: left out.")
            known[np.flatnonzero(known)[~crossed]] = False
    if known.mean() < LEAST_KNOWN:
        levels = "; ".join(f"{level.name} as {', '.join(level.labels[:8])}" for level in encoder.levels_)
        raise InputError(
            f"Only {int(known.sum())} of {len(known)} rows of {table.path} are of groups the model knows ({levels}).",
            remedy="Write the groups as they were in its fit.",
        )
    return KnownGroups(s[known].reset_index(drop=True), known, notes)


def _sensitive_column(
    level: SensitiveColumn, column: pd.Series, bins: dict[str, list[float]], table: TableFile
) -> pd.Series:
    """Return the names of groups, or numbers where the method itself cut numbers into groups."""
    if level.name not in bins and level.edges is None:
        return pd.Series([UNKNOWN if pd.isna(value) else label(value) for value in column], dtype=object)
    if level.name not in bins or column.dtype.kind != "M":
        numbers = as_numbers(_fitted_numbers(column, table, "numbers or dates such as 2026-01-31"))
        column = pd.Series(np.where(np.isfinite(numbers), numbers, np.nan))
    return as_groups(column.to_frame(level.name), bins)[level.name] if level.name in bins else column
