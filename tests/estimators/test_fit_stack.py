"""A replica in a stack equals its solo fit; its validation rows are a fair share of its rows."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from battery import CODES, KINDS, by_kind, problem, quick
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from fairbits import AdversarialClassifier, BinaryMIClassifier, Schedule, VanillaClassifier
from fairbits.datasets import make_shifted_bits
from fairbits.estimators import fit_stack
from fairbits.estimators.fitting import split_rows
from fairbits.training.batches import StratifiedBatches
from fairbits.training.stacks import StackAdam

SHORT = {"max_epochs": 4, "min_steps": 0, "batch_size": 128}


def variants(cls, **settings):
    """Replicas that differ in seed, learning rate and gamma."""
    settings = {**SHORT, **settings}
    models = [quick(cls, random_state=k, learning_rate=lr, **settings) for k, lr in ((0, 1e-3), (1, 3e-3), (2, 1e-2))]
    for model, gamma in zip(models, (0.0, 0.2, 0.7), strict=True):
        if cls in CODES:
            model.gamma = gamma
    return models


@pytest.mark.parametrize("cls", by_kind())
def test_stack_equals_solo(cls):
    X, y, s = problem()
    stacked, singles = (variants(cls, max_epochs=2)[1:] for _ in range(2))
    fit_stack(stacked, X, y, sensitive_features=s)
    for together, alone in zip(stacked, singles, strict=True):
        alone.fit(X, y, sensitive_features=s)
        np.testing.assert_allclose(together.predict_proba(X), alone.predict_proba(X), atol=1e-5)
        assert together.best_epoch_ == alone.best_epoch_


@pytest.mark.parametrize("cls", by_kind(kinds=(*KINDS[:3], AdversarialClassifier)))
def test_stack_of_unequal_folds_equals_solo(cls):
    """Folds of different sizes: other batch widths, other numbers of steps."""
    X, y, s = problem()
    folds = [np.arange(0, 400), np.arange(150, 600), np.arange(100, 164)]
    stacked = fit_stack(variants(cls), X, y, sensitive_features=s, rows=folds)
    for together, alone, rows in zip(stacked, variants(cls), folds, strict=True):
        fit_stack([alone], X, y, sensitive_features=s, rows=[rows])
        np.testing.assert_allclose(together.predict_proba(X), alone.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("cls", CODES)
def test_label_strata_and_wide_codes_stack_too(cls):
    X, y, s = problem()
    for extra in ({"condition_on_label": True}, {"code_size": 18}, {"groups": "each"}, {"binary": True}):
        models = [quick(cls, random_state=k, **{**SHORT, "max_epochs": 2}, **extra) for k in range(2)]
        fit_stack(models, X, y, sensitive_features=np.column_stack([s, np.arange(600) % 3]))
        alone = clone(models[1]).fit(X, y, sensitive_features=np.column_stack([s, np.arange(600) % 3]))
        np.testing.assert_allclose(models[1].predict_proba(X), alone.predict_proba(X), atol=1e-5)


def test_replicas_that_stop_early_leave_the_others_alone():
    X, y, s = problem()
    rates = (1e-6, 0.05, 1e-3)
    models = [quick(CODES[0], random_state=k, learning_rate=r, max_epochs=40, patience=2) for k, r in enumerate(rates)]
    fit_stack(models, X, y, sensitive_features=s)
    assert len({m.n_iter_ for m in models}) > 1
    for model in models:
        alone = clone(model).fit(X, y, sensitive_features=s)
        assert abs(alone.n_iter_ - model.n_iter_) <= 1
        by_epoch = {r["epoch"]: r["validation_total"] for r in model.history_}
        assert by_epoch[model.best_epoch_] == min(by_epoch.values())


def test_different_architectures_are_refused():
    X, y, s = problem()
    with pytest.raises(ValueError, match=r"hidden_sizes=\(8,\).*one stack.*gamma"):
        fit_stack([quick(CODES[0]), quick(CODES[0], hidden_sizes=(8,))], X, y, sensitive_features=s)
    with pytest.raises(ValueError, match="BinaryMIClassifier"):
        fit_stack([quick(CODES[0]), quick(CODES[1])], X, y, sensitive_features=s)


def test_progress_is_reported():
    X, y, s = problem()
    seen = []
    fit_stack([quick(CODES[0])], X, y, sensitive_features=s, on_epoch=lambda done, most: seen.append((done, most)))
    assert seen[-1][0] == seen[-1][1]
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})


def linear(model):
    return model.set_params(schedule=replace(model.training, learning_rate_decay="linear"))


@pytest.mark.parametrize("cls", [CODES[0], AdversarialClassifier])
def test_a_decaying_learning_rate_falls_to_nothing_in_every_replica(cls, monkeypatch):
    X, y, s = problem()
    folds = [np.arange(0, 400), np.arange(150, 600), np.arange(100, 164)]
    decaying, singles = ([linear(model) for model in variants(cls)] for _ in range(2))
    factors, step = [], StackAdam.step
    monkeypatch.setattr(StackAdam, "step", lambda self, *a: factors.append(self.rate_factor.ravel()) or step(self, *a))
    fit_stack(decaying, X, y, sensitive_features=s, rows=folds)
    np.testing.assert_array_equal(factors[0], 1)
    assert (factors[-1] < 0.3).all()  # less than an epoch is left, of four
    assert all(a[1] >= b[1] for a, b in pairwise(factors))  # the others, of fewer steps, wait at the end of an epoch
    for together, alone, rows in zip(decaying, singles, folds, strict=True):
        fit_stack([alone], X, y, sensitive_features=s, rows=[rows])
        np.testing.assert_allclose(together.predict_proba(X), alone.predict_proba(X), atol=1e-5)


def test_hopeless_estimators_stop_and_leave_the_others_alone():
    X, y, s = problem()
    told, models = [], variants(CODES[0])

    def hopeless(epoch, histories):
        told.append([len(history) for history in histories])
        return {1} if epoch == 1 else ()

    for model in models:
        model.set_params(batch_size=32)  # enough steps to validate after every epoch
    fit_stack(models, X, y, sensitive_features=s, hopeless=hopeless)
    assert [model.n_iter_ for model in models] == [4, 2, 4]
    assert told == [[1, 1, 1], [2, 2, 2], [3, 2, 3], [4, 2, 4]]
    for model in (models[0], models[2]):
        alone = clone(model).fit(X, y, sensitive_features=s)
        np.testing.assert_allclose(model.predict_proba(X), alone.predict_proba(X), atol=1e-5)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=200).map(torch.tensor), st.floats(0, 0.9), st.integers(0, 1000))
def test_split_is_a_partition_with_proportional_strata(groups, fraction, seed):
    train, held = split_rows(groups, fraction, torch.Generator().manual_seed(seed))
    assert sorted([*train.tolist(), *held.tolist()]) == list(range(len(groups)))
    assert len(held) == round(fraction * len(groups))
    for k in groups.unique():
        assert abs((groups[held] == k).sum() - fraction * (groups == k).sum()) <= 2


@pytest.mark.parametrize("n", [6150, 17094, 45222])
def test_the_last_held_out_row_is_one_of_the_rows(n, monkeypatch):
    """The largest uniform below 1, for which float32 rounds the last spot up to n."""
    monkeypatch.setattr(torch, "rand", lambda *shape, **_: torch.full(shape, 1 - 2.0**-24))
    train, held = split_rows(torch.zeros(n, dtype=torch.long), 0.1, torch.Generator().manual_seed(0))
    assert len(held) == round(0.1 * n)
    assert sorted([*train.tolist(), *held.tolist()]) == list(range(n))


def test_with_noise_apart_methods_that_draw_and_methods_that_do_not_see_the_same_batches(monkeypatch):
    """The law of common random numbers; without it every draw moves the batches."""
    data = make_shifted_bits(400, random_state=0)
    orders = []
    epoch = StratifiedBatches.epoch

    def watched(self, generator):
        orders.append(epoch(self, generator))
        return orders[-1]

    monkeypatch.setattr(StratifiedBatches, "epoch", watched)

    def order_of(model, noise_apart):
        orders.clear()
        fit_stack([model], data.X, data.y, sensitive_features=data.s, noise_apart=noise_apart)
        return torch.stack(orders)

    brief = {"max_epochs": 2, "schedule": Schedule(min_steps=0), "random_state": 0}
    models = [VanillaClassifier(**brief), BinaryMIClassifier(**brief, code_size=3)]
    plain, drawn = (order_of(model, True) for model in models)
    assert torch.equal(plain, drawn)
    assert not torch.equal(order_of(models[0], False), order_of(models[1], False))
