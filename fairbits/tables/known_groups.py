"""The sensitive columns of new rows, in the groups that a model was fitted to."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from fairbits.encoding import GroupEncoder
from fairbits.encoding.columns import label
from fairbits.encoding.sensitive import SensitiveColumn
from fairbits.errors import InputError
from fairbits.tables.fitted_model import FittedModel
from fairbits.tables.row_reader import check_columns
from fairbits.tables.table_file import TableFile
from fairbits.tables.task import UNKNOWN, as_groups

LEAST_KNOWN = 0.5  # share of the rows; with fewer the column is probably another one


class KnownGroups(NamedTuple):
    """Sensitive columns, which of the rows have a group the model knows, and what was decided."""

    s: pd.DataFrame  # of the known rows
    known: np.ndarray  # (n,) bool
    notes: list[str]


def known_groups(model: FittedModel, table: TableFile) -> KnownGroups:
    """Read the sensitive columns of a model from a table; rows of groups it was not fitted to are left out."""
    encoder, bins = model.groups, (model.record or {}).get("task", {}).get("bins", {})
    check_columns(table, encoder.columns_, "which the model was fitted to forget")
    read = table.read(encoder.columns_)
    s = pd.DataFrame({level.name: _column(level, read.frame[level.name], bins, table) for level in encoder.levels_})
    known, notes = np.ones(len(s), dtype=bool), []
    for level in encoder.levels_:
        own = s[level.name].notna() if level.edges is not None else s[level.name].isin(level.labels)
        known &= own.to_numpy()
        notes += _left_out(level, s[level.name][~own])
    crossed = _crossed(encoder, s[known])
    if not crossed.all():
        notes.append(f"{int((~crossed).sum())} rows are of combinations that the model was not fitted to: left out.")
        known[np.flatnonzero(known)[~crossed]] = False
    if known.mean() < LEAST_KNOWN:
        levels = "; ".join(f"{level.name} as {', '.join(level.labels[:8])}" for level in encoder.levels_)
        raise InputError(
            f"Only {int(known.sum())} of {len(known)} rows of {table.path} are of groups the model knows ({levels}). "
            "Write the groups as they were in its fit."
        )
    return KnownGroups(s[known].reset_index(drop=True), known, notes)


def _column(level: SensitiveColumn, column: pd.Series, bins: dict[str, list[float]], table: TableFile) -> pd.Series:
    """Return the names of groups, or numbers where the method itself cut numbers into groups."""
    if level.name in bins:
        column = column if column.dtype.kind == "M" else _numbers(level, column, table)
        return as_groups(column.to_frame(level.name), bins)[level.name]
    if level.edges is None:
        return pd.Series([UNKNOWN if pd.isna(value) else label(value) for value in column], dtype=object)
    return _numbers(level, column, table)


def _numbers(level: SensitiveColumn, column: pd.Series, table: TableFile) -> pd.Series:
    numbers = pd.to_numeric(column.astype(object), errors="coerce").astype(np.float64)
    wrong = column[column.notna() & numbers.isna()]
    if len(wrong):
        raise InputError(
            f"The sensitive column {level.name!r} held numbers, or dates such as 2026-01-31, in the fit of the model; "
            f"in row {wrong.index[0] + 1} of {table.path} it is {str(wrong.iloc[0])[:40]!r}."
        )
    return numbers.where(np.isfinite(numbers))


def _left_out(level: SensitiveColumn, values: pd.Series) -> list[str]:
    if not len(values):
        return []
    if level.edges is not None:
        return [f"{level.name} is missing in {len(values)} rows: left out."]
    shown = ", ".join(values.value_counts().index[:3])
    return [f"{len(values)} rows are of groups of {level.name} that the model was not fitted to ({shown}): left out."]


def _crossed(encoder: GroupEncoder, s: pd.DataFrame) -> np.ndarray:
    """Say which rows are of a combination the model knows, all of whose columns are known.  (n,)"""
    if encoder.groups == "each" or len(encoder.levels_) == 1 or not len(s):
        return np.ones(len(s), dtype=bool)
    codes = np.column_stack([level.codes(s[level.name]) for level in encoder.levels_])
    _, first, cell = np.unique(codes, axis=0, return_index=True, return_inverse=True)
    return np.array([_has_group(encoder, s.iloc[[row]]) for row in first])[cell.ravel()]


def _has_group(encoder: GroupEncoder, row: pd.DataFrame) -> bool:
    try:
        encoder.transform(row)
    except ValueError:
        return False
    return True
