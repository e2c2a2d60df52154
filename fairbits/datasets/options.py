"""Checks of arguments; each error names the argument, the value and what to pass instead."""

import math
from collections.abc import Sequence
from numbers import Integral, Real

import numpy as np

from fairbits.errors import InputError


def check_choice(argument: str, value: object, choices: Sequence[str]) -> None:
    """Raise unless the value is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        remedy = f"Pass one of {', '.join(map(repr, choices))}."
        raise InputError("is not known.", argument=argument, value=value, remedy=remedy)


def check_flag(argument: str, value: object) -> None:
    """Raise unless the value is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise InputError("is not a flag.", argument=argument, value=value, remedy="Pass True or False.")


def check_number(
    argument: str, value: object, low: float = -math.inf, high: float = math.inf, *, whole: bool = False
) -> None:
    """Raise unless the value is a finite (or whole) number between low and high, both included."""
    number = isinstance(value, Integral if whole else Real) and not isinstance(value, bool)
    if not (number and math.isfinite(value) and low <= value <= high):  # type: ignore[arg-type,operator]
        limits = f" between {low:g} and {high:g}" if high < math.inf else f" of at least {low:g}"
        remedy = f"Pass a {'whole' if whole else 'finite'} number{limits if low > -math.inf else ''}."
        raise InputError("is not possible.", argument=argument, value=value, remedy=remedy)
