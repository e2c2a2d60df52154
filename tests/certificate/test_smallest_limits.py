"""What no bound is below: against all outcomes of small groups, and against certificates of random rows."""

import numpy as np
import pytest
from scipy.stats import binom

from fairbits import certify
from fairbits.certificate.decision_rates import KINDS, equal_limit, limit_of_rates, smallest_limit
from fairbits.certificate.deviations import limit_of_difference


@pytest.mark.parametrize(("sizes", "delta"), [((1, 1), 0.05), ((2, 5), 0.2), ((5, 5), 0.05), ((3, 12), 0.01)])
def test_no_outcome_of_two_rates_has_a_smaller_limit(sizes, delta):
    rows = np.array(sizes)
    found = smallest_limit(rows, delta, "binary")
    outcomes = [np.array([x, y]) for x in range(rows[0] + 1) for y in range(rows[1] + 1)]
    least = min(limit_of_rates(counts, rows, delta)[0] for counts in outcomes)
    assert least / 2 < found <= least


def test_one_decision_for_everybody_does_not_have_the_smallest_limit():
    """A large group that is selected a little more often than none of a small one has half of it."""
    rows = np.array([300, 16_000])
    constant, other = (limit_of_rates(np.array(counts), rows, 0.05)[0] for counts in ([0, 0], [0, 60]))
    assert smallest_limit(rows, 0.05, "binary") < other < 0.6 * constant
    assert constant == equal_limit(rows, 0.05, "binary")


@pytest.mark.parametrize("sizes", [(3, 3), (17, 400), (587, 889), (40_000, 90_000)])
def test_no_difference_of_hard_values_has_a_smaller_limit(sizes):
    rows = np.array(sizes)
    found = smallest_limit(rows, 0.05, "hard")
    least = min(limit_of_difference(shown, rows, 0.05)[0] for shown in (0.0, 1e-4, 1e-3, 0.01, 0.05))
    assert 0.97 * least < found <= least


@pytest.mark.parametrize(("n", "other"), [(3, 3), (17, 60), (40, 40)])
def test_rows_often_hide_the_least_difference_of_hard_values(n, other):
    """Count it out: two binomial laws that differ so much often show no difference, so nothing smaller is proved."""
    truth = smallest_limit(np.array([n, other]), 0.05, "hard")
    hidden = np.arange(n + 1)[:, None] / n <= np.arange(other + 1) / other + 1e-12
    chances = [
        (np.outer(binom.pmf(np.arange(n + 1), n, p), binom.pmf(np.arange(other + 1), other, p - truth)) * hidden).sum()
        for p in np.linspace(truth, 1, 65)
    ]
    assert 0.05 < max(chances) < 0.055 + 0.1 / n


@pytest.mark.filterwarnings("ignore::fairbits.certificate.SmallGroupWarning")
@pytest.mark.parametrize("sizes", [(12, 25), (9, 30, 80)])
def test_no_certificate_of_random_rows_is_below(sizes):
    """Of a decision, of a code of two bits, and of people with several rows."""
    rng, groups = np.random.default_rng(0), np.repeat(np.arange(len(sizes)), sizes)
    for rate in (0.0, 0.02, 0.1, 0.5) * 3:
        code = (rng.random((len(groups), 2)) < rate).astype(int)
        code[0], code[1] = 0, 1  # a decision with one value would be one of another kind
        proofs = {
            "binary": certify(code[:, 0], sensitive_features=groups),
            "hard": certify(code, sensitive_features=groups),
            "any values": certify(code, sensitive_features=groups, person=np.arange(len(groups))),
        }
        for kind in KINDS:
            assert smallest_limit(np.array(sizes), 0.05, kind) <= proofs[kind].total_variation


@pytest.mark.parametrize("kind", KINDS)
def test_more_rows_prove_more_and_none_prove_nothing(kind):
    sizes = [np.array([n, 3 * n, 10 * n]) for n in (10, 40, 160)]
    for bound in (smallest_limit, equal_limit):
        found = [bound(rows, 0.05, kind) for rows in sizes]
        assert found == sorted(found, reverse=True)
        assert bound(np.array([0, 50]), 0.05, kind) == 1
        assert bound(np.array([10, 30]), 0.05, kind) == bound(np.array([100, 30, 10]), 0.05, kind)
