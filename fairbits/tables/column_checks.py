"""Columns to ask about before training: identifiers, names, birth dates, twins of the label or a sensitive column."""

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd
from sklearn.tree import DecisionTreeClassifier

from fairbits.encoding import TableEncoder
from fairbits.encoding.columns import as_codes, as_microseconds, as_numbers, column_kind

IDENTIFIES = re.compile(r"(^|[_\W])(id|uuid|ssn|person|patient|customer|client|user|member|employee)$", re.IGNORECASE)
PEOPLE = "(first|last|given|family|middle|full|maiden|person|patient|customer|client|employee|applicant|user)"
NAMES = re.compile(rf"(name|surname|{PEOPLE}[ _-]?name)", re.IGNORECASE)
BIRTH = re.compile(r"(^|[_\W])(birth|born|dob)|birth[ _-]?(date|day|year)?$", re.IGNORECASE)
EMAIL = r"[^@\s]+@[^@\s]+\.\w+$"
EMAIL_SHARE = 0.5  # of the first texts of a column that are e-mail addresses
LIFETIMES = 20 * 365.25  # days between the tenths of dates that spread like birth dates
FEW_VALUES = 30  # that every column may have, and still be no identifier
ROWS_OF_A_VALUE = 50  # on average, in a column that is no identifier
FEWEST_NUMBERED = 100  # rows, all with different whole numbers, of an identifier
MISTAKES = 0.0005  # share of rows that a twin may get wrong: its accuracy is 1.000
SAMPLE, SAMPLE_MISTAKES = 2_000, 0.01  # rows to look at before all of them, and what they forgive
CHANCE = 0.05  # people with several rows differ in their groups at most this share of what chance lets them


def without_identifiers(X: pd.DataFrame, n_rows: int | None = None) -> tuple[pd.DataFrame, list[str]]:
    """Leave out columns that number or name the rows; of a random part of `n_rows`, also names and e-mail addresses."""
    reasons, found = TableEncoder().fit(X).dropped_, {}
    for name, column in X.items():
        dropped = reasons.get(str(name), "")
        if dropped.startswith("identifier: "):
            found[name] = f"an identifier, {dropped.removeprefix('identifier: ')}"
        elif n_rows is not None and (looks_like := _personal(column, n_rows)):
            found[name] = looks_like
    notes = [f"{name} was left out: it looks like {reason}." for name, reason in found.items()]
    idle = {name: reason.partition(":")[0] for name, reason in reasons.items() if name not in found}
    if idle and n_rows is not None:  # without the value, as model cards repeat it
        notes.append(f"Not read: {', '.join(f'{name} ({why})' for name, why in idle.items())}.")
    return X.drop(columns=list(found)), notes


def _personal(column: pd.Series, n_rows: int) -> str | None:
    """Return what a column says about single people, if it does."""
    kind, name = column_kind(column), str(column.name)
    if kind == "category":
        texts = column.dropna().astype(str)
        if texts.head(100).str.match(EMAIL).mean() >= EMAIL_SHARE:
            return "e-mail addresses"
        return "names of people" if NAMES.fullmatch(name) and texts.nunique() > FEW_VALUES else None
    if not _is_numbered(column):
        return None
    as_rows = np.ptp(column.to_numpy(np.float64)) < n_rows
    how = "whole numbers, each once, as those of the rows" if as_rows else "a different whole number in every row"
    return f"an identifier, {how}" if as_rows or IDENTIFIES.search(name) else None


def _is_numbered(column: pd.Series) -> bool:
    """Return whether every row has another whole number."""
    if column.dtype.kind not in "iuf" or len(column) < FEWEST_NUMBERED:
        return False
    return _is_whole(x := column.to_numpy(np.float64)) and len(np.unique(x)) == len(x)


def _is_whole(x: np.ndarray) -> bool:
    return bool(np.isfinite(x).all() and (x % 1 == 0).all())


def repeated_identifiers(X: pd.DataFrame, s: pd.DataFrame | None = None) -> list[str]:
    """Return notes on columns that look as if they identified people with several rows.

    Their names say so, or rows with the same value nearly always have the same groups `s`.
    """
    found, names = [], [] if s is None else list(s)
    groups = [] if s is None else [pd.factorize(s[name])[0] for name in names]
    for name, column in X.items():
        codes, distinct = as_codes(column)
        if not max(FEW_VALUES, len(X) / ROWS_OF_A_VALUE) < len(distinct) < len(X):
            continue
        shared = "" if IDENTIFIES.search(str(name)) else f", and rows with the same one share their {', '.join(names)}"
        if not shared or _are_people(column, codes, groups):
            said = f"{name} has {len(distinct):,} values in {len(X):,} rows{shared}."
            said += " Rows of one person are not independent: if this column identifies a person"
            found.append(f"{said}, pass --person {name}.")
    return found


def _are_people(column: pd.Series, codes: np.ndarray, groups: list[np.ndarray]) -> bool:
    """Return whether rows with the same text or whole number have the same groups, far more often than by chance."""
    kind = column_kind(column)
    if not groups or kind == "date" or (kind == "number" and not _is_whole(as_numbers(column))):
        return False
    order = np.argsort(codes, kind="stable")
    pairs = np.flatnonzero((np.diff(codes[order]) == 0) & (codes[order][1:] >= 0))
    for group in groups:
        shares = np.bincount(group) / len(group)
        by_chance = len(pairs) * (1 - (shares**2).sum())
        differ = group[order][pairs] != group[order][pairs + 1]
        if by_chance < 1 / CHANCE or differ.sum() > CHANCE * by_chance:
            return False
    return True


def questions(
    X: pd.DataFrame, y: np.ndarray, s: pd.DataFrame, train: np.ndarray, label: str, person: Sequence[str] = ()
) -> list[str]:
    """Return notes on columns that the model reads and that you may not want it to read, by its training rows.

    Without `person`, ask about identifiers of people with several rows, too.
    """
    notes, plain, own = [], list(X), X.iloc[train]
    targets = {f"the label {label}": y, **{f"the sensitive column {name}": s[name].to_numpy() for name in s}}
    for what, values in targets.items():
        codes, classes = pd.factorize(values[train])
        twins = [name for name in plain if _is_twin(own[name], codes, len(classes))]
        plain = [name for name in plain if name not in twins]
        if twins:
            notes.append(_twin_note(twins, what, is_label=what.startswith("the label")))
    for name, x in X.select_dtypes("floating").items():
        if rows := int(np.isinf(x).sum()):
            notes.append(f"{name} is infinite in {rows:,} rows, which is read as missing.")
    dates = []
    for name in plain:
        column = own[name]
        if BIRTH.search(str(name)) or (column_kind(column) == "date" and _spread(column) > LIFETIMES):
            notes.append(
                f"{name} looks like a birth date. It is kept and reveals the age: protect it with --sensitive "
                f"{name}, or leave it out with --drop {name}."
            )
        elif column_kind(column) == "date":
            dates.append(str(name))
        elif _is_numbered(column):
            notes.append(
                f"{name} has a different whole number in every row. It is kept: if it is an identifier, leave it out "
                f"with --drop {name}."
            )
    if dates:
        many = len(dates) > 1
        notes.append(
            f"{', '.join(dates)} {'hold' if many else 'holds'} dates, which the model reads as numbers of days. If "
            f"{'they only say' if many else 'it only says'} when a row was written, pass --drop {','.join(dates)}: "
            "later rows will lie outside what the model has seen."
        )
    return notes if person else [*notes, *repeated_identifiers(X[plain], s)]


def _twin_note(twins: list[str], what: str, *, is_label: bool) -> str:
    each = f"{', '.join(twins)} alone {'predict' if len(twins) > 1 else 'predicts'} {what} with accuracy 1.000"
    each += f"{', each' * (len(twins) > 1)}. {'They are' if len(twins) > 1 else 'It is'} kept:"
    leave = f"pass --drop {','.join(twins)}"
    if is_label:
        return f"{each} {leave} if nobody knows {'them' if len(twins) > 1 else 'it'} before the label."
    return f"{each} {leave}; if the model may read the sensitive column, pass --encode-sensitive."


def _is_twin(column: pd.Series, target: np.ndarray, n_classes: int) -> bool:
    """Return whether a column alone predicts the class of nearly every row."""
    if _mistakes(column[:SAMPLE], target[:SAMPLE], n_classes) > SAMPLE_MISTAKES * len(target[:SAMPLE]):
        return False
    wrong, others = _mistakes(column, target, n_classes), len(target) - np.bincount(target).max()
    return bool(wrong <= MISTAKES * len(target) and wrong <= CHANCE * others)


def _mistakes(column: pd.Series, target: np.ndarray, n_classes: int) -> float:
    """Return how many classes the values of a column get wrong; of many numbers, an interval for each class."""
    n, (codes, distinct) = len(target), as_codes(column)
    if len(distinct) <= max(FEW_VALUES, n / ROWS_OF_A_VALUE):
        cells = np.bincount((codes + 1) * n_classes + target, minlength=(len(distinct) + 1) * n_classes)
        return n - cells.reshape(-1, n_classes).max(1).sum()
    if (kind := column_kind(column)) == "category":
        return n
    x = as_numbers(column) if kind == "number" else as_microseconds(column)
    x = np.where(np.isfinite(x), x, np.nan)[:, None]
    return (DecisionTreeClassifier(max_leaf_nodes=n_classes).fit(x, target).predict(x) != target).sum()


def _spread(dates: pd.Series) -> float:
    """Return the days between the first and the last tenth of some dates."""
    low, high = np.nanquantile(as_microseconds(dates), [0.1, 0.9])
    return float(high - low) / 86_400e6
