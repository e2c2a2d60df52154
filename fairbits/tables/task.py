"""From a table and the names of some columns to a learning task, with a note on every decision."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from fairbits.encoding.recognition import person_numbers, split_people, table_fingerprint
from fairbits.errors import InputError
from fairbits.tables.column_checks import questions, without_identifiers
from fairbits.tables.protected_groups import (
    group_sizes,
    listed_groups,
    most_favourable,
    pool_groups,
    protected,
    sensitive_groups,
)
from fairbits.tables.table_file import Table, check_columns

MOST_CLASSES = 20
FEWEST_ROWS = 200  # a quarter of them certifies
FEWEST_OF_A_CLASS, FEWEST_OF_A_GROUP = 12, 17  # training rows, so that every part of the rows has some
EXPECTED = 6  # calibration rows of a group that is large enough: where these are few, it needs more training rows
TEST_SHARE, CALIBRATION_SHARE = 0.2, 0.24  # of all rows
SHARES = (0.05, 0.6)  # from where to where the share of the calibration rows may be
MERGE = "Pool rare groups with --merge-small, or leave its rows out."
Parts = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Task:
    """What to predict from what, and what to protect.

    `groups` is how several sensitive columns are protected: crossed ("intersection") or "each" on its own. Sensitive
    numbers are intervals in `s`, the same for every part of the rows; `cuts` has the edges between them. `pooled` has,
    for columns where all other groups are one, those that are not.
    """

    X: pd.DataFrame
    y: np.ndarray
    s: pd.DataFrame
    label: str
    groups: str
    group_sizes: dict[str, int]
    cuts: dict[str, list[float]]
    notes: list[str]
    parts: Parts  # the rows that train, that calibrate and that test
    person: pd.DataFrame | None = None  # what identifies a person, where people have several rows
    pooled: list[dict[str, Any]] = field(default_factory=list)
    seed: int = 0  # of the split
    favourable: list[np.ndarray] = field(default_factory=list)  # calibration people of two groups, in the best split
    apart: Any = None  # a function of a fitted pipeline that yields all rows that calibrate, where they are many
    table_hash: str = ""  # equal for tables of the same rows and columns, in any order of the rows

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
    crossed: bool = False,
    merge_small: int | None = None,
    calibration_share: float = CALIBRATION_SHARE,
    seed: int = 0,
    parts: Parts | None = None,
) -> Task:
    """Separate the label, the sensitive columns, what identifies a `person` and the rest.

    Rows without a label, or of a class that is too rare, are left out; a missing sensitive value is a group of its own.
    Groups of fewer training rows than `merge_small` are pooled. Several sensitive columns are protected each on its
    own, or `crossed`. The rows are split first: what depends on their values, such as groups and columns to leave out,
    is decided by the training rows alone. `seed` is that of the split; `parts` are those of a table that was split
    before, of rows that all have a label.
    """
    _check_names(table, label, sensitive, drop, person)
    if not SHARES[0] <= calibration_share <= SHARES[1]:
        problem = f"must be between {SHARES[0]:g} and {SHARES[1]:g}, a share of the rows."
        remedy = f"For {calibration_share:g} %, pass {calibration_share / 100:g}." if calibration_share > 1 else ""
        raise InputError(problem, argument="calibration_share", value=calibration_share, remedy=remedy)
    whole, labelled = table.drop(columns=list({label, *sensitive, *drop, *person})), table[label].notna()
    table = table[labelled].reset_index(drop=True)
    if len(table) < FEWEST_ROWS:
        few = f"The table has {len(table)} rows with a label {label!r}; at least {FEWEST_ROWS} are needed."
        raise InputError(few, remedy="Only a quarter of them certify, and fewer prove nothing. Use more rows.")
    if parts is None:
        parts = _parts(len(table), table[list(person)] if person else None, calibration_share, seed)
    share = (1 - TEST_SHARE - calibration_share) / calibration_share
    least = max(FEWEST_OF_A_GROUP, math.ceil(EXPECTED * share))
    wanted, units = max(merge_small or 0, least), person_numbers(table[list(person)], len(table)) if person else None
    favourable = most_favourable(table[list(sensitive)], units, parts, least, wanted, crossed=crossed)
    y, common, rare = _label(table[label], parts[0])
    table, parts = table[common].reset_index(drop=True), _places(common, parts)
    who = table[list(person)] if person else None
    s, _, cuts, cut = sensitive_groups(table[list(sensitive)], None, n_bins, parts[0])
    s, known, pooled, small = pool_groups(s, parts[0], least, wanted, crossed=crossed, cut=cuts)
    groups = "intersection" if crossed or len(sensitive) == 1 else "each"
    parts = _places(known, parts)
    if units is not None:
        _check_people(units[common][known], s, groups)
    every = group_sizes(s, groups)
    _check_both_in_groups(y[known], s, groups, label)
    if not whole.shape[1]:
        raise InputError("Nothing is left to predict from: every column is the label, sensitive or dropped.")
    X = table.loc[known, list(whole.columns)].reset_index(drop=True)
    kept, left_out = without_identifiers(X.iloc[parts[0]], len(labelled))
    if not kept.shape[1]:
        raise InputError("Nothing is left to predict from: the other columns number or name the rows.")
    X = X[list(kept.columns)]
    asks = questions(X, y[known], s, parts[0], label, person)
    if who is not None:
        who = who[known].reset_index(drop=True)
        asks += [f"Rows with the same {', '.join(person)} are one person: {len(who.drop_duplicates()):,} people."]
    if asked := [name for name in drop if name not in sensitive]:
        left_out.append(f"Left out, as you asked: {', '.join(asked)}.")
    if needless := [name for name in drop if name in sensitive]:
        named = ", ".join(needless)
        left_out.append(f"--drop {named} is not needed: a model reads sensitive columns only with --encode-sensitive.")
    notes = [f"{(~labelled).sum()} rows without a label were left out."] * (not labelled.all())
    notes += [*rare, *cut, *small, *protected(sensitive, crossed=crossed), *left_out, *asks]
    return Task(X, y[known], s, label, groups, every, cuts, notes, parts, who, pooled, seed, favourable)


def _check_names(
    table: pd.DataFrame, label: str, sensitive: Sequence[str], drop: Sequence[str], person: Sequence[str]
) -> None:
    """Raise unless the columns exist and each has one role."""
    check_columns("The table", list(map(str, table.columns)), [label, *sensitive, *drop, *person])
    if twice := {label, *sensitive} & set(person):
        remedy = "Name the column that identifies a person with --person."
        raise InputError(f"{min(twice)!r} identifies people and is the label or sensitive at once.", remedy=remedy)
    if not sensitive:
        raise InputError("You named no sensitive column.", remedy="Name at least one sensitive column.")
    if label in sensitive:
        problem = f"{label!r} is both the label and sensitive: no model can predict it and hide it."
        raise InputError(problem, remedy="Name another label, or another sensitive column.")
    if label in drop:
        raise InputError(f"{label!r} is the label and dropped at once.", remedy="Leave it out of --drop.")
    if again := [name for name in sensitive if sensitive.count(name) > 1]:
        raise InputError(f"The sensitive column {again[0]!r} is named twice.", remedy="Name it once.")


def _places(known: np.ndarray, parts: Parts) -> Parts:
    """Return where the rows of each part are among the known ones."""
    place = np.cumsum(known) - 1
    train, held, test = (place[rows[known[rows]]] for rows in parts)
    return train, held, test


def _parts(n: int, person: pd.DataFrame | None, calibration_share: float, seed: int) -> Parts:
    """Split n rows at random into those that train, calibrate and test; a person is in one part."""
    rows, test = split_people(n, TEST_SHARE, seed, person)
    own = None if person is None else person.iloc[rows]
    train, held = split_people(len(rows), calibration_share / (1 - TEST_SHARE), seed, own)
    return rows[train], rows[held], test


def _label(column: pd.Series, train: np.ndarray) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Return the labels of the classes that are common enough among the training rows, which rows have them, a note."""
    labels = column.astype(str).to_numpy() if column.dtype == object else column.to_numpy()
    sizes = pd.Series(labels).value_counts()
    if len(sizes) < 2:
        problem = f"The label {column.name!r} is {labels[0]} in every row: there is nothing to predict."
        raise InputError(problem, remedy="Name another label, or add rows of the other class.")
    if len(sizes) > MOST_CLASSES:
        many = f"The label {column.name!r} has {len(sizes)} different values"
        remedy = "Turn it into classes, such as 'above 50,000', or name another label."
        raise InputError(f"{many}; fairbits predicts at most {MOST_CLASSES} classes.", remedy=remedy)
    own = pd.Series(labels[train]).value_counts()
    common = own.index[own >= FEWEST_OF_A_CLASS]
    if len(common) < 2:
        few = f"Only {sizes.iloc[1]} rows have the label {sizes.index[1]}"
        problem = f"{few}; at least {FEWEST_OF_A_CLASS} of them must be training rows."
        raise InputError(problem, remedy="Merge classes, or name another label.")
    kept, rare = np.isin(labels, common), listed_groups(sizes.drop(common))
    note = f"{(~kept).sum()} rows of rare classes are left out, and the certificate is not about such people: {rare}."
    return labels[kept], kept, [note] * (not kept.all())


def _check_people(people: np.ndarray, s: pd.DataFrame, groups: str) -> None:
    """Raise if somebody has rows in two groups: such people can be neither split nor counted."""
    for part in [s] if groups == "intersection" else [s[[name]] for name in s.columns]:
        cells = part.astype(str).assign(person=people).drop_duplicates()
        if torn := int((cells.groupby("person").size() > 1).sum()):
            problem = f"{torn:,} people have rows" if torn > 1 else "A person has rows"
            problem += f" in two groups of {', '.join(part.columns)}."
            raise InputError(problem, remedy="Give all rows of a person the same group, or leave these people out.")


def _check_both_in_groups(y: np.ndarray, s: pd.DataFrame, groups: str, label: str) -> None:
    """Raise unless, of some class, at least two groups of every sensitive column have both members and others."""
    for part in [s] if groups == "intersection" else [s[[name]] for name in s.columns]:
        members = pd.crosstab([part[name] for name in part.columns], y).to_numpy()  # (groups, classes)
        others = members.sum(axis=1, keepdims=True) - members
        if ((members > 0) & (others > 0)).sum(axis=0).max() < 2:
            raise InputError(
                f"{label!r} hardly varies within the groups of {', '.join(map(repr, part.columns))}: a model that "
                "predicts one of them reveals the other.",
                remedy="Name another label or another sensitive column, or merge groups.",
            )


def task_of_frame(
    frame: pd.DataFrame, notes: list[str], label: str, sensitive: Sequence[str], columns: dict[str, Any]
) -> Task:
    """Return the task of a table in memory; `columns` says what becomes of its columns."""
    task = make_task(frame, label, sensitive, **columns)
    task.notes[:0] = notes
    return replace(task, table_hash=table_fingerprint(pd.util.hash_pandas_object(frame, index=False).to_numpy()))


def task_of_table(
    table: Table, label: str, sensitive: Sequence[str], columns: dict[str, Any], fit_rows: int | None = None
) -> Task:
    """Return the task of a table: if it has more than `fit_rows` rows, of a sample that is read piece by piece."""
    table.check_columns([label, *sensitive])
    if fit_rows is None or table.most_rows() <= fit_rows:
        return task_of_frame(*table.read(), label, sensitive, columns)
    from fairbits.tables.table_sample import Draws, RowsApart, sample_table

    share = columns["calibration_share"]
    draws = Draws(columns["seed"], (share, TEST_SHARE))
    sample = sample_table(table, label, sensitive, fit_rows, draws)
    if sample is None:
        return task_of_frame(*table.read(), label, sensitive, columns)
    if columns["person"]:
        problem = f"--person needs all rows of a person together, and {table.path} has {sample.rows:,} rows."
        raise InputError(problem, remedy=f"Keep one row per person, or raise --fit-rows from {fit_rows:,}.")
    task = make_task(sample.read.frame, label, sensitive, **columns, parts=sample.parts)
    train, held, test = task.parts
    task.notes[:0] = [
        *sample.read.notes,
        f"Of {sample.rows:,} rows, {len(train):,} train and {len(test):,} test, drawn at random, more of rare groups "
        f"and labels. About {share * sample.rows:,.0f} others certify the model; its references are certified on "
        f"{len(held):,} of them.",
    ]
    apart = RowsApart(table, draws, label, {"cuts": task.cuts, "pooled": task.pooled})
    return replace(task, apart=apart, table_hash=apart.fingerprint)
