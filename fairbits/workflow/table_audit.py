"""Audit a table of anybody's representation, or a model on new rows."""

import fnmatch
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fairbits.auditing import Audit, audit
from fairbits.encoding.columns import label as text_of
from fairbits.errors import InputError
from fairbits.tables.fitted_model import FittedModel
from fairbits.tables.row_reader import RowReader, check_columns, known_groups
from fairbits.tables.table_file import TableFile, no_column
from fairbits.tables.task import known_rows, numbers_or_days, sensitive_groups, split_groups, without_identifiers
from fairbits.workflow.recertify import fitted_on

FEWEST_ROWS, FEWEST_OF_A_GROUP = 20, 10
BITS = (
    "If these bits are of a model of fairbits, audit the model itself: `fairbits audit TABLE --model MODEL` knows the "
    "chance of every bit, and proves more from the same rows than drawn bits can."
)

VOID = "These are the rows of the fit, and nothing that is said here holds. Audit with rows that played no part in it."


@dataclass(frozen=True)
class Audits:
    """One audit for the crossed sensitive columns, or one for each where a crossing is too small."""

    audits: list[Audit]
    notes: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain lists, numbers and texts, ready for JSON."""
        return {"audits": [found.to_dict() for found in self.audits], "notes": self.notes}


def audit_table(
    table: TableFile,
    sensitive: Sequence[str],
    *,
    label: str | None = None,
    columns: Sequence[str] = (),
    drop: Sequence[str] = (),
    probes: str = "quick",
    confidence: float = 0.95,
) -> Audits:
    """Say what the columns of a table tell about its sensitive ones.

    Parameters
    ----------
    label : a column that is not part of what is audited
    columns : what is audited, names or patterns such as bit*; all columns by default
    drop : columns to leave out
    """
    taken = _representation(table, sensitive, label, columns, drop)
    read = table.read([*taken, *sensitive])
    s, _, notes = sensitive_groups(read.frame[list(sensitive)])
    known, missing = known_rows(s, FEWEST_OF_A_GROUP)
    s, Z = s[known].reset_index(drop=True), read.frame.loc[known, taken].reset_index(drop=True)
    if len(Z) < FEWEST_ROWS:
        raise InputError(f"{table.path} has {len(Z)} rows of known groups; at least {FEWEST_ROWS} are needed.")
    groups, _, said = split_groups(s, FEWEST_OF_A_GROUP)
    if not columns:
        Z, left_out = without_identifiers(Z)
        said += left_out
    audited = f"Audited columns: {', '.join(map(str, Z.columns[:20]))}{', ...' if Z.shape[1] > 20 else ''}."
    hint = [BITS] if all(re.fullmatch(r"bit\d+", str(name)) for name in Z.columns) else []
    Z, filled = _filled(Z)
    parts = [s] if groups == "intersection" or s.shape[1] == 1 else [s[[name]] for name in s.columns]
    options: dict[str, Any] = {"probes": probes, "confidence": confidence}
    found = [_quiet_audit(Z, sensitive_features=part, **options) for part in parts]
    return Audits(found, [audited, *read.notes, *notes, *missing, *said, *filled, *hint])


def audit_model(
    model: FittedModel,
    table: TableFile,
    *,
    label: str | None = None,
    probes: str = "quick",
    confidence: float = 0.95,
) -> Audits:
    """Audit a model on the rows of a table, for the sensitive columns it was fitted to forget."""
    groups = known_groups(model, table)
    y = None if label is None else _labels(model, table, label)[groups.known]
    reader = RowReader(model, table)
    everything, s = reader.encoded(), groups.s
    X, void = everything[groups.known], [VOID] * fitted_on(model, table, everything, groups.known)
    if y is not None:
        has = np.array([value is not None for value in y])
        X, s, y = X[has], s[has], np.array(list(y[has]), dtype=model.method.classes_.dtype)
    found = _quiet_audit(model.method, X, y, sensitive_features=s, probes=probes, confidence=confidence)
    return Audits([found], [*reader.notes, *groups.notes, *void])


def _representation(
    table: TableFile, sensitive: Sequence[str], label: str | None, columns: Sequence[str], drop: Sequence[str]
) -> list[str]:
    check_columns(table, [*sensitive, *([] if label is None else [label]), *drop])
    patterns = list(columns) or ["*"]
    for pattern in patterns:
        if not fnmatch.filter(table.names, pattern):
            raise InputError(no_column(table.path, pattern, table.names))
    out = {*sensitive, *drop, label}
    taken = [name for name in table.names if name not in out and any(fnmatch.fnmatchcase(name, p) for p in patterns)]
    if not taken:
        raise InputError("Nothing is left to audit: every column is sensitive, the label or dropped.")
    return taken


def _filled(Z: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return dates as numbers, and missing numbers as a column that says so: a receiver sees that, too."""
    columns, notes = {}, []
    for name, column in Z.items():
        if column.dtype.kind == "M":
            column = pd.Series(numbers_or_days(column), column.index)
        columns[name] = column
        if column.dtype.kind in "iuf" and not (finite := np.isfinite(column)).all():
            columns[name] = column.where(finite, column[finite].mean() if finite.any() else 0.0)
            columns[f"{name} (missing)"] = (~finite).astype(np.float64)
            notes.append(f"{name} is missing or infinite in {int((~finite).sum())} rows; that is a column of its own.")
    return pd.DataFrame(columns), notes


def _labels(model: FittedModel, table: TableFile, label: str) -> np.ndarray:
    """Return the classes of the rows, None where there is none."""
    check_columns(table, [label])
    classes = {text_of(c): c for c in model.method.classes_.tolist()}
    texts = [None if pd.isna(value) else text_of(value) for value in table.read([label]).frame[label]]
    wrong = [text for text in texts if text is not None and text not in classes]
    if wrong:
        raise InputError(
            f"The label {label!r} is {wrong[0][:40]!r} in a row of {table.path}; the model knows {', '.join(classes)}."
        )
    return np.array([None if text is None else classes[text] for text in texts], dtype=object)


def _quiet_audit(*what: Any, **options: Any) -> Audit:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the record lists what there is to mind
        return audit(*what, **options)
