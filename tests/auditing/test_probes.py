"""Probes against populations whose leakage is known, and their intervals against the pair by pair definition."""

import math
import pickle

import numpy as np
import pytest
from battery import one_quickly
from scipy.stats import binomtest, norm, rankdata
from sklearn.metrics import roc_auc_score

from fairbits.auditing.probes import (
    FULL,
    QUICK,
    _posterior,
    auc_interval,
    balanced_accuracy_interval,
    halves,
    macro_auc,
    one_vs_rest,
    run_probes,
    score_intervals,
)
from fairbits.datasets import make_independent, make_shifted_bits, make_xor

NAMES = {"view": "one draw", "column": "sex"}


def binary_scores(score):
    return np.column_stack([-score, score])


def softmax_scores(rng, s, signal=1.0):
    raw = np.exp(signal * np.eye(s.max() + 1)[s] + rng.normal(size=(len(s), s.max() + 1)))
    return raw / raw.sum(1, keepdims=True)


def global_state():
    return pickle.dumps(np.random.get_state())  # noqa: NPY002


def delong_variance(score, s):
    """DeLong's variance of the AUC of two groups, pair by pair."""
    below = np.subtract.outer(score[s == 1], score[s == 0])
    right = (below > 0) + (below == 0) / 2
    return right.mean(1).var(ddof=1) / len(right) + right.mean(0).var(ddof=1) / right.shape[1]


@pytest.mark.parametrize("decimals", [1, 9], ids=["ties", "no ties"])
def test_auc_is_that_of_scikit_learn(decimals):
    rng = np.random.default_rng(0)
    two, three = rng.choice(2, 500, p=[0.9, 0.1]), rng.choice(3, 500, p=[0.6, 0.3, 0.1])
    posterior = softmax_scores(rng, two)[:, 1].round(decimals)
    found = macro_auc(rankdata(one_vs_rest(np.column_stack([1 - posterior, posterior])), axis=0), two)
    assert found == pytest.approx(roc_auc_score(two, posterior), abs=1e-12)
    posterior = softmax_scores(rng, three).round(decimals)
    one_by_one = [roc_auc_score(three == k, posterior[:, k]) for k in range(3)]
    assert macro_auc(rankdata(posterior, axis=0), three) == pytest.approx(np.mean(one_by_one), abs=1e-12)


@pytest.mark.parametrize("decimals", [0, 9], ids=["ties", "no ties"])
def test_the_auc_interval_of_two_groups_is_that_of_delong_and_never_narrower(decimals):
    rng = np.random.default_rng(1)
    s = np.repeat([0, 1], [1500, 400])
    score = (rng.normal(size=1900) * (1 + s) + s).round(decimals)
    low, high = auc_interval(binary_scores(score), s, 0.9)
    width = 2 * norm.ppf(0.95) * math.sqrt(delong_variance(score, s))
    assert width <= high - low <= 1.01 * width
    assert (low + high) / 2 == pytest.approx(roc_auc_score(s, score))


def test_the_auc_interval_of_three_groups_is_as_wide_as_the_bootstrap_says():
    rng = np.random.default_rng(2)
    s = rng.choice(3, 1500, p=[0.6, 0.3, 0.1])
    scores = softmax_scores(rng, s) * [1, 2, 3]
    low, high = auc_interval(scores, s, 0.95)
    draws = rng.integers(0, 1500, (800, 1500))
    spread = np.std([macro_auc(rankdata(scores[rows], axis=0), s[rows]) for rows in draws])
    assert (high - low) / 2 / norm.ppf(0.975) == pytest.approx(spread, rel=0.1)


@pytest.mark.parametrize(("rows", "most"), [((900, 600), 0.98), ((40, 12), 1.0)], ids=["many rows", "few rows"])
@pytest.mark.parametrize("auc", one_quickly([0.8, 0.5, 0.95]))
def test_the_auc_interval_covers_the_truth(rows, auc, most):
    rng = np.random.default_rng(3)
    s = np.repeat([0, 1], rows)
    draws = rng.normal(size=(400, len(s))) + math.sqrt(2) * norm.ppf(auc) * s
    ends = np.array([auc_interval(binary_scores(score), s, 0.95) for score in draws])
    assert 0.93 <= np.mean((ends[:, 0] <= auc) & (auc <= ends[:, 1])) <= most
    assert ends.min() >= 0
    assert ends.max() <= 1


def test_perfect_probes_have_intervals_of_some_width():
    s = np.repeat([0, 1], 30)
    low, high = auc_interval(binary_scores(s), s, 0.95)
    assert 0.8 < low < 0.97
    assert high == 1
    assert auc_interval(binary_scores(-s), s, 0.95) == (0, pytest.approx(1 - low))
    low, high = balanced_accuracy_interval(np.array([30, 0]), np.array([30, 30]), 0.95)
    assert low < 0.48 < 0.52 < high


@pytest.mark.parametrize("rates", [(0.5, 0.6), (0.99, 0.2), (0.9, 0.8, 0.3)])
def test_the_balanced_accuracy_interval_covers_the_truth(rates):
    counts = np.array([400, 60, 25][: len(rates)])
    drawn = np.random.default_rng(4).binomial(counts, rates, (3000, len(rates)))
    hits, times = np.unique(drawn, axis=0, return_counts=True)
    ends = np.array([balanced_accuracy_interval(row, counts, 0.95) for row in hits])
    covered = (ends[:, 0] <= np.mean(rates)) & (np.mean(rates) <= ends[:, 1])
    assert 0.94 <= np.average(covered, weights=times) <= 0.975


def test_what_is_proved_exceeds_the_truth_in_at_most_five_percent():
    # With one bit there is one rule better than guessing, so a probe that finds it reaches exactly the best accuracy.
    proved, reached = np.empty((2, 100))
    for seed in range(100):
        data = make_shifted_bits(400, delta=0.5, n_bits=1, prior=[0.7, 0.3], random_state=seed)
        (found,) = run_probes(data.X[:, :1], data.groups, **NAMES, models=["logistic"], n_permutations=1)
        proved[seed], reached[seed] = found.proved_balanced_accuracy, found.balanced_accuracy
    best = (1 + data.total_variation) / 2
    assert np.mean(reached > best) > 0.3
    assert np.mean(proved > best) <= 0.05
    assert np.mean(proved > 0.5) > 0.9
    assert np.mean(reached - proved) == pytest.approx(math.sqrt((1 / 140 + 1 / 60) * math.log(20) / 8), rel=0.05)


def test_more_probes_prove_less_each():
    data = make_shifted_bits(400, delta=0.5, random_state=0)
    alone, together = (
        run_probes(data.X, data.groups, **NAMES, models=models, n_permutations=1)[0] for models in (QUICK[:1], QUICK)
    )
    assert alone.balanced_accuracy == together.balanced_accuracy
    slack = [found.balanced_accuracy - found.proved_balanced_accuracy for found in (alone, together)]
    assert slack[1] / slack[0] == pytest.approx(math.sqrt(math.log(40) / math.log(20)))


@pytest.mark.parametrize("model", ["logistic", "boosting"])
def test_a_rare_group_is_not_drowned(model):
    data = make_shifted_bits(8000, delta=0.4, n_bits=4, prior=[0.95, 0.05], random_state=5)
    (found,) = run_probes(data.draw_codes(5), data.groups, **NAMES, models=[model])
    best = (1 + data.total_variation) / 2
    assert found.balanced_accuracy == pytest.approx(best, abs=0.05)
    assert found.proved_balanced_accuracy < best


@pytest.mark.parametrize("models", one_quickly([QUICK, FULL]))
def test_no_bit_tells_but_all_but_the_linear_probe_find_the_xor(models):
    data = make_xor(1000, w=8.0, random_state=6)
    found = run_probes(data.draw_codes(6), data.groups, **NAMES, models=models)
    assert [result.model for result in found] == list(models)
    for result in found:
        if result.model == "logistic":
            assert result.auc_high < 0.6
        else:
            assert result.auc > 0.9
            assert result.p_value == pytest.approx(1 / 201)
            assert result.permuted_auc_high < 0.56


@pytest.mark.parametrize("model", one_quickly(QUICK))
def test_p_values_of_independent_groups_are_uniform(model):
    results = []
    for seed in range(30):
        data = make_independent(160, n_bits=2, random_state=seed)
        results += run_probes(data.theta, data.groups, **NAMES, models=[model], random_state=seed)
    p = np.array([result.p_value for result in results])
    assert np.mean(p <= 0.05) <= 0.15
    assert np.mean(p) == pytest.approx(0.5, abs=0.12)
    for score in ("permuted_auc", "shuffled_auc"):
        assert np.mean([getattr(result, score) for result in results]) == pytest.approx(0.5, abs=0.03)
    assert np.mean([result.auc < result.permuted_auc_high for result in results]) > 0.85


def test_training_on_shuffled_groups_forgets_them():
    rng = np.random.default_rng(7)
    s = rng.integers(0, 2, 4000)
    for result in run_probes(rng.normal(size=(4000, 40)) + 0.3 * s[:, None], s, **NAMES):
        assert result.auc > 0.85
        assert result.shuffled_auc == pytest.approx(0.5, abs=0.15)


@pytest.mark.parametrize("sizes", [(60, 30, 2), (60, 2)])
def test_probes_take_tiny_groups_and_constant_columns(sizes):
    rng = np.random.default_rng(8)
    s = np.repeat(np.arange(len(sizes)), sizes)
    Z = np.column_stack([s + rng.normal(size=len(s)), np.ones(len(s))])
    models = [model for model in FULL if model != "forest"]  # slow, and indifferent to tiny groups
    for result in run_probes(Z, s, **NAMES, models=models, n_permutations=20):
        assert result.rows == len(s) / 2
        assert 0 <= result.auc_low < result.auc <= result.auc_high <= 1
        assert 0 <= result.balanced_accuracy_low < result.balanced_accuracy_high <= 1
        assert result.proved_balanced_accuracy == pytest.approx(1 / len(sizes))


@pytest.mark.parametrize("model", ["logistic", "mlp"])
@pytest.mark.parametrize("width", [8, 64])
def test_equal_rows_are_tied(model, width):
    # A product of matrices may round equal rows differently, which would make up an order.
    rng = np.random.default_rng(0)
    Z, s = rng.normal(size=(7, width))[rng.integers(0, 7, 1003)], rng.integers(0, 2, 1003)
    assert len(np.unique(_posterior(model, 0, Z, s, Z)[:, 1])) <= 7


@pytest.mark.parametrize("model", ["logistic", "boosting", "mlp", "neighbours"])
def test_a_constant_tells_nothing(model):
    s = np.repeat([0, 1], [300, 60])
    (found,) = run_probes(np.full((360, 3), 0.1), s, **NAMES, models=[model])
    assert found.auc == found.permuted_auc == found.shuffled_auc == 0.5
    assert found.p_value == 1
    assert found.balanced_accuracy == found.proved_balanced_accuracy == 0.5


def test_the_seed_alone_decides_and_no_probe_depends_on_another():
    data = make_shifted_bits(300, random_state=9)
    before = global_state()
    models = ["boosting", "mlp", "logistic"]
    results = run_probes(data.X, data.groups, **NAMES, models=models, random_state=1)
    again = run_probes(data.X, data.groups, **NAMES, models=models[::-1], random_state=1)
    assert results == again[::-1]
    assert results != run_probes(data.X, data.groups, **NAMES, models=models, random_state=2)
    assert global_state() == before


def test_halves_share_every_group():
    s = np.random.default_rng(10).permutation(np.repeat([0, 1, 2, 3], [101, 30, 3, 2]))
    assert np.bincount(s[halves(s, 0)]).tolist() == [50, 15, 1, 1]
    assert (halves(s, 0) != halves(s, 1)).any()


def test_bad_arguments_are_named():
    Z, s = np.zeros((6, 1)), np.array([0, 0, 0, 1, 1, 2])
    with pytest.raises(ValueError, match=r"\{2: 1\}.*Merge"):
        run_probes(Z, s, **NAMES)
    with pytest.raises(ValueError, match="All rows are of group 0"):
        run_probes(Z, 0 * s, **NAMES)
    with pytest.raises(ValueError, match=r"numbers 0..K-1.*<U1"):
        run_probes(Z, np.array(list("ffmmff")), **NAMES)
    with pytest.raises(ValueError, match=r"6 rows and groups has 5"):
        run_probes(Z, s[:5], **NAMES)
    with pytest.raises(ValueError, match=r"models='logistic'.*neighbours"):
        run_probes(Z, np.tile([0, 1], 3), **NAMES, models="logistic")
    with pytest.raises(ValueError, match="confidence=95"):
        run_probes(Z, np.tile([0, 1], 3), **NAMES, confidence=95)


@pytest.mark.parametrize("right", [0, 37, 50])
def test_the_accuracy_has_an_exact_interval(right):
    labels = np.arange(50) % 2
    said = np.where(np.arange(50) < right, labels, 1 - labels)
    found = score_intervals(np.eye(2)[said], labels, 0.9)["accuracy"]
    assert found == pytest.approx(tuple(binomtest(right, 50).proportion_ci(0.9, "exact")), abs=1e-12)


def test_the_auc_is_within_its_interval_as_often_as_it_says():
    rng, truth, missed = np.random.default_rng(0), norm.cdf(1 / np.sqrt(2)), 0
    for _ in range(400):
        labels = (rng.random(120) < 0.4).astype(int)
        score = 1 / (1 + np.exp(-rng.normal(size=120) - labels))
        low, high = score_intervals(np.column_stack([1 - score, score]), labels, 0.9)["auc"]
        missed += not low <= truth <= high
    assert 0.05 < missed / 400 < 0.13


def test_three_classes_and_one_that_is_not_there():
    rng = np.random.default_rng(0)
    probabilities, labels = rng.dirichlet([1, 1, 1], 90), np.arange(90) % 3
    assert set(score_intervals(probabilities, labels, 0.95)) == {"accuracy", "auc"}
    assert set(score_intervals(probabilities, labels % 2, 0.95)) == {"accuracy"}
