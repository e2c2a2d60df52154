"""Audit a table of anybody's representation, or a model on new rows."""

import fnmatch
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
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
from fairbits.workflow.option_words import worded
from fairbits.workflow.recertify import fitted_on

FEWEST_ROWS, FEWEST_OF_A_GROUP = 20, 10
BITS = (
    "If a fairbits model drew these bits, audit the model instead: `fairbits audit TABLE --model MODEL` knows the "
    "probability of every bit, and proves more from the same rows."
)
NO_TASK = "the scores need a model (--model) and its label (--label)."
INVALID = "Invalid: these rows were used in the fit. Ignore the numbers above, and audit with new data."


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
    """Audit what the columns of a table reveal about its sensitive ones.

    Parameters
    ----------
    label : a column that is not part of what is audited
    columns : what is audited, names or patterns such as bit*; all columns by default
    drop : columns to leave out
    """
    check_columns(table, [*sensitive, *([] if label is None else [label]), *drop])
    patterns = list(columns) or ["*"]
    for pattern in patterns:
        if not fnmatch.filter(table.names, pattern):
            raise InputError(no_column(table.path, pattern, table.names))
    out = {*sensitive, *drop, label}
    taken = [name for name in table.names if name not in out and any(fnmatch.fnmatchcase(name, p) for p in patterns)]
    if not taken:
        raise InputError("Nothing is left to audit: every column is sensitive, the label or dropped.")
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
    found = [audit_in_words(Z, sensitive_features=part, probes=probes, confidence=confidence)[0] for part in parts]
    return Audits(found, [audited, *read.notes, *notes, *missing, *said, *filled, *hint])


def audit_model(
    model: FittedModel,
    table: TableFile,
    *,
    label: str | None = None,
    probes: str = "quick",
    confidence: float = 0.95,
) -> Audits:
    """Audit a model on the rows of a table, for the sensitive columns it protects."""
    groups = known_groups(model, table)
    y = None if label is None else _labels(model, table, label)[groups.known]
    reader = RowReader(model, table)
    everything, s = reader.encoded(), groups.s
    X, invalid = everything[groups.known], [INVALID] * fitted_on(model, table, everything, groups.known)
    if y is not None:
        has = np.array([value is not None for value in y])
        X, s, y = X[has], s[has], np.array(list(y[has]), dtype=model.method.classes_.dtype)
    found, _ = audit_in_words(model.method, X, y, sensitive_features=s, probes=probes, confidence=confidence)
    return Audits([found], [*reader.notes, *groups.notes, *invalid])


def audit_in_words(*what: Any, **options: Any) -> tuple[Audit, list[Warning]]:
    """Audit, and return the record with its concerns in the words of the command line, and the concerns themselves."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = audit(*what, **options)
    concerns = [w.message for w in caught if isinstance(w.message, Warning)]
    words = {str(concern): worded(concern) for concern in concerns}
    unavailable = found.unavailable | ({"task": NO_TASK} if "task" in found.unavailable else {})
    said = tuple(words.get(str(concern), str(concern)) for concern in found.concerns)
    return replace(found, concerns=said, unavailable=unavailable), concerns


def _filled(Z: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return dates as numbers, and an indicator column for missing numbers: a recipient sees that, too."""
    columns, notes = {}, []
    for name, column in Z.items():
        if column.dtype.kind == "M":
            column = pd.Series(numbers_or_days(column), column.index)
        columns[name] = column
        if column.dtype.kind in "iuf" and not (finite := np.isfinite(column)).all():
            columns[name] = column.where(finite, column[finite].mean() if finite.any() else 0.0)
            columns[f"{name} (missing)"] = (~finite).astype(np.float64)
            notes.append(
                f"{name} is missing or infinite in {int((~finite).sum())} rows; fairbits adds an indicator column."
            )
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
