"""A table without a model: what its columns, or decisions that somebody made, show and prove about groups; no torch."""

import fnmatch
import re
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import chi2_contingency

from fairbits.auditing import Audit, audit
from fairbits.certificate import Certificate, CertificateState
from fairbits.certificate.certificate_record import at_least, at_most, percent
from fairbits.certificate.certification import CodedRows, decision_numbers
from fairbits.certificate.decision_rates import rates_of, smallest_ratio
from fairbits.certificate.released_code import binary_digits
from fairbits.encoding import GroupEncoder
from fairbits.encoding.recognition import one_row_each
from fairbits.errors import InputError, did_you_mean
from fairbits.report.wording import rate_lines
from fairbits.tables.column_checks import IDENTIFIES, repeated_identifiers, without_identifiers
from fairbits.tables.counted_rows import MOST_ROWS, CountedRows
from fairbits.tables.protected_groups import group_sizes, numbers_or_days, protected, sensitive_groups
from fairbits.tables.table_file import PIECE_ROWS, Table
from fairbits.tables.table_sample import sampled
from fairbits.workflow.option_words import WORDS, worded

FEWEST_ROWS, FEWEST_OF_A_GROUP = 20, 10  # of a table to audit


@dataclass(frozen=True)
class Ratio:
    """The smallest ratio of two groups' selection rates, and a lower bound on it; who is selected least and most.

    The ratio is over all groups; these two, their rates and the p-value are of the groups that are shown.
    """

    column: str
    shown: float
    at_least: float
    worst: str
    best: str
    between: tuple[float, float]  # the rates of these two
    chance: float  # p-value of all groups having the same rate, chi-squared
    reference: str | None = None  # the group to whose rate those of the others are compared; None: any two groups


@dataclass(frozen=True)
class CertifiedDecisions:
    """The certificate of a column of decisions, the rates of its groups, and their ratio where there are two values."""

    decision: str
    positive: str | None
    rows: int  # that the rates are from: one of each person
    certificate: Certificate
    rates: pd.DataFrame | None
    ratios: list[Ratio]
    hidden: list[dict[str, str]]  # groups too small to show their rates
    notes: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain lists, numbers and texts, ready for JSON."""
        proof, ratios = self.certificate, [asdict(ratio) for ratio in self.ratios]
        rates = None if self.rates is None else plain_rates(self.rates)
        known = {"certificate": proof.to_dict(), "confidence": proof.confidence, "rates": rates, "ratios": ratios}
        return {**vars(self), **known}

    def __str__(self) -> str:
        proof, sure = self.certificate, f"{percent(self.certificate.confidence)} confidence"
        lines = [f"{self.decision!r}: what these rows prove about the population they come from, at {sure}."]
        lines.append(f"{proof.counting}.")
        for bound in proof.bounds:
            among = "" if bound.label is None else f", among people with label {bound.label}"
            if absent := [group for group, rows in bound.rows.items() if not rows]:
                lines.append(f"  {bound.column}{among}: nothing is proved, as no row is of {', '.join(absent)}")
                continue
            lines.append(
                f"  {bound.column}{among}: rates of two groups differ by at most {at_most(bound.total_variation, 4)} "
                f"(these rows: {bound.estimated_total_variation:.4f}; {bound.theorem})"
            )
        for ratio in self.ratios:
            two = f"a group's rate to that of {ratio.reference!r}" if ratio.reference else "two groups' rates"
            lines.append(
                f"  {ratio.column}: the ratio of {two} of {self.positive!r} is at least "
                f"{at_least(ratio.at_least, 4)} (these rows: {ratio.shown:.4f})"
            )
        if self.rates is not None:
            lines += ["", *rate_lines(self.to_dict())]
        lines += ["", "Each number holds on its own. Not covered: " + "; ".join(proof.does_not_cover) + "."]
        return "\n".join([*lines, *self.notes])


def plain_rates(rates: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rates ready for JSON."""
    return rates.replace({np.nan: None, np.inf: None}).to_dict("records")


def rates_and_ratios(
    selected: np.ndarray,
    s: pd.DataFrame,
    truth: np.ndarray | None,
    correct: np.ndarray | None,
    confidence: float,
    reference: str | None = None,
    counts: np.ndarray | None = None,
) -> tuple[pd.DataFrame, list[Ratio], list[dict[str, str]]]:
    """Return the rates of groups and crossings, of every column the smallest ratio of selection rates, who is hidden.

    `selected` says who got the decision, `truth` whose label is the favourable one, and `correct` whose class is the
    label, of two or more; rows are independent. The rates of
    groups of fewer than 10 rows are hidden, as they would show single people; ratios are over all groups. Where a
    column has the `reference` group, the ratios are to its rate. `counts` say how many people each row stands for.
    """
    rates = rates_of(selected, s, truth, correct, reference, confidence, counts)
    large = rates.rows >= FEWEST_OF_A_GROUP
    ratios = [
        _ratio(str(column), own, own[large[own.index]], reference)
        for column, own in rates.groupby("column", sort=False)
        if large[own.index].sum() > 1
    ]
    return rates[large].reset_index(drop=True), ratios, rates[~large][["column", "group"]].to_dict("records")


def _ratio(column: str, every: pd.DataFrame, rates: pd.DataFrame, reference: str | None) -> Ratio:
    """Return the smallest ratio of every two groups; who is selected least and most, of those whose `rates` show."""
    to = reference if reference in set(every.group) else None
    worst, best = rates.loc[rates.selected.idxmin()], rates.loc[rates.selected.idxmax()]
    selected = (rates.selected * rates.rows).round()
    counts = np.array([selected, rates.rows - selected])
    chance = float(chi2_contingency(counts).pvalue) if (counts.sum(1) > 0).all() else 1.0
    two = float(worst.selected), float(best.selected)
    return Ratio(column, *smallest_ratio(every, to), str(worst.group), str(best.group), two, chance, to)


def class_rates(
    method: Any,
    X: np.ndarray,
    y: np.ndarray,
    s: pd.DataFrame,
    positive: str,
    confidence: float,
    reference: str | None = None,
) -> dict[str, Any]:
    """Return the rates of the class that a recipient of a model gets, ready for JSON; of a random code, of one draw."""
    hard = getattr(method, "is_hard", True)
    predicted = method.predict(X) if hard else method.classes_[method.sampled_proba(X).argmax(1)]
    selected, truth = (labels.astype(str) == positive for labels in (predicted, y))
    shown = rates_and_ratios(selected, s, truth, predicted == y, confidence, reference)
    return rate_record(positive, confidence, len(y), *shown)


def rate_record(
    positive: str, confidence: float, n: int, rates: pd.DataFrame, ratios: list[Ratio], hidden: list[dict[str, str]]
) -> dict[str, Any]:
    """Return rates, ratios and who is hidden, ready for JSON."""
    shown = {"rates": plain_rates(rates), "ratios": [asdict(ratio) for ratio in ratios], "hidden": hidden}
    return {"positive": positive, "confidence": confidence, "rows": n, **shown}


def check_reference(reference: str | None, s: pd.DataFrame) -> None:
    """Raise unless a group of a sensitive column, or of all crossed, has this name."""
    own = [group for name in s.columns for group in group_sizes(s[[name]], "intersection")]
    if reference is not None and reference not in {*own, *group_sizes(s, "intersection")}:
        problem = f"is not among the groups {'; '.join(own[:20])}. {did_you_mean(reference, own)}".strip()
        raise InputError(problem, argument="reference", value=reference)


def certify_decisions(
    table: Table,
    decision: str,
    sensitive: Sequence[str],
    *,
    label: str | None = None,
    person: Sequence[str] = (),
    positive: str | None = None,
    levels: Sequence[float] | None = None,
    confidence: float = 0.95,
    crossed: bool = False,
    reference: str | None = None,
) -> CertifiedDecisions:
    """Certify a column of decisions or scores: what it reveals about sensitive columns, to every recipient."""
    used = [decision, *sensitive, *([] if label is None else [label]), *person]
    if len(set(used)) < len(used):
        raise InputError("The decision, the label, the sensitive columns and the person must be different columns.")
    table.check_columns(used)
    cuts = {} if not levels else {decision: levels}
    counted = CountedRows(table, used[: len(used) - len(person)], person, cuts)
    s, known, _, notes = sensitive_groups(counted.frame[list(sensitive)], FEWEST_OF_A_GROUP, counts=counted.rows)
    check_reference(reference, s)
    notes += [*protected(sensitive, crossed=crossed), *people_notes(table, person, used)]
    frame, places = counted.frame[known], np.flatnonzero(known)
    complete = (frame[decision].notna() if label is None else frame[[decision, label]].notna().all(axis=1)).to_numpy()
    if not complete.all():
        notes.append(f"{counted.rows[places[~complete]].sum():,} rows without a decision or a label are left out.")
        frame, s, places = frame[complete], s[complete].reset_index(drop=True), places[complete]
    if not len(frame):
        raise InputError(f"{table.path} has no rows of known groups with a decision.")
    values, y = plain_values(frame[decision]), None if label is None else plain_values(frame[label])
    if levels is None and values.dtype.kind == "f" and (values % 1 != 0).any():
        raise InputError(f"{decision!r} has scores.", remedy="Pass thresholds for them, such as --levels 0.25,0.5.")
    certificate, one = _summed(counted, places, s, values, y, levels, confidence, crossed=crossed)
    rates, ratios, hidden, wanted = None, list[Ratio](), list[dict[str, str]](), positive
    if levels is None and (positive is not None or len(pd.unique(values)) == 2):
        wanted = positive if positive is not None else str(np.unique(values)[-1])
        (rates, ratios, hidden), said = _decision_rates(values, y, s, wanted, confidence, reference, one)
        notes += [*said, "Rates and ratios are of one row of each person, drawn at random."] if person else said
    rows = int(one.sum())
    return CertifiedDecisions(decision, wanted, rows, certificate, rates, ratios, hidden, [*counted.notes, *notes])


def _summed(
    counted: CountedRows,
    places: np.ndarray,
    s: pd.DataFrame,
    values: np.ndarray,
    y: np.ndarray | None,
    levels: Sequence[float] | None,
    confidence: float,
    *,
    crossed: bool,
) -> tuple[Certificate, np.ndarray]:
    """Return the certificate of decisions, and for how many people each of the different rows stands.

    Groups, decisions and labels are those of the different rows at some places. People with several rows stand for one
    of them, drawn at random, so that the rows are independent.
    """
    cells, named = decision_numbers(values, levels)
    digits = binary_digits(cells, len(named) if levels is None else len(levels) + 1)
    states = []
    for part in [s] if crossed else [s[[name]] for name in s.columns]:
        encoder = GroupEncoder(min_group_size=1).fit(part)
        known: dict[str, Any] = {"groups": encoder, "labels": y, "by_person": counted.by_person}
        decisions = range(len(named) if levels is None else len(levels) + 1)
        states.append((part, encoder, CertificateState([*decisions], **known)))
    used, own, one = (
        np.zeros(len(counted.rows), bool),
        np.zeros(len(counted.rows), np.int64),
        np.zeros(len(s), np.int64),
    )
    used[places], own[places] = True, np.arange(len(places))
    for numbers, who in counted.together(used):
        rows = own[numbers]
        for part, encoder, state in states:
            coded = CodedRows(digits[rows], encoder, hard=True, decision=True)
            state.add(coded, sensitive_features=part.iloc[rows], y=None if y is None else y[rows], person=who)
        one += np.bincount(rows[one_row_each(who, len(rows))], minlength=len(s))
    certificates = [state.finish(confidence) for _, _, state in states]
    return replace(certificates[0], bounds=tuple(bound for one in certificates for bound in one.bounds)), one


def _decision_rates(
    values: np.ndarray,
    y: np.ndarray | None,
    s: pd.DataFrame,
    wanted: str,
    confidence: float,
    reference: str | None,
    counts: np.ndarray | None = None,
) -> tuple[tuple[pd.DataFrame, list[Ratio], list[dict[str, str]]], list[str]]:
    """Return the rates of who got a decision, and a note if labels have other values and show no errors."""
    texts, labels = values.astype(str), None if y is None else y.astype(str)
    if counts is not None:  # of some rows nobody stands for them
        texts, labels, s = texts[counts > 0], labels if labels is None else labels[counts > 0], s[counts > 0]
        counts = counts[counts > 0]
    if wanted not in texts:
        raise InputError(f"No row has the decision {wanted!r}.", remedy="Pass one of its values as --positive.")
    notes, truth, correct = list[str](), None, None
    if labels is not None and wanted in labels:
        truth, correct = labels == wanted, labels == texts
    elif labels is not None:
        known = [", ".join(np.unique(part)[:5]) for part in (labels, texts)]
        notes = [WORDS["audits"]["other_values"].format(labels=known[0], decisions=known[1])]
    return rates_and_ratios(texts == wanted, s, truth, correct, confidence, reference, counts), notes


def plain_values(column: pd.Series) -> np.ndarray:
    """Return numbers as they are, whole ones without a point, and anything else as texts."""
    values = column.to_numpy() if column.dtype.kind in "biuf" else column.astype(str).to_numpy()
    whole = values.dtype.kind == "f" and bool((np.isfinite(values) & (values % 1 == 0)).all())
    return values.astype(np.int64) if whole else values


def audit_table(
    table: Table,
    sensitive: Sequence[str],
    *,
    label: str | None = None,
    columns: Sequence[str] = (),
    drop: Sequence[str] = (),
    person: Sequence[str] = (),
    crossed: bool = False,
    **options: Any,
) -> tuple[list[Audit], list[str], dict[str, Any] | None]:
    """Audit what the columns of a table reveal about its sensitive ones: all but `label` and `drop`, or `columns`.

    `columns` are names or patterns such as bit*. Returns one audit for each sensitive column, or one for all `crossed`,
    notes and, of a single column with two values, its rates by group: it is taken for a decision.
    """
    table.check_columns([*sensitive, *([] if label is None else [label]), *drop])
    chosen = {pattern: fnmatch.filter(table.names, pattern) for pattern in columns or ["*"]}
    table.check_columns([pattern for pattern, found in chosen.items() if not found])
    out = {*sensitive, *drop, *person, label}
    taken = [name for name in table.names if name not in out and any(name in found for found in chosen.values())]
    if not taken:
        raise InputError("Nothing is left to audit: every column is sensitive, the label or dropped.")
    table = sampled(table, [*sensitive, *([] if label is None else [label])], MOST_ROWS)
    read = table.read([*taken, *sensitive, *([] if label is None else [label])])
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
    rates = None
    decision = Z.iloc[:, 0] if Z.shape[1] == 1 and not hint else None  # a code has bits
    if decision is not None and decision.nunique() == 2:
        one, labels = one_row_each(who, len(Z)), read.frame[known][label] if label is not None else None
        complete = one if labels is None else one[labels.notna().to_numpy()[one]]
        values, y = plain_values(decision), None if labels is None else plain_values(labels)[complete]
        wanted, confidence = str(np.unique(values)[-1]), options.get("confidence", 0.95)
        shown, other = _decision_rates(values[complete], y, s.iloc[complete], wanted, confidence, None)
        rates = rate_record(wanted, confidence, len(complete), *shown)
        notes += other
    released = Z if decision is None else decision
    found = [audit_in_words(released, sensitive_features=part, person=who, **options)[0] for part in parts]
    asks = people_notes(table, person, [*sensitive, *drop, label])
    return found, [audited, *read.notes, *notes, *said, *filled, *hint, *asks], rates


def audit_in_words(*what: Any, **options: Any) -> tuple[Audit, list[Warning]]:
    """Audit, and return the record with its concerns in the words of the command line, and the concerns themselves."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = audit(*what, **options)
    concerns = [w.message for w in caught if isinstance(w.message, Warning)]
    words = {str(concern): worded(concern) for concern in concerns}
    missing = "no_label" if len(what) > 1 else "no_task"  # a model comes with its rows
    unavailable = found.unavailable | ({"task": WORDS["audits"][missing]} if "task" in found.unavailable else {})
    said = tuple(words.get(str(concern), str(concern)) for concern in found.concerns)
    return replace(found, concerns=said, unavailable=unavailable), concerns


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


def people_of(table: Table, names: Sequence[str], known: np.ndarray) -> pd.DataFrame | None:
    """Return what identifies the people of some rows of a table; None if each row is another person."""
    if not names:
        return None
    table.check_columns(names)
    return table.read(names).frame.loc[known].reset_index(drop=True)


def people_notes(table: Table, person: Sequence[str], known: Sequence[str | None] = ()) -> list[str]:
    """Return notes on columns that may identify people with several rows; `known` columns do not."""
    others = [name for name in table.names if name not in known and IDENTIFIES.search(name)]
    if person or not others:
        return []
    if table.most_rows() <= MOST_ROWS:
        return repeated_identifiers(table.read(others).frame)
    first = islice(table.pairs([], others), MOST_ROWS // PIECE_ROWS)  # a hint: the rows need not all be there
    return repeated_identifiers(pd.concat([piece for _, piece in first], ignore_index=True))
