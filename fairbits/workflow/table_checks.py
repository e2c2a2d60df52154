"""What new rows show about a model: certify it again on them, or audit it there."""

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fairbits.auditing import Audit
from fairbits.certificate import Certificate, Release, TrainingRowsWarning, certify, proved_gap
from fairbits.certificate.certificate_record import at_least, at_most, percent
from fairbits.certificate.certification import CodedRows, check_fresh
from fairbits.certificate.confidence_bounds import MAX_BITS
from fairbits.encoding.columns import label as text_of
from fairbits.encoding.recognition import RowSketch, one_row_each, row_hashes, table_fingerprint
from fairbits.errors import InputError, InputWarning
from fairbits.estimators import CertifiedClassifier
from fairbits.estimators.promises import released_class
from fairbits.tables.fitted_model import FittedModel, Limit, RowReader, known_groups
from fairbits.tables.table_file import TableFile
from fairbits.workflow.decision_checks import audit_in_words, class_rates, people_notes, people_of
from fairbits.workflow.option_words import WORDS, worded

CONTRADICTED, NOT_CONTRADICTED, CONFIRMED = "contradicted", "not contradicted", "confirmed"
NOTHING_BEFORE, NOT_FRESH = "nothing to compare with", "not fresh"


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


def new_rows(model: FittedModel, table: TableFile, person: Sequence[str]) -> NewRows:
    """Read a table as a model does; `person` names the columns that identify people."""
    groups, record, fitted = known_groups(model, table), model.record or {}, False
    reader = RowReader(model, table, groups)
    X = reader.encoded()
    if "table" in record:
        label, columns = record["task"]["label"], model.encoder.own_columns(X)
        if label in table.names:  # the fit leaves rows without a label out
            columns = columns[table.read([label]).frame[label].notna().to_numpy()[groups.known]]
        hashes = row_hashes(columns)
        fitted = record["table"] == table_fingerprint(hashes)
        if not fitted and "sketch" in record:  # earlier versions wrote none
            fitted = RowSketch(**record["sketch"]).recognises(hashes)
    asks = people_notes(table, person, [*model.groups.columns_, record.get("task", {}).get("label")])
    return NewRows(X, groups.s, groups.known, fitted, [*reader.notes, *groups.notes, *asks])


@dataclass(frozen=True)
class Compared:
    """An earlier limit, and the range that new rows prove."""

    column: str
    of: str  # code or class
    what: str  # disparity or information
    said: float  # the earlier limit
    at_least: float
    at_most: float
    label: Any = None  # among people with it; None: among all

    @property
    def contradicted(self) -> bool:
        return self.at_least > self.said

    def __str__(self) -> str:
        quantity = f"{'leakage in bits' if self.what == 'information' else 'disparity'} of the {self.of}"
        bounds = at_least(self.at_least, 4), at_most(self.at_most, 4)
        numbers = " ".join(f"{number:>11}" for number in (at_most(self.said, 4), *bounds))
        about = self.column if self.label is None else f"{self.column}, label {self.label}"
        return f"  {f'{about}: {quantity}':<48} {numbers}{' <- contradicted' if self.contradicted else ''}"


@dataclass(frozen=True)
class Recertified:
    """The certificate of new rows beside the earlier one; None if the rows are not new."""

    certificate: Certificate | None
    verdict: str
    compared: list[Compared]
    promised: bool  # the earlier limits were asked for; else they are the bounds of a certificate
    rows: int
    notes: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain lists, numbers and texts, ready for JSON."""
        compared = [{**asdict(c), "contradicted": c.contradicted} for c in self.compared]
        return {**vars(self), "compared": compared, "certificate": self.certificate and self.certificate.to_dict()}

    def __str__(self) -> str:
        limit = "the certified limit" if self.promised else "the bound from its fit"
        proof = self.certificate
        if proof is None:
            return "\n".join([WORDS["verdicts"][self.verdict], *self.notes])
        shown = (proof.total_variation, 3), (proof.balanced_accuracy, 3), (proof.information, 4)
        known = {
            "found": self,
            "limit": limit,
            "bounds": [at_most(*bound) for bound in shown],
            "confidence": f"{percent(proof.confidence)} confidence",
        }
        said = {name: text.format(**known) for name, text in WORDS["verdicts"].items()}
        header = f"  {'':<48} {'limit':>11} {'lower bound':>11} {'upper bound':>11}"
        table = ["", header, *map(str, self.compared), said["compared"]] if self.compared else []
        numbers = said["numbers_class" if proof.release.get("decision") else "numbers"]
        return "\n".join([numbers, "", said[self.verdict], *table, *[""] * bool(self.notes), *self.notes])


def recertify(
    model: FittedModel,
    table: TableFile,
    *,
    confidence: float = 0.95,
    draws: int = 1,
    person: Sequence[str] = (),
    beside: Sequence[FittedModel] = (),
    label: str | None = None,
) -> Recertified:
    """Certify what a model releases on the rows of a table, which must not have been used in its fit.

    `beside` are other models whose codes of the same people the recipient has as well. `label` is the column of the
    labels, for a limit within them; by default the one of the fit.
    """
    for one in (model, *beside):
        one.need_code()
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
    return Recertified(certificate, _verdict(compared), compared, promised, len(own.X), [*own.notes, *notes])


def _labelled(
    model: FittedModel, table: TableFile, new: list[NewRows], name: str | None
) -> tuple[list[NewRows], np.ndarray | None]:
    """Return the rows with a label, and their labels, where the model has a limit within labels."""
    if model.limit is None or model.limit.odds is None:
        if name is not None:
            problem = f"The model in {model.folder} has no limit within labels."
            raise InputError(problem, remedy="Leave --label out; it is for --decision, or a model that has one.")
        return new, None
    name = name or (model.record or {}).get("task", {}).get("label")
    if name is None or name not in table.names:
        problem = f"The model is certified within labels, and {table.path} has no column {name or 'of labels'}."
        raise InputError(problem, remedy="Name the label with --label.")
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
    """Compare every earlier limit with what the new rows prove; all lower bounds hold together at the confidence."""
    release = Release() if model.decides else Release(limit.draws)
    if not model.decides and coded.theta.shape[1] * limit.draws > MAX_BITS:  # search among the classes the head reads
        release = Release(coarse=lambda codes: model.method.decode(codes).argmax(1))
    things = [(limit.of[0], coded.theta, release, certificate)]
    if len(limit.of) > 1:
        decided = released_class(model.method, new.X)
        known: dict[str, Any] = {"confidence": certificate.confidence, "person": who, "y": labels}
        things.append(("class", decided.theta, Release(), certify(decided, sensitive_features=new.s, **known)))
    within = [] if labels is None else np.unique(labels).tolist()
    within = [one for one in within if limit.odds_label is None or str(one) == str(limit.odds_label)]
    titles, numbers = model.groups.titles_, model.groups.transform(new.s)
    kinds = bool(limit.total_variation) + (limit.information is not None) + len(within)
    delta = (1 - certificate.confidence) / max(len(things) * len(titles) * kinds, 1)
    found, rows = [], one_row_each(who, len(coded.theta))
    for of, law, release, bounds in things:
        for title, names, column in zip(titles, model.groups.names_, numbers.T, strict=True):
            for label in [None, *within]:
                own = rows if label is None else rows[labels[rows] == label]  # type: ignore[index]
                below = proved_gap(law[own], column[own], len(names), delta, release=release)
                above = next(b for b in bounds.bounds if (b.column, b.label) == (title, label))
                limits = {"total_variation": limit.total_variation.get(title), "information": limit.information}
                for what, said in (limits if label is None else {"total_variation": limit.odds}).items():
                    if said is not None:
                        name = "disparity" if what == "total_variation" else what
                        ends = getattr(below, what), getattr(above, what)
                        found.append(Compared(title, of, name, said, *ends, label))
    return found


def released_rows(model: FittedModel, X: np.ndarray) -> CodedRows:
    """Return what a model releases about rows."""
    if model.decides:
        return released_class(model.method, X)
    return CodedRows(model.method.code_probabilities(X).astype(np.float64), model.groups, hard=model.is_hard)


def _verdict(compared: list[Compared]) -> str:
    if not compared:
        return NOTHING_BEFORE
    if any(c.contradicted for c in compared):
        return CONTRADICTED
    return CONFIRMED if all(c.at_most <= c.said for c in compared) else NOT_CONTRADICTED


def label_column(model: FittedModel, table: TableFile, label: str) -> pd.Series:
    """Return the classes of the rows, missing where there is none."""
    table.check_columns([label])
    classes = {text_of(c): c for c in model.method.classes_.tolist()}
    texts = table.read([label]).frame[label].astype(object).map(text_of, na_action="ignore")
    wrong = texts[texts.notna() & ~texts.isin(classes)]
    if len(wrong):
        found = f"The label {label!r} is {wrong.iloc[0][:40]!r} in a row of {table.path}"
        raise InputError(f"{found}; the model knows {', '.join(classes)}.")
    return texts.map(classes)


def audit_model(
    model: FittedModel, table: TableFile, *, label: str | None = None, person: Sequence[str] = (), **options: Any
) -> tuple[list[Audit], list[str], dict[str, Any] | None]:
    """Audit a model on the rows of a table, for the sensitive columns it protects.

    Returns also notes and, with labels, the rates of its classes by group. Rows of its fit are not audited.
    """
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
