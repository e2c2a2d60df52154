"""What all adapters promise: they learn, protect, repeat themselves, and leave everything else as it was."""

import pickle
import random
import sys

import numpy as np
import pandas as pd
import pytest
import sklearn
import torch
from adapted import RIVALS, brief, briefly_fitted, fitted, problem, rival, told
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.model_selection import cross_validate

from fairbits.encoding import GroupEncoder
from fairbits.errors import MissingExtraError
from fairbits.estimators.codes import held_out_scores
from fairbits.metrics import discrimination

DRAWN = ("reductions", "thresholds")  # predict at random
SLOW = ("linear adversarial", "lfr")  # as the others, in all that they inherit


def of_each(names):
    """Return a mark for these adapters, some of them slowly."""
    return pytest.mark.parametrize(
        "name", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else []) for name in names]
    )


names = of_each(RIVALS)


def unmitigated():
    X, y, _ = problem()
    return LogisticRegression().fit(X, y)


def chances(model, X, s):
    return model.predict_proba(X, **told(model, s))[:, 1]


# ---------------------------------------------------------------------- learning and protecting


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if "adversarial" in name else []) for name in RIVALS]
)
def test_learns_at_high_strength(name):
    X, y, s = problem(seed=1)
    model = fitted(name)
    assert roc_auc_score(y, chances(model, X, s)) > 0.75
    assert accuracy_score(y, model.predict(X, **told(model, s))) > 0.75


@pytest.mark.parametrize(
    ("name", "settings"),
    [("reductions", {"difference_bound": 1.0, "mixture": "probabilities"}), ("lfr", {"fairness_weight": 0.0})],
)
def test_without_strength_it_is_as_good_as_no_protection(name, settings):
    X, y, s = problem()
    model = rival(name, **settings).fit(X, y, sensitive_features=s)
    X, y, s = problem(seed=1)
    plain = roc_auc_score(y, unmitigated().predict_proba(X)[:, 1])
    assert roc_auc_score(y, chances(model, X, s)) == pytest.approx(plain, abs=0.02)


def test_thresholds_without_strength_use_the_groups_for_accuracy():
    X, y, s = problem()
    model = rival("thresholds", tol=1.0).fit(X, y, sensitive_features=s)
    accuracy = accuracy_score(y, model.predict(X, sensitive_features=s))
    assert accuracy > accuracy_score(y, unmitigated().predict(X)) - 0.005
    assert discrimination(model.predict(X, sensitive_features=s), sensitive_features=s) > 0.2


@pytest.mark.slow
@names
def test_protects(name):
    X, _, s = problem(seed=1)
    plain = discrimination(unmitigated().predict(X), sensitive_features=s)
    models = [fitted(name, seed) for seed in range(1 if name in DRAWN else 3)]
    gaps = [discrimination(m.predict(X, **told(m, s)), sensitive_features=s) for m in models]
    assert plain > 0.2
    assert np.median(gaps) < plain - 0.1


# ---------------------------------------------------------------------- randomness


@names
def test_a_seed_repeats_the_fit_in_any_order_of_the_rows(name):
    X, y, s = problem(n=300)
    order = np.random.default_rng(0).permutation(len(X))
    first = briefly_fitted(name)
    again = brief(name).fit(X[order], y[order], sensitive_features=s[order])
    np.testing.assert_array_equal(chances(first, X, s), chances(again, X, s))
    np.testing.assert_array_equal(first.predict(X, **told(first, s)), again.predict(X, **told(again, s)))


@names
def test_another_seed_is_another_fit_or_another_draw(name):
    X, _, s = problem()
    first, second = briefly_fitted(name), briefly_fitted(name, seed=1)
    if name in DRAWN:
        assert (first.predict(X, **told(first, s)) != second.predict(X, **told(second, s))).any()
    else:
        assert abs(chances(first, X, s) - chances(second, X, s)).max() > 1e-3


@of_each([name for name in RIVALS if name not in DRAWN])
def test_no_seed_is_fresh_randomness(name):
    X, y, s = problem(n=200)
    first, second = (brief(name, random_state=None).fit(X, y, sensitive_features=s) for _ in range(2))
    assert (first.predict_proba(X) != second.predict_proba(X)).any()


@names
@pytest.mark.parametrize("random_state", [None, 0])
def test_global_generators_and_inputs_are_left_alone(name, random_state):
    X, y, s = problem(n=200)
    before = [a.copy() for a in (X, y, s)]
    states = np.random.get_state()[1:3], torch.get_rng_state(), random.getstate()  # noqa: NPY002
    model = brief(name, random_state=random_state).fit(X, y, sensitive_features=s)
    model.predict(X, **told(model, s))
    after = np.random.get_state()[1:3]  # noqa: NPY002
    assert (after[0] == states[0][0]).all()
    assert after[1] == states[0][1]
    assert torch.equal(torch.get_rng_state(), states[1])
    assert random.getstate() == states[2]
    for a, b in zip((X, y, s), before, strict=True):
        np.testing.assert_array_equal(a, b)


# ---------------------------------------------------------------------- what goes in


@names
def test_text_labels_and_groups(name):
    X, y, s = problem(n=300)
    frame, groups = pd.DataFrame(X, columns=["a", "b"]), pd.Series(np.where(s == 1, "m", "f"), name="sex")
    model = brief(name).fit(frame, np.where(y == 1, "paid", "default"), sensitive_features=groups)
    assert model.classes_.tolist() == ["default", "paid"]
    assert model.groups_ == [["f", "m"]]
    np.testing.assert_allclose(chances(model, frame, groups), chances(briefly_fitted(name), X, s), atol=1e-5)
    assert set(model.predict(frame, **told(model, groups))) <= {"default", "paid"}


@of_each([name for name in RIVALS if name != "lfr"])
def test_intersections_of_two_columns(name):
    X, y, s = problem(n=300, n_groups=4)
    columns = {"sex": s // 2, "race": np.where(s % 2, "w", "b")}
    model = brief(name).fit(X, y, sensitive_features=columns)
    assert model.groups_ == [["sex=0, race=b", "sex=0, race=w", "sex=1, race=b", "sex=1, race=w"]]
    whole = brief(name).fit(X, y, sensitive_features=s)
    np.testing.assert_array_equal(chances(model, X, columns), chances(whole, X, s))


@names
def test_whole_weights_are_copies_and_others_are_refused(name):
    X, y, s = problem(n=150)
    weight = np.arange(150) % 3
    rows = np.repeat(np.arange(150), weight)
    model = brief(name).fit(X, y, sensitive_features=s, sample_weight=weight)
    copies = brief(name).fit(X[rows], y[rows], sensitive_features=s[rows])
    np.testing.assert_array_equal(chances(model, X, s), chances(copies, X, s))
    with pytest.raises(ValueError, match=r"^\w+'s \w+ takes only whole numbers as weights: the copies of each row\.$"):
        brief(name).fit(X, y, sensitive_features=s, sample_weight=1 + weight / 7)


@names
def test_what_it_cannot_do_is_one_sentence(name):
    X, y, s = problem(n=150)
    with pytest.raises(ValueError, match=r"^y has 3 classes, \[0, 1, 2\]; \w+'s \w+ takes two\.$"):
        rival(name).fit(X, np.arange(150) % 3, sensitive_features=s)
    with pytest.raises(ValueError, match=r"^sensitive_features=None .*: \w+'s \w+ needs the columns to protect\.$"):
        rival(name).fit(X, y)
    with pytest.raises(ValueError, match="min_group_size=0 must be"):
        rival(name, groups=GroupEncoder(min_group_size=0)).fit(X, y, sensitive_features=s)


@names
def test_a_missing_library_is_named_with_the_remedy(name, monkeypatch):
    X, y, s = problem(n=150)
    model, library = rival(name), "aif360" if name == "lfr" else "fairlearn"
    for module in [module for module in sys.modules if module.split(".")[0] == library] + [library]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"{library} .* not installed. pip install 'fairbits\[compare\]'"):
        model.fit(X, y, sensitive_features=s)


# ---------------------------------------------------------------------- scikit-learn's tools, our scores


@names
def test_clone_and_pickle(name):
    X, _, s = problem()
    model = briefly_fitted(name)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert copy.set_params(random_state=5).random_state == 5
    assert not hasattr(copy, "classes_")
    np.testing.assert_array_equal(chances(pickle.loads(pickle.dumps(model)), X, s), chances(model, X, s))


@names
def test_routing_through_cross_validation(name):
    X, y, s = problem(n=300)
    with sklearn.config_context(enable_metadata_routing=True):
        model = brief(name).set_fit_request(sensitive_features=True)
        if name == "thresholds":
            model.set_score_request(sensitive_features=True)
        scores = cross_validate(model, X, y, params={"sensitive_features": s}, cv=2)
    assert scores["test_score"].min() > (0 if "adversarial" in name else 0.6)


@names
def test_held_out_scores(name):
    X, y, s = problem(seed=1)
    model = briefly_fitted(name)
    scores = held_out_scores(model, X, y, s[:, None])
    assert scores["auc"] == pytest.approx(roc_auc_score(y, chances(model, X, s)), abs=1e-12)
    assert ("one_draw_discrimination" in scores) == (name in DRAWN)
    if name in DRAWN:
        drawn = model.predict(X, **told(model, s))
        assert scores["one_draw_discrimination"] == discrimination(drawn, sensitive_features=s)
