"""Certify a model on new rows, and compare the result with its earlier certificate."""

import warnings
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch

from fairbits.certificate import Certificate, Release, TrainingRowsWarning, certify, proved_gap
from fairbits.certificate.certification import CodedRows, check_fresh, column_titles
from fairbits.certificate.confidence_bounds import EXACT_WORK
from fairbits.certificate.releasing import binary_digits
from fairbits.encoding.recognition import row_hashes, table_fingerprint
from fairbits.errors import InputWarning
from fairbits.information.words import MAX_BITS
from fairbits.tables.fitted_model import FittedModel, Limit
from fairbits.tables.row_reader import RowReader, known_groups
from fairbits.tables.table_file import TableFile
from fairbits.workflow.option_words import worded

CONTRADICTED, NOT_CONTRADICTED, CONFIRMED = "contradicted", "not contradicted", "confirmed"
NOTHING_BEFORE, NOT_FRESH = "nothing to compare with", "not fresh"
VERDICTS = {
    CONTRADICTED: "Contradicted. These rows prove, at {confidence}, that the model exceeds {limit}: they come from "
    "another population, or the certificate is wrong. Do not rely on it for such rows.",
    CONFIRMED: "Confirmed. These rows alone prove {limit}, at {confidence}, provided that none of them was used in the "
    "fit. fairbits recognises a whole table, but it cannot check single rows.",
    NOT_CONTRADICTED: "Not contradicted. These rows do not disprove {limit}, but they are too few, or the model is not "
    "fair enough on them, to prove it again.",
    NOT_FRESH: "Invalid: these rows were used in the fit. Ignore the numbers above, and use new data.",
    NOTHING_BEFORE: "There is no earlier certificate of such a release to compare with.",
}
LIMITS = {True: "the certified limit", False: "the bound from its fit"}


@dataclass(frozen=True)
class Compared:
    """An earlier limit, and the range that new rows prove."""

    column: str
    of: str  # code or class
    what: str  # disparity or information
    said: float  # the earlier limit
    at_least: float
    at_most: float

    @property
    def contradicted(self) -> bool:
        return self.at_least > self.said

    def __str__(self) -> str:
        quantity = f"{'leakage in bits' if self.what == 'information' else 'disparity'} of the {self.of}"
        numbers = " ".join(f"{number:>11.4f}" for number in (self.said, self.at_least, self.at_most))
        return f"  {f'{self.column}: {quantity}':<40} {numbers}{' <- contradicted' if self.contradicted else ''}"


@dataclass(frozen=True)
class Recertified:
    """The certificate of new rows beside the earlier one."""

    certificate: Certificate
    verdict: str
    compared: list[Compared]
    promised: bool  # the earlier limits were asked for; else they are the bounds of a certificate
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
    """Certify the code of a model on the rows of a table, which must not have been used in its fit."""
    model.need_code()
    groups, reader = known_groups(model, table), RowReader(model, table)
    everything = reader.encoded()
    X = everything[groups.known]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_fresh(model.method, X)
        theta = torch.from_numpy(np.asarray(model.method.code_probabilities(X), dtype=np.float64))
        coded = CodedRows(theta, model.groups)
        certificate = certify(coded, sensitive_features=groups.s, confidence=confidence, draws=draws)
    used = [w for w in caught if issubclass(w.category, TrainingRowsWarning)]
    ours = [w.message for w in caught if w not in used and isinstance(w.message, InputWarning)]
    notes = [*reader.notes, *groups.notes, *(worded(warning) for warning in ours)]
    promised = model.limit is not None and model.limit.promised
    if used or fitted_on(model, table, everything, groups.known):
        return Recertified(certificate, NOT_FRESH, [], promised, len(X), notes)
    if model.limit is None or model.limit.draws != draws:
        return Recertified(certificate, NOTHING_BEFORE, [], promised, len(X), notes)
    compared = _compare(model, model.limit, X, theta, certificate, groups.s)
    return Recertified(certificate, _verdict(compared), compared, promised, len(X), notes)


def fitted_on(model: FittedModel, table: TableFile, X: np.ndarray, known: np.ndarray) -> bool:
    """Return whether this is the whole table that `fairbits fit` read."""
    record = model.record or {}
    if "table" not in record:
        return False
    label, used = record["task"]["label"], known
    if label in table.names:  # the fit leaves rows without a label out
        used = known & table.read([label]).frame[label].notna().to_numpy()
    return record["table"] == table_fingerprint(row_hashes(X[used]))


def _compare(
    model: FittedModel, limit: Limit, X: np.ndarray, theta: torch.Tensor, certificate: Certificate, s: pd.DataFrame
) -> list[Compared]:
    """Compare every earlier limit with what the new rows prove; all lower bounds hold together at the confidence."""
    things = [("code", theta, _searched(model, theta, limit.draws), certificate)]
    if limit.of_class:
        classes = model.method.classes_
        digits = torch.from_numpy(binary_digits(np.searchsorted(classes, model.method.predict(X)), len(classes)))
        coded = CodedRows(digits, model.groups)
        answer = certify(coded, sensitive_features=s, confidence=certificate.confidence)
        things.append(("class", digits, Release(), answer))
    titles, numbers = column_titles(model.groups), model.groups.transform(s)
    kinds = bool(limit.total_variation) + (limit.information is not None)
    delta = (1 - certificate.confidence) / max(len(things) * len(titles) * kinds, 1)
    found = []
    for of, law, release, bounds in things:
        for title, names, column in zip(titles, model.groups.names_, numbers.T, strict=True):
            below = proved_gap(law, column, len(names), delta, release=release)
            above = next(b for b in bounds.bounds if b.column == title)
            if title in limit.total_variation:
                said = limit.total_variation[title]
                found.append(Compared(title, of, "disparity", said, below.total_variation, above.total_variation))
            if limit.information is not None:
                said = limit.information
                found.append(Compared(title, of, "information", said, below.information, above.information))
    return found


def _searched(model: FittedModel, theta: torch.Tensor, draws: int) -> Release:
    """Return where a disparity is searched for: all words, or if there are too many, the class that the head reads."""
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
    """Return the outcome in words."""
    certificate, confidence = found.certificate, f"{found.certificate.confidence:.0%} confidence"
    lines = [
        f"On {found.rows:,} rows, at {confidence}: the rates of any decision made from {certificate.release_words} "
        f"differ between two groups by at most {certificate.total_variation:.3f}; no classifier can guess the group "
        f"with a balanced accuracy above {certificate.balanced_accuracy:.3f}; the code reveals at most "
        f"{certificate.information:.4f} bits about the groups.",
        "",
        VERDICTS[found.verdict].format(limit=LIMITS[found.promised], confidence=confidence),
    ]
    if found.compared:
        header = f"  {'':<40} {'limit':>11} {'lower bound':>11} {'upper bound':>11}"
        note = f"All lower bounds together have {confidence}; each upper bound has it on its own."
        lines += ["", header, *map(str, found.compared), note]
    return "\n".join([*lines, *(["", *found.notes] if found.notes else [])])
