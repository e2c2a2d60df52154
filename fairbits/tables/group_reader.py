"""The sensitive columns of a table as the groups that a saved model knows, piece by piece."""

from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pandas as pd

from fairbits.encoding import GroupEncoder
from fairbits.encoding.columns import absent, as_codes, as_numbers, label
from fairbits.errors import InputError
from fairbits.tables.protected_groups import UNKNOWN, as_groups, pool
from fairbits.tables.table_file import Table, as_fitted

LEAST_KNOWN = 0.5  # share of the rows of known groups; with fewer the column is probably another one


class GroupReader:
    """Turns sensitive columns into the groups that a model knows; `notes` says which rows are left out, in the end.

    `task` is what the record of the fit says of the groups. A `strict` reader raises InputError at the first row of an
    unknown group.
    """

    def __init__(self, encoder: GroupEncoder, task: dict[str, Any], table: Table, *, strict: bool = False):
        self.encoder, self.table, self.strict = encoder, table, strict
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
                numbers = as_fitted(column, "sensitive", self.table, rows_before=self.rows)
                column = pd.Series(as_numbers(numbers), name=name)
            if level.edges is None:
                codes, groups = as_codes(as_groups(column.to_frame(), self._cuts, closed=self._closed)[name])
                column = pd.Series(np.array([*map(label, groups), UNKNOWN], dtype=object)[codes], column.index)
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
