"""Settings of encoders, methods and schedules: default, limits and search range on one line."""

import dataclasses
import math
import operator
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from fairbits.errors import InputError

RULES = {"at_least": operator.ge, "above": operator.gt, "at_most": operator.le, "below": operator.lt}


class SearchRange(NamedTuple):
    """Where a hyper-parameter is searched."""

    low: float
    high: float
    log: bool = False


def setting(default: Any, *, search: SearchRange | None = None, **limits: Any) -> Any:
    """Declare a setting with limits: at_least, at_most, above, below, one_of, whole, optional, check (-> complaint)."""
    return dataclasses.field(default=default, metadata={"limits": limits, "search": search})


def tunable(default: float, low: float, high: float, *, log: bool = False, **limits: Any) -> Any:
    """Declare a number with its search range; limits as in `setting`."""
    return setting(default, search=SearchRange(low, high, log), **limits)


def layer_sizes(value: Any) -> str | None:
    """Return what is wrong with the widths of layers, or None."""
    fits = isinstance(value, (tuple, list)) and all(isinstance(v, Integral) and int(v) > 0 for v in value)
    return None if fits else "must be a tuple of whole numbers above 0, the width of each layer"


def complaint(
    value: Any, *, one_of: Any = None, whole: bool = False, optional: bool = False, check: Any = None, **bounds: float
) -> str | None:
    """Return what a value should be, or None if it keeps its limits.

    >>> complaint(0, at_least=1, whole=True)
    'must be a whole number at least 1'
    """
    if check is not None:
        return check(value)
    if one_of is not None:
        value = bool(value) if isinstance(value, np.bool_) else value
        fits = any(isinstance(value, type(choice)) and value == choice for choice in one_of)  # 1 is not True
        return None if fits else f"must be one of {', '.join(map(repr, one_of))}"
    number = isinstance(value, Integral if whole else Real) and not isinstance(value, bool) and math.isfinite(value)
    if (optional and value is None) or (number and all(RULES[name](value, bound) for name, bound in bounds.items())):
        return None
    wanted = " and ".join(f"{name.replace('_', ' ')} {bound}" for name, bound in bounds.items())
    return f"must be a {'whole number' if whole else 'number'} {wanted or 'that is finite'}"


def check_value(argument: str, value: Any, **limits: Any) -> None:
    """Raise an InputError that names an argument out of its limits, its value and what it should be."""
    if found := complaint(value, **limits):
        remedy = f"Or pass {argument}=None." if limits.get("optional") else ""
        raise InputError(f"{found}.", argument=argument, value=value, remedy=remedy)


def check_settings(estimator: Any) -> None:
    """Raise an InputError that names the first setting out of its limits, its value and what it should be."""
    for field in dataclasses.fields(estimator):
        if limits := field.metadata.get("limits"):
            check_value(field.name, getattr(estimator, field.name), **limits)


def search_ranges(estimator: Any) -> dict[str, SearchRange]:
    """Return the tunable settings of an estimator and where to search them."""
    return {f.name: f.metadata["search"] for f in dataclasses.fields(estimator) if f.metadata.get("search")}
