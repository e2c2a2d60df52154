"""Deviations of two means: against brute force over the laws, published figures, and simulated fractional values."""

import math
from functools import cache, partial

import numpy as np
import pytest
from battery import one_quickly
from scipy.stats import binom

from fairbits.certificate.deviations import (
    berry_esseen_deviation,
    cvar_deviation,
    deviation,
    hoeffding_deviation,
    limit_of_difference,
    normal_deviation,
)

SIZES = [(30, 30), (20, 35), (5, 60)]


@cache
def chances(n, p):
    return binom.pmf(np.arange(n + 1), n, p)


def shortfalls(n, other, p, q):
    """Every shortfall of two binomial proportions and its probability, the slow way."""
    values = (p - np.arange(n + 1) / n)[:, None] - (q - np.arange(other + 1) / other)
    return values, chances(n, p)[:, None] * chances(other, q)


def laws(step=0.05):
    steps = np.arange(0, 1 + step / 2, step)
    return [(p, q) for p in steps for q in steps if q <= p]


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("delta", [0.05, 0.01])
def test_no_law_of_hard_values_falls_further_more_often(sizes, delta):
    lengths = [deviation(np.array(sizes), delta)[0], berry_esseen_deviation(*sizes, delta)]
    for p, q in laws():
        values, weights = shortfalls(*sizes, p, q)
        assert all(weights[values > length + 1e-12].sum() <= delta for length in lengths)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("delta", one_quickly([0.05, 0.01]))
def test_the_exact_limit_errs_rarely_and_not_too_rarely(sizes, delta):
    """The chance that the limit is below the truth, over all outcomes: at most delta, and close to it somewhere."""
    n, other = sizes
    shown = np.arange(n + 1)[:, None] / n - np.arange(other + 1) / other
    limits = {d: limit_of_difference(d, np.array(sizes), delta)[0] for d in np.unique(shown[shown >= 0]).tolist()}
    limit = np.vectorize(lambda d: limits[d] if d >= 0 else limits[0.0])(shown)
    errors = [shortfalls(n, other, p, q)[1][limit < p - q - 1e-12].sum() for p, q in laws(0.02)]
    assert 0.6 * delta < max(errors) <= delta


@pytest.mark.parametrize(("n", "other"), [(30, 40), (25, 60)])
@pytest.mark.parametrize(("delta", "near"), [(0.05, 1.07), (0.01, 1.13)])
def test_the_cvar_is_above_that_of_every_law(n, other, delta, near):
    length = cvar_deviation(n, other, delta)
    found = []
    for p, q in laws():
        values, weights = shortfalls(n, other, p, q)
        order = np.argsort(-values, axis=None)
        tail = np.minimum(np.cumsum(weights.flat[order]), delta)
        found.append((np.diff(tail, prepend=0) * values.flat[order]).sum() / delta)
    assert max(found) <= length <= near * max(found)


def test_the_cvar_at_the_rows_where_it_takes_over():
    """One group's cells are bounded from their centre, the other's from their ends; of many rows some are enough."""
    middle, many = np.array([587, 889]), np.array([300, 10**6])
    for rows, delta in ((middle, 0.01), (many, 0.05)):
        length, name = deviation(rows, delta)
        assert name == "CVaR of binomials"
        assert length < 0.99 * hoeffding_deviation(rows, 1.0, delta)
    assert deviation(middle, 0.001)[1] == "Hoeffding"


def test_the_figures_of_the_theory():
    large, middle, unequal = np.array([5421, 10860]), np.array([587, 889]), np.array([300, 16000])
    assert [hoeffding_deviation(rows, 1.0, 0.05) for rows in (large, middle)] == pytest.approx(
        [0.0204, 0.0651], abs=6e-5
    )
    assert deviation(large, 0.05) == (pytest.approx(0.0141, abs=6e-5), "Berry-Esseen and Bernstein")
    assert deviation(middle, 0.05)[0] == pytest.approx(0.0486, abs=2e-4)
    assert deviation(unequal, 0.05) == (pytest.approx(0.060, abs=4e-3), "CVaR of binomials")
    for shown, slack in ((0.0, 0.0137), (0.1, 0.0137), (0.4, 0.0126)):
        limit, name = limit_of_difference(shown, large, 0.05)
        assert (limit - shown, name) == (pytest.approx(slack, abs=2e-4), "exact binomial")
    assert limit_of_difference(0.0, middle, 0.05)[0] == pytest.approx(0.0438, abs=4e-4)


@pytest.mark.parametrize("spread", [0.1, 0.3, 1.0])
def test_fractional_values_are_covered(spread):
    """Beta values with means 0.6 and 0.4: the shortfall is beyond the deviation in at most 5 % of samples."""
    rng, rows = np.random.default_rng(0), np.array([60, 90])
    p, q = (rng.beta(m * spread, (1 - m) * spread, (4000, n)).mean(1) for m, n in zip((0.6, 0.4), rows, strict=True))
    assert np.mean(0.2 - (p - q) > deviation(rows, 0.05)[0]) <= 0.05


def test_more_rows_and_less_confidence_shorten_every_bound():
    few, many = np.array([100, 120]), np.array([400, 480])
    for bound in (deviation, partial(limit_of_difference, 0.05)):
        assert bound(many, 0.05)[0] < bound(few, 0.05)[0] < bound(few, 0.01)[0]
    assert limit_of_difference(0.05, few, 0.05)[0] < 0.05 + deviation(few, 0.05)[0]
    shown = [limit_of_difference(d, few, 0.05)[0] for d in (0.0, 0.03, 0.2, 0.6)]
    assert shown == sorted(shown)


def test_the_order_of_the_groups_and_extreme_sizes():
    assert deviation(np.array([50, 80]), 0.05) == deviation(np.array([80, 50]), 0.05)
    assert limit_of_difference(0.1, np.array([50, 80]), 0.05) == limit_of_difference(0.1, np.array([80, 50]), 0.05)
    assert deviation(np.array([0, 80]), 0.05)[0] == limit_of_difference(0.1, np.array([0, 80]), 0.05)[0] == math.inf
    assert 0.9 < limit_of_difference(0.0, np.array([1, 1]), 0.05)[0] <= 1
    huge = np.array([10**6, 2 * 10**6])
    assert 1 < deviation(huge, 0.05)[0] / normal_deviation(*huge, 0.05) < 1.01
    assert limit_of_difference(0.02, huge, 0.05)[1] == "Berry-Esseen and Bernstein"
    assert deviation(huge, 0.6)[1] == deviation(huge, 1e-9)[1] == "Hoeffding"
    assert limit_of_difference(0.1, np.array([50, 80]), 1e-9)[1] == "Hoeffding"
