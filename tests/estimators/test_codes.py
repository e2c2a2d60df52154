"""What the methods with a stochastic code promise."""

import numpy as np
import pytest
import torch
from battery import CODES, problem, quick

from fairbits.datasets import make_xor
from fairbits.estimators import BinaryBernoulliClassifier, BinaryMIClassifier, fit_stack
from fairbits.information import joint_information, weigh_groups
from fairbits.training import Batch


@pytest.mark.parametrize("cls", CODES)
def test_a_larger_gamma_leaks_less(cls):
    X, y, s = problem(1000)
    models = [quick(cls, gamma=g, max_epochs=40) for g in (0.0, 0.9)]
    fit_stack(models, X, y, sensitive_features=s)
    free, strict = (m.information(X, sensitive_features=s) for m in models)
    assert strict < free / 3, "is the leakage in bits, on the scale of I(T;S)? See docs/extending.md"


@pytest.mark.parametrize("cls", CODES)
def test_information_is_that_of_the_layer(cls):
    X, y, s = problem()
    model = quick(cls).fit(X, y, sensitive_features=s)
    theta = torch.from_numpy(model.code_probabilities(X))
    expected = joint_information(theta, torch.from_numpy(s)).item()
    assert model.information(X, sensitive_features=s) == pytest.approx(expected, rel=1e-9)


def test_joint_penalty_sees_what_the_sum_does_not():
    """S is the parity of two inputs that both carry the label: bits that are clean one by one still tell S."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, (2, 1500))
    s, y = a ^ b, (a + b + rng.normal(scale=0.3, size=1500) > 0.8).astype(int)
    X = np.column_stack([2 * a - 1, 2 * b - 1]) + rng.normal(scale=0.1, size=(1500, 2))
    settings = {"gamma": 0.7, "code_size": 4, "max_epochs": 12, "min_steps": 0, "learning_rate": 0.01}
    leaks = [
        quick(cls, **settings).fit(X, y, sensitive_features=s).information(X, sensitive_features=s)
        for cls in (BinaryBernoulliClassifier, BinaryMIClassifier)
    ]
    assert leaks[1] < leaks[0] / 2


@pytest.mark.parametrize(
    ("code_size", "steps", "rate"),
    [
        *(pytest.param(size, 200, 0.001, marks=pytest.mark.slow) for size in (12, 10)),
        (14, 40, 0.01),
        (20, 40, 0.01),
    ],
)
def test_every_width_of_the_joint_penalty_trains(code_size, steps, rate):
    """Running tables, plain exact tables and the estimate for wide codes."""
    X, y, s = problem()
    settings = {"code_size": code_size, "min_steps": steps, "learning_rate": rate}
    models = [quick(BinaryMIClassifier, gamma=gamma, **settings) for gamma in (0.8, 0.0)]
    fit_stack(models, X, y, sensitive_features=s)
    strict, free = (m.information(X, sensitive_features=s) for m in models)
    assert strict < 0.5 * free


@pytest.mark.parametrize("cls", CODES)
def test_conditioning_on_the_label_keeps_what_follows_from_the_label(cls):
    """S depends on Y alone: I(T;S|Y) can be 0 with a perfect prediction, I(T;S) cannot."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 2000)
    s = (rng.random(2000) < 0.1 + 0.8 * y).astype(int)
    X = np.column_stack([2 * y, rng.normal(size=2000)]) + rng.normal(scale=0.3, size=(2000, 2))
    settings = {"gamma": 0.7, "max_epochs": 8, "min_steps": 0, "learning_rate": 0.004}
    kept = quick(cls, condition_on_label=True, **settings).fit(X, y, sensitive_features=s)
    lost = quick(cls, **settings).fit(X, y, sensitive_features=s)
    assert kept.information(X, sensitive_features=s) > 2 * lost.information(X, sensitive_features=s)
    assert kept.information(X, sensitive_features=s, y=y) < 0.02


@pytest.mark.parametrize("cls", CODES)
def test_leakage_within_labels_is_their_mean_by_share(cls):
    X, y, s = problem(n_classes=3)
    y = np.where(y == 2, 1, y)  # two labels, 1 : 2
    model = quick(cls, condition_on_label=True).fit(X, y, sensitive_features=s)
    x, labels, groups = torch.tensor(X, dtype=torch.float32), torch.tensor(y), torch.tensor(s)
    weight = torch.full((600,), 1 / 600)
    batch = Batch(
        x, labels, groups[:, None], weight, torch.rand(600, 8), model.prepare(labels, groups[:, None], weight)
    )
    measured = model.evaluate(model.net_, batch, {"gamma": torch.tensor(0.3)})["information"].item()
    theta, expected = model.net_.theta(x), 0.0
    for label in (0, 1):
        rows = labels == label
        cell = weigh_groups(groups[rows], n_groups=2)
        leak = model.leakage(theta[rows], cell, noise=batch.noise[rows]) - model.leakage_bias(theta[rows], cell)
        expected += rows.float().mean().item() * leak.item()
    assert measured == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("cls", CODES)
def test_draws_are_fresh_unless_seeded(cls):
    X, y, s = problem()
    model = quick(cls, gamma=0.5).fit(X, y, sensitive_features=s)
    np.testing.assert_array_equal(model.transform(X), model.transform(X))
    model.random_state = None
    assert not np.array_equal(model.transform(X), model.transform(X))
    X, model.random_state = problem(seed=1)[0], 0  # of 4,800 means of fresh draws one would be far off in 400 runs
    theta = model.code_probabilities(X)
    mean = model.draw(X, draws=400).reshape(len(theta), 400, -1).mean(1)
    assert np.abs(mean - theta).max() < 5 * np.sqrt(0.25 / 400)


def test_expected_predictions_are_deterministic_and_sampled_ones_average_to_them():
    X, y, s = problem()
    model = quick(BinaryBernoulliClassifier, code_size=4).fit(X, y, sensitive_features=s)
    expected = model.predict_proba(X)
    np.testing.assert_array_equal(expected, model.predict_proba(X))
    np.testing.assert_allclose(expected[::-1], model.predict_proba(X[::-1]), atol=1e-12)
    model.random_state, model.prediction = None, "sampled"
    mean = np.mean([model.sampled_proba(X) for _ in range(1000)], axis=0)
    assert np.abs(mean - expected).max() < 0.08


@pytest.mark.parametrize("prediction", ["expected", "sampled"])
def test_the_papers_rule_chooses_the_epoch_by_what_will_be_predicted(prediction):
    X, y, s = problem()
    model = quick(BinaryBernoulliClassifier, code_size=4, selection="paper", prediction=prediction)
    model.fit(X, y, sensitive_features=s)
    x, noise = torch.from_numpy(X.astype(np.float32)), torch.rand(len(X), 4, generator=torch.Generator().manual_seed(0))
    labels, groups, weight = torch.from_numpy(y), torch.from_numpy(s)[:, None], torch.full((len(X),), 1 / len(X))
    batch = Batch(x, labels, groups, weight, noise, model.prepare(labels, groups, weight))
    with torch.no_grad():
        seen = model.evaluate(model.net_, batch, {"gamma": torch.tensor(0.1)})["probabilities"]
    drawn = model.decode((noise.numpy() < model.code_probabilities(X)).astype(np.uint8))
    predicted = model.predict_proba(X) if prediction == "expected" else drawn
    np.testing.assert_allclose(seen, predicted, atol=1e-6)


def test_the_noise_floor_bounds_every_bit():
    X, y, s = problem()
    theta = quick(BinaryBernoulliClassifier, noise_floor=0.2).fit(X, y, sensitive_features=s).code_probabilities(X)
    assert 0.2 <= theta.min() <= theta.max() <= 0.8


def test_a_fully_binary_network_learns():
    X, y, s = problem()
    model = quick(BinaryBernoulliClassifier, binary=True, max_epochs=30, min_steps=300, hidden_sizes=(64,))
    assert model.fit(X, y, sensitive_features=s).score(X, y) > 0.7


def test_the_xor_population_fools_the_sum_only():
    data = make_xor(4000, w=5.0, random_state=0)
    theta, groups = torch.tensor(data.theta), torch.tensor(data.groups)
    assert joint_information(theta, groups).item() == pytest.approx(data.information, abs=0.05)
    assert data.neuronwise_information == pytest.approx(0)
