"""What single runs compute."""

import numpy as np
import pytest
from battery import few_trees, quick

from fairbits import BinaryMIClassifier, FairCodeClassifier, datasets
from fairbits.datasets import biased_digits
from fairbits.estimators.codes import held_out_scores
from fairbits.lab.run_settings import Images, Method, Plane, Reference, Search, Strengths
from fairbits.lab.runs import coloured_digits, execute, external_fold, representation_views, seed_of
from fairbits.metrics import auc

BRIEF = {"max_epochs": 3, "min_steps": 0, "code_size": 3, "hidden_sizes": (8,)}
METHOD = Method(estimator="BinaryMIClassifier", settings=BRIEF)
ON_COMPAS = {"name": "own", "dataset": "compas"}


def test_folds_share_no_rows_and_leave_none_out():
    parts = [external_fold("compas", fold, 3, 0) for fold in range(3)]
    assert {len(train.y) + len(test.y) for train, test in parts} == {6150}
    assert sum(len(test.y) for _, test in parts) == 6150
    for train, test in parts:
        assert abs(train.y.mean() - test.y.mean()) < 0.002
        assert abs(train.s.mean() - test.s.mean()) < 0.002
        assert train.X.shape[1] == test.X.shape[1]


def test_columns_are_scaled_by_the_training_rows_alone():
    train, test = external_fold("compas", 0, 3, 0)
    scaled = np.abs(train.X.std(0) - 1).argmin()
    assert abs(train.X[:, scaled].mean()) < 1e-6
    assert abs(test.X[:, scaled].mean()) > 1e-6


def test_the_constant_predictor_scores_two_and_a_half(tmp_path):
    run = Reference(kind="reference", name="constant", dataset="compas", fold=0, trees=5)
    result = execute(run, tmp_path)
    scores = result["test"]
    assert scores["auc"] + (1 - scores["gpa"]) + (1 - scores["audc"]) == 2.5
    assert result["representation"] == {"nothing": {"adrg": 0.0, "auc_of_s": 0.5}}


def test_a_search_reports_its_best_on_rows_it_has_not_seen(tmp_path):
    method = Method(estimator="VanillaClassifier", settings={"max_epochs": 3, "min_steps": 0})
    run = Search(kind="search", **ON_COMPAS, method=method, fold=1, inner_folds=2, trials=2, trials_at_once=2, trees=20)
    result = execute(run, tmp_path)
    assert result["trials"] == {"complete": 2, "pruned": 0, "failed": 0}
    assert set(result["best"]) == {"learning_rate", "weight_decay"}
    assert result["test"]["auc"] > 0.6
    assert set(result["representation"]) == {"representation"}
    assert 0.5 < result["representation"]["representation"]["auc_of_s"] < 0.8
    assert execute(run, tmp_path) == result  # from the records of its trials


def test_the_views_of_a_code_are_one_draw_some_draws_and_theta():
    X = np.random.default_rng(0).normal(size=(200, 4))
    model = quick(BinaryMIClassifier, **{**BRIEF, "max_epochs": 100}, learning_rate=0.02).fit(
        X, X[:, 0] > 0, sensitive_features=X[:, 1] > 0
    )
    views = {name: view(X) for name, view in representation_views(model, 0).items()}
    assert list(views) == ["one draw", "16 draws", "theta"]
    assert set(np.unique(views["one draw"])) == {0, 1}
    assert len(np.unique(views["16 draws"])) > 4
    np.testing.assert_array_equal(views["16 draws"] * 16 % 1, 0)
    np.testing.assert_array_equal(views["theta"], model.code_probabilities(X))
    np.testing.assert_allclose(views["16 draws"].mean(0), views["theta"].mean(0), atol=0.03)


def test_strengths_are_scored_on_every_fold(tmp_path):
    longer = {**BRIEF, "max_epochs": 6, "learning_rate": 0.003}
    method = Method(estimator="BinaryMIClassifier", settings=longer)
    run = Strengths(kind="strengths", **ON_COMPAS, method=method, values=[0.0, 0.1], folds=2, depth=2)
    scores = execute(run, tmp_path)["scores"]
    assert [(s["strength"], s["fold"]) for s in scores] == [(0.0, 0), (0.1, 0), (0.0, 1), (0.1, 1)]
    train, test = external_fold("compas", 1, 2, 0)
    deep = {**longer, "hidden_sizes": (8, 8)}
    own = quick(BinaryMIClassifier, **deep, gamma=0.1, random_state=seed_of("compas", "own", 1, 0))
    own.fit(train.X, train.y, sensitive_features=train.s)
    alone = held_out_scores(own, test.X, test.y, test.s)
    assert scores[3]["information"] == pytest.approx(alone["information"], abs=1e-5)
    assert scores[3]["auc"] == pytest.approx(alone["auc"], abs=1e-3)


def test_on_the_plane_nothing_is_told_that_x_does_not_tell(tmp_path):
    run = Plane(kind="plane", **ON_COMPAS, method=METHOD, gamma=0.1, epochs=4)
    epochs = execute(run, tmp_path)["epochs"]
    assert len(epochs) == 4
    for epoch in epochs:
        assert 0 <= epoch["about_s"] <= epoch["about_x"] <= 3
        assert 0 <= epoch["about_y"] <= epoch["about_x"]
    assert epochs[-1]["about_y"] > epochs[0]["about_y"]


def test_images_are_scored_on_colours_that_tell_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets, "biased_mnist", biased_digits)
    settings = {"channels": (8,), "hidden_sizes": (), "min_steps": 0, "selection": "last"}
    method = Method(estimator="BinaryBernoulliClassifier", settings={**settings, "code_size": 8, "gamma": 0.0})
    found = execute(Images(kind="images", name="own", rho=0.5, method=method, epochs=20), tmp_path)
    assert found["accuracy"] > 0.15
    assert found["permuted_information"] < found["information"] < np.log2(10)
    assert found["one_draw_accuracy"] < found["accuracy"] + 0.05


def test_held_out_digits_are_left_out_and_recoloured(monkeypatch):
    monkeypatch.setattr(datasets, "biased_mnist", biased_digits)
    run = Images(kind="images", name="own", rho=0.9, method=Method(estimator="VanillaClassifier"), held_out=200)
    (X, y, s), held = coloured_digits(run)
    everything = biased_digits(0.9)
    assert (len(X), len(held.X)) == (997, 200)
    assert (s[:, 0] == y).mean() > 0.85
    assert (held.s[:, 0] == held.y).mean() < 0.25
    np.testing.assert_array_equal(np.concatenate([y, held.y]), everything.y)
    white = [(part == 255).all(1) for part in (everything.X[997:], held.X)]  # the digits themselves
    np.testing.assert_array_equal(*white)


def test_a_fair_code_is_scored_like_its_own_fit(tmp_path):
    """All limits share one encoder and train as a stack: what `fit` of the estimator does, fold by fold."""
    method = Method(estimator="FairCodeClassifier", strength="limit")
    run = Strengths(kind="strengths", **ON_COMPAS, method=method, values=[0.05, 1.0], folds=2)
    with few_trees():
        scores = execute(run, tmp_path)["scores"]
        train, test = external_fold("compas", 1, 2, 0)
        own = FairCodeClassifier(1.0, random_state=seed_of("compas", "own", 1, 0))
        own.fit(train.X, train.y, sensitive_features=train.s)
    assert scores[3]["auc"] == pytest.approx(auc(test.y, own.predict_proba(test.X)), abs=1e-3)
