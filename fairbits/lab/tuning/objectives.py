"""What a search maximises."""

from collections.abc import Mapping
from dataclasses import dataclass

from fairbits.errors import InputError
from fairbits.metrics import paper_objective

OBJECTIVES = ("paper", "constrained", "pareto")


@dataclass(frozen=True)
class Objective:
    """What to maximise, given the mean scores of a trial over the folds.

    Parameters
    ----------
    name : "paper" is AUC + (1 - GPA) + (1 - AUDC), which on COMPAS prefers a constant predictor to a logistic
        regression; "constrained" is the AUC where the leakage is at most `max_leakage`; "pareto" is AUC against leakage
    leakage : the score that counts as leakage: "gpa", "audc", "discrimination", "information", "one_draw_gpa", ...

    >>> Objective("constrained", "gpa", 0.1).values({"auc": 0.8, "gpa": 0.05})
    (0.8,)
    >>> Objective("pareto", "gpa").values({"auc": 0.8, "gpa": 0.25})
    (0.8, -0.25)
    """

    name: str = "paper"
    leakage: str = "gpa"
    max_leakage: float | None = None

    def __post_init__(self) -> None:
        if self.name not in OBJECTIVES:
            raise InputError(f"objective={self.name!r} must be one of {', '.join(map(repr, OBJECTIVES))}.")
        if (self.name == "constrained") != (self.max_leakage is not None):
            raise InputError(
                "max_leakage is the limit of objective='constrained': that one needs it and no other takes it."
            )

    def values(self, scores: Mapping[str, float]) -> tuple[float, ...]:
        """Return what is maximised: one number, or two for a Pareto set."""
        if self.name == "paper":
            return (paper_objective(scores),)
        if self.leakage not in scores:
            raise InputError(f"leakage={self.leakage!r} is not among this method's scores: {', '.join(scores)}.")
        leakage = scores[self.leakage]
        if self.name == "pareto":
            return scores["auc"], -leakage
        assert self.max_leakage is not None
        # Below every AUC, and the less the nearer: samplers and selection need no notion of a constraint.
        return (scores["auc"] if leakage <= self.max_leakage else self.max_leakage - leakage,)

    def total(self, values: tuple[float, ...]) -> float:
        """Return one number to choose by: of a Pareto set the point nearest to (1, 0) in L1."""
        return sum(values)
