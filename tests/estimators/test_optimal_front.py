"""The optimal front: against brute force, above every code, and the laws that a front keeps."""

from itertools import combinations, product

import numpy as np
import pytest
from battery import one_quickly
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from fairbits import InputError
from fairbits.estimators import decision_rule
from fairbits.estimators.optimal_front import (
    constrained_law,
    optimal_codes,
    optimal_front,
    word_auc,
    word_information,
)


def posteriors(n, classes=2, groups=2, seed=0):
    """Return p(y|x) (n, C) and p(s|x) (n, K) of n different x, of equal mass."""
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(classes), n), rng.dirichlet(np.ones(groups), n)


def measured(law, p_label, p_group):
    """Return I(T;Y) in bits and the largest total variation between groups of a code q(t|x), (n, words)."""
    of_group = p_group.T @ law / p_group.sum(0)[:, None]
    apart = max(np.abs(a - b).sum() / 2 for a, b in combinations(of_group, 2))
    return word_information(law.T @ p_label / len(law)), apart


def vertices(p_group, limit):
    """Yield the chances of the second of two words at all vertices of the codes within a limit, two groups.

    I(T;Y) is convex in the code, so its maximum is at a vertex: at most one x is random, and then the limit is met.
    """
    a, b = p_group.T / p_group.sum(0)[:, None]
    for bits in product((0.0, 1.0), repeat=len(a)):
        chance = np.array(bits)
        if abs((a - b) @ chance) <= limit + 1e-12:
            yield chance
        for x, total in product(np.flatnonzero(chance == 0), (-limit, limit)):
            some = (total - (a - b) @ chance) / (a - b)[x]
            if 0 <= some <= 1:
                yield np.where(np.arange(len(a)) == x, some, chance)


@pytest.mark.parametrize("seed", one_quickly([2, 0, 1, 3]))  # the limits bind in the first
def test_two_words_against_brute_force(seed):
    p_label, p_group = posteriors(6, seed=seed)
    for limit in (0.0, 0.05, 0.2):
        codes = (np.column_stack([1 - chance, chance]) for chance in vertices(p_group, limit))
        truth = max(measured(code, p_label, p_group)[0] for code in codes)
        (found,) = optimal_codes(p_label, p_group, limit, n_words=2, starts=12)
        assert found.information == pytest.approx(truth, abs=1e-6)


@pytest.mark.parametrize(
    ("classes", "groups"),
    [(2, 3), *(pytest.param(*shape, marks=pytest.mark.slow) for shape in ((3, 2), (2, 2), (4, 4)))],
)
def test_no_other_code_is_above_the_front(classes, groups):
    p_label, p_group = posteriors(30, classes, groups)
    rng = np.random.default_rng(1)
    soft = [rng.dirichlet(np.full(4, 0.2), 30) for _ in range(5)]
    hard = [np.eye(4)[rng.integers(0, 4, 30)] for _ in range(5)]
    of_label = [np.eye(classes)[(p_label * rng.random(classes)).argmax(1)] for _ in range(5)]
    points = [measured(law, p_label, p_group) for law in (*soft, *hard, *of_label)]
    front = optimal_front(p_label, p_group, [apart for _, apart in points], starts=1)
    assert (front["information"] >= [information - 1e-9 for information, _ in points]).all()


@pytest.mark.parametrize(("classes", "groups"), [(2, 4), (3, 2), pytest.param(2, 2, marks=pytest.mark.slow)])
def test_the_measures_are_those_of_the_code(classes, groups):
    p_label, p_group = posteriors(60, classes, groups)
    for code in optimal_codes(p_label, p_group, [0.0, 0.05, 0.5], n_words=5):
        law = code.word_probabilities(p_label, p_group)
        np.testing.assert_allclose(law.sum(1), 1)
        np.testing.assert_allclose([code.information, code.total_variation], measured(law, p_label, p_group), atol=1e-9)
        assert code.total_variation <= code.limit + 1e-6
        assert code.accuracy == pytest.approx((law.T @ p_label / 60).max(1).sum())


@pytest.mark.parametrize("seed", one_quickly([7, 9, 11]))  # where a single start alone goes up and down
def test_the_front_never_falls(seed):
    p_label, p_group = posteriors(15, classes=3, seed=seed)
    limits = np.linspace(0.4, 0, 15)
    front = optimal_front(p_label, p_group, limits, n_words=3, rounds=2, starts=1)
    assert front["limit"].tolist() == limits.tolist()
    assert (np.diff(front["information"]) <= 0).all()


@given(st.integers(0, 10_000))
@settings(max_examples=10, deadline=None)
def test_the_front_is_between_nothing_and_the_posterior(seed):
    p_label, p_group = posteriors(12, seed=seed)
    front = optimal_front(p_label, p_group, [0.0, 0.1, 1.0], n_words=3, starts=1)
    assert (front["information"] >= -1e-9).all()
    assert (front["information"] <= word_information(p_label / 12) + 1e-9).all()
    assert (front["auc"] >= 0.5 - 1e-9).all()
    assert (front["accuracy"] <= p_label.max(1).mean() + 1e-9).all()


@pytest.mark.parametrize(("classes", "groups"), [(2, 2), (3, 3)])
def test_without_a_limit_it_is_the_information_of_the_posterior(classes, groups):
    p_label, p_group = posteriors(20, classes, groups)
    front = optimal_front(p_label, p_group, 1.0, n_words=20, starts=1)
    assert front["information"].item() == pytest.approx(word_information(p_label / 20), abs=1e-9)
    assert front["accuracy"].item() == pytest.approx(p_label.max(1).mean())


def test_groups_that_are_not_in_x_cost_nothing():
    p_label, _ = posteriors(20)
    nobody = np.full((20, 3), [0.5, 0.3, 0.2])
    front = optimal_front(p_label, nobody, [0, 1], n_words=20)
    np.testing.assert_allclose(front["information"], word_information(p_label / 20), atol=1e-9)


def test_many_rows_are_few_cells():
    """A smooth population: the front of 64 cells is close to that of 256."""
    rng = np.random.default_rng(0)
    label, group = rng.beta(1, 2, 4_000), rng.beta(2, 2, 4_000)
    p_label, p_group = (np.column_stack([1 - p, p]) for p in (label, (group + label) / 2))
    limits = [0.02, 0.1]
    coarse, fine = (optimal_front(p_label, p_group, limits, bins=bins, starts=1) for bins in (8, 16))
    np.testing.assert_allclose(coarse["information"], fine["information"], rtol=0.05)
    assert len(optimal_codes(p_label, p_group, 0.1, bins=8, starts=1)[0].centres) == 64


def test_prices_are_those_of_the_rule():
    """The words of the best law have the largest gain less price."""
    p_label, p_group = posteriors(200)
    gain, group = p_label / 200, (p_group / p_group.sum(0)).T
    law, prices = constrained_law(gain, group, 0.05)
    margin = gain - group.T @ prices
    assert (margin.max(1) - (law * margin).sum(1)).max() < 1e-9
    assert ((law > 0) & (law < 1)).any(1).sum() <= 1
    free, nothing = constrained_law(gain, group, 1.0)
    np.testing.assert_array_equal(free.argmax(1), p_label.argmax(1))
    np.testing.assert_allclose(nothing, 0, atol=1e-12)


def test_auc_of_words_is_scikit_learns():
    counts = np.random.default_rng(0).integers(1, 9, (5, 3))
    words, labels = (np.repeat(numbers.ravel(), counts.ravel()) for numbers in np.indices(counts.shape))
    scores = counts / counts.sum(1, keepdims=True)
    assert word_auc(counts, scores) == pytest.approx(roc_auc_score(labels, scores[words], multi_class="ovr"))
    two = labels < 2
    halves = scores[:, :2] / scores[:, :2].sum(1, keepdims=True)
    assert word_auc(counts[:, :2], halves) == pytest.approx(roc_auc_score(labels[two], halves[words[two], 1]))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"limits": 1.5}, "limits=1.5 must be numbers from 0 to 1"),
        ({"limits": [0.1, np.nan]}, "must be numbers from 0 to 1"),
        ({"n_words": 1}, "n_words=1 must be a whole number at least 2"),
        ({"p_label": np.ones(5)}, r"p_label has shape \(5,\)"),
        ({"p_group": np.full((4, 2), 0.5)}, r"p_group has shape \(4, 2\), and p_label \(5, 2\)"),
        ({"p_label": np.ones((5, 2))}, "p_label must be probabilities"),
        ({"p_group": np.eye(3)[[0, 1, 0, 1, 0]]}, "A column of p_group is 0 in all rows"),
    ],
)
def test_what_it_cannot_use_gets_a_sentence(change, sentence):
    p_label, p_group = posteriors(5)
    with pytest.raises(InputError, match=sentence):
        optimal_front(**({"p_label": p_label, "p_group": p_group, "limits": 0.1} | change))


@pytest.mark.parametrize("seed", [0, 3, 5, 8, 9, 46])
def test_a_limit_of_nothing_has_a_solution(seed):
    """Of these groups with nearly empty cells, HiGHS finds the programme infeasible if the limit is 0 exactly."""
    rng = np.random.default_rng(seed)
    cells = int(rng.integers(10, 150))
    group = rng.dirichlet(np.full(cells, 0.05), 4)
    gain = rng.random((cells, 4)) * group.mean(0)[:, None]
    law, _ = constrained_law(gain, group, 0.0)
    assert np.ptp(group @ law, axis=0).max() < 1e-5
    assert (gain * law).sum() >= gain.sum(0).max() - 1e-5, "as good as one word for all"


def test_where_the_least_limit_is_too_little_the_next_one_is_tried(monkeypatch):
    group = np.random.default_rng(0).dirichlet(np.full(95, 0.05), 4)
    gain = np.random.default_rng(1).random((95, 4)) * group.mean(0)[:, None]
    expected, _ = constrained_law(gain, group, 1e-6)
    monkeypatch.setattr(decision_rule, "LEAST_LIMITS", (-1.0, 2e-6))  # below 0 there is no solution
    law, _ = constrained_law(gain, group, -1.0)
    np.testing.assert_array_equal(law, expected)
    monkeypatch.setattr(decision_rule, "LEAST_LIMITS", (-1.0,))
    with pytest.raises(RuntimeError, match="has no solution"):
        constrained_law(gain, group, -1.0)
