"""What a search varies: numbers in ranges, choices, the shape of the hidden layers."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from sklearn.base import BaseEstimator

from fairbits.errors import InputError
from fairbits.estimators.settings import SearchRange, search_ranges


class Layers(NamedTuple):
    """Hidden layers of one width: how many, and how wide; for the setting `hidden_sizes`."""

    depth: tuple[int, int] = (1, 5)
    width: tuple[int, int] = (10, 50)


DEPTH, WIDTH = "depth", "width"  # how `Layers` appears among the parameters of a trial
Space = Mapping[str, SearchRange | Layers | tuple]


def search_space(estimator: BaseEstimator, changes: Space | None = None) -> dict[str, Any]:
    """Return what is searched: the tunable settings of the estimator, with changes.

    Parameters
    ----------
    changes : setting -> `SearchRange`, `Layers` (for hidden_sizes), a tuple of choices, or None to leave it alone
    """
    space = {**search_ranges(estimator), **(changes or {})}
    unknown = sorted(set(space) - set(estimator.get_params(deep=False)))
    if unknown:
        raise InputError(f"space names {unknown}, which {type(estimator).__name__} does not have.")
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
