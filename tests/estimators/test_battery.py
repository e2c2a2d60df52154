"""What every estimator must do, one list for all."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from battery import CODES, ESTIMATORS, KINDS, LEARNS, WAYS, by_kind, fitted, learned, problem, quick
from sklearn.metrics import roc_auc_score

from fairbits import BiasBalancedClassifier, LinearCodeClassifier
from fairbits.encoding import BinnedSensitiveFeaturesWarning
from fairbits.estimators.codes import code_information
from fairbits.estimators.debiased import DebiasedCode


@pytest.mark.parametrize("cls", by_kind())
def test_learns_the_label(cls):
    X, y, _ = problem()
    assert roc_auc_score(y, learned(cls).predict_proba(X)[:, 1]) > 0.85


@pytest.mark.parametrize("cls", by_kind())
def test_same_seed_same_model_in_any_order_of_the_rows_other_seed_another(cls):
    X, y, s = problem()
    order = np.random.default_rng(1).permutation(len(y))
    same = quick(cls).fit(X[order], y[order], sensitive_features=s[order])
    other = quick(cls, random_state=1).fit(X, y, sensitive_features=s)
    np.testing.assert_array_equal(fitted(cls).predict_proba(X), same.predict_proba(X))
    drawn = cls is not LinearCodeClassifier  # it draws nothing
    assert np.array_equal(fitted(cls).predict_proba(X), other.predict_proba(X)) != drawn


@pytest.mark.parametrize("cls", by_kind())
def test_inputs_and_global_generators_are_untouched(cls):
    X, y, s = problem()
    copies = X.copy(), y.copy(), s.copy()
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    model = quick(cls).fit(X, y, sensitive_features=s)
    model.predict_proba(X)
    model.transform(X)
    assert torch.equal(torch.get_rng_state(), torch_state)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_state)  # noqa: NPY002
    for given, copy in zip((X, y, s), copies, strict=True):
        np.testing.assert_array_equal(given, copy)


@pytest.mark.parametrize("cls", by_kind(kinds=WAYS))
def test_arrays_pandas_and_polars_agree(cls):
    X, y, s = problem()
    names = np.array(["f", "m"])[s]
    by_array = quick(cls).fit(X, y, sensitive_features=names)
    frame = pd.DataFrame(X, columns=list("abc"))
    by_pandas = quick(cls).fit(frame, pd.Series(y), sensitive_features=pd.Series(names, name="sex"))
    by_polars = quick(cls).fit(pl.DataFrame(X), pl.Series(y), sensitive_features=pl.DataFrame({"sex": names}))
    expected = by_array.predict_proba(X)
    np.testing.assert_array_equal(by_pandas.predict_proba(frame), expected)
    np.testing.assert_array_equal(by_polars.predict_proba(pl.DataFrame(X)), expected)
    assert by_array.groups_ == by_pandas.groups_ == by_polars.groups_ == [["f", "m"]]


@pytest.mark.parametrize(("selection", "cls"), by_kind("objective") + by_kind("paper", kinds=KINDS[:2]))
def test_many_classes_and_groups(selection, cls):
    X, y, s = problem(n=900, n_groups=4, n_classes=3)
    labels = np.array(["low", "mid", "high"])[y]
    model = quick(cls, selection=selection, **LEARNS).fit(X, labels, sensitive_features=s)
    assert list(model.classes_) == ["high", "low", "mid"]
    np.testing.assert_allclose(model.predict_proba(X).sum(1), 1, atol=1e-6)
    assert (model.predict(X) == labels).mean() > 0.5


@pytest.mark.parametrize("cls", by_kind(kinds=WAYS))
def test_whole_number_weights_are_copies(cls):
    X, y, s = problem()
    weight = np.random.default_rng(2).integers(0, 4, len(y))
    weighted = quick(cls).fit(X, y, sensitive_features=s, sample_weight=weight)
    repeated = quick(cls).fit(*(np.repeat(a, weight, axis=0) for a in (X, y)), sensitive_features=np.repeat(s, weight))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize(
    ("weight", "cls"),
    by_kind(0.37) + [case for weight in (5.0, 1e37, 1e-42) for case in by_kind(weight, kinds=KINDS[:2])],
)
def test_equal_weights_change_nothing(weight, cls):
    X, y, s = problem()
    weighted = quick(cls).fit(X, y, sensitive_features=s, sample_weight=np.full(len(y), weight))
    np.testing.assert_allclose(weighted.predict_proba(X), fitted(cls).predict_proba(X), atol=1e-5)


SMALL_BATCHES = [  # the share of a row is the loop's doing, whatever the method
    pytest.param(4, 400, 0.001, cls, marks=[] if cls is KINDS[1] else pytest.mark.slow) for cls in KINDS
]


@pytest.mark.parametrize(("batch_size", "steps", "rate", "cls"), by_kind(256, 40, 0.02) + SMALL_BATCHES)
def test_weights_count_whatever_the_batch(batch_size, steps, rate, cls):
    """One positive in fifty with the weight of fifty: as many as the negatives, also in batches that hold none."""
    rng = np.random.default_rng(0)
    y = (np.arange(2000) % 50 == 0).astype(int)
    X, s = rng.normal(size=(2000, 2)), rng.integers(0, 2, 2000)
    weight = np.where(y == 1, 49.5, 1.0)
    long = {"max_epochs": 2, "min_steps": steps, "patience": 50, "validation_fraction": 0.3}
    model = quick(cls, batch_size=batch_size, learning_rate=rate, **long)
    model.fit(X, y, sensitive_features=s, sample_weight=weight)
    assert 0.4 < model.predict_proba(X)[:, 1].mean() < 0.6


@pytest.mark.parametrize(
    "cls", [case for case in by_kind() if not issubclass(case.values[0], (DebiasedCode, BiasBalancedClassifier))]
)  # those two correct base rates, and so also what weights of a class do to them
def test_fractional_weights_move_the_model(cls):
    X, y, s = problem()
    weight = np.where(y == 1, 5.5, 0.5)
    plain = learned(cls)
    weighted = quick(cls, **LEARNS).fit(X, y, sensitive_features=s, sample_weight=weight)
    assert weighted.predict_proba(X)[:, 1].mean() > plain.predict_proba(X)[:, 1].mean() + 0.1


@pytest.mark.parametrize("cls", by_kind(kinds=KINDS[:3]))
def test_history_is_plain_and_the_best_epoch_is_restored(cls):
    X, y, s = problem()
    model = quick(cls, max_epochs=30, learning_rate=0.05, selection="objective").fit(X, y, sensitive_features=s)
    assert all(isinstance(v, (int, float)) for record in model.history_ for v in record.values())
    if cls.own_schedule.validation_fraction:
        by_epoch = {record["epoch"]: record["validation_total"] for record in model.history_}
        assert by_epoch[model.best_epoch_] == min(by_epoch.values())
    else:  # nothing to choose by
        assert model.best_epoch_ == model.history_[-1]["epoch"]


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_every_parameter_moves(cls, monkeypatch):
    """All of the network's parameters have a role in a loss, so a few steps move them all, without any decay."""
    start, initial = cls.initialise, []

    def remember(self, net, *rows):
        start(self, net, *rows)
        initial.append({name: p.detach().clone() for name, p in net.named_parameters()})

    monkeypatch.setattr(cls, "initialise", remember)
    X, y, s = problem()
    model = quick(cls, max_epochs=2, min_steps=0, batch_size=64, weight_decay=0.0).fit(X, y, sensitive_features=s)
    still = [name for name, p in model.net_.named_parameters() if torch.equal(p, initial[0][name])]
    assert initial[0]
    assert not still


@pytest.mark.parametrize("cls", CODES)
def test_sensitive_columns_crossed_or_each_on_its_own(cls):
    X, y, s = problem()
    both = pd.DataFrame({"sex": np.array(["f", "m"])[s], "old": np.arange(len(s)) % 2 == 0})
    crossed = quick(cls).fit(X, y, sensitive_features=both)
    each = quick(cls, groups="each").fit(X, y, sensitive_features=both)
    assert [len(names) for names in crossed.groups_] == [4]
    assert [len(names) for names in each.groups_] == [2, 2]
    theta = crossed.code_probabilities(X)
    crossed_s, each_s = (m.group_encoder_.transform(both) for m in (crossed, each))
    assert code_information(theta, each_s) <= code_information(theta, crossed_s)


@pytest.mark.parametrize("cls", CODES)
def test_a_numeric_sensitive_column_is_cut_into_stated_bins(cls):
    X, y, _ = problem()
    age = np.random.default_rng(3).uniform(18, 80, len(y))
    with pytest.warns(BinnedSensitiveFeaturesWarning, match="quantiles"):
        model = quick(cls).fit(X, y, sensitive_features=pd.Series(age, name="age"))
    assert len(model.groups_[0]) == 4
    assert model.groups_[0][0].startswith("age under ")
