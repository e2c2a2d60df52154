"""From a table and the names of some columns to a learning task, with a note on every decision."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fairbits.encoding import GroupEncoder, TableEncoder
from fairbits.encoding.columns import absent, as_microseconds, as_numbers
from fairbits.encoding.columns import label as text_of
from fairbits.encoding.group_encoder import bin_labels, intervals, quantile_edges
from fairbits.errors import InputError
from fairbits.tables.table_file import check_columns

MOST_CLASSES = 20
FEWEST_ROWS = 200  # a quarter of them certifies
FEWEST_OF_A_CLASS = 20
FEWEST_OF_A_GROUP = 30  # so that every part of the rows has some
MOST_NUMBERS = 10  # a sensitive column with more distinct numbers is cut into intervals
UNKNOWN = "(missing)"
IDENTIFIES = re.compile(r"(^|[_\W])(id|uuid|ssn|person|patient|customer|client|user|member|employee)$", re.IGNORECASE)
MERGE = "Merge it with another, or leave its rows out."


@dataclass(frozen=True)
class Task:
    """What to predict from what, and what to protect.

    `groups` is how several sensitive columns are protected: crossed ("intersection") or "each" on its own. Sensitive
    numbers are intervals in `s`, the same for every part of the rows; `bins` has their edges.
    """

    X: pd.DataFrame
    y: np.ndarray
    s: pd.DataFrame
    label: str
    groups: str
    group_sizes: dict[str, int]
    bins: dict[str, list[float]]
    notes: list[str]
    person: pd.DataFrame | None = None  # what identifies a person, where people have several rows

    def people(self, rows: np.ndarray) -> pd.DataFrame | None:
        """Return who some rows are about; None if each row is another person."""
        return None if self.person is None else self.person.iloc[rows]

    def part(self, rows: np.ndarray) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame]:
        """Return inputs, labels and sensitive columns of some rows."""
        return self.X.iloc[rows], self.y[rows], self.s.iloc[rows]


def make_task(
    table: pd.DataFrame,
    label: str,
    sensitive: Sequence[str],
    *,
    drop: Sequence[str] = (),
    n_bins: int = 4,
    person: Sequence[str] = (),
) -> Task:
    """Separate the label, the sensitive columns, what identifies a `person` and the rest.

    Rows without a label are left out; a missing sensitive value is a group of its own.
    """
    check_columns("The table", list(map(str, table.columns)), [label, *sensitive, *drop, *person])
    if twice := {label, *sensitive} & set(person):
        raise InputError(f"{min(twice)!r} identifies people and is the label or sensitive at once.")
    if not sensitive:
        raise InputError("You named no sensitive column.", remedy="Name at least one sensitive column.")
    if label in sensitive:
        raise InputError(f"{label!r} is the label and sensitive at once: no code can predict it and hide it.")
    if len(set(sensitive)) < len(sensitive):
        raise InputError("A sensitive column is named twice.")
    whole, labelled = table.drop(columns=list({label, *sensitive, *drop, *person})), table[label].notna()
    table = table[labelled].reset_index(drop=True)
    if len(table) < FEWEST_ROWS:
        raise InputError(f"The table has {len(table)} rows with a label; at least {FEWEST_ROWS} are needed.")
    y = _label(table[label])
    s, known, bins, cut = sensitive_groups(table[list(sensitive)], FEWEST_OF_A_GROUP, n_bins)
    groups, sizes, split = split_groups(s, FEWEST_OF_A_GROUP)
    if small := _small(sizes, FEWEST_OF_A_GROUP):
        few = f"A group is too small to protect: {', '.join(small[:3])}"
        raise InputError(f"{few}. At least {FEWEST_OF_A_GROUP} rows are needed.", remedy=MERGE)
    _check_both_in_groups(y[known], s, groups, label)
    if not whole.shape[1]:
        raise InputError("Nothing is left to predict from: every column is the label, sensitive or dropped.")
    kept, left_out = without_identifiers(whole)
    notes = [f"{(~labelled).sum()} rows without a label were left out."] * (not labelled.all())
    X = table.loc[known, list(kept.columns)].reset_index(drop=True)
    who = table.loc[known, list(person)].reset_index(drop=True) if person else None
    asks = _repeated_identifiers(X)
    if who is not None:
        asks = [f"Rows with the same {', '.join(person)} are one person: {len(who.drop_duplicates()):,} people."]
    return Task(X, y[known], s, label, groups, sizes, bins, [*notes, *cut, *split, *left_out, *asks], who)


def _repeated_identifiers(X: pd.DataFrame) -> list[str]:
    """Return notes on columns whose names and values look as if they identified people with several rows."""
    found = []
    for name in X:
        values = X[name].nunique()
        if IDENTIFIES.search(str(name)) and len(X) / 50 < values < len(X):
            said = (
                f"{name} has {values:,} values in {len(X):,} rows. Rows of one person are not independent: if it says"
            )
            found.append(f"{said} whose row it is, pass --person {name}.")
    return found


def without_identifiers(X: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Leave out columns that number or name the rows. Pass all rows: a part of them would not show it."""
    reasons = TableEncoder().fit(X).dropped_
    found = {name: reason for name, reason in reasons.items() if reason.startswith("identifier")}
    return X.drop(columns=list(found)), [f"{name} was left out, {reason}." for name, reason in found.items()]


def _label(column: pd.Series) -> np.ndarray:
    labels = column.astype(str).to_numpy() if column.dtype == object else column.to_numpy()
    values, counts = np.unique(labels, return_counts=True)
    if len(values) < 2:
        raise InputError(f"The label {column.name!r} is {values[0]} in every row: there is nothing to predict.")
    if len(values) > MOST_CLASSES:
        many = f"The label {column.name!r} has {len(values)} different values"
        remedy = "Turn it into classes, such as 'above 50,000', or name another label."
        raise InputError(f"{many}; fairbits predicts at most {MOST_CLASSES} classes.", remedy=remedy)
    if counts.min() < FEWEST_OF_A_CLASS:
        rare = f"Only {counts.min()} rows have the label {values[counts.argmin()]}"
        raise InputError(f"{rare}; at least {FEWEST_OF_A_CLASS} are needed.", remedy=MERGE)
    return labels


def sensitive_groups(
    s: pd.DataFrame, least: int, n_bins: int = 4
) -> tuple[pd.DataFrame, np.ndarray, dict[str, list[float]], list[str]]:
    """Cut numbers and dates into intervals; missing values are a group of their own, unless they are too few for one.

    Returns the groups of the rows to keep, which rows these are, the edges of the intervals, and notes.
    """
    bins, notes = {}, []
    for name, column in s.items():
        present = column[~absent(column)]
        if present.dtype.kind in "iufM" and present.nunique() > MOST_NUMBERS:
            bins[str(name)] = quantile_edges(numbers_or_days(present), n_bins)
            what = f"{name} holds dates and" if column.dtype.kind == "M" else str(name)
            notes.append(f"{what} was cut into {len(bins[str(name)]) - 1} groups at its quantiles.")
    groups, known = as_groups(s, bins), np.ones(len(s), dtype=bool)
    for name, column in groups.items():
        missing = (column == UNKNOWN).to_numpy(dtype=bool)
        if 0 < missing.sum() < least:
            known &= ~missing
            notes.append(f"{name} is missing in {missing.sum()} rows, too few for a group of their own: left out.")
        elif missing.any():
            notes.append(f"{name} is missing in {missing.sum()} rows, which are a group of their own.")
    return groups[known].reset_index(drop=True), known, bins, notes


def as_groups(s: pd.DataFrame, bins: dict[str, list[float]]) -> pd.DataFrame:
    """Return sensitive columns with intervals in place of numbers and dates, and a group for what is missing.

    >>> as_groups(pd.DataFrame({"age": [20, 35, None]}), {"age": [18.0, 30.0, 64.0]})["age"].tolist()
    ['[18, 30)', '[30, 64]', '(missing)']
    """
    groups = s.copy()
    for name, column in s.items():
        unknown = absent(column)
        if edges := bins.get(str(name)):
            places = np.searchsorted(edges[1:-1], numbers_or_days(column), side="right")
            names = _date_labels(edges) if column.dtype.kind == "M" else bin_labels(edges)
            groups[name] = np.where(unknown, UNKNOWN, np.array(names)[places])
        elif unknown.any():
            groups[name] = [UNKNOWN if gone else text_of(v) for v, gone in zip(column, unknown, strict=True)]
    return groups


def _date_labels(edges: list[float]) -> list[str]:
    """Return the names of intervals of days since 1970: dates, and times of day only where two dates are equal.

    >>> _date_labels([-3653.0, 38.0, 11676.0])
    ['[1960-01-01, 1970-02-08)', '[1970-02-08, 2001-12-20]']
    """
    times = (np.array(edges) * 86_400e6).round().astype("datetime64[us]")
    for unit in ("D", "s", "us"):
        texts = np.datetime_as_string(times, unit=unit, casting="unsafe").tolist()
        if len(set(texts[:-1])) == len(edges) - 1:
            return intervals(texts)
    return bin_labels(edges)


def numbers_or_days(column: pd.Series) -> np.ndarray:
    """Return numbers as they are, and dates as days since 1970."""
    return as_microseconds(column) / 86_400e6 if column.dtype.kind == "M" else as_numbers(column)


def split_groups(s: pd.DataFrame, least: int) -> tuple[str, dict[str, int], list[str]]:
    """Cross the columns, or take each on its own where a crossing has too few rows.

    Returns "intersection" or "each", the rows of every group, and a note on the small crossings.
    """
    sizes = _sizes(s, "intersection")
    small = _small(sizes, least)
    if not small or s.shape[1] == 1:
        return "each" if small else "intersection", sizes, []
    listed = "; ".join(small[:5]) + (f" and {len(small) - 5} more" if len(small) > 5 else "")
    note = f"Each sensitive column is protected on its own; these combinations are too small: {listed}."
    return "each", _sizes(s, "each"), [note]


def _check_both_in_groups(y: np.ndarray, s: pd.DataFrame, groups: str, label: str) -> None:
    """Raise unless, of some class, at least two groups of every sensitive column have both members and others."""
    for part in [s] if groups == "intersection" else [s[[name]] for name in s.columns]:
        members = pd.crosstab([part[name] for name in part.columns], y).to_numpy()  # (groups, classes)
        others = members.sum(axis=1, keepdims=True) - members
        if ((members > 0) & (others > 0)).sum(axis=0).max() < 2:
            raise InputError(
                f"{label!r} hardly differs within the groups of {', '.join(map(repr, part.columns))}: a code that "
                "predicts the one reveals the other.",
                remedy="Name another label or another sensitive column, or merge groups.",
            )


def _small(sizes: dict[str, int], least: int) -> list[str]:
    return [f"{name} ({size} row{'s' * (size > 1)})" for name, size in sizes.items() if size < least]


def _sizes(s: pd.DataFrame, groups: str) -> dict[str, int]:
    """Return the rows of every group."""
    encoder = GroupEncoder(groups=groups, min_group_size=1).fit(s)
    titles = [f"{name}=" for name in encoder.columns_] if groups == "each" else [""]
    return {
        title + name: size
        for title, names, sizes in zip(titles, encoder.names_, encoder.sizes_, strict=True)
        for name, size in zip(names, sizes, strict=True)
    }
