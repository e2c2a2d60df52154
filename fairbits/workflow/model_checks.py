"""What new rows show about a model: certify it again on them, or audit it there."""

import warnings
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fairbits.auditing import Audit
from fairbits.certificate import Certificate, ProvedGap, Release, TrainingRowsWarning, certify, proved_gap
from fairbits.certificate.certification import CodedRows, check_fresh
from fairbits.certificate.confidence_bounds import MAX_BITS
from fairbits.encoding.recognition import RowSketch, one_row_each, row_hashes, table_fingerprint
from fairbits.errors import InputError, InputWarning
from fairbits.estimators import CertifiedClassifier
from fairbits.estimators.promises import released_class
from fairbits.tables.counted_rows import MOST_ROWS
from fairbits.tables.fitted_model import FittedModel, Limit, RowReader
from fairbits.tables.table_file import Table
from fairbits.tables.table_sample import sampled
from fairbits.workflow.decision_checks import audit_in_words, class_rates, people_notes, people_of
from fairbits.workflow.option_words import WORDS, worded
from fairbits.workflow.recertified import (
    NOT_FRESH,
    Compared,
    Recertified,
    compared_limits,
    label_column,
    limiting_label,
    verdict_of,
)
from fairbits.workflow.summed_checks import (
    STREAMED_ROWS,
    recertify_sums,
    released_rows,
    sum_jobs,
    summed_people,
    summed_up,
)


class NewRows(NamedTuple):
    """The rows of a table whose groups a model knows, and whether they are, or many of them are, rows of the fit."""

    X: np.ndarray
    s: pd.DataFrame
    known: np.ndarray  # which of all rows these are
    fitted: bool
    notes: list[str]

    def labelled(self, labels: pd.Series, classes: np.ndarray) -> tuple["NewRows", np.ndarray]:
        """Return the rows with a label, and their labels; `labels` are those of all rows of the table."""
        has, own = labels.notna().to_numpy(), labels[self.known].notna().to_numpy()
        kept = self._replace(X=self.X[own], s=self.s[own].reset_index(drop=True), known=self.known & has)
        return kept, labels[kept.known].to_numpy(classes.dtype)


def new_rows(model: FittedModel, table: Table, person: Sequence[str]) -> NewRows:
    """Read a table as a model does; `person` names the columns that identify people."""
    record, fitted, reader = model.record or {}, False, RowReader(model, table, groups=True)
    pieces = list(reader.pieces())
    groups = reader.finish().groups
    assert groups is not None
    X = np.concatenate([piece.X for piece in pieces if len(piece.X)])
    known = np.concatenate([piece.known for piece in pieces])
    s = pd.concat([piece.s for piece in pieces], ignore_index=True)
    if "table" in record:
        label, columns = record["task"]["label"], model.encoder.own_columns(X)
        if label in table.names:  # the fit leaves rows without a label out
            columns = columns[table.read([label]).frame[label].notna().to_numpy()[known]]
        hashes = row_hashes(columns)
        fitted = record["table"] == table_fingerprint(hashes)
        if not fitted and "sketch" in record:  # earlier versions wrote none
            fitted = RowSketch(**record["sketch"]).recognises(hashes)
    asks = people_notes(table, person, [*model.groups.columns_, record.get("task", {}).get("label")])
    return NewRows(X, s, known, fitted, [*reader.notes, *groups.notes, *asks])


def recertify(
    model: FittedModel,
    table: Table,
    *,
    confidence: float = 0.95,
    draws: int = 1,
    person: Sequence[str] = (),
    beside: Sequence[FittedModel] = (),
    label: str | None = None,
    workers: int = 1,
    cluster: str | None = None,
) -> Recertified:
    """Certify what a model releases on the rows of a table, which must not have been used in its fit.

    `beside` are other models whose codes of the same people the recipient also has. `label` is the column of the
    labels, for a limit within them; by default the one of the fit. A large table is summed up part by part, by so many
    `workers` or on a `cluster`.
    """
    for one in (model, *beside):
        one.need_code()
    streamed = not (beside or draws > 1) and table.most_rows() > STREAMED_ROWS
    if streamed and person:
        table.check_columns(person)
        return recertify_sums(model, *summed_people(model, table, person, label), confidence)
    if streamed or ((workers > 1 or cluster) and not (person or beside or draws > 1)):
        jobs = sum_jobs(model, table, label)
        how = {"workers": workers if workers > 1 else None, "cluster": cluster}
        return recertify_sums(model, *summed_up(model, table, jobs, label=label, **how), confidence)
    if model.decides and (beside or draws > 1):
        raise InputError("The class alone of this model is certified.", remedy="Leave --beside and --draws out.")
    new, limit = [new_rows(one, table, person) for one in (model, *beside)], model.limit
    new, labels = _labelled(model, table, new, label)
    own, promised = new[0], limit is not None and limit.promised
    if any(not np.array_equal(other.known, own.known) for other in new):
        raise InputError("The models know the groups of different rows.", remedy="Use rows of groups that both know.")
    who = people_of(table, person, own.known)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for one, rows in zip((model, *beside), new, strict=True):
            check_fresh(one.method, rows.X)
        if any(rows.fitted for rows in new) or any(issubclass(w.category, TrainingRowsWarning) for w in caught):
            return Recertified(None, NOT_FRESH, [], promised, len(own.X), own.notes)
        coded, *others = (released_rows(one, rows.X) for one, rows in zip((model, *beside), new, strict=True))
        known: dict[str, Any] = {"confidence": confidence, "draws": draws, "person": who, "beside": others}
        certificate = certify(coded, sensitive_features=own.s, y=labels, **known)
    notes = [worded(w.message) for w in caught if isinstance(w.message, InputWarning)]
    compared = []
    if not beside and limit is not None and limit.draws == draws:
        compared = _compare(model, limit, own, labels, coded, certificate, who)
    return Recertified(certificate, verdict_of(compared), compared, promised, len(own.X), [*own.notes, *notes])


def _labelled(
    model: FittedModel, table: Table, new: list[NewRows], name: str | None
) -> tuple[list[NewRows], np.ndarray | None]:
    """Return the rows with a label, and their labels, where the model has a limit within labels."""
    name = limiting_label(model, table, name)
    if name is None:
        return new, None
    labels = label_column(model, table, name)
    found = [rows.labelled(labels, model.method.classes_) for rows in new]
    return [rows for rows, _ in found], found[0][1]


def _compare(
    model: FittedModel,
    limit: Limit,
    new: NewRows,
    labels: np.ndarray | None,
    coded: CodedRows,
    certificate: Certificate,
    who: pd.DataFrame | None,
) -> list[Compared]:
    """Compare every earlier limit with what the new rows prove."""
    release = Release() if model.decides else Release(limit.draws)
    if not model.decides and coded.theta.shape[1] * limit.draws > MAX_BITS:  # search among the classes the head reads
        release = Release(coarse=lambda codes: model.method.decode(codes).argmax(1))
    laws, proofs = {limit.of[0]: (coded.theta, release)}, {limit.of[0]: certificate}
    if len(limit.of) > 1:
        decided = released_class(model.method, new.X)
        known: dict[str, Any] = {"confidence": certificate.confidence, "person": who, "y": labels}
        proofs["class"] = certify(decided, sensitive_features=new.s, **known)
        laws["class"] = decided.theta, Release()
    numbers, rows = model.groups.transform(new.s), one_row_each(who, len(coded.theta))

    def below(of: str, place: int, label: Any, delta: float) -> ProvedGap:
        own = rows if label is None else rows[labels[rows] == label]  # type: ignore[index]
        law, release = laws[of]
        return proved_gap(law[own], numbers[own, place], len(model.groups.names_[place]), delta, release=release)

    within = [] if labels is None else np.unique(labels).tolist()
    return compared_limits(limit, model.groups.titles_, within, proofs, below)


def audit_model(
    model: FittedModel, table: Table, *, label: str | None = None, person: Sequence[str] = (), **options: Any
) -> tuple[list[Audit], list[str], dict[str, Any] | None]:
    """Audit a model on the rows of a table, for the sensitive columns it protects.

    Returns also notes and, with labels, the rates of its classes by group. Rows of its fit are not audited.
    """
    named = [*model.groups.columns_, *([] if label is None else [label])]
    table.check_columns(named)
    table = sampled(table, named, MOST_ROWS)
    new = new_rows(model, table, person)
    if new.fitted:
        return [], [*new.notes, WORDS["audits"]["not_fresh"]], None
    y = None
    if label is not None:
        new, y = new.labelled(label_column(model, table, label), model.method.classes_)
    X, s, who = new.X, new.s, people_of(table, person, new.known)
    found, _ = audit_in_words(_released(model), X, y, sensitive_features=s, person=who, **options)
    if y is None:
        return [found], new.notes, None
    one, known = one_row_each(who, len(X)), (model.record or {}).get("decision") or {}
    positive = known.get("positive") or str(model.method.classes_[-1])
    rates = class_rates(model.method, X[one], y[one], s.iloc[one], positive, found.confidence)
    return [found], new.notes, rates


def _released(model: FittedModel) -> Any:
    """Return what is audited: the method, or a classifier of which the class alone is certified."""
    if not model.decides:
        return model.method
    decider: Any = CertifiedClassifier(promise="class")
    decider.certificate_ = SimpleNamespace(release={"decision": True})
    decider.estimator_, decider.classes_, decider.group_encoder_ = model.method, model.method.classes_, model.groups
    return decider
