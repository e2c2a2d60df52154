"""Bounds and confidence as text, rounded to the safe side."""

import math


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
