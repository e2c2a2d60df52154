"""What is guaranteed of a certified model: its limits, the claims that must keep them, and all that in words."""

import math
import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fairbits.certificate import Certificate
from fairbits.certificate.certificate_record import at_most, percent
from fairbits.certificate.certification import CodedRows
from fairbits.certificate.released_code import binary_digits
from fairbits.errors import InputError, InputWarning

QUANTITIES = {  # of a claim: its name in words, and the power p with which its slack shrinks as 1 / rows^(1/p)
    "total_variation": ("disparity", 2),
    "odds_disparity": ("disparity within a label", 2),
    "information": ("leakage", 1),
}
WHERE = "in the population that the rows come from"


class Claim(NamedTuple):
    """A bound that must be within its limit."""

    of: str  # code or class
    kind: str  # one of QUANTITIES
    bound: float
    estimate: float  # what the rows show
    limit: float
    rows: int

    @property
    def excess(self) -> float:
        """By how much the bound is above the limit, in units of the limit."""
        return self.bound / self.limit - 1


class NotCertifiedError(InputError):
    """The calibration rows prove the limit for no model of the path.

    `limit` and `bound` are those of the safest model, `estimate` is what the rows show; the slack is the difference of
    the last two. `rows_needed` are about the calibration rows whose slack is the limit, if the slack is above it; or
    those whose slack and the estimate together are the limit, if the estimate is above the slack. Else it is None: a
    smaller estimate is noise in part, and says little about how many rows would do.
    """

    def __init__(self, claim: Claim, confidence: float, certificate: Any = None):
        self.certificate = certificate  # of the safest model
        self.of, self.rows = claim.of, claim.rows
        self.limit, self.bound, self.estimate = claim.limit, claim.bound, claim.estimate
        self.rows_needed: int | None = None
        quantity, power = QUANTITIES[claim.kind]
        remedy, slack = "Try a larger limit, safer models or more calibration rows.", claim.bound - claim.estimate
        if slack > claim.limit:
            self.rows_needed = math.ceil(claim.rows * (slack / claim.limit) ** (1 if claim.of == "class" else power))
            remedy = f"At least about {self.rows_needed:,} calibration rows are needed, even if there is no {quantity}."
        elif slack < claim.estimate < claim.limit:
            self.rows_needed = math.ceil(claim.rows * (slack / (claim.limit - claim.estimate)) ** power)
            remedy = f"About {self.rows_needed:,} calibration rows are needed if the measured {quantity} is true."
        super().__init__(
            f"No model could be certified to a {quantity} of at most {claim.limit:g} at {percent(confidence)} "
            f"confidence: the {claim.of} of the safest one has a measured {quantity} of {claim.estimate:.4f}, but "
            f"{claim.rows:,} calibration rows can only guarantee {at_most(claim.bound, 4)}.",
            remedy=remedy,
        )


@dataclass(frozen=True)
class Promise:
    """The limits, and what of a model must keep them: its code, its class, or each of them."""

    of: str  # code, class or both
    hard: bool  # the code is a hard one, and the class a function of it
    max_disparity: float | None
    max_information: float | None
    max_odds_disparity: float | None
    odds_label: Any = None  # the only label of the limit within labels; None: every label

    @property
    def parts(self) -> tuple[str, ...]:
        """What must keep the limits, one by one."""
        if self.of == "both":
            return ("code",) if self.hard else ("code", "class")
        return (self.of,)

    def claims(self, found: dict[str, Certificate], rows: int) -> list[Claim]:
        """Return the claims that these certificates of the parts make; within labels they need those of labels."""
        limits = {
            "total_variation": self.max_disparity,
            "odds_disparity": self.max_odds_disparity,
            "information": self.max_information,
        }
        claims = []
        for kind, limit in limits.items():
            for of, certificate in found.items() if limit is not None else ():
                number = "information" if kind == "information" else "total_variation"
                own = [b for b in certificate.bounds if self._is_about(b.label, kind)]
                bound = max((getattr(b, number) for b in own), default=1.0)
                shown = max((getattr(b, f"estimated_{number}") for b in own), default=1.0)
                claims.append(Claim(of, kind, bound, shown, limit, rows))  # type: ignore[arg-type]
        return claims

    def _is_about(self, label: Any, kind: str) -> bool:
        if kind != "odds_disparity":
            return label is None
        return label is not None and (self.odds_label is None or label == self.odds_label)

    def __str__(self) -> str:
        code = "the code" if self.hard else "one draw of the code"
        both = f"{code}, or from the predicted class, alone,"
        rates = {"code": f"any decision made from {code} alone", "class": "the decision"}
        whose = rates[self.parts[0]] if len(self.parts) == 1 else f"any decision made from {both}"
        parts = []
        if self.max_disparity is not None:
            parts.append(f"the rates of {whose} differ between two groups by at most {self.max_disparity:g}, {WHERE}")
        if self.max_odds_disparity is not None:
            label = "the same label" if self.odds_label is None else f"label {self.odds_label}"
            limit = f"by at most {self.max_odds_disparity:g}, {WHERE}"
            parts.append(f"among people with {label}, the rates of {whose} differ between two groups {limit}")
        if self.max_information is not None:
            what = {"code": code, "class": "the decision"}
            who = what[self.parts[0]] if len(self.parts) == 1 else f"{code}, or the predicted class,"
            parts.append(f"{who} reveals at most {self.max_information:g} bits about the groups, {WHERE}")
        return f"{'; and '.join(parts)}."


def released_class(model: Any, X: Any) -> CodedRows:
    """Return the class that a fitted model predicts, as bits that say the same."""
    classes = model.classes_
    digits = binary_digits(np.searchsorted(classes, model.predict(X)), len(classes))
    return CodedRows(digits, model.group_encoder_, hard=True, decision=True, named=classes.tolist())


def warn_of_labels(within: bool | None, odds: float | None, *others: float | None) -> None:
    """Warn of a method that is trained within labels, or not, while the limits are about the other."""
    if within and odds is None:
        problem = "The model is trained within labels (condition_on_label=True), but no limit is within labels."
        warnings.warn(InputWarning(problem, remedy="Set max_odds_disparity, or train on all rows."), stacklevel=4)
    if within is False and all(other is None for other in others):
        problem = "The only limit is within labels, but the model is not trained within them."
        warnings.warn(InputWarning(problem, remedy="Set condition_on_label=True."), stacklevel=4)


def check_labels(limit: float | None, wanted: Any, y: np.ndarray, held: np.ndarray) -> None:
    """Raise if a label that a limit is about is unknown, or has no calibration rows to prove it."""
    known, about = np.unique(y).tolist(), {"argument": "odds_label", "value": wanted}
    if wanted is not None and limit is None:
        raise InputError("is for a limit within labels.", **about, remedy="Set max_odds_disparity.")
    if wanted is not None and wanted not in known:
        raise InputError(f"is not among the labels {', '.join(map(str, known))}.", **about)
    missing = set(known if wanted is None else [wanted]) - set(np.unique(held).tolist())
    if missing and limit is not None:
        problem = f"No calibration row has label {min(map(str, missing))!r}, so nothing is proved about it."
        raise InputError(problem, remedy="Use more rows, merge labels, or limit the disparity within one label.")
