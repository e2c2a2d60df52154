"""What new rows say about an earlier certificate: the limits beside what is proved now, a verdict, and all in words."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from fairbits.certificate import Certificate, ProvedGap
from fairbits.certificate.certificate_record import at_least, at_most, percent
from fairbits.encoding.columns import label as text_of
from fairbits.errors import InputError
from fairbits.tables.fitted_model import FittedModel, Limit
from fairbits.tables.table_file import Table
from fairbits.workflow.option_words import WORDS

CONTRADICTED, NOT_CONTRADICTED, CONFIRMED = "contradicted", "not contradicted", "confirmed"
NOTHING_BEFORE, NOT_FRESH = "nothing to compare with", "not fresh"


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


def compared_limits(
    limit: Limit,
    titles: Sequence[str],
    labels: Sequence[Any],
    proofs: dict[str, Certificate],
    below: Callable[[str, int, Any, float], ProvedGap],
) -> list[Compared]:
    """Compare every earlier limit with what new rows prove; all lower bounds hold together at the confidence.

    `below` returns those of the code or the class, of a sensitive column by its place, among the people with a label.
    """
    within = [one for one in labels if limit.odds_label is None or str(one) == str(limit.odds_label)]
    kinds = bool(limit.total_variation) + (limit.information is not None) + len(within)
    confidence, found = next(iter(proofs.values())).confidence, []
    delta = (1 - confidence) / max(len(proofs) * len(titles) * kinds, 1)
    for of, bounds in proofs.items():
        for place, title in enumerate(titles):
            for label in [None, *within]:
                gap = below(of, place, label, delta)
                above = next(b for b in bounds.bounds if (b.column, b.label) == (title, label))
                limits = {"total_variation": limit.total_variation.get(title), "information": limit.information}
                for what, said in (limits if label is None else {"total_variation": limit.odds}).items():
                    if said is not None:
                        name = "disparity" if what == "total_variation" else what
                        found.append(Compared(title, of, name, said, getattr(gap, what), getattr(above, what), label))
    return found


def verdict_of(compared: list[Compared]) -> str:
    """Return what the new rows say of the earlier limits together."""
    if not compared:
        return NOTHING_BEFORE
    if any(c.contradicted for c in compared):
        return CONTRADICTED
    return CONFIRMED if all(c.at_most <= c.said for c in compared) else NOT_CONTRADICTED


def limiting_label(model: FittedModel, table: Table, name: str | None) -> str | None:
    """Return the column of the labels within which a model has a limit, by default that of the fit, or None."""
    if model.limit is None or model.limit.odds is None:
        if name is not None:
            problem = f"The model in {model.folder} has no limit within labels."
            raise InputError(problem, remedy="Leave --label out; it is for --decision, or a model that has one.")
        return None
    name = name or (model.record or {}).get("task", {}).get("label")
    if name is None or name not in table.names:
        problem = f"The model is certified within labels, and {table.path} has no column {name or 'of labels'}."
        raise InputError(problem, remedy="Name the label with --label.")
    return name


def label_column(model: FittedModel, table: Table, label: str) -> pd.Series:
    """Return the classes of the rows, missing where there is none."""
    table.check_columns([label])
    return classes_of(model, table.read([label]).frame[label], table)


def classes_of(model: FittedModel, column: pd.Series, table: Table) -> pd.Series:
    """Return a column of labels as classes of a model, missing where there is none."""
    classes = {text_of(c): c for c in model.method.classes_.tolist()}
    texts = column.astype(object).map(text_of, na_action="ignore")
    wrong = texts[texts.notna() & ~texts.isin(classes)]
    if len(wrong):
        found = f"The label {column.name!r} is {wrong.iloc[0][:40]!r} in a row of {table.path}"
        raise InputError(f"{found}; the model knows {', '.join(classes)}.")
    return texts.map(classes)
