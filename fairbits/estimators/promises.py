"""What is guaranteed of a certified model: its limits, the claims that must keep them, and the rows that prove it."""

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from fairbits.certificate import Certificate, CertificateState
from fairbits.certificate.certificate_record import at_most, percent
from fairbits.certificate.certification import CodedRows
from fairbits.certificate.released_code import binary_digits
from fairbits.errors import InputError, InputWarning
from fairbits.metrics.gaps import mcnemar_p_value, p_value_of_counts

QUANTITIES = {  # of a claim: its name in words, and the power p with which its slack shrinks as 1 / rows^(1/p)
    "total_variation": ("disparity", 2),
    "odds_disparity": ("disparity within a label", 2),
    "information": ("leakage", 1),
}
WHERE = "in the population that the rows come from"
SMALLEST = 1e-12  # probability in the log-loss
Piece = tuple[np.ndarray, np.ndarray, Any]  # rows as the method takes them, labels, sensitive features
Pieces = Callable[[Any], Iterable[Piece]]  # for a fitted pipeline


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
    """The calibration rows do not prove the limit for any model of the path.

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
        remedy = "Try a larger limit, a larger table or more of its rows for calibration."
        slack = claim.bound - claim.estimate
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


class Calibration(Protocol):
    """What is asked of calibration rows."""

    rows: int

    def certificates(self, model: Any) -> dict[str, Certificate]:
        """Return what the rows prove about each part of a model that must keep the limits."""

    def accuracy(self, model: Any) -> float:
        """Return how often the class of a model is right."""

    def log_loss(self, model: Any) -> float:
        """Return the log-loss of a model, in bits."""

    def p_value(self, first: Any, second: Any) -> float:
        """Return the p-value of McNemar's test: is the first model right more often than the second?"""


class CalibrationRows:
    """Rows in memory; `prove` returns the certificates of a model on them, if they calibrate."""

    def __init__(self, X: Any, y: np.ndarray, prove: Callable[[Any], dict[str, Certificate]] = lambda model: {}):
        self.X, self.y, self.rows, self.certificates = X, y, len(y), prove

    def accuracy(self, model: Any) -> float:
        return float((model.predict(self.X) == self.y).mean())

    def log_loss(self, model: Any) -> float:
        return -float(_logs(model, self.X, self.y).mean())

    def p_value(self, first: Any, second: Any) -> float:
        return mcnemar_p_value(self.y, first.predict(self.X), second.predict(self.X))


class CalibrationSums:
    """Sums of calibration rows for all models of a path: the same size however many rows there are.

    `parts` are what of each model must keep the limits: code, class or both; `labels` are the classes within which the
    disparity is bounded, too.
    """

    def __init__(
        self,
        models: Sequence[Any],
        pieces: Iterable[Piece],
        parts: Sequence[str],
        labels: Any = None,
        confidence: float = 0.95,
    ):
        self._place, self._confidence, self.rows = {id(model): i for i, model in enumerate(models)}, confidence, 0
        self._states = [{part: _state(model, part, labels) for part in parts} for model in models]
        self._right = np.zeros((len(models), len(models)), dtype=np.int64)  # rows where both models are right
        self._logs = np.zeros(len(models))
        for X, y, s in pieces:
            self._add(models, X, y, s, labels)

    def _add(self, models: Sequence[Any], X: np.ndarray, y: np.ndarray, s: Any, labels: Any) -> None:
        right = np.zeros((len(y), len(models)), dtype=bool)
        for place, (model, states) in enumerate(zip(models, self._states, strict=True)):
            right[:, place] = model.predict(X) == y
            self._logs[place] += _logs(model, X, y).sum()
            for part, state in states.items():
                coded = released_class(model, X) if part == "class" else _coded(model, X)
                state.add(coded, sensitive_features=s, y=None if labels is None else y)
        self._right += (right.T.astype(np.float64) @ right).astype(np.int64)
        self.rows += len(y)

    def certificates(self, model: Any) -> dict[str, Certificate]:
        states = self._states[self._place[id(model)]]
        return {part: state.finish(self._confidence) for part, state in states.items()}

    def accuracy(self, model: Any) -> float:
        place = self._place[id(model)]
        return float(self._right[place, place] / self.rows)

    def log_loss(self, model: Any) -> float:
        return -float(self._logs[self._place[id(model)]] / self.rows)

    def p_value(self, first: Any, second: Any) -> float:
        one, two = self._place[id(first)], self._place[id(second)]
        both = self._right[one, two]
        return p_value_of_counts(int(self._right[one, one] - both), int(self._right[two, two] - both))


def _state(model: Any, part: str, labels: Any) -> CertificateState:
    if part == "class":
        return CertificateState(model.classes_.tolist(), groups=model.group_encoder_, labels=labels)
    return CertificateState(model, labels=labels)


def _coded(model: Any, X: np.ndarray) -> CodedRows:
    return CodedRows(model.code_probabilities(X).astype(np.float64), model.group_encoder_, hard=model.is_hard)


def _logs(model: Any, X: Any, y: np.ndarray) -> np.ndarray:
    own = model.predict_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    return np.log2(np.maximum(own, SMALLEST))
