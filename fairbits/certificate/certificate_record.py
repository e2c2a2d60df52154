"""The certificate: numbers, rounded to the safe side in texts, what they cover, and what they do not."""

import math
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from pydantic import Field

from fairbits.certificate.deviations import HOEFFDING
from fairbits.errors import InputError
from fairbits.settings import check_value

Bound = Annotated[float, Field(ge=0, le=1)]
RANDOM_DOES_NOT_COVER = (
    "more draws of the same person than stated, or the bits' probabilities, logits or earlier layers",
    "anyone who knows the random numbers of the release, or has the key that draws them",
)
HARD_DOES_NOT_COVER = ("the bits' probabilities, logits or earlier layers",)
DECISION_DOES_NOT_COVER = (
    "the score behind the decision, or anything else that the model computes",
    "decisions that compare these people with each other, such as quotas and rankings",
)
SEVERAL_ROWS = "several rows of one person, received together"
OTHER_MODELS = "anyone who also receives the output of another model for the same people"
DOES_NOT_COVER = (
    "anyone who knows more about the person than what is released",
    "rows from another distribution than the calibration rows, or wrongly recorded groups",
    "individual people, and groups that are not listed here",
    "a model that was trained, tuned or chosen by looking at these calibration rows",
)


def at_most(bound: float, digits: int = 3) -> str:
    """Return an upper bound as text, rounded up.

    >>> at_most(0.0492), at_most(0.2)
    ('0.050', '0.200')
    """
    return f"{math.ceil(round(bound * 10**digits, 6)) / 10**digits:.{digits}f}"


def at_least(bound: float, digits: int = 3) -> str:
    """Return a lower bound as text, rounded down.

    >>> at_least(0.0499)
    '0.049'
    """
    return f"{math.floor(round(bound * 10**digits, 6)) / 10**digits:.{digits}f}"


def percent(confidence: float) -> str:
    """Return a confidence with the digits it needs, never 100%.

    >>> percent(0.95), percent(0.9999)
    ('95%', '99.99%')
    """
    return f"{100 * confidence:.12g}%"


@dataclass(frozen=True)
class GroupBounds:
    """Upper confidence bounds for one sensitive column, among all rows or those of one label."""

    column: str
    label: bool | int | float | str | None  # None: all rows
    rows: dict[str, Annotated[int, Field(ge=0)]]  # per group
    total_variation: Bound
    balanced_accuracy: Bound
    information: float  # bits
    estimated_total_variation: float  # of the calibration rows themselves; an upper limit where codes were drawn
    estimated_information: float
    theorem: str = HOEFFDING  # behind the bound of the total variation


@dataclass(frozen=True)
class Certificate:
    """What held-out rows prove about everyone who receives the code."""

    confidence: Annotated[float, Field(gt=0, lt=1)]
    bounds: tuple[GroupBounds, ...]
    release: dict[str, Any]
    release_words: str
    prior: str  # which group probabilities the information is taken at
    exact: bool  # sums over all words, or Monte-Carlo with its own share of the error
    simultaneous: bool
    seeded: bool  # the model draws with a fixed seed
    promise: str | None = None  # of a model that was chosen by these rows: what is guaranteed in place of the numbers
    asymptotic: bool = False  # version 0.1 could use a normal approximation
    by_person: bool = False  # several rows of a person count once; else each row counts as a different person
    beside: int = 0  # other models whose codes the recipient has as well
    promised_disparity: Bound | None = None  # the limit in the promise

    @property
    def total_variation(self) -> float:
        """Bound on the disparity of any decision made from the code: the worst column."""
        return max(b.total_variation for b in self._overall)

    @property
    def balanced_accuracy(self) -> float:
        """Bound on how well anyone can guess the group: the worst column."""
        return max(b.balanced_accuracy for b in self._overall)

    @property
    def information(self) -> float:
        """Bound on I(T;S), in bits: the worst column."""
        return max(b.information for b in self._overall)

    @property
    def within_labels(self) -> float | None:
        """Bound on the disparity of any decision among people with the same label; None without labels."""
        return max((b.total_variation for b in self.bounds if b.label is not None), default=None)

    def selection_ratio(self, least_share: float) -> float:
        """Bound from below on the ratio of two groups' selection rates, of any decision made from the code.

        The decision must select at least this share of the people, so that the group it favours has a rate of at least
        that; the other rate is smaller by at most the disparity.
        """
        check_value("least_share", least_share, above=0, at_most=1)
        disparity = self.total_variation if self.promise is None else self.promised_disparity
        if disparity is None:
            raise InputError("The guarantee has no limit on the disparity.", remedy="Set max_disparity.")
        return max(0.0, 1 - disparity / least_share)

    @property
    def rows(self) -> dict[str, int]:
        """Calibration rows per group, as `column: group`."""
        return {f"{b.column}: {group}": n for b in self._overall for group, n in b.rows.items()}

    @property
    def _overall(self) -> list[GroupBounds]:
        return [b for b in self.bounds if b.label is None]

    @property
    def counting(self) -> str:
        """Who counts, in words."""
        each = "Each person counts once, by the mean of the person's rows"
        return each if self.by_person else "Each row counts as a different person"

    @property
    def covers(self) -> str:
        """What is guaranteed, in words."""
        if self.promise is not None:
            return (
                f"Guaranteed at {percent(self.confidence)} confidence: {self.promise} {self.counting}. Smaller "
                "bounds are estimates for the chosen model, not part of the guarantee."
            )
        each = "All numbers hold together" if self.simultaneous else "Each number holds on its own"
        kind = ", disparity and balanced accuracy by a normal approximation" if self.asymptotic else ""
        return (
            f"At {percent(self.confidence)} confidence, in the population that the calibration rows come from: for "
            f"anyone who receives {self.release_words}, the rates of any decision made from it alone differ between "
            "two groups by at most the stated disparity (total variation), and nobody can guess the group from it "
            f"alone with a balanced accuracy above the one stated. {each}{kind}. {self.counting}. The leakage is "
            f"computed with {self.prior}."
        )

    @property
    def does_not_cover(self) -> tuple[str, ...]:
        """What is not guaranteed, in words."""
        first: tuple[str, ...] = HARD_DOES_NOT_COVER if self.release.get("hard") else RANDOM_DOES_NOT_COVER
        first = DECISION_DOES_NOT_COVER if self.release.get("decision") else first
        first += (SEVERAL_ROWS,) * self.by_person + (OTHER_MODELS,) * (not self.beside)
        known = (*first, *(DOES_NOT_COVER if self.promise is None else DOES_NOT_COVER[:-1]))
        return (*known, "anyone who knows the fixed seed that this model draws with") if self.seeded else known

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain lists, numbers and texts, ready for JSON."""
        derived = ("total_variation", "balanced_accuracy", "information", "within_labels", "covers", "does_not_cover")
        return {**asdict(self), **{name: getattr(self, name) for name in derived}}

    def __str__(self) -> str:
        lines = [f"Certificate, {percent(self.confidence)} confidence"]
        most = "" if self.exact else "at most "
        for b in self.bounds:
            where = b.column if b.label is None else f"{b.column} within label {b.label!r}"
            lines.append(
                f"  {where}: disparity <= {at_most(b.total_variation, 4)} (these rows show {most}"
                f"{b.estimated_total_variation:.4f}), balanced accuracy <= {at_most(b.balanced_accuracy, 4)}, "
                f"leakage <= {at_most(b.information, 4)} bits; "
                "rows: " + ", ".join(f"{group} {n}" for group, n in b.rows.items()) + f"; theorem: {b.theorem}"
            )
        return "\n".join([*lines, f"  {self.covers}", "  Not covered: " + "; ".join(self.does_not_cover) + "."])
