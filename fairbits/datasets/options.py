"""Checks of arguments; each error names the argument, the value and what to pass instead."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fairbits.errors import InputError


def check_choice(argument: str, value: object, choices: Sequence[str]) -> None:
    """Raise unless the value is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise InputError(f"{argument}={value!r} is not known: pass one of {', '.join(map(repr, choices))}")


def check_flag(argument: str, value: object) -> None:
    """Raise unless the value is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{argument}={value!r} is not a flag: pass True or False")


def check_count(argument: str, value: object, least: int = 1) -> None:
    """Raise unless the value is a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{argument}={value!r} is not possible: pass a whole number of at least {least}")


def check_number(argument: str, value: object, low: float = -np.inf, high: float = np.inf) -> None:
    """Raise unless the value is a finite number between low and high, both included."""
    number = math.nan
    if isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
        number = float(value)
    if not (math.isfinite(number) and low <= number <= high):
        between = "" if np.isinf([low, high]).all() else f" between {low:g} and {high:g}"
        raise InputError(f"{argument}={value!r} is not possible: pass a finite number{between}")


def checked_prior(prior: Sequence[float] | None, n_groups: int) -> np.ndarray:
    """Return the probabilities of the groups; None means equal ones."""
    if prior is None:
        return np.full(n_groups, 1 / n_groups)
    values = np.asarray(prior, dtype=float)
    if values.shape != (n_groups,) or not (values > 0).all() or not np.isclose(values.sum(), 1):
        raise InputError(f"prior={prior!r} is not possible: pass {n_groups} positive numbers that sum to 1, or None")
    return values / values.sum()
