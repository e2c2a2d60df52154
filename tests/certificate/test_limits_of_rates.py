"""Limits of a difference of two rates: all outcomes of small groups, a slow reference, and the public certificates."""

import math
from itertools import pairwise, permutations

import numpy as np
import pytest
from scipy.stats import binom, binomtest
from sklearn.dummy import DummyClassifier

from fairbits import CertificateState, certify
from fairbits.certificate.decision_rates import BERGER_BOOS, limit_of_rates
from fairbits.certificate.deviations import limit_of_difference
from fairbits.encoding import GroupEncoder


def limit(x, n, y, other, delta=0.05):
    return limit_of_rates(np.array([x, y]), np.array([n, other]), delta)[0]


def all_limits(n, other, delta):
    return np.array([[limit(x, n, y, other, delta) for y in range(other + 1)] for x in range(n + 1)])


def worst_error(limits, step):
    """The largest chance that the limit is below the truth, over a grid of both rates."""
    n, other = (size - 1 for size in limits.shape)
    rates, found = np.arange(0, 1 + step / 2, step), []
    for p in rates:
        for q in rates:
            law = np.outer(binom.pmf(np.arange(n + 1), n, p), binom.pmf(np.arange(other + 1), other, q))
            found.append(law[limits < abs(p - q) - 1e-12].sum())
    return max(found)


@pytest.mark.parametrize(("n", "other", "delta"), [(7, 7, 0.05), (4, 9, 0.05), (5, 6, 0.2), (1, 20, 0.05)])
def test_no_two_rates_are_missed_too_often(n, other, delta):
    assert worst_error(all_limits(n, other, delta), 0.05) <= delta


@pytest.mark.slow
@pytest.mark.parametrize(("n", "other", "delta"), [(30, 30, 0.05), (20, 35, 0.01), (5, 60, 0.05), (25, 25, 0.3)])
def test_the_limit_errs_rarely_and_not_too_rarely(n, other, delta):
    assert 0.6 * delta < worst_error(all_limits(n, other, delta), 0.01) <= delta


def often_shown(truth, x, n, y, other, delta=0.05):
    """Whether rates in the region that are so far apart show so little too often: a grid of them, by scipy."""
    near = [binomtest(k, m).proportion_ci(1 - delta / 40, "exact") for k, m in ((x, n), (y, other))]
    for (a, size, one), (b, rest, two) in permutations(((x, n, near[0]), (y, other, near[1]))):
        k = np.arange(rest + 1)
        below = np.floor(size * (a / size - b / rest + k / rest) + 1e-9)
        p = np.linspace(max(one.low, two.low + truth), min(one.high, two.high + truth), 40)[:, None]
        chances = (binom.pmf(k, rest, p - truth) * binom.cdf(below, size, p)).sum(1)
        if p[0] <= p[-1] and chances.max() > 0.95 * delta:
            return True
    return False


@pytest.mark.parametrize(("x", "n", "y", "other"), [(0, 40, 0, 60), (3, 40, 1, 90), (30, 60, 30, 60), (4, 5, 30, 80)])
def test_the_limit_is_that_of_the_definition(x, n, y, other):
    found, shown = limit(x, n, y, other), abs(x / n - y / other)
    assert not often_shown(found, x, n, y, other)
    assert often_shown(shown + 0.985 * (found - shown), x, n, y, other)


def test_a_constant_decision_is_cheap_and_a_common_one_not_dearer():
    """The groups are as large as in two credit tables."""
    for sizes, most in (((73, 498), 0.049), ((613, 687), 0.0082), ((5421, 10860), 0.00085)):
        rows = np.array(sizes)
        assert limit_of_rates(rows * 0, rows, 0.05) == (pytest.approx(most, rel=0.11), BERGER_BOOS)
        assert limit_of_rates(rows * 0, rows, 0.05)[0] < min(most, 0.5 * limit_of_difference(0.0, rows, 0.05)[0])
        half = rows // 2
        shown = abs(half[0] / rows[0] - half[1] / rows[1])
        known = limit_of_difference(shown, rows, 0.05)[0]
        assert limit_of_rates(half, rows, 0.05)[0] - shown <= 1.03 * (known - shown)


def test_a_small_group_may_be_the_favoured_one_although_it_shows_less():
    """0 of 10 against 1 of 10,000: the rows favour the large group, but the small one's rate may well be 0.2."""
    assert limit(0, 10, 1, 10_000) > 0.2
    assert limit(0, 10, 1, 10_000) == pytest.approx(limit(0, 10, 0, 10_000), rel=0.02)


def test_a_larger_difference_has_a_larger_limit_whatever_groups_and_values_are_called():
    limits = [limit(x, 80, 10, 100) for x in range(8, 81, 9)]
    assert all(b > a for a, b in pairwise(limits))
    assert limit(9, 80, 10, 100) == limit(10, 100, 9, 80) == limit(71, 80, 90, 100)
    assert limit(9, 80, 10, 100, 0.01) > limit(9, 80, 10, 100) > limit(36, 320, 40, 400)


def test_which_theorem_it_is_depends_on_rows_and_confidence_alone():
    few, huge = np.array([50, 80]), np.array([150_000, 90_000])
    assert limit_of_rates(few // 2, few, 0.05)[1] == limit_of_rates(few * 0, few, 0.05)[1] == BERGER_BOOS
    assert limit_of_rates(huge * 0, huge, 0.05)[1] == "Berry-Esseen and Bernstein"
    assert limit_of_rates(few, few, 1e-9)[1] == "Hoeffding"
    assert limit_of_rates(np.array([0, 3]), np.array([0, 80]), 0.05)[0] == math.inf
    assert 0.9 < limit(0, 1, 1, 1) <= 1


S = np.arange(240) % 3
RARE = (np.arange(240) // 2 % 7 == 0).astype(int)


def theorem(source, *rest, **options):
    return certify(source, *rest, sensitive_features=S, **options).bounds[-1].theorem


def test_binary_decisions_get_it_and_nothing_else():
    three = DummyClassifier(strategy="constant", constant="b").fit(np.zeros((3, 1)), ["a", "b", "c"])
    two = DummyClassifier(strategy="constant", constant="b").fit(np.zeros((2, 1)), ["a", "b"])
    X, scores = np.zeros((240, 1)), np.linspace(0, 0.4, 240)
    rare = RARE[:, None]
    for binary in ((RARE,), (rare,), (["no"] * 240,), (two, X)):
        assert theorem(*binary) == BERGER_BOOS
    assert theorem(RARE, y=np.arange(240) % 2) == theorem(scores, levels=[0.5]) == BERGER_BOOS
    for other in ((np.arange(240) % 3,), (np.hstack([rare, rare]),), (three, X)):
        assert theorem(*other) == "exact binomial"
    assert theorem(scores, levels=[0.5, 0.6]) == theorem(rare, coarse=np.array([0, 1])) == "exact binomial"
    assert theorem(RARE, theorem="Hoeffding") == "Hoeffding"
    assert "exact" not in theorem(RARE, person=np.arange(240))
    assert "exact" not in theorem(rare.astype(float))


def test_the_certificate_is_the_largest_limit_of_all_pairs():
    found = certify(RARE, sensitive_features=S).total_variation
    a, b, c = (int(RARE[s == S].sum()) for s in range(3))
    assert found == max(limit(a, 80, b, 80), limit(a, 80, c, 80), limit(b, 80, c, 80))


def test_parts_of_the_rows_add_up_to_it():
    whole = CertificateState([0, 1], groups=GroupEncoder(min_group_size=1).fit(S))
    for rows in np.array_split(np.arange(240), 4):
        whole.add(RARE[rows], sensitive_features=S[rows])
    assert whole.finish().bounds == certify(RARE[:, None], sensitive_features=S).bounds


@pytest.mark.slow
def test_a_rare_decision_is_missed_as_rarely_as_promised():
    """Three groups through `certify`; the worst pair is the rarest and the most frequent."""
    rng, rates, draws = np.random.default_rng(0), np.array([0.02, 0.04, 0.15]), 1000
    missed = [
        certify((rng.random(240) < rates[S]) * 1, sensitive_features=S).total_variation < 0.13 for _ in range(draws)
    ]
    assert sum(missed) <= binom.isf(1e-3, draws, 0.05)
