"""Each adapter says what its library says, and works around no more than what is wrong there."""

import logging
import sys

import numpy as np
import pytest
import torch
from adapted import brief, fitted, problem, rival
from fairlearn.adversarial import AdversarialFairnessClassifier
from fairlearn.reductions import DemographicParity, ExponentiatedGradient
from sklearn.linear_model import LogisticRegression

from fairbits import Schedule
from fairbits.estimators import VanillaClassifier
from fairbits.rivals.compared import one_draw


def test_the_draw_follows_the_chances():
    chances = np.array([[1.0, 0.0], [0.7, 0.3], [0.0, 1.0]])
    drawn = np.mean([one_draw(chances, seed) for seed in range(2000)], 0)
    np.testing.assert_allclose(drawn, chances, atol=0.04)
    even = np.full((200, 2), 0.5)
    assert (one_draw(even, None) != one_draw(even, None)).any()


# ---------------------------------------------------------------------- reductions


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_lottery_is_fairlearn_s():
    X, y, s = problem()
    model = ExponentiatedGradient(LogisticRegression(max_iter=1000), DemographicParity(difference_bound=0.01))
    theirs = model.fit(X, y, sensitive_features=s)._pmf_predict(X)
    assert abs(theirs - fitted("reductions").predict_proba(X)).mean() < 0.01
    assert len(np.unique(theirs[:, 1])) >= 3


def test_the_mixture_of_probabilities_is_finer_and_the_draw_the_same():
    X, y, s = problem()
    model = rival("reductions", mixture="probabilities").fit(X, y, sensitive_features=s)
    assert len(np.unique(model.predict_proba(X)[:, 1])) > 900
    assert len(np.unique(fitted("reductions").predict_proba(X)[:, 1])) < 20
    np.testing.assert_array_equal(model.predict(X), fitted("reductions").predict(X))


def test_a_lottery_with_a_constant_has_probabilities():
    X, _, s = problem()
    model = rival("reductions", difference_bound=0.0, mixture="probabilities").fit(X, s, sensitive_features=s)
    assert any(len(predictor.classes_) == 1 for _, predictor in model.lottery_)
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize(
    ("name", "settings"), [("thresholds", {}), pytest.param("reductions", {"max_iter": 3}, marks=pytest.mark.slow)]
)
@pytest.mark.filterwarnings("ignore::fairbits.estimators.VanishedClassWarning")
def test_our_network_as_base_learner(name, settings):
    X, y, s = problem(n=400)
    network = VanillaClassifier(max_epochs=5, schedule=Schedule(min_steps=60), hidden_sizes=(8,), learning_rate=0.01)
    models = [rival(name, estimator=network, random_state=seed, **settings) for seed in (0, 0, 1)]
    told = {"sensitive_features": s} if name == "thresholds" else {}
    first, again, other = (m.fit(X, y, sensitive_features=s).predict_proba(X, **told) for m in models)
    assert (first.argmax(1) == y).mean() > 0.7
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert network.random_state is None
    assert not hasattr(network, "net_")


# ---------------------------------------------------------------------- thresholds


def test_chances_are_those_of_fairlearn_s_thresholds():
    X, y, s = problem(n_groups=3)
    model = rival("thresholds", tol=0.1).fit(X, y, sensitive_features=s)
    theirs = model.optimizer_._pmf_predict(X, sensitive_features=s)
    np.testing.assert_allclose(model.predict_proba(X, sensitive_features=s), theirs)
    rates = [theirs[s == group, 1].mean() for group in range(3)]
    assert max(rates) - min(rates) < 0.102
    assert max(rates) - min(rates) > 0.05


def test_predictions_must_be_told_the_groups():
    X, _, s = problem()
    for predict in (fitted("thresholds").predict_proba, fitted("thresholds").predict):
        with pytest.raises(ValueError, match="needs the group of every row"):
            predict(X)
    with pytest.raises(ValueError, match="unseen in fit"):
        fitted("thresholds").predict(X, sensitive_features=s + 1)
    other = fitted("thresholds").predict_proba(X, sensitive_features=1 - s)
    assert (other != fitted("thresholds").predict_proba(X, sensitive_features=s)).any()


# ---------------------------------------------------------------------- adversarial


def test_fairlearn_s_own_seed_has_no_effect():
    """If this fails, fairlearn has mended it: `WholeSeeds` and the words about it can go."""
    X, y, s = problem(n=100)
    with torch.random.fork_rng(devices=[]):
        models = [
            AdversarialFairnessClassifier(
                backend="torch", predictor_model=[], adversary_model=[], shuffle=True, random_state=seed
            ).fit(X, y, sensitive_features=s)
            for seed in (0, 1)
        ]
    first, second = (m.backendEngine_.evaluate(X) for m in models)
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("widths", [(), (16,), (8, 4)])
def test_the_predictor_has_the_layers_asked_for(widths):
    X, y, s = problem(n=150)
    model = brief("adversarial", hidden_sizes=widths).fit(X, y, sensitive_features=s)
    assert [layer.out_features for layer in model.net_ if hasattr(layer, "out_features")] == [*widths, 1]


def test_a_game_that_diverges_says_so():
    X, y, s = problem(n=150)
    with pytest.raises(RuntimeError, match=r"has diverged .*; lower alpha or learning_rate\.$"):
        rival("adversarial", alpha=1e300).fit(X, y, sensitive_features=s)


# ---------------------------------------------------------------------- AIF360


def test_lfr_takes_two_groups():
    X, y, s = problem(n_groups=3)
    with pytest.raises(
        ValueError, match=r"^sensitive_features has 3 groups, \['0', '1', '2'\]; AIF360's LFR takes two"
    ):
        rival("lfr").fit(X, y, sensitive_features=s)


def test_importing_aif360_leaves_the_root_logger_alone(monkeypatch, caplog):
    X, y, s = problem(n=150)
    model = rival("lfr")
    for module in [module for module in sys.modules if module.startswith("aif360.sklearn")]:
        monkeypatch.delitem(sys.modules, module)
    root = logging.getLogger()
    handlers, filters = list(root.handlers), list(root.filters)
    model.fit(X, y, sensitive_features=s)
    assert not caplog.records
    assert (root.handlers, root.filters) == (handlers, filters)
