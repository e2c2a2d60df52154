"""The search as an estimator, its objectives and its space."""

import itertools

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.utils.validation import NotFittedError
from small import BRIEF, N, S, X, Y

from fairbits import BinaryMIClassifier, HSICClassifier, Schedule
from fairbits.lab.tuning import Layers, Objective, SearchRange, Trial, TunedClassifier, best_trial
from fairbits.lab.tuning.search_space import distributions, search_space, settings_of
from fairbits.lab.tuning.tuned import pareto_set

HSIC = HSICClassifier(hidden_sizes=(4,), max_epochs=4, schedule=Schedule(min_steps=0))


def tuned(estimator=HSIC, **settings):
    return TunedClassifier(estimator, **{"n_trials": 4, "trials_at_once": 4, "cv": 2, **settings})


def test_it_predicts_as_the_best_estimator_does():
    model = tuned(BinaryMIClassifier(**BRIEF)).fit(X, Y, sensitive_features=S)
    best = model.trials_.loc[(model.trials_.auc - model.trials_.gpa - model.trials_.audc).idxmax()]
    assert all(best[name] == value for name, value in model.best_params_.items())
    assert model.best_estimator_.gamma == best.gamma
    np.testing.assert_array_equal(model.predict_proba(X), model.best_estimator_.predict_proba(X))
    assert model.predict(X).shape == (N,)
    assert model.transform(X).shape == (N, 2)
    assert model.score(X, Y) > 0.5
    assert clone(model).get_params()["n_trials"] == 4


def test_it_must_be_fitted_first():
    with pytest.raises(NotFittedError):
        tuned().predict(X)


def test_the_global_generators_are_left_alone():
    states = np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    tuned().fit(X, Y, sensitive_features=S)
    np.testing.assert_array_equal(states[0], np.random.get_state()[1])  # noqa: NPY002
    assert torch.equal(states[1], torch.get_rng_state())


def test_a_gaussian_process_searches_too():
    model = tuned(sampler="gp", trials_at_once=1, n_trials=12).fit(X, Y, sensitive_features=S)
    assert len(model.trials_) == 12


def test_constrained_chooses_the_best_that_keeps_the_limit():
    model = tuned(objective="constrained", leakage="discrimination", max_leakage=0.1, n_trials=12)
    model.fit(X, Y, sensitive_features=S)
    kept = model.trials_[model.trials_.discrimination <= 0.1]
    assert len(kept)
    assert len(kept) < 12
    assert model.best_params_["gamma"] == kept.loc[kept.auc.idxmax()].gamma


def test_pareto_keeps_what_no_other_beats():
    model = tuned(objective="pareto", leakage="gpa", n_trials=8).fit(X, Y, sensitive_features=S)
    points = [(-row.auc, row.gpa) for row in model.trials_.itertuples()]
    kept = {(-row.auc, row.gpa) for row in model.pareto_.itertuples()}
    for point in points:
        beaten = any(a <= point[0] and b <= point[1] and (a, b) != point for a, b in points)
        assert (point in kept) != beaten


def test_the_constraint_orders_first_by_the_limit_then_by_auc():
    objective = Objective("constrained", "gpa", 0.1)
    values = [
        objective.values({"auc": auc, "gpa": gpa})[0] for gpa, auc in [(0.1, 0.9), (0.0, 0.1), (0.2, 1), (0.3, 1)]
    ]
    assert values == sorted(values, reverse=True)


def test_pareto_set_of_equal_points_keeps_both():
    trials = [Trial({}, scores=[{"auc": a, "gpa": g}]) for a, g in [(0.8, 0.1), (0.8, 0.1), (0.7, 0.1)]]
    assert pareto_set([*trials, Trial({}, "failed")], Objective("pareto")) == [0, 1]


def test_nothing_but_failures_is_said():
    with pytest.raises(ValueError, match="None of 1 trials could be trained"):
        best_trial([Trial({}, "failed")], Objective())


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"objective": "best"}, "objective='best' must be one of 'paper'"),
        ({"objective": "constrained"}, r"max_leakage=.* is the limit"),
        ({"max_leakage": 0.1}, r"max_leakage=.* is the limit"),
        ({"objective": "pareto", "leakage": "nonsense"}, "leakage='nonsense' is not among"),
        ({"sampler": "grid"}, "sampler='grid'"),
        ({"sampler": "gp"}, "one trial at a time"),
        ({"objective": "pareto", "halving": True}, "has no order by which to halve trials"),
        ({"n_trials": 0}, "n_trials=0 must be a whole number,? at least 1"),
        ({"trials_at_once": 1.5}, "trials_at_once=1.5"),
        ({"random_state": None}, "random_state=None"),
        ({"space": {"gama": (1, 2)}}, r"space names \['gama'\]"),
    ],
)
def test_nonsense_gets_a_sentence(settings, words):
    with pytest.raises(ValueError, match=words):
        tuned(**settings).fit(X, Y, sensitive_features=S)


def test_a_search_needs_groups():
    with pytest.raises(ValueError, match="sensitive_features=None"):
        tuned().fit(X, Y, sensitive_features=None)


def test_a_space_is_the_tunable_settings_with_changes():
    space = search_space(HSIC, {"weight_decay": None, "batch_size": (32, 64), "hidden_sizes": Layers((1, 3), (2, 9))})
    assert set(space) == {"learning_rate", "gamma", "batch_size", "hidden_sizes"}
    found = distributions(space)
    assert set(found) == {"learning_rate", "gamma", "batch_size", "depth", "width"}
    assert found["learning_rate"].log
    assert (found["depth"].low, found["depth"].high) == (1, 3)
    assert found["batch_size"].choices == (32, 64)


@pytest.mark.parametrize(("depth", "width"), list(itertools.product([1, 3], [2, 5])))
def test_layers_become_hidden_sizes(depth, width):
    assert settings_of({"depth": depth, "width": width, "gamma": 1.0}) == {
        "hidden_sizes": (width,) * depth,
        "gamma": 1.0,
    }


def test_ranges_of_numbers_are_kept():
    found = distributions({"gamma": SearchRange(0.1, 0.2)})["gamma"]
    assert (found.low, found.high, found.log) == (0.1, 0.2, False)
