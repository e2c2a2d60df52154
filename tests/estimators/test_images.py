"""Images in, and what helps when the group almost determines the label."""

import numpy as np
import pytest
import torch
from battery import few_trees, one_quickly, quick
from sklearn.base import clone

from fairbits import (
    BiasBalancedClassifier,
    BinaryBernoulliClassifier,
    DebiasedBernoulliClassifier,
    DebiasedMIClassifier,
    ExactCodeClassifier,
    VanillaClassifier,
    audit,
)
from fairbits.datasets import biased_digits
from fairbits.encoding import GroupEncoder
from fairbits.estimators import fit_stack
from fairbits.estimators.debiased import independence_ratio, log_label_shares
from fairbits.nn import feature_layers
from fairbits.training.batches import BalancedBatches, MixedBatches, StratifiedBatches, joint_groups

SETTINGS = {"channels": (8, 16), "max_epochs": 10, "hidden_sizes": (), "random_state": 0, "code_size": 16}
LONGER = {**SETTINGS, "min_steps": 150, "learning_rate": 0.005}


@pytest.fixture(scope="module")
def digits():
    return biased_digits(0.9, "train"), biased_digits(0.1, "test")


def test_bytes_stay_bytes_and_are_not_modified(digits):
    train, _ = digits
    before = train.X.copy()
    model = quick(VanillaClassifier, channels=(4,)).fit(train.X, train.y)
    assert model.input_dtype_ == "uint8"
    np.testing.assert_array_equal(train.X, before)
    assert model.n_features_in_ == 3
    assert model.transform(train.X[:7]).shape == (7, 16)


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 28, 28), (2, 1, 5)])
@pytest.mark.parametrize("binary", [False, True])
def test_features_have_the_width_they_say(shape, binary):
    layers, width = feature_layers(shape, (4, 6), (), binary=binary)
    assert layers(torch.rand(3, *shape)).shape == (3, width)


def test_evaluation_in_parts_is_evaluation():
    layers, _ = feature_layers((1, 6, 6), (4,), ())
    layers.eval()
    x = torch.rand(1300, 1, 6, 6)
    torch.testing.assert_close(layers(x), layers[0]._features(x))


def test_a_stack_of_images_trains(digits):
    train, test = digits
    models = [
        quick(VanillaClassifier, channels=(8,), max_epochs=2, min_steps=0, hidden_sizes=(64,), random_state=i)
        for i in range(2)
    ]
    fit_stack(models, train.X, train.y)
    alone = clone(models[1]).fit(train.X, train.y)
    np.testing.assert_allclose(models[1].predict_proba(test.X), alone.predict_proba(test.X), atol=1e-4)


@pytest.mark.parametrize("cls", one_quickly([DebiasedBernoulliClassifier, DebiasedMIClassifier]))
@pytest.mark.parametrize("rebalance", ["prior+independent", "prior+balanced", "independent", "balanced"])
def test_codes_of_images_with_every_option(cls, rebalance, digits):
    train, test = digits
    model = quick(cls, **SETTINGS | {"max_epochs": 1, "min_steps": 0, "rebalance": rebalance})
    model.fit(train.X, train.y, sensitive_features=train.s)
    assert np.isfinite(model.history_[-1]["total"])
    assert model.transform(test.X).shape == (600, 16)


def test_the_prior_correction_unlearns_the_colour(digits):
    """With the colour as good a guess as the digit, the plain loss follows it; the corrected one does not."""
    train, test = digits
    accuracy = {}
    for corrected in (False, True):
        rebalance = "prior" if corrected else "none"
        model = quick(DebiasedBernoulliClassifier, gamma=0.0, rebalance=rebalance, **LONGER)
        model.fit(train.X, train.y, sensitive_features=train.s)
        accuracy[corrected] = (model.predict(test.X) == test.y).mean()
    assert accuracy[True] > accuracy[False] + 0.1


@pytest.mark.slow
def test_a_balanced_penalty_lowers_the_leakage_where_colour_and_digit_are_independent(digits):
    train, test = digits
    information = [
        quick(DebiasedBernoulliClassifier, gamma=gamma, rebalance="prior+balanced", **LONGER)
        .fit(train.X, train.y, sensitive_features=train.s)
        .information(test.X, sensitive_features=test.s)
        for gamma in (0.0, 0.3)
    ]
    assert information[1] < 0.7 * information[0]


def test_an_exact_code_of_images_keeps_its_limit(digits):
    """Nine digits of ten wear their own colour, so without a limit the code shows the half of the colours it is in."""
    train, test = digits
    halves, apart = train.s >= 5, {}
    for limit in (0.1, 1.0):
        model = quick(ExactCodeClassifier, limit=limit, **SETTINGS | {"min_steps": 150, "code_size": 4})
        model.fit(train.X, train.y, sensitive_features=halves)
        codes = model.transform(train.X)
        np.testing.assert_array_equal(codes, model.transform(train.X))  # nothing is drawn
        words = codes @ 2 ** np.arange(4)
        decided = [len(np.unique(model.predict(train.X)[words == word])) for word in np.unique(words)]
        assert set(decided) == {1}  # the class is read off the code
        laws = [np.bincount(words[halves == half], minlength=16) / np.sum(halves == half) for half in (True, False)]
        apart[limit] = np.abs(laws[0] - laws[1]).sum() / 2
        assert model.transform(test.X).shape == (600, 4)
    assert apart[0.1] < 0.25
    assert apart[1.0] > 0.6


def test_an_audit_of_images(digits):
    train, test = digits
    halves = [part.s >= 5 for part in digits]  # of the colours: attacks take five times as long for all ten
    model = quick(BinaryBernoulliClassifier, channels=(4,)).fit(train.X, train.y, sensitive_features=halves[0])
    with few_trees():
        found = audit(model, test.X, test.y, sensitive_features=halves[1])
    assert found.task["auc"] > 0.5
    assert found.certificate is not None


def test_label_shares_and_independence_by_counting():
    rng = np.random.default_rng(0)
    y, s = torch.from_numpy(rng.integers(0, 3, 500)), torch.from_numpy(rng.integers(0, 2, (500, 2)))
    weight = torch.from_numpy(rng.random(500).astype(np.float32))
    shares = log_label_shares(y, s, weight, [2, 2], 3).exp()
    cell = joint_groups(s, [2, 2])
    for c in range(4):
        mass = torch.stack([weight[(cell == c) & (y == label)].sum() for label in range(3)]) + 1 / 3
        torch.testing.assert_close(shares[c], mass / mass.sum())
    ratio = independence_ratio(y, s[:, 0], weight, 3, 2)
    balanced = weight * ratio[y, s[:, 0]]
    joint = torch.zeros(3, 2).index_put_((y, s[:, 0]), balanced / balanced.sum(), accumulate=True)
    torch.testing.assert_close(joint, joint.sum(1, keepdim=True) * joint.sum(0), atol=1e-6, rtol=0)


def test_balanced_batches_draw_every_cell_alike():
    cells = torch.tensor([0] * 900 + [1] * 90 + [2] * 10)
    rows = BalancedBatches(cells, 300, 100).epoch(torch.Generator().manual_seed(0))
    counts = cells[rows].flatten().bincount() / rows.numel()
    assert (counts - 1 / 3).abs().max() < 0.01
    assert len(rows.unique()) > 990


def test_contradictory_options_are_refused(digits):
    train, _ = digits
    with pytest.raises(ValueError, match="Choose one"):
        quick(DebiasedBernoulliClassifier, condition_on_label=True, rebalance="balanced").fit(
            train.X, train.y, sensitive_features=train.s
        )


def test_without_rebalancing_it_is_the_method_itself(digits):
    train, test = digits
    plain = quick(BinaryBernoulliClassifier, channels=(4,)).fit(train.X, train.y, sensitive_features=train.s)
    same = quick(DebiasedBernoulliClassifier, channels=(4,), rebalance="none")
    same.fit(train.X, train.y, sensitive_features=train.s)
    np.testing.assert_array_equal(same.predict_proba(test.X), plain.predict_proba(test.X))


@pytest.mark.parametrize("cls", [BiasBalancedClassifier, DebiasedBernoulliClassifier])
@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_the_prior_is_that_of_the_rows_really_drawn(cls, share, digits):
    """Against counts over many epochs of batches; only digits that have all colours, so that no cell is empty."""
    train, _ = digits
    few = (train.y < 3) & (train.s < 3)
    X, y, s = train.X[few], train.y[few], train.s[few]
    settings = {"max_epochs": 1, "min_steps": 0, "channels": (4,), "validation_fraction": 0.0, "batch_size": 64}
    model = quick(cls, **settings, cell_share=share, groups=GroupEncoder(min_group_size=1))
    fit_stack([model], X, y, sensitive_features=s)
    cells = torch.from_numpy(3 * y + s)
    batches = MixedBatches(StratifiedBatches(torch.from_numpy(s), 64), cells, share)
    generator = torch.Generator().manual_seed(0)
    drawn = torch.stack([batches.epoch(generator)[batches._batches.mask > 0] for _ in range(400)])
    counts = cells[drawn].flatten().bincount(minlength=9).view(3, 3).T / 400 + 1 / 3  # one row's worth for each group
    expected = (counts / counts.sum(1, keepdim=True)).log()
    torch.testing.assert_close(model.net_.log_prior, expected, atol=0.02, rtol=0.02)
