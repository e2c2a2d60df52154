"""What a search varies, and what it maximises."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from sklearn.base import BaseEstimator

from fairbits.errors import InputError
from fairbits.metrics import paper_objective
from fairbits.settings import SearchRange, search_ranges

OBJECTIVES = ("paper", "constrained", "pareto")


class Layers(NamedTuple):
    """Ranges for hidden layers of equal width; for the setting `hidden_sizes`."""

    depth: tuple[int, int] = (1, 5)
    width: tuple[int, int] = (10, 50)


DEPTH, WIDTH = "depth", "width"  # how `Layers` appears among the parameters of a trial
Space = Mapping[str, SearchRange | Layers | tuple | None]


def search_space(estimator: BaseEstimator, changes: Space | None = None) -> dict[str, Any]:
    """Return the tunable settings of the estimator, with changes.

    Parameters
    ----------
    changes : setting -> `SearchRange`, `Layers` (for hidden_sizes), a tuple of choices, or None to leave it alone
    """
    space = {**search_ranges(estimator), **(changes or {})}
    unknown = sorted(set(space) - set(estimator.get_params(deep=False)))
    if unknown:
        raise InputError(f"The search space names {unknown}, which {type(estimator).__name__} does not have.")
    return {name: part for name, part in space.items() if part is not None}


def distributions(space: Mapping[str, Any]) -> dict[str, BaseDistribution]:
    """Return the space in Optuna's terms.

    >>> list(distributions({"gamma": SearchRange(0, 1), "hidden_sizes": Layers()}))
    ['gamma', 'depth', 'width']
    """
    found: dict[str, BaseDistribution] = {}
    for name, part in space.items():
        if isinstance(part, Layers):
            found |= {DEPTH: IntDistribution(*part.depth), WIDTH: IntDistribution(*part.width)}
        elif isinstance(part, SearchRange):
            found[name] = FloatDistribution(part.low, part.high, log=part.log)
        else:
            found[name] = CategoricalDistribution(part)
    return found


def settings_of(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the estimator's settings for the parameters of a trial.

    >>> settings_of({"gamma": 0.5, "depth": 2, "width": 30})
    {'gamma': 0.5, 'hidden_sizes': (30, 30)}
    """
    rest = {name: value for name, value in params.items() if name not in (DEPTH, WIDTH)}
    return {**rest, "hidden_sizes": (params[WIDTH],) * params[DEPTH]} if DEPTH in params else rest


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
            choices = ", ".join(map(repr, OBJECTIVES))
            raise InputError(f"must be one of {choices}.", argument="objective", value=self.name)
        if (self.name == "constrained") != (self.max_leakage is not None):
            raise InputError(
                "is the limit of the constrained objective, which needs one; no other objective takes one.",
                argument="max_leakage",
                value=self.max_leakage,
                remedy="Pass objective='constrained' and max_leakage together.",
            )

    def values(self, scores: Mapping[str, float]) -> tuple[float, ...]:
        """Return what is maximised: one number, or two for a Pareto set."""
        if self.name == "paper":
            return (paper_objective(scores),)
        if self.leakage not in scores:
            known = ", ".join(scores)
            raise InputError(f"is not among this method's scores: {known}.", argument="leakage", value=self.leakage)
        leakage = scores[self.leakage]
        if self.name == "pareto":
            return scores["auc"], -leakage
        assert self.max_leakage is not None
        # Below every AUC, and the less the nearer: samplers and selection need no notion of a constraint.
        return (scores["auc"] if leakage <= self.max_leakage else self.max_leakage - leakage,)
