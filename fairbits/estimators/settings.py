"""Hyper-parameters: default, limits and search range on one line."""

import dataclasses
import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import torch

from fairbits.errors import InputError


class SearchRange(NamedTuple):
    """Where a hyper-parameter is searched."""

    low: float
    high: float
    log: bool = False


class _Limits(NamedTuple):
    at_least: float | None = None
    at_most: float | None = None
    above: float | None = None
    below: float | None = None
    one_of: tuple | None = None
    whole: bool = False
    check: Callable[[Any], str | None] | None = None  # says what is wrong, or None

    def complaint(self, value: Any) -> str | None:
        """Say what the value should be, or None if it is fine."""
        if self.check is not None:
            return self.check(value)
        if self.one_of is not None:
            # 1 == True and 0 == False, so compare types too
            value = bool(value) if isinstance(value, np.bool_) else value
            fits = any(isinstance(value, type(choice)) and value == choice for choice in self.one_of)
            return None if fits else f"must be one of {', '.join(map(repr, self.one_of))}"
        rules = [
            (self.at_least, lambda v, limit: v >= limit, "at least"),
            (self.above, lambda v, limit: v > limit, "above"),
            (self.at_most, lambda v, limit: v <= limit, "at most"),
            (self.below, lambda v, limit: v < limit, "below"),
        ]
        active = [(limit, holds, word) for limit, holds, word in rules if limit is not None]
        try:
            kind = Integral if self.whole else Real
            fits = isinstance(value, kind) and not isinstance(value, bool) and math.isfinite(value)
            fits = fits and all(holds(value, limit) for limit, holds, _ in active)
        except TypeError:
            fits = False
        noun = "whole number" if self.whole else "number"
        return None if fits else f"must be a {noun} " + " and ".join(f"{word} {limit}" for limit, _, word in active)


def setting(default: Any, *, search: SearchRange | None = None, **limits: Any) -> Any:
    """Declare a dataclass field with limits (at_least, at_most, above, below, one_of, whole, check)."""
    return dataclasses.field(default=default, metadata={"limits": _Limits(**limits), "search": search})


def tunable(default: float, low: float, high: float, *, log: bool = False, **limits: Any) -> Any:
    """Declare a number with its search range; limits as in `setting`."""
    return setting(default, search=SearchRange(low, high, log), **limits)


def layer_sizes(value: Any) -> str | None:
    """Say what is wrong with the widths of layers, or None."""
    fits = isinstance(value, (tuple, list)) and all(isinstance(v, Integral) and int(v) > 0 for v in value)
    return None if fits else "must be a tuple of whole numbers above 0, the width of each layer"


def torch_device(value: Any) -> str | None:
    """Say what is wrong with the name of a device, or None."""
    try:
        torch.empty(0, device=value)
    except (RuntimeError, TypeError, AssertionError) as error:
        return f"is no device torch can use here ({str(error).splitlines()[0]}); 'cpu' always is"
    return None


def check_settings(estimator: Any) -> None:
    """Raise a ValueError that names the first setting out of its limits, its value and what it should be."""
    for field in dataclasses.fields(estimator):
        limits, value = field.metadata.get("limits"), getattr(estimator, field.name)
        complaint = limits.complaint(value) if limits else None
        if complaint:
            raise InputError(f"{type(estimator).__name__}: {field.name}={value!r} {complaint}.")


def search_ranges(estimator: Any) -> dict[str, SearchRange]:
    """Return the tunable settings of an estimator and where to search them."""
    return {f.name: f.metadata["search"] for f in dataclasses.fields(estimator) if f.metadata.get("search")}
