"""The record a certificate is: numbers, what they cover, and what they do not."""

from dataclasses import asdict, dataclass
from typing import Annotated, Any

from pydantic import Field

Bound = Annotated[float, Field(ge=0, le=1)]

COVERS = (
    "With probability {confidence:g} over the calibration rows: for anyone who receives {release}, the rates of any "
    "decision made from it differ between two groups by at most the stated disparity (total variation), and nobody "
    "can guess the group with a balanced accuracy above the one stated."
)
DOES_NOT_COVER = (
    "more draws of the same person than stated, or the bits' probabilities, logits or earlier layers",
    "anyone who knows the random numbers of the release",
    "anyone who knows more about the person than the code",
    "rows from another distribution than the calibration rows, or groups recorded wrongly",
    "single persons, and groups that are not listed here",
    "a model that was chosen by looking at these calibration rows",
)


@dataclass(frozen=True)
class GroupBounds:
    """Upper confidence bounds for one sensitive column, among all rows or those of one label."""

    column: str
    label: bool | int | float | str | None  # None: all rows
    rows: dict[str, int]  # per group
    total_variation: Bound
    balanced_accuracy: Bound
    information: float  # bits
    estimated_total_variation: float  # of the calibration rows themselves; an upper limit where codes were drawn
    estimated_information: float


@dataclass(frozen=True)
class Certificate:
    """What held-out rows prove about everyone who receives the code."""

    confidence: Annotated[float, Field(gt=0, lt=1)]
    bounds: tuple[GroupBounds, ...]
    release: dict[str, Any]
    release_words: str
    prior: str  # which group probabilities the information is taken at
    exact: bool  # sums over all words, or Monte-Carlo with its own share of the error
    asymptotic: bool
    simultaneous: bool
    seeded: bool  # the model draws with a fixed seed
    promise: str | None = None  # of a model that was chosen by these rows: what is guaranteed in place of the numbers

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

    @property
    def rows(self) -> dict[str, int]:
        """Calibration rows per group, as `column: group`."""
        return {f"{b.column}: {group}": n for b in self._overall for group, n in b.rows.items()}

    @property
    def _overall(self) -> list[GroupBounds]:
        return [b for b in self.bounds if b.label is None]

    @property
    def covers(self) -> str:
        """What is guaranteed, in words."""
        if self.promise is not None:
            return (
                f"Guaranteed with probability {self.confidence:g} over the calibration rows: {self.promise} The "
                "numbers above are estimates for the chosen model, not part of the guarantee."
            )
        text = COVERS.format(confidence=self.confidence, release=self.release_words)
        each = "All numbers hold together" if self.simultaneous else "Each number holds on its own"
        kind = ", total variation and balanced accuracy by a normal approximation" if self.asymptotic else ""
        return f"{text} {each}{kind}. The information is at {self.prior}."

    @property
    def does_not_cover(self) -> tuple[str, ...]:
        """What is not guaranteed, in words."""
        known = DOES_NOT_COVER if self.promise is None else DOES_NOT_COVER[:-1]
        return (*known, "anyone who knows the fixed seed that this model draws with") if self.seeded else known

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain lists, numbers and texts, ready for JSON."""
        return {
            **asdict(self),
            "bounds": [asdict(b) for b in self.bounds],
            "total_variation": self.total_variation,
            "balanced_accuracy": self.balanced_accuracy,
            "information": self.information,
            "within_labels": self.within_labels,
            "covers": self.covers,
            "does_not_cover": list(self.does_not_cover),
        }

    def __str__(self) -> str:
        lines = [f"Certificate, confidence {self.confidence:g}{' (asymptotic)' if self.asymptotic else ''}"]
        most = "" if self.exact else "at most "
        for b in self.bounds:
            where = b.column if b.label is None else f"{b.column} among label {b.label!r}"
            lines.append(
                f"  {where}: total variation <= {b.total_variation:.4f} (these rows show {most}"
                f"{b.estimated_total_variation:.4f}), balanced accuracy <= {b.balanced_accuracy:.4f}, "
                f"information <= {b.information:.4f} bits; "
                "rows: " + ", ".join(f"{group} {n}" for group, n in b.rows.items())
            )
        return "\n".join([*lines, f"  {self.covers}", "  Not covered: " + "; ".join(self.does_not_cover) + "."])
