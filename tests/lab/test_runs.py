"""What single runs compute."""

import numpy as np
import pytest
from battery import few_trees, quick

from fairbits import BinaryMIClassifier, FairCodeClassifier, Schedule, VFAEClassifier, datasets
from fairbits.datasets import biased_digits
from fairbits.estimators import fit_stack
from fairbits.estimators.codes import code_information, held_out_scores
from fairbits.lab import runs
from fairbits.lab.representations import representation_scores, representation_views
from fairbits.lab.run_parts import Part, estimator_of, external_fold, scores_of, seed_of, with_groups
from fairbits.lab.run_settings import Images, Method, Plane, Reference, Refit, Search, Strengths
from fairbits.lab.runs import coloured_digits, execute
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
    nothing = {"adrg": 0.0, "auc_of_s": 0.5, "auc_of_y": 0.5, "model_auc": 0.5}
    assert result["representation"] == {"nothing": nothing}


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
    both = {name: view(X) for name, view in representation_views(model, 0).items()}
    views = {name: shown for name, (shown, _) in both.items()}
    assert list(views) == ["one draw", "16 draws", "theta"]
    assert set(np.unique(views["one draw"])) == {0, 1}
    assert len(np.unique(views["16 draws"])) > 4
    np.testing.assert_array_equal(views["16 draws"] * 16 % 1, 0)
    np.testing.assert_array_equal(views["theta"], model.code_probabilities(X))
    np.testing.assert_allclose(views["16 draws"].mean(0), views["theta"].mean(0), atol=0.03)
    np.testing.assert_array_equal(both["one draw"][1], model.decode(views["one draw"]))  # the very same draw
    np.testing.assert_array_equal(both["theta"][1], model.predict_proba(X))


def test_a_forest_finds_the_label_and_the_group_that_a_representation_is():
    """Ground truth: a representation that is y, that is S, and that is nothing."""
    rng = np.random.default_rng(0)
    y, s = rng.integers(2, size=(2, 400))
    part = Part(np.column_stack([y, s]), y, s[:, None])
    known = np.eye(2)[y]
    views = {
        "y": lambda X: (X[:, :1], known),
        "s": lambda X: (X[:, 1:], 1 - known),
        "0": lambda X: (0 * X, known * 0 + 0.5),
    }
    found = representation_scores(views, part, part, 20, 0)
    assert (found["y"]["auc_of_y"], found["y"]["model_auc"]) == (1.0, 1.0)
    assert (found["s"]["auc_of_s"], found["s"]["model_auc"]) == (1.0, 0.0)
    assert found["s"]["auc_of_y"] < 0.6
    assert [found["0"][name] for name in ("auc_of_s", "auc_of_y", "model_auc")] == [0.5, 0.5, 0.5]


def test_the_latent_draw_that_the_forest_reads_is_what_the_model_predicts_from():
    data = datasets.make_shifted_bits(300, random_state=0)
    model = quick(VFAEClassifier, max_epochs=20).fit(data.X, data.y, sensitive_features=data.s)
    views = representation_views(model, 0)
    X = np.asarray(data.X, dtype=np.float32)
    drawn, mean = views["one draw"](X), views["mean"](X)
    weights = {name: part.numpy() for name, part in model.net_.head.state_dict().items()}
    logits = drawn[0] @ weights["weight"].T + weights["bias"]
    np.testing.assert_array_equal(drawn[1].argmax(1), logits.argmax(1))
    np.testing.assert_array_equal(mean[1], model.predict_proba(X))


def test_one_draw_and_signed_gaps_are_scores_of_the_same_predictions():
    data = datasets.make_shifted_bits(400, random_state=0)
    model = quick(BinaryMIClassifier, **{**BRIEF, "max_epochs": 30}, random_state=3)
    model.fit(data.X, data.y, sensitive_features=data.s)
    s = np.unique(data.s, return_inverse=True)[1][:, None]
    found = scores_of(model, Part(np.asarray(data.X, dtype=np.float32), np.asarray(data.y), s))
    for prefix in ("", "one_draw_"):
        assert abs(found[f"{prefix}signed_gpa"]) == pytest.approx(found[f"{prefix}gpa"])
        assert 0 <= found[f"{prefix}rank_audc"] <= 1


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


def test_on_the_plane_nothing_is_given_that_x_does_not_tell(tmp_path):
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
    (X, y, s), held = coloured_digits(0.9, 0, held_out=200)
    everything = biased_digits(0.9)
    assert (len(X), len(held.X)) == (997, 200)
    assert (s[:, 0] == y).mean() > 0.85
    assert (held.s[:, 0] == held.y).mean() < 0.25
    np.testing.assert_array_equal(np.concatenate([y, held.y]), everything.y)
    white = [(part == 255).all(1) for part in (everything.X[997:], held.X)]  # the digits themselves
    np.testing.assert_array_equal(*white)


@pytest.mark.parametrize("estimator", ["DebiasedBernoulliClassifier", "DebiasedMIClassifier"])
def test_the_plane_of_images_is_measured_on_digits_in_random_colours(estimator, tmp_path, monkeypatch):
    monkeypatch.setattr(datasets, "biased_mnist", biased_digits)
    monkeypatch.setattr(runs, "PLANE_ROWS", 300)
    settings = {"channels": (8,), "hidden_sizes": (), "min_steps": 0, "code_size": 6}
    method = Method(estimator=estimator, settings=settings)
    run = Plane(kind="plane", dataset="biased-mnist", name="own", method=method, gamma=0.0, epochs=10, rho=0.9)
    last = execute(run, tmp_path)["epochs"][-1]
    assert 0 < last["about_y"] < last["about_x"] <= 6
    model = estimator_of(method, gamma=0.0, max_epochs=10, patience=10, selection="last")
    model.set_params(random_state=seed_of("biased-mnist", "own", 0))
    (X, y, s), held = coloured_digits(0.9, 0, held_out=300)
    fit_stack([model], X, y, sensitive_features=s)
    assert last["about_s"] == pytest.approx(code_information(model.code_probabilities(held.X), held.s), abs=1e-4)


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


def refit(name, **settings):
    short = {"max_epochs": 2, "min_steps": 0, "selection": "last"}
    method = Method(estimator=settings.pop("estimator"), settings=short | settings.pop("fixed", {}))
    settings = {"gamma": 0.2, "depth": 2, "width": 6, "batch_size": 64, **settings.pop("chosen", {})}
    return Refit(kind="refit", name=name, dataset="compas", method=method, settings=settings, fold=1, trees=5)


def test_a_refit_is_the_fit_of_its_settings_on_the_searchs_fold(tmp_path):
    run = refit("any", estimator="BinaryMIClassifier", fixed={"code_size": 3})
    result = execute(run, tmp_path)
    train, test = external_fold("compas", 1, 3, 0)
    own = quick(BinaryMIClassifier, code_size=3, gamma=0.2, hidden_sizes=(6, 6), batch_size=64, max_epochs=2)
    own.set_params(schedule=Schedule(min_steps=0, selection="last"), random_state=seed_of("compas", 0, 3, 1, 0))
    fit_stack([own], train.X, train.y, sensitive_features=train.s, noise_apart=True)
    assert result["test"] == scores_of(own, test)
    assert set(result["representation"]) == {"one draw", "16 draws", "theta"}
    theta = result["representation"]["theta"]
    assert theta["model_auc"] == pytest.approx(result["test"]["auc"])
    assert "representation" not in execute(run.model_copy(update={"trees": 0}), tmp_path)


def test_without_a_penalty_a_refit_does_not_depend_on_the_methods_name(tmp_path):
    """Common random numbers: at gamma 0 the sum over bits and the joint information train the same network."""
    fixed, chosen = {"code_size": 3}, {"gamma": 0.0}
    found = [
        execute(refit(name, estimator=estimator, fixed=fixed, chosen=chosen), tmp_path)["test"]
        for name, estimator in (("a", "BinaryMIClassifier"), ("b", "BinaryBernoulliClassifier"))
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize("kind", ["strengths", "plane"])
def test_with_common_seeds_methods_agree_where_the_penalty_has_no_weight(kind, tmp_path):
    def run(estimator, common):
        method = Method(estimator=estimator, settings=BRIEF)
        facts = {"kind": kind, "name": estimator, "dataset": "compas", "method": method, "common": common}
        kinds = {"strengths": (Strengths, {"values": [0.0], "folds": 2}), "plane": (Plane, {"gamma": 0.0, "epochs": 3})}
        cls, own = kinds[kind]
        return execute(cls(**facts, **own), tmp_path)

    mutual, neurons = "BinaryMIClassifier", "BinaryBernoulliClassifier"
    assert run(mutual, True) == run(neurons, True)
    assert run(mutual, False) != run(neurons, False)


def test_a_method_that_is_given_the_group_finds_it_among_its_columns():
    parts = external_fold("compas", 0, 3, 0)
    untold, told = (with_groups(Method(estimator="Any", sees_groups=t), *parts) for t in (False, True))
    assert untold == list(parts)
    for before, after in zip(parts, told, strict=True):
        np.testing.assert_array_equal(after.X[:, :-1], before.X)
        np.testing.assert_array_equal(after.X[:, -1], before.s[:, 0])
