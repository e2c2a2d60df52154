"""Tables that come one after another: each is a batch of a `CertificateMonitor`."""

import hashlib
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairbits.certificate import CertificateMonitor, TrainingRowsWarning
from fairbits.certificate.certificate_record import percent
from fairbits.certificate.certification import check_fresh
from fairbits.errors import InputError
from fairbits.settings import check_value
from fairbits.tables.protected_groups import protected
from fairbits.tables.table_file import Table
from fairbits.workflow.decision_checks import people_notes, people_of, plain_values
from fairbits.workflow.option_words import WORDS


class UsedRowsError(InputError):
    """A table was used in the fit: it proves nothing."""


def file_fingerprint(path: Path) -> str:
    """Return a text that is equal for files with the same bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def promised_limit(model: Any) -> float:
    """Return the limit on the disparity that a model is certified to."""
    limit = model.limit
    if limit is None or not limit.promised or not limit.total_variation:
        raise InputError("The model has no certified limit on the disparity.", remedy="Pass --max-disparity.")
    return max(limit.total_variation.values())


def watched_model(model: Any) -> str:
    """Return what a state calls a model."""
    from fairbits.modelfile.manifest import MANIFEST  # here, as decisions are watched without torch

    return f"model {file_fingerprint(model.folder / MANIFEST)}"


def opened_monitor(
    state: Path,
    model: Any,
    limit: float | None = None,
    confidence: float | None = None,
    levels: list[float] | None = None,
    about: str | None = None,
) -> CertificateMonitor:
    """Return the monitor of a state that is there, or a new one."""
    about = watched_model(model) if about is None else about
    if not state.exists():
        if limit is None and model is None:
            raise InputError("Pass the limit with --max-disparity.")
        draws = 1 if model is None or model.limit is None or model.is_hard else model.limit.draws
        limit = promised_limit(model) if limit is None else limit
        check_value("max_disparity", limit, above=0, below=1)
        return CertificateMonitor(limit, confidence=confidence or 0.95, draws=draws, levels=levels, about=about)
    monitor = CertificateMonitor.load(state)
    if monitor.about != about:
        raise InputError(f"{state} watches another model or other columns.", remedy="Name another file with --state.")
    begun = {"limit": f"a limit of {monitor.limit:g}", "confidence": f"a confidence of {percent(monitor.confidence)}"}
    begun["levels"] = f"levels {monitor.levels}" if monitor.levels else "no levels"
    for name, value in (("limit", limit), ("confidence", confidence), ("levels", levels)):
        if value not in (None, getattr(monitor, name)):
            problem = f"{state} was begun with {begun[name]}, which cannot be changed."
            raise InputError(problem, remedy="Name another file with --state.")
    return monitor


def add_codes(
    monitor: CertificateMonitor, *, model: Any, table: Table, person: Sequence[str] = (), batch: str
) -> list[str]:
    """Add what a model releases about a table's rows, which must not have been used in its fit; return notes."""
    from fairbits.workflow.model_checks import new_rows
    from fairbits.workflow.summed_checks import released_rows  # loads torch

    new = new_rows(model, table, person)
    with warnings.catch_warnings():
        warnings.simplefilter("error", TrainingRowsWarning)
        try:
            if new.fitted:
                raise TrainingRowsWarning("It is the table of the fit.")
            table.check_unchanged()
            who = people_of(table, person, new.known)
            check_fresh(model.method, new.X)
            source = (released_rows(model, new.X),) if model.decides else (model.method, new.X)
            monitor.add(*source, sensitive_features=new.s, person=who, batch=batch)
        except TrainingRowsWarning:
            raise UsedRowsError(f"{table.path}: {WORDS['watching']['not fresh']}") from None
    return new.notes


def add_decisions(
    monitor: CertificateMonitor,
    *,
    table: Table,
    decision: str,
    sensitive: Sequence[str],
    crossed: bool = False,
    person: Sequence[str] = (),
    batch: str,
) -> list[str]:
    """Add a column of decisions; return notes. The first table says which groups there are, and if they are crossed."""
    used = [decision, *sensitive, *person]
    if len(set(used)) < len(used):
        raise InputError("The decision, the sensitive columns and the person must be different columns.")
    table.check_columns(used)
    read = table.read(used)
    complete = read.frame[[decision, *sensitive]].notna().all(axis=1)
    frame, notes = read.frame[complete].reset_index(drop=True), [*read.notes, *people_notes(table, person, used)]
    if not len(frame):
        raise InputError(f"{table.path} has no rows of known groups with a decision.")
    if not complete.all():
        notes.append(f"{(~complete).sum():,} rows without a decision or a group are left out.")
    if not monitor.batches:
        monitor.groups = "intersection" if crossed or len(sensitive) == 1 else "each"
        notes += protected(sensitive, crossed=crossed)
    elif crossed and monitor.groups == "each":
        raise InputError("The state was begun with each column on its own.", remedy="Name another file with --state.")
    table.check_unchanged()
    who = frame[list(person)] if person else None
    values = plain_values(frame[decision])
    monitor.add(values, sensitive_features=frame[list(sensitive)], person=who, batch=batch)
    return notes
