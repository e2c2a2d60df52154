"""What the columns of a table reveal about its sensitive ones; needs no torch."""

import fnmatch
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from fairbits.auditing import Audit
from fairbits.errors import InputError
from fairbits.tables.column_checks import IDENTIFIES, repeated_identifiers, without_identifiers
from fairbits.tables.protected_groups import numbers_or_days, protected, sensitive_groups
from fairbits.tables.table_file import TableFile
from fairbits.workflow.option_words import WORDS, audit_in_words

FEWEST_ROWS, FEWEST_OF_A_GROUP = 20, 10  # of a table to audit


def audit_table(
    table: TableFile,
    sensitive: Sequence[str],
    *,
    label: str | None = None,
    columns: Sequence[str] = (),
    drop: Sequence[str] = (),
    person: Sequence[str] = (),
    crossed: bool = False,
    **options: Any,
) -> tuple[list[Audit], list[str]]:
    """Audit what the columns of a table reveal about its sensitive ones: all but `label` and `drop`, or `columns`.

    `columns` are names or patterns such as bit*. Returns one audit for each sensitive column, or one for all `crossed`,
    and notes.
    """
    table.check_columns([*sensitive, *([] if label is None else [label]), *drop])
    chosen = {pattern: fnmatch.filter(table.names, pattern) for pattern in columns or ["*"]}
    table.check_columns([pattern for pattern, found in chosen.items() if not found])
    out = {*sensitive, *drop, *person, label}
    taken = [name for name in table.names if name not in out and any(name in found for found in chosen.values())]
    if not taken:
        raise InputError("Nothing is left to audit: every column is sensitive, the label or dropped.")
    read = table.read([*taken, *sensitive])
    s, known, _, notes = sensitive_groups(read.frame[list(sensitive)], FEWEST_OF_A_GROUP)
    Z = read.frame.loc[known, taken].reset_index(drop=True)
    if len(Z) < FEWEST_ROWS:
        raise InputError(f"{table.path} has {len(Z)} rows of known groups; at least {FEWEST_ROWS} are needed.")
    said = protected(sensitive, crossed=crossed)
    if not columns:
        Z, left_out = without_identifiers(Z)
        said += left_out
    audited = f"Audited columns: {', '.join(map(str, Z.columns[:20]))}{', ...' if Z.shape[1] > 20 else ''}."
    hint = [WORDS["audits"]["bits"]] if all(re.fullmatch(r"bit\d+", str(name)) for name in Z.columns) else []
    Z, filled = _filled(Z)
    parts = [s] if crossed else [s[[name]] for name in s.columns]
    who = people_of(table, person, known)
    found = [audit_in_words(Z, sensitive_features=part, person=who, **options)[0] for part in parts]
    asks = people_notes(table, person, [*sensitive, *drop, label])
    return found, [audited, *read.notes, *notes, *said, *filled, *hint, *asks]


def _filled(Z: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return dates as numbers, and an indicator column for missing numbers: a recipient sees that, too."""
    columns, notes = {}, []
    for name, column in Z.items():
        columns[name] = column = column if column.dtype.kind != "M" else pd.Series(numbers_or_days(column), Z.index)
        if column.dtype.kind in "iuf" and not (finite := np.isfinite(column)).all():
            columns[name] = column.where(finite, column[finite].mean() if finite.any() else 0.0)
            columns[f"{name} (missing)"] = (~finite).astype(np.float64)
            notes.append(f"{name} is missing or infinite in {(~finite).sum()} rows; fairbits adds an indicator column.")
    return pd.DataFrame(columns), notes


def people_of(table: TableFile, names: Sequence[str], known: np.ndarray) -> pd.DataFrame | None:
    """Return what identifies the people of some rows of a table; None if each row is another person."""
    if not names:
        return None
    table.check_columns(names)
    return table.read(names).frame.loc[known].reset_index(drop=True)


def people_notes(table: TableFile, person: Sequence[str], known: Sequence[str | None] = ()) -> list[str]:
    """Return notes on columns that may identify people with several rows; `known` columns do not."""
    others = [name for name in table.names if name not in known and IDENTIFIES.search(name)]
    return [] if person or not others else repeated_identifiers(table.read(others).frame)
