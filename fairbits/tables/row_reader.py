"""The rows of a table as a saved model reads them, piece by piece, with their groups where they are asked for."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from fairbits.certificate.released_code import fitted_code
from fairbits.encoding.columns import CategoryFeature, Feature, absent, as_numbers, column_kind, label
from fairbits.errors import InputError
from fairbits.tables.fitted_model import FittedModel
from fairbits.tables.protected_groups import UNKNOWN, as_groups, pool
from fairbits.tables.table_file import DATE_SHARE, Table, as_dates

TRUTHS = {"true": "True", "false": "False"}
NAMED_VALUES = 3
KINDS: dict[str, tuple[str, Callable[[pd.Series], pd.Series], float]] = {  # words, conversion, share that may fail
    "number": ("numbers", partial(pd.to_numeric, errors="coerce"), 0.0),
    "date": ("dates such as 2026-01-31", as_dates, 1 - DATE_SHARE),
    "sensitive": ("numbers or dates such as 2026-01-31", partial(pd.to_numeric, errors="coerce"), 0.0),
}
LEAST_KNOWN = 0.5  # share of the rows of known groups; with fewer the column is probably another one
Chosen = Callable[[int, int], np.ndarray]  # (first row, rows) -> which of them, (rows,) bool
Pair = tuple[pd.DataFrame, pd.DataFrame]


class KnownGroups(NamedTuple):
    """The rows of a table whose groups a model knows."""

    s: pd.DataFrame  # their sensitive columns
    known: np.ndarray  # which of all rows these are, (n,) bool
    notes: list[str]


class RowPiece(NamedTuple):
    """Rows as the method takes them, (n, features) float32, and what stands beside them in the table."""

    X: np.ndarray
    more: pd.DataFrame  # columns as the file has them
    typed: pd.DataFrame  # columns as `Table.read` returns them
    s: pd.DataFrame | None  # sensitive columns, as groups
    known: np.ndarray  # which rows of the table's piece these are: all, or those of known groups


class GroupReader:
    """Turns sensitive columns into the groups that a model knows; `notes` says which rows are left out, in the end.

    A `strict` one raises InputError at the first row of an unknown group.
    """

    def __init__(self, model: FittedModel, table: Table, *, strict: bool = False):
        self.encoder, self.table, self.strict, task = model.groups, table, strict, (model.record or {}).get("task", {})
        self._closed = "bins" in task  # versions 0.1 and 0.2
        self._cuts, self._pooled = task.get("bins" if self._closed else "cuts", {}), task.get("pooled", [])
        reads = "which this model reads: it was fitted with --encode-sensitive"
        table.check_columns(self.columns, reads if strict else "which the model was fitted to protect")
        self.rows = self.n_known = self._uncrossed = 0
        self._unknown: dict[str, Counter[str]] = defaultdict(Counter)

    @property
    def columns(self) -> list[str]:
        """The sensitive columns."""
        return self.encoder.columns_

    def piece(self, s: pd.DataFrame) -> tuple[pd.DataFrame, np.ndarray]:
        """Return the groups of the rows that have known ones, and which rows these are."""
        s, known = s.copy(), np.ones(len(s), dtype=bool)
        for level in self.encoder.levels_:
            name, column = level.name, s[level.name]
            if level.edges is not None or (name in self._cuts and column.dtype.kind != "M"):
                numbers = _as_fitted(column, "sensitive", self.table, rows_before=self.rows)
                column = pd.Series(as_numbers(numbers), name=name)
            if level.edges is None:
                groups = as_groups(column.to_frame(), self._cuts, closed=self._closed)[name].astype(object)
                column = groups.map(label, na_action="ignore").fillna(UNKNOWN)
            s[name] = column
        s = pool(s, self._pooled)
        for level in self.encoder.levels_:
            name = level.name
            if level.edges is not None:  # the method itself cuts these numbers into groups
                own = ~absent(s[name])
                self._unknown[name][UNKNOWN] += int((~own).sum())
            else:
                s[name] = s[name].astype(object)
                own = s[name].isin(level.labels).to_numpy()
                self._unknown[name].update(s[name][~own].value_counts().to_dict())
            known &= own
        known = self._crossed(s, known)
        if self.strict and not known.all():
            self._refuse(known)
        self.rows, self.n_known = self.rows + len(s), self.n_known + int(known.sum())
        return s[known].reset_index(drop=True), known

    def _crossed(self, s: pd.DataFrame, known: np.ndarray) -> np.ndarray:
        """Return which of the known rows have a combination of groups that the model knows."""
        if self.encoder.cells_ is None or not known.any():
            return known
        codes = tuple(level.codes(s.loc[known, level.name]) for level in self.encoder.levels_)
        cells = np.ravel_multi_index(codes, [len(level.labels) for level in self.encoder.levels_])
        crossed, known = np.isin(cells, self.encoder.cells_), known.copy()
        self._uncrossed += int((~crossed).sum())
        known[np.flatnonzero(known)[~crossed]] = False
        return known

    def _refuse(self, known: np.ndarray) -> None:
        self.check_share(int(known.sum()), len(known))
        row, names = self.rows + int(np.flatnonzero(~known)[0]) + 1, " and ".join(self.columns)
        problem = f"Row {row:,} of {self.table.path} has no {names} that the model knows, and its code depends on it."
        raise InputError(problem, remedy="Correct it, or leave such rows out.")

    def counts(self) -> dict[str, Any]:
        """Return what was counted so far as plain numbers and texts."""
        return {"rows": self.rows, "known": self.n_known, "uncrossed": self._uncrossed, "unknown": self._unknown}

    def add_counts(self, counts: dict[str, Any]) -> None:
        """Add what another reader has counted in its part of the table."""
        self.rows, self.n_known = self.rows + counts["rows"], self.n_known + counts["known"]
        self._uncrossed += counts["uncrossed"]
        for name, values in counts["unknown"].items():
            self._unknown[name].update(values)

    def check_share(self, known: int, rows: int) -> None:
        """Raise InputError if hardly any row is of a known group."""
        if known < LEAST_KNOWN * rows:
            levels = "; ".join(f"{level.name} as {', '.join(level.labels[:8])}" for level in self.encoder.levels_)
            few = f"Only {known} of {rows} rows of {self.table.path}"
            remedy = "Write the groups as they were in its fit."
            raise InputError(f"{few} are of groups the model knows ({levels}).", remedy=remedy)

    @property
    def notes(self) -> list[str]:
        """Return how many rows were left out, and why."""
        notes = []
        for level in self.encoder.levels_:
            name, values = level.name, self._unknown[level.name]
            if level.edges is not None and values.total():
                notes.append(f"{name} is missing in {values.total()} rows: left out.")
            elif values.total():
                shown = ", ".join(value for value, _ in values.most_common(3))
                said = f"rows have a {name} that the model does not know ({shown}): left out."
                notes.append(f"{values.total()} {said}")
        if self._uncrossed:
            notes.append(f"{self._uncrossed} rows have a combination that the model does not know: left out.")
        return notes


class RowReader:
    """Reads the columns a model needs from a table; `notes` lists what was unusual, once all is read.

    With `groups` it reads rows of known groups alone. A model that reads sensitive columns needs those of every row.
    `chosen` says which of some rows to read.
    """

    def __init__(self, model: FittedModel, table: Table, *, groups: bool = False, chosen: Chosen | None = None):
        self.model, self.table, self.rows, self._chosen = model, table, 0, chosen
        seeing = any(getattr(step, "encode_sensitive", False) for step in model.pipeline)
        self.groups = GroupReader(model, table, strict=not groups) if groups or seeing else None
        self._present: Counter[str] = Counter()
        self._unseen: dict[str, Counter[str]] = defaultdict(Counter)
        table.check_columns(list(model.features), "which the model reads")

    def pieces(self, verbatim: Sequence[str] = (), typed: Sequence[str] = ()) -> Iterator[RowPiece]:
        """Yield rows as the method takes them, some columns as the file has them, and some as `Table.read` does."""
        self.table.check_columns([*verbatim, *typed])
        features, names = self.model.features, list(self.model.encoder.feature_names_in_)
        texts = [name for name, feature in features.items() if feature.kind != "number"]
        sensitive = [] if self.groups is None else self.groups.columns
        wanted = list(dict.fromkeys([*sensitive, *typed]))
        for read, beside in self._chosen_rows(self.table.pairs(list(features), wanted, texts=texts, verbatim=verbatim)):
            s, known = (None, np.ones(len(read), bool)) if self.groups is None else self.groups.piece(beside[sensitive])
            frame = pd.DataFrame({name: self._column(name, read[name], feature) for name, feature in features.items()})
            X = frame.reindex(columns=names)[known]  # transform skips what fit dropped
            self.rows += len(frame)
            rows = np.empty((0, 0), np.float32)
            if len(X):  # no -0: equal rows have equal bytes
                rows = np.asarray(fitted_code(self.model.pipeline, X, s)[1]) + np.float32(0)
            yield RowPiece(rows, read.loc[known, list(verbatim)], beside.loc[known, list(typed)], s, known)

    def _chosen_rows(self, pairs: Iterator[Pair]) -> Iterator[Pair]:
        first = 0
        for read, beside in pairs:
            mine = slice(None) if self._chosen is None else self._chosen(first, len(read))
            first += len(read)
            yield read[mine], beside[mine]

    def finish(self) -> Self:
        """Raise InputError if there was no row, or hardly any of a known group."""
        if not self.rows:
            raise InputError(f"{self.table.path} has column names but no rows.")
        if self.groups is not None:
            self.groups.check_share(self.groups.n_known, self.rows)
        return self

    def encoded(self) -> np.ndarray:
        """Return all rows as the method takes them.  (n, features) float32"""
        found = [piece.X for piece in self.pieces() if len(piece.X)]
        self.finish()
        return np.concatenate(found)

    def counts(self) -> dict[str, Any]:
        """Return what was counted so far as plain numbers and texts, for the reader of all parts of a table."""
        own = {"rows": self.rows, "present": self._present, "unseen": self._unseen}
        return own | ({} if self.groups is None else {"groups": self.groups.counts()})

    def add_counts(self, counts: dict[str, Any]) -> None:
        """Add what another reader has counted in its part of the table."""
        self.rows += counts["rows"]
        self._present.update(counts["present"])
        for name, values in counts["unseen"].items():
            self._unseen[name].update(values)
        if self.groups is not None:
            self.groups.add_counts(counts["groups"])

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
        empty = [name for name in self.model.features if not self._present[name]]
        return notes + [f"{name} is missing in every row; the model fills in its usual value." for name in empty]

    def _column(self, name: str, column: pd.Series, feature: Feature) -> pd.Series:
        """Return a column as the kind it was in the fit."""
        self._present[name] += int(column.notna().sum())
        if isinstance(feature, CategoryFeature):
            known = set(feature.categories)
            if known <= set(TRUTHS.values()) and not is_bool_dtype(column):  # spelt in any way
                column = column.map(lambda text: TRUTHS.get(str(text).lower(), text), na_action="ignore")
            counts = {} if feature.other else column.value_counts(sort=False)  # fit does not know merged rare values
            new = {label(value): int(count) for value, count in counts.items() if count and label(value) not in known}
            if new:
                self._unseen[name].update(new)
            return column
        return _as_fitted(column, feature.kind, self.table, rows_before=self.rows)


def _as_fitted(column: pd.Series, kind: str, table: Table, *, rows_before: int = 0) -> pd.Series:
    """Return a column as the kind it was in the fit; raise InputError if too many of its values are of another."""
    held, converted, wrong_share = KINDS[kind]
    if column_kind(column) == "date" if kind == "date" else is_numeric_dtype(column):
        return column  # dates of a Parquet file may be durations
    values = converted(column.astype("str"))
    wrong = (column.notna() & values.isna()).to_numpy()
    if wrong.sum() > wrong_share * column.notna().sum():
        first = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"Column {column.name!r} of {table.path} held {held} when the model was fitted; in row "
            f"{rows_before + first + 1} it is {str(column.iloc[first])[:40]!r}.",
            remedy="Correct it, or leave it empty if it is not known.",
        )
    return values


def known_groups(model: FittedModel, table: Table) -> KnownGroups:
    """Read the sensitive columns of a model from a table; leave out rows of groups it was not fitted to."""
    reader = GroupReader(model, table)
    found = [reader.piece(beside) for _, beside in table.pairs([], reader.columns)]
    reader.check_share(reader.n_known, reader.rows)
    s, known = zip(*found, strict=True)
    return KnownGroups(pd.concat(s, ignore_index=True), np.concatenate(known), reader.notes)
