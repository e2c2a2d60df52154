"""Exact limits of rates, and of how far the rates of two groups differ; docs/certificate.md has the proofs."""

from functools import lru_cache

import numpy as np
from scipy.stats import beta

from fairbits.certificate.deviations import (
    DELTAS,
    MOST_EXACT,
    PRECISION,
    chance_at_most,
    deviation,
    rarely_shown,
)

BERGER_BOOS = "exact binomial, Berger and Boos"
REGION = 1 / 20  # share of delta for the region of two rates: near the shortest at all rates, 1.5 % longer at 1/2


def limit_of_rates(counts: np.ndarray, rows: np.ndarray, delta: float) -> tuple[float, str]:
    """Return an upper limit of how far the chances of an event differ in two groups that had it `counts` times (2,).

    Also return the name of the theorem behind it. The limit adapts to rare events; which group has more is not given.

    >>> limit, name = limit_of_rates(np.array([0, 0]), np.array([300, 500]), 0.05)
    >>> round(limit, 3), name
    (0.016, 'exact binomial, Berger and Boos')
    """
    (x, y), (n, other) = counts.tolist(), rows.tolist()
    if not (DELTAS[0] <= delta <= DELTAS[1] and 0 < min(n, other) <= max(n, other) <= MOST_EXACT):
        length, name = deviation(rows, delta)
        return abs(x / max(n, 1) - y / max(other, 1)) + length, name
    same = [(x, n, y, other), (n - x, n, other - y, other)]  # the event and its complement
    return _rates_limit(*min(*same, *((*two[2:], *two[:2]) for two in same)), delta), BERGER_BOOS


def proportion_limits(k: int, n: int, delta: float) -> tuple[float, float]:
    """Return exact lower and upper limits of a chance that came true k times of n, each wrong with chance delta.

    >>> low, high = proportion_limits(0, 59, 0.05)
    >>> low, round(high, 3)
    (0.0, 0.05)
    """
    low = float(beta.ppf(delta, k, n - k + 1)) if k else 0.0
    high = float(beta.isf(delta, k + 1, n - k)) if k < n else 1.0
    return low, high


@lru_cache(65_536)
def _rates_limit(x: int, n: int, y: int, other: int, delta: float) -> float:
    """Return the limit of a difference of two rates within exact limits of both, which use up their share of delta."""
    one, two, level = x / n, y / other, (1 - REGION) * delta
    near = [proportion_limits(k, m, REGION * delta / 4) for k, m in ((x, n), (y, other))]
    (low, high), (floor, ceiling) = ((max(a - 1e-9, 0.0), min(b + 1e-9, 1.0)) for a, b in near)

    def laws(truth: float) -> list[tuple[float, float, int, int, float, float]]:
        """List what must be rare where either group's chance is larger by this, with the range of that chance."""
        first = max(truth, low, floor + truth), min(high, ceiling + truth)
        second = max(truth, floor, low + truth), min(ceiling, high + truth)
        return [(one - two, truth, n, other, *first), (two - one, truth, other, n, *second)]

    def often(shown: float, truth: float, n: int, other: int, least: float, most: float) -> bool:
        p = np.linspace(least, max(least, most), 17)
        return least <= most and bool((chance_at_most(shown, n, p, other, p - truth) > level).any())

    start, end = abs(one - two), max(high - floor, ceiling - low)
    short, long = start, end
    while long - short > max(PRECISION / 2 * (long - start), 1e-9):  # by some of the chances
        middle = (short + long) / 2
        short, long = (middle, long) if any(often(*law) for law in laws(middle)) else (short, middle)
    while long < end:
        long += PRECISION * (long - start)
        if all(rarely_shown(*law, level) for law in laws(long)):  # by all
            break
    return min(long, end)
