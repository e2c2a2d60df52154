"""The sensitive columns of new rows, in the groups that a model was fitted to."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from fairbits.encoding.columns import as_numbers, label
from fairbits.encoding.sensitive import SensitiveColumn
from fairbits.errors import InputError
from fairbits.tables.fitted_model import FittedModel
from fairbits.tables.row_reader import check_columns, fitted_numbers
from fairbits.tables.table_file import TableFile
from fairbits.tables.task import UNKNOWN, as_groups

LEAST_KNOWN = 0.5  # share of the rows; with fewer the column is probably another one


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
    s = pd.DataFrame({level.name: _column(level, read[level.name], bins, table) for level in encoder.levels_})
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


def _column(level: SensitiveColumn, column: pd.Series, bins: dict[str, list[float]], table: TableFile) -> pd.Series:
    """Return the names of groups, or numbers where the method itself cut numbers into groups."""
    if level.name not in bins and level.edges is None:
        return pd.Series([UNKNOWN if pd.isna(value) else label(value) for value in column], dtype=object)
    if level.name not in bins or column.dtype.kind != "M":
        numbers = as_numbers(fitted_numbers(column, table, "numbers or dates such as 2026-01-31"))
        column = pd.Series(np.where(np.isfinite(numbers), numbers, np.nan))
    return as_groups(column.to_frame(level.name), bins)[level.name] if level.name in bins else column
