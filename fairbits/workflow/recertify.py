"""Certify a model on new rows, and say whether they contradict what was said of it before."""

import warnings
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from fairbits.certificate import (
    Certificate,
    Release,
    TrainingRowsWarning,
    binary_digits,
    certify_groups,
    check_fresh,
    column_titles,
    proved_gap,
)
from fairbits.certificate.estimates import EXACT_WORK
from fairbits.encoding.seen_rows import row_hashes, table_fingerprint
from fairbits.information.words import MAX_BITS
from fairbits.tables.fitted_model import FittedModel, Limit
from fairbits.tables.row_reader import RowReader, known_groups
from fairbits.tables.table_file import TableFile

CONTRADICTED, NOT_CONTRADICTED, CONFIRMED = "contradicted", "not contradicted", "confirmed"
NOTHING_BEFORE, NOT_FRESH = "nothing to compare with", "not fresh"


@dataclass(frozen=True)
class Compared:
    """One thing that was said of a model, and what new rows prove about it from below and above."""

    column: str
    of: str  # code or class
    what: str  # gap or information
    said: float  # at most this, before
    at_least: float  # the new rows prove
    at_most: float

    @property
    def contradicted(self) -> bool:
        return self.at_least > self.said


@dataclass(frozen=True)
class Recertified:
    """The certificate of new rows beside the one before."""

    certificate: Certificate
    verdict: str
    compared: list[Compared]
    promised: bool  # what was said before is a promise; else the bound of a certificate
    rows: int
    notes: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain lists, numbers and texts, ready for JSON."""
        return {
            "verdict": self.verdict,
            "rows": self.rows,
            "promised": self.promised,
            "compared": [{**asdict(c), "contradicted": c.contradicted} for c in self.compared],
            "certificate": self.certificate.to_dict(),
            "notes": self.notes,
        }


def recertify(model: FittedModel, table: TableFile, *, confidence: float = 0.95, draws: int = 1) -> Recertified:
    """Certify the code of a model on the rows of a table, which must have played no part in its fit."""
    model.need_code()
    encoder = model.groups
    groups = known_groups(model, table)
    reader = RowReader(model, table)
    everything = reader.encoded()
    X = everything[groups.known]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_fresh(model.method, X)
        theta = torch.from_numpy(np.asarray(model.method.code_probabilities(X), dtype=np.float64))
        options: dict[str, Any] = {"confidence": confidence, "release": Release(draws)}
        certificate = certify_groups(theta, encoder, groups.s, **options)
    fresh = not any(issubclass(w.category, TrainingRowsWarning) for w in caught) and not fitted_on(
        model, table, everything, groups.known
    )
    notes = [*reader.notes, *groups.notes, *(str(w.message) for w in caught if _is_ours(w))]
    limit = model.limit if fresh and model.limit is not None and model.limit.draws == draws else None
    numbers = encoder.transform(groups.s)
    compared = [] if limit is None else _compare(model, limit, X, theta, numbers, certificate, groups.s)
    verdict = _verdict(compared) if fresh else NOT_FRESH
    promised = model.limit is not None and model.limit.promised
    return Recertified(certificate, verdict, compared, promised, len(X), notes)


def _is_ours(warning: warnings.WarningMessage) -> bool:
    return warning.category.__module__.startswith("fairbits") and not issubclass(warning.category, TrainingRowsWarning)


def fitted_on(model: FittedModel, table: TableFile, X: np.ndarray, known: np.ndarray) -> bool:
    """Say whether this is the whole table that `fairbits fit` was given."""
    record = model.record or {}
    if "table" not in record:
        return False
    label, used = record["task"]["label"], known
    if label in table.names:  # the fit leaves rows without a label out
        used = known & table.read([label]).frame[label].notna().to_numpy()
    return record["table"] == table_fingerprint(row_hashes(X[used]))


def _compare(
    model: FittedModel,
    limit: Limit,
    X: np.ndarray,
    theta: torch.Tensor,
    groups: np.ndarray,
    certificate: Certificate,
    s: Any,
) -> list[Compared]:
    """Set what the new rows prove beside what was said, all of it together at the confidence of the certificate."""
    things = [("code", theta, _release(model, theta, limit.draws), certificate)]
    if limit.of_class:
        digits = _class_digits(model, X)
        answer = certify_groups(digits, model.groups, s, confidence=certificate.confidence)
        things.append(("class", digits, Release(), answer))
    titles, k = column_titles(model.groups), [len(names) for names in model.groups.names_]
    kinds = bool(limit.total_variation) + (limit.information is not None)
    delta = (1 - certificate.confidence) / max(len(things) * len(titles) * kinds, 1)
    found = []
    for of, law, release, bounds in things:
        for column, title in enumerate(titles):
            gap = proved_gap(law, groups[:, column], k[column], delta, release=release)
            above = next(b for b in bounds.bounds if b.column == title)
            if title in limit.total_variation:
                said = limit.total_variation[title]
                found.append(Compared(title, of, "gap", said, gap.total_variation, above.total_variation))
            if limit.information is not None:
                found.append(Compared(title, of, "information", limit.information, gap.information, above.information))
    return found


def _class_digits(model: FittedModel, X: np.ndarray) -> torch.Tensor:
    number = np.searchsorted(model.method.classes_, model.method.predict(X))
    return torch.from_numpy(binary_digits(number, len(model.method.classes_)))


def _release(model: FittedModel, theta: torch.Tensor, draws: int) -> Release:
    """Return what the gap is looked for in: all words, or where they are too many the class that the head reads."""
    n, m = theta.shape[0], theta.shape[1] * draws
    if m <= MAX_BITS and n * 2**m <= EXACT_WORK:
        return Release(draws)
    return Release(coarse=lambda codes: model.method.decode(codes).argmax(1))


def _verdict(compared: list[Compared]) -> str:
    if not compared:
        return NOTHING_BEFORE
    if any(c.contradicted for c in compared):
        return CONTRADICTED
    return CONFIRMED if all(c.at_most <= c.said for c in compared) else NOT_CONTRADICTED


def recertified_words(found: Recertified) -> str:
    """Say the outcome in words."""
    confidence, certificate = f"{found.certificate.confidence:.0%}", found.certificate
    lines = [
        f"On {found.rows:,} rows, at {confidence} confidence: the rates of any decision made from "
        f"{certificate.release_words} differ between two groups by at most {certificate.total_variation:.3f}; no one "
        f"tells the groups apart with a balanced accuracy above {certificate.balanced_accuracy:.3f}; the code tells at "
        f"most {certificate.information:.4f} bits about them.",
        "",
        _verdict_words(found, confidence),
    ]
    compared = [
        "",
        "What was said, and what these rows prove: at least (all lines together at this confidence) and at most (each "
        "line on its own):",
        *map(_compared_words, found.compared),
    ]
    notes = ["", *found.notes]
    return "\n".join([*lines, *(compared if found.compared else []), *(notes if found.notes else [])])


def _verdict_words(found: Recertified, confidence: str) -> str:
    before = "promised" if found.promised else "bounded by the certificate of its fit"
    return {
        CONTRADICTED: f"Contradicted. These rows prove at {confidence} confidence that the model does not keep what "
        f"was {before}: they come from another population, or what was said is wrong. Do not rely on it for such rows.",
        CONFIRMED: f"Confirmed. These rows by themselves prove what was {before}, at {confidence} confidence, if none "
        "of them played a part in the fit. That is for you to know: only whole tables are recognised.",
        NOT_CONTRADICTED: f"Not contradicted. These rows do not disprove what was {before}, and are too few, or not "
        "fair enough, to prove it again.",
        NOT_FRESH: "Void: these are rows of the fit, or many of them are, and nothing that is said here holds. Certify "
        "with rows that played no part in it.",
        NOTHING_BEFORE: "There is no earlier certificate of such a release to compare with.",
    }[found.verdict]


def _compared_words(c: Compared) -> str:
    unit = " bits" if c.what == "information" else ""
    mark = " <- contradicted" if c.contradicted else ""
    return (
        f"  {c.what} of the {c.of} between groups of {c.column}: said to be at most {c.said:.4f}{unit}; proved at "
        f"least {c.at_least:.4f}, at most {c.at_most:.4f}{mark}"
    )
