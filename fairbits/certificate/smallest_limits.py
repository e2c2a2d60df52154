"""What no bound of the disparity is below, whatever the rows show: before any training, from the groups' rows alone.

docs/certificate.md has the proofs.
"""

import math

import numpy as np
from scipy.stats import beta, binom

from fairbits.certificate.deviations import EXACT, ROUNDING, chance_at_most, deviation, limit_of_difference
from fairbits.certificate.limits_of_rates import BERGER_BOOS, REGION, limit_of_rates

KINDS = ("any values", "hard", "binary")  # means over people and random codes; hard codes and classes; two values
HALVINGS = 7  # of the interval that holds the least limit of hard values


def smallest_limit(rows: np.ndarray, delta: float, kind: str) -> float:
    """Return what the certified disparity between groups of these rows (K,) is never below, whatever the rows show.

    The two smallest groups decide.

    >>> rows = np.array([300, 16_000])
    >>> [round(smallest_limit(rows, 0.05, kind), 3) for kind in KINDS]
    [0.063, 0.048, 0.004]
    """
    two = np.sort(rows)[:2]
    if not two[0]:
        return 1.0
    return min(1.0, {"any values": _least_of_any, "hard": _least_of_hard, "binary": _least_of_rates}[kind](two, delta))


def equal_limit(rows: np.ndarray, delta: float, kind: str, rate: float = 0.0) -> float:
    """Return the bound of what shows no disparity between groups of these rows; if binary, all show this rate.

    >>> rows = np.array([300, 16_000])
    >>> [round(equal_limit(rows, 0.05, "binary", rate), 3) for rate in (0, 0.05, 0.2, 0.5)]
    [0.01, 0.026, 0.042, 0.049]
    """
    two = np.sort(rows)[:2]
    if not two[0]:
        return 1.0
    if kind == "binary":
        count = max(round(rate * int(two[0])), int(rate > 0))  # the larger group shows the same rate
        counts = np.rint(count / two[0] * two).astype(np.int64)
        return min(1.0, limit_of_rates(counts, two, delta)[0] - abs(float(np.subtract(*counts / two))))
    return min(1.0, (limit_of_difference(0.0, two, delta) if kind == "hard" else deviation(two, delta))[0])


def _least_of_any(rows: np.ndarray, delta: float) -> float:
    return deviation(rows, delta)[0]


def _least_of_hard(rows: np.ndarray, delta: float) -> float:
    """Return a difference that rows without any would often hide: no limit that is proved is below it."""
    most, name = limit_of_difference(0.0, rows, delta)
    if name != EXACT:
        return most
    (n, other), least = rows.tolist(), 0.0
    for _ in range(HALVINGS):
        truth = (least + most) / 2
        p = np.linspace(truth, 1, 65)
        often = (chance_at_most(0.0, n, p, other, p - truth) > delta + 2 * ROUNDING).any()
        least, most = (truth, most) if often else (least, truth)
    return least


def _least_of_rates(rows: np.ndarray, delta: float) -> float:
    """Return what the limits of all outcomes of two groups are not below: outcomes near 0 are looked at one by one."""
    most, name = limit_of_rates(np.zeros(2, dtype=np.int64), rows, delta)
    if name != BERGER_BOOS:
        return most
    (n, other), level, least = rows.tolist(), (1 - REGION) * delta + ROUNDING, most
    x = np.arange(n // 2 + 1)  # the others are complements of these
    long = _upper(x, n, 2 * level) - 1 + _upper(n - x, n, 2 * level) >= 2 * most
    for count in x[~long].tolist():
        low, high = (math.floor(other * (count / n + side * most)) for side in (-1, 1))
        y = np.arange(max(low, 0), min(high + 1, other) + 1)  # further apart than `most`: limits are not below that
        least = min(least, float(_below(count, n, y, other, level).min()))
    return least


def _below(x: int, n: int, y: np.ndarray, other: int, level: float) -> np.ndarray:
    """Return lower bounds of the limits of outcomes x of n and y of other: rates that would often show as little.

    One group's rate is what it shows, the other's as far away as its exact limit: the chance that both show at most
    their difference is at least the product of the chances of each.
    """
    one, two = x / n, y / other
    found = [
        _upper(x, n, level / binom.sf(y - 1, other, two)) - two,
        two - 1 + _upper(n - x, n, level / binom.cdf(y, other, two)),
        _upper(y, other, level / binom.sf(x - 1, n, one)) - one,
        one - 1 + _upper(other - y, other, level / binom.cdf(x, n, one)),
    ]
    return np.maximum(np.max(found, axis=0), np.abs(one - two))


def _upper(k: np.ndarray | int, n: int, delta: np.ndarray | float) -> np.ndarray:
    """Return exact upper limits of chances that came true k times of n (Clopper and Pearson)."""
    return np.where(np.equal(k, n), 1.0, beta.isf(delta, np.add(k, 1), np.maximum(np.subtract(n, k), 1)))
