"""From a table and the names of some columns to a learning task, with everything that was decided said."""

import difflib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from fairbits.encoding import BinnedSensitiveFeaturesWarning, GroupEncoder, TableEncoder
from fairbits.encoding.columns import label as text_of

MOST_CLASSES = 20
FEWEST_ROWS = 200  # in all: a quarter of them certifies
FEWEST_OF_A_CLASS = 20
UNKNOWN = "(missing)"
MOST_NUMBERS = GroupEncoder.max_values  # different numbers of a sensitive column that are not cut into groups


@dataclass(frozen=True)
class Task:
    """What to predict from what, and what to forget.

    `groups` is how several sensitive columns are protected: crossed ("intersection") or "each" on its own.
    """

    X: pd.DataFrame
    y: np.ndarray
    s: pd.DataFrame
    label: str
    groups: str
    group_sizes: dict[str, int]
    notes: list[str] = field(default_factory=list)


def make_task(
    table: pd.DataFrame,
    label: str,
    sensitive: Sequence[str],
    *,
    drop: Sequence[str] = (),
    n_bins: int = 4,
    min_group_size: int = 10,
) -> Task:
    """Take the label, the sensitive columns and the rest apart; raise a ValueError that says what to change.

    Rows without a label are left out; a missing sensitive value is a group of its own.
    """
    _check_columns(table, label, sensitive, drop)
    table, notes = _labelled(table, label)
    y = _label(table[label])
    s, known, more = sensitive_table(table, sensitive)
    table, y, s = table[known].reset_index(drop=True), y[known], s[known].reset_index(drop=True)
    groups, sizes, said = split_groups(s, n_bins=n_bins, min_group_size=min_group_size)
    _check_sizes(sizes, min_group_size)
    X = table.drop(columns=[label, *sensitive, *drop])
    if not X.shape[1]:
        raise ValueError("Nothing is left to predict from: every column is the label, sensitive or dropped.")
    X, left_out = without_identifiers(X)
    return Task(X, y, s, label, groups, sizes, [*notes, *more, *said, *left_out])


def without_identifiers(X: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Leave out columns that number or name the rows; a part of the rows would not show it any more."""
    reasons = TableEncoder().fit(X).dropped_
    found = {name: reason for name, reason in reasons.items() if reason.startswith("identifier")}
    return X.drop(columns=list(found)), [f"{name} was left out, {reason}." for name, reason in found.items()]


def _check_columns(table: pd.DataFrame, label: str, sensitive: Sequence[str], drop: Sequence[str]) -> None:
    for name in (label, *sensitive, *drop):
        if name not in table.columns:
            near = difflib.get_close_matches(name, map(str, table.columns), n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(map(str, table.columns[:30]))}."
            raise ValueError(f"The table has no column {name!r}{hint}")
    if not sensitive:
        raise ValueError("Name at least one sensitive column: --sensitive sex, or several with commas between.")
    if label in sensitive:
        raise ValueError(f"{label!r} is the label and sensitive at once: it cannot be predicted and forgotten.")
    if len(set(sensitive)) < len(sensitive):
        raise ValueError("A sensitive column is named twice.")


def _labelled(table: pd.DataFrame, label: str) -> tuple[pd.DataFrame, list[str]]:
    missing = int(table[label].isna().sum())
    table = table[table[label].notna()].reset_index(drop=True)
    if len(table) < FEWEST_ROWS:
        raise ValueError(f"The table has {len(table)} rows with a label; at least {FEWEST_ROWS} are needed.")
    return table, [f"{missing} rows without a label were left out."] * bool(missing)


def _label(column: pd.Series) -> np.ndarray:
    values, counts = np.unique(column.astype(str) if column.dtype == object else column, return_counts=True)
    if len(values) < 2:
        raise ValueError(f"The label {column.name!r} is {values[0]} in every row: there is nothing to predict.")
    if len(values) > MOST_CLASSES:
        raise ValueError(
            f"The label {column.name!r} has {len(values)} different values; fairbits predicts classes, at most "
            f"{MOST_CLASSES}. Make a column of classes of it, such as 'above 50,000', or name another label."
        )
    if counts.min() < FEWEST_OF_A_CLASS:
        raise ValueError(
            f"Only {counts.min()} rows have the label {values[counts.argmin()]}; at least {FEWEST_OF_A_CLASS} are "
            "needed: merge it with another or leave its rows out."
        )
    return column.astype(str).to_numpy() if column.dtype == object else column.to_numpy()


def sensitive_table(table: pd.DataFrame, names: Sequence[str]) -> tuple[pd.DataFrame, np.ndarray, list[str]]:
    """Return the sensitive columns, which rows can be said to be in a group, and what was decided.

    A missing value is a group of its own; but a missing number or date, where these are cut into groups, is in none.
    """
    s, known, notes = table[list(names)].copy(), np.ones(len(table), dtype=bool), []
    for name in names:
        column = s[name]
        if column.dtype.kind == "M":
            column = days_since_1970(column)
            notes.append(f"{name} is a date; its groups are intervals of days since 1970.")
        missing = (column.isna() | (np.isinf(column) if column.dtype.kind == "f" else False)).to_numpy(dtype=bool)
        many = column.dtype.kind in "iuf" and column[~missing].nunique() > MOST_NUMBERS
        if missing.any() and many:
            known &= ~missing
            notes.append(f"{name} is missing in {int(missing.sum())} rows, which are in none of its groups: left out.")
        elif missing.any():
            column = pd.Series([UNKNOWN if gone else text_of(v) for v, gone in zip(column, missing, strict=True)])
            notes.append(f"{name} is missing in {int(missing.sum())} rows, which are a group of their own.")
        s[name] = column
    return s, known, notes


def days_since_1970(dates: pd.Series) -> pd.Series:
    """Return dates as numbers, so that they can be cut into groups."""
    return (pd.to_datetime(dates, utc=True) - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)


def split_groups(
    s: pd.DataFrame, *, n_bins: int = 4, min_group_size: int = 10
) -> tuple[str, dict[str, int], list[str]]:
    """Cross the columns, or take each on its own where a crossing is too small to say anything about.

    Returns "intersection" or "each", the rows of every group, and what was decided.
    """
    sizes, notes = _encoded(s, "intersection", n_bins)
    small = _small(sizes, min_group_size)
    if not small or s.shape[1] == 1:
        return "intersection" if not small else "each", sizes, notes
    sizes, notes = _encoded(s, "each", n_bins)
    listed = "; ".join(small[:5]) + (f" and {len(small) - 5} more" if len(small) > 5 else "")
    return "each", sizes, [*notes, f"Each sensitive column is on its own: nothing can be estimated for {listed}."]


def _small(sizes: dict[str, int], least: int) -> list[str]:
    return [f"{name} ({size} rows)" for name, size in sizes.items() if size < least]


def _check_sizes(sizes: dict[str, int], least: int) -> None:
    if small := _small(sizes, least):
        raise ValueError(
            f"A group is too small to protect: {', '.join(small[:3])}; merge it with another, or leave its rows out. "
            f"At least {least} rows are needed."
        )


def _encoded(s: pd.DataFrame, groups: str, n_bins: int) -> tuple[dict[str, int], list[str]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BinnedSensitiveFeaturesWarning)  # said in a note
        encoder = GroupEncoder(groups=groups, n_bins=n_bins, min_group_size=1).fit(s)
    title = (lambda column, name: f"{column}={name}") if groups == "each" and s.shape[1] > 1 else (lambda _, name: name)
    columns = encoder.columns_ if groups == "each" else [""]
    sizes = {
        title(column, name): size
        for column, names, counts in zip(columns, encoder.names_, encoder.sizes_, strict=True)
        for name, size in zip(names, counts, strict=True)
    }
    bins = [f"{name} was cut into {len(edges) - 1} groups at its quantiles." for name, edges in encoder.bins_.items()]
    return sizes, bins
