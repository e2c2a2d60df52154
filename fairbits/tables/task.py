"""From a table and the names of some columns to a learning task, with a note on every decision."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fairbits.encoding import GroupEncoder, TableEncoder
from fairbits.encoding.columns import absent, as_microseconds, as_numbers
from fairbits.encoding.columns import label as text_of
from fairbits.encoding.group_encoder import bin_labels, closed_intervals, open_intervals, quantile_cuts
from fairbits.encoding.people import split_people
from fairbits.errors import InputError
from fairbits.tables.table_file import check_columns

MOST_CLASSES = 20
FEWEST_ROWS = 200  # a quarter of them certifies
FEWEST_OF_A_CLASS = 20
FEWEST_OF_A_GROUP = 17  # training rows, so that every part of the rows has some
TEST_FRACTION, CALIBRATION_FRACTION = 0.2, 0.3  # of all rows, and of the others
MOST_NUMBERS = 10  # a sensitive column with more distinct numbers is cut into intervals
FEWEST_NAMED = 10  # rows of a group whose name is written where it is not protected
UNKNOWN = "(missing)"
IDENTIFIES = re.compile(r"(^|[_\W])(id|uuid|ssn|person|patient|customer|client|user|member|employee)$", re.IGNORECASE)
MERGE = "Merge it with another, or leave its rows out."


@dataclass(frozen=True)
class Task:
    """What to predict from what, and what to protect.

    `groups` is how several sensitive columns are protected: crossed ("intersection") or "each" on its own. Sensitive
    numbers are intervals in `s`, the same for every part of the rows; `cuts` has the edges between them.
    """

    X: pd.DataFrame
    y: np.ndarray
    s: pd.DataFrame
    label: str
    groups: str
    group_sizes: dict[str, int]
    cuts: dict[str, list[float]]
    notes: list[str]
    parts: tuple[np.ndarray, np.ndarray, np.ndarray]  # the rows that train, that calibrate and that test
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
    seed: int = 0,
) -> Task:
    """Separate the label, the sensitive columns, what identifies a `person` and the rest.

    Rows without a label are left out; a missing sensitive value is a group of its own. The rows are split first: what
    depends on their values, such as groups and columns to leave out, is decided by the training rows alone. `seed` is
    that of the split.
    """
    _check_names(table, label, sensitive, [*drop, *person], person)
    whole, labelled = table.drop(columns=list({label, *sensitive, *drop, *person})), table[label].notna()
    table = table[labelled].reset_index(drop=True)
    if len(table) < FEWEST_ROWS:
        raise InputError(f"The table has {len(table)} rows with a label; at least {FEWEST_ROWS} are needed.")
    y = _label(table[label])
    who = table[list(person)] if person else None
    parts = _parts(len(table), who, seed)
    s, known, cuts, cut = sensitive_groups(table[list(sensitive)], FEWEST_OF_A_GROUP, n_bins, parts[0])
    train = _places(known, parts)[0]
    groups, sizes, split = split_groups(s.iloc[train], FEWEST_OF_A_GROUP)
    if groups == "intersection" and len(sensitive) > 1:
        crossed = pd.MultiIndex.from_frame(s.astype(str))
        seen = crossed.isin(crossed[train].unique())
        if not seen.all():
            cut.append(f"{(~seen).sum()} rows are left out: no training row is in their combination of groups.")
            known[np.flatnonzero(known)[~seen]] = False
            s = s[seen].reset_index(drop=True)
    train, held, test = _places(known, parts)
    every = _sizes(s, groups if len(sensitive) > 1 else "intersection")
    if small := _small({name: every[name] for name, n in sizes.items() if n < FEWEST_OF_A_GROUP}, len(s)):
        few = f"A group is too small to protect: {', '.join(small[:3])}"
        problem = f"{few}. At least {FEWEST_OF_A_GROUP} of its rows must be training rows, which 56 % of all rows are."
        raise InputError(problem, remedy=MERGE)
    _check_both_in_groups(y[known], s, groups, label)
    if not whole.shape[1]:
        raise InputError("Nothing is left to predict from: every column is the label, sensitive or dropped.")
    X = table.loc[known, list(whole.columns)].reset_index(drop=True)
    kept, left_out = without_identifiers(X.iloc[train], len(labelled))
    if not kept.shape[1]:
        raise InputError("Nothing is left to predict from: the other columns number or name the rows.")
    X, asks = X[list(kept.columns)], repeated_identifiers(X[list(kept.columns)])
    if who is not None:
        who = who[known].reset_index(drop=True)
        asks = [f"Rows with the same {', '.join(person)} are one person: {len(who.drop_duplicates()):,} people."]
    notes = [f"{(~labelled).sum()} rows without a label were left out."] * (not labelled.all())
    notes += [*cut, *split, *left_out, *asks]
    return Task(X, y[known], s, label, groups, every, cuts, notes, (train, held, test), who)


def _check_names(
    table: pd.DataFrame, label: str, sensitive: Sequence[str], others: Sequence[str], person: Sequence[str]
) -> None:
    """Raise unless the columns exist and each has one role."""
    check_columns("The table", list(map(str, table.columns)), [label, *sensitive, *others])
    if twice := {label, *sensitive} & set(person):
        raise InputError(f"{min(twice)!r} identifies people and is the label or sensitive at once.")
    if not sensitive:
        raise InputError("You named no sensitive column.", remedy="Name at least one sensitive column.")
    if label in sensitive:
        raise InputError(f"{label!r} is the label and sensitive at once: no code can predict it and hide it.")
    if len(set(sensitive)) < len(sensitive):
        raise InputError("A sensitive column is named twice.")


def _places(known: np.ndarray, parts: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return where the rows of each part are among the known ones."""
    place = np.cumsum(known) - 1
    return [place[rows[known[rows]]] for rows in parts]


def _parts(n: int, person: pd.DataFrame | None, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Split n rows at random into those that train, calibrate and test; a person is in one part."""
    rows, test = split_people(n, TEST_FRACTION, seed, person)
    own = None if person is None else person.iloc[rows]
    train, held = split_people(len(rows), CALIBRATION_FRACTION, seed, own)
    return rows[train], rows[held], test


def repeated_identifiers(X: pd.DataFrame) -> list[str]:
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


def without_identifiers(X: pd.DataFrame, n_rows: int | None = None) -> tuple[pd.DataFrame, list[str]]:
    """Leave out columns that number or name the rows; X may be a random part of `n_rows`."""
    reasons = TableEncoder().fit(X).dropped_
    found = {name: reason for name, reason in reasons.items() if reason.startswith("identifier")}
    for name in X if n_rows is not None else ():
        if name not in reasons and _numbers_rows(X[name], n_rows):
            found[name] = "identifier: whole numbers, each once, as those of the rows"
    return X.drop(columns=list(found)), [f"{name} was left out, {reason}." for name, reason in found.items()]


def _numbers_rows(column: pd.Series, n_rows: int | None) -> bool:
    """Return whether a part of the rows has different whole numbers, as close together as the numbers of all rows."""
    if column.dtype.kind not in "iuf" or column.isna().any() or len(column) < FEWEST_ROWS // 2:
        return False
    x = column.to_numpy(np.float64)
    return bool(np.isfinite(x).all() and (x % 1 == 0).all() and len(np.unique(x)) == len(x) and np.ptp(x) < n_rows)


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
    s: pd.DataFrame, least: int, n_bins: int = 4, deciding: np.ndarray | None = None
) -> tuple[pd.DataFrame, np.ndarray, dict[str, list[float]], list[str]]:
    """Cut numbers and dates into intervals; missing values are a group of their own, unless they are too few for one.

    The `deciding` rows, all by default, decide; rows of groups that these do not have are left out. Returns the groups
    of the rows to keep, which rows these are, the edges between the intervals, and notes.
    """
    cuts, notes, deciding = {}, [], np.arange(len(s)) if deciding is None else deciding
    for name, column in s.items():
        own = column.iloc[deciding]
        present = own[~absent(own)]
        if present.dtype.kind in "iufM" and present.nunique() > MOST_NUMBERS:
            cuts[str(name)] = quantile_cuts(x := numbers_or_days(present), n_bins)
            days = np.floor(cuts[str(name)]) if column.dtype.kind == "M" else np.empty(0)
            if len(days) and days[0] > x.min() and (np.diff(days) > 0).all():  # cut at midnight where that is possible
                cuts[str(name)] = days.tolist()
            what = f"{name} holds dates and" if column.dtype.kind == "M" else str(name)
            notes.append(f"{what} was cut into {len(cuts[str(name)]) + 1} groups at its quantiles.")
    groups, known = as_groups(s, cuts), np.ones(len(s), dtype=bool)
    if len(deciding) < len(s):
        _sizes(groups, "each")  # raises if there are too many, before some are left out
    for name, column in groups.items():
        missing = (column == UNKNOWN).to_numpy(dtype=bool)
        unseen = ~column.isin(column.iloc[deciding].unique()).to_numpy() & ~missing
        if unseen.any():
            known &= ~unseen
            named = _named(column[unseen].astype(str).value_counts())
            notes.append(f"{unseen.sum()} rows of {name} are left out: no training row is in their group ({named}).")
        if missing.any() and missing[deciding].sum() < least:
            known &= ~missing
            notes.append(f"{name} is missing in {missing.sum()} rows, too few for a group of their own: left out.")
        elif missing.any():
            notes.append(f"{name} is missing in {missing.sum()} rows, which are a group of their own.")
    return groups[known].reset_index(drop=True), known, cuts, notes


def _named(sizes: pd.Series) -> str:
    """Name up to five groups by their rows; those of few rows are pooled, because their names may point at people.

    >>> _named(pd.Series({"Greek": 12, "Faroese": 1, "Manx": 2}))
    'Greek (12 rows); 2 groups of fewer than 10 rows'
    """
    large = [f"{name} ({size} rows)" for name, size in sizes.items() if size >= FEWEST_NAMED]
    rare, more = len(sizes) - len(large), len(large) - 5
    pooled = f"{rare} group{'s' * (rare > 1)} of fewer than {FEWEST_NAMED} rows"
    return "; ".join([*large[:5], *[f"{more} more"] * (more > 0), *[pooled] * (rare > 0)])


def as_groups(s: pd.DataFrame, cuts: dict[str, list[float]], *, closed: bool = False) -> pd.DataFrame:
    """Return sensitive columns with intervals in place of numbers and dates, and a group for what is missing.

    With `closed`, `cuts` has the outer edges, too, and the intervals have the names of versions 0.1 and 0.2.

    >>> as_groups(pd.DataFrame({"age": [20, 35, None]}), {"age": [30.0, 45.0]})["age"].tolist()
    ['under 30', '30 to under 45', '(missing)']
    """
    groups = s.copy()
    for name, column in s.items():
        unknown = absent(column)
        if edges := cuts.get(str(name)):
            places = np.searchsorted(edges[1:-1] if closed else edges, numbers_or_days(column), side="right")
            names = (_date_labels if column.dtype.kind == "M" else bin_labels)(edges, closed=closed)
            texts = np.where(unknown, UNKNOWN, np.array(names)[places])
            groups[name] = pd.Categorical(texts, [*names, UNKNOWN], ordered=True)
        elif unknown.any():
            groups[name] = [UNKNOWN if gone else text_of(v) for v, gone in zip(column, unknown, strict=True)]
    return groups


def _date_labels(cuts: list[float], *, closed: bool = False) -> list[str]:
    """Return the names of intervals of days since 1970: dates, and times of day only where a cut is not at midnight.

    >>> _date_labels([38.0, 11676.0])
    ['before 1970-02-08', '1970-02-08 to before 2001-12-20', '2001-12-20 or later']
    """
    times = (np.array(cuts) * 86_400e6).round().astype("datetime64[us]")
    for unit in ("D", "s", "us"):
        texts = np.datetime_as_string(times, unit=unit, casting="unsafe").tolist()
        if closed and len(set(texts[:-1])) == len(texts) - 1:
            return closed_intervals(texts)
        if not closed and (times.astype(f"datetime64[{unit}]") == times).all():
            return open_intervals(texts, "before", "or later")
    return bin_labels(cuts, closed=closed)


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
    listed = _named(pd.Series({name: size for name, size in sizes.items() if size < least}))
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
