"""Estimates of p(y, s | x): out of fold, close to the truth, for any table, any classifier."""

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from battery import one_quickly
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_info

from fairbits import InputError, PosteriorEncoder
from fairbits.estimators import posterior

LINEAR = LogisticRegression()


def population(n, seed=0):
    """Return x, y, s and the true log-odds of y given x, and of s given x and y = 0 and 1."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    of_label = 2 * x[:, 0] - 0.5
    y = (rng.random(n) < 1 / (1 + np.exp(-of_label))).astype(int)
    of_group = [x[:, 1] + label for label in (0, 1)]
    s = (rng.random(n) < 1 / (1 + np.exp(-np.where(y == 1, of_group[1], of_group[0])))).astype(int)
    return x, y, s, np.column_stack([of_label, *of_group])


@pytest.mark.parametrize("n_trees", one_quickly([30, 100]))
def test_the_estimates_are_the_populations(n_trees, monkeypatch):
    few = partial(HistGradientBoostingClassifier, max_iter=n_trees)
    monkeypatch.setattr(posterior, "HistGradientBoostingClassifier", few)
    x, y, s, _ = population(20_000)
    encoder = PosteriorEncoder(columns=False, cv=2).fit(x, y, sensitive_features=s)
    new, _, _, truth = population(2_000, seed=1)
    found = encoder.transform(new) * encoder.scale_ + encoder.mean_
    linear, boosted = found[:, :3], found[:, 3:]
    assert np.abs(linear - truth).max() < 0.3
    assert np.abs(boosted - truth).mean() < 0.4


@pytest.fixture(scope="module")
def noise():
    """Return a forest that learned labels and groups of noise, the rows, their labels and their estimates."""
    rng = np.random.default_rng(0)
    X, y, s = rng.normal(size=(600, 5)), rng.integers(0, 2, 600), rng.integers(0, 2, 600)
    encoder = PosteriorEncoder(RandomForestClassifier(20, random_state=0), columns=False)
    return encoder, X, y, encoder.fit_transform(X, y, sensitive_features=s)


def test_fit_transform_returns_estimates_that_have_not_seen_the_row(noise):
    encoder, X, y, held = noise
    assert roc_auc_score(y, encoder.transform(X)[:, 0]) > 0.95  # a forest knows its own rows by heart
    assert abs(roc_auc_score(y, held[:, 0]) - 0.5) < 0.08


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("estimators", ["default", LINEAR])
def test_mixed_tables_with_gaps(frame, estimators):
    rng = np.random.default_rng(0)
    job, age = rng.choice(["a", "b", "c"], 400).tolist(), rng.normal(40, 10, 400)
    y = (age + 10 * (np.array(job) == "a") > 42).astype(int)
    age[:5], job[7] = np.nan, None
    table = frame({"age": age, "job": job}) if estimators == "default" else frame({"age": np.nan_to_num(age)})
    found = PosteriorEncoder(estimators).fit_transform(table, y, sensitive_features=rng.choice(["f", "m"], 400))
    assert np.isfinite(found).all()
    assert roc_auc_score(y, found[:, 0]) > 0.8


@pytest.mark.parametrize(("groups", "width"), [("intersection", 2 + 3 * 3), ("each", 2 + 3 * 1 + 3 * 1)])
def test_three_classes_and_two_columns(groups, width):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(900, 2)), rng.integers(0, 3, 900)
    s = pd.DataFrame({"sex": rng.choice(["f", "m"], 900), "old": rng.choice([False, True], 900)})
    encoder = PosteriorEncoder(columns=False, groups=groups)
    found = encoder.fit_transform(X, y, sensitive_features=s)
    assert found.shape == (900, width) == (900, len(encoder.get_feature_names_out()))
    assert PosteriorEncoder(groups=groups).fit_transform(X, y, sensitive_features=s).shape == (900, width + 2)


def test_a_rare_label_in_a_group_and_a_rare_class():
    rng = np.random.default_rng(0)
    X, y, s = rng.normal(size=(300, 2)), rng.integers(0, 2, 300), rng.integers(0, 2, 300)
    y[s == 1] = 0
    y[np.flatnonzero(s == 1)[:3]] = 1  # a combination of 3 rows
    y[0] = 2  # a class of one row
    assert np.isfinite(PosteriorEncoder().fit_transform(X, y, sensitive_features=s)).all()


def test_a_fitted_classifier_is_used_as_it_is():
    x, y, s, truth = population(600)
    known = LogisticRegression().fit(*population(5_000, seed=2)[:2])
    encoder = PosteriorEncoder([FrozenEstimator(known), LINEAR], columns=False)
    held = encoder.fit_transform(x, y, sensitive_features=s)
    assert held.shape == (600, 1 + 3)
    np.testing.assert_allclose(held[:, 0], encoder.transform(x)[:, 0])
    assert np.corrcoef(held[:, 0], truth[:, 0])[0, 1] > 0.999


def test_weights_are_copies():
    x, y, s, _ = population(200)
    weight = np.random.default_rng(0).integers(1, 4, 200)
    weighted = PosteriorEncoder(LINEAR, columns=False).fit(x, y, sensitive_features=s, sample_weight=weight)
    copies = [np.repeat(part, weight, axis=0) for part in (x, y, s)]
    repeated = PosteriorEncoder(LINEAR, columns=False).fit(copies[0], copies[1], sensitive_features=copies[2])
    assert weighted.models_[0][0].coef_ == pytest.approx(repeated.models_[0][0].coef_, abs=1e-3)


def test_groups_go_through_a_pipeline():
    x, y, s, _ = population(300)
    pipeline = make_pipeline(StandardScaler(), PosteriorEncoder(LINEAR), LogisticRegression())
    pipeline.fit(x, y, posteriorencoder__sensitive_features=s)
    assert pipeline.score(x, y) > 0.7


def test_a_classifier_without_probabilities_gets_a_sentence():
    x, y, s, _ = population(100)
    with pytest.raises(InputError, match="has no predict_proba"):
        PosteriorEncoder(LinearSVC()).fit(x, y, sensitive_features=s)


def test_a_constant_column_is_no_trouble():
    _, y, s, _ = population(100)
    found = PosteriorEncoder(LINEAR, columns=False).fit_transform(np.eye(2)[y], y, sensitive_features=s)
    assert np.isfinite(found).all()


def joint_truth(truth):
    """Return p(y, s | x) of the population above.  (n, 2, 2)"""
    of_label, *of_group = 1 / (1 + np.exp(-truth.T))
    label, group = np.stack([1 - of_label, of_label], 1), np.stack(of_group, 1)
    return label[:, :, None] * np.stack([1 - group, group], 2)


@pytest.mark.parametrize("columns", [True, False])
def test_the_joint_posterior_is_the_populations(columns):
    x, y, s, truth = population(20_000)
    encoder = PosteriorEncoder(LINEAR, columns=columns)
    held = encoder.posterior(encoder.fit_transform(x, y, sensitive_features=s))
    np.testing.assert_allclose(held.sum((1, 2)), 1)
    assert np.abs(held - joint_truth(truth)).max() < 0.05
    new, _, _, truth = population(1_000, seed=1)
    assert np.abs(encoder.posterior(encoder.transform(new)) - joint_truth(truth)).max() < 0.05


def test_noise_has_no_posterior(noise):
    """A forest knows its own rows by heart; the posterior of other rows is the share of each class and group."""
    encoder, _, y, held = noise
    held = encoder.posterior(held)
    assert np.abs(held.sum(2)[:, 1] - y.mean()).mean() < 0.05
    assert abs(roc_auc_score(y, held.sum(2)[:, 1]) - 0.5) < 0.08


def test_the_posterior_of_three_classes_and_each_of_two_columns():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(900, 2)), rng.integers(0, 3, 900)
    s = pd.DataFrame({"sex": (X[:, 0] > 0).astype(int), "job": rng.choice(list("abcd"), 900)})
    encoder = PosteriorEncoder([LINEAR, RandomForestClassifier(20, random_state=0)], groups="each")
    features = encoder.fit_transform(X, y, sensitive_features=s)
    sex, job = (encoder.posterior(features, column=column) for column in (0, 1))
    assert (sex.shape, job.shape) == ((900, 3, 2), (900, 3, 4))
    np.testing.assert_allclose(sex.sum(2), job.sum(2))
    assert roc_auc_score(s["sex"], sex.sum(1)[:, 1]) > 0.99


def test_a_posterior_needs_a_learner_of_the_groups():
    x, y, s, _ = population(600)
    known = LogisticRegression().fit(*population(5_000, seed=2)[:2])
    encoder = PosteriorEncoder(FrozenEstimator(known), columns=False)
    features = encoder.fit_transform(x, y, sensitive_features=s)
    with pytest.raises(InputError, match="knows the label only"):
        encoder.posterior(features)
    beside = PosteriorEncoder([FrozenEstimator(known), LINEAR], columns=False)
    joint = beside.posterior(beside.fit_transform(x, y, sensitive_features=s))
    assert joint.shape == (600, 2, 2)


def test_a_single_classifier_keeps_its_most_probable_class():
    x, y, s, _ = population(400)
    x, y = (
        np.hstack([x, np.random.default_rng(1).normal(size=(400, 40))]),
        (y & (s == 1)).astype(int),
    )  # learnt by heart
    encoder = PosteriorEncoder(LINEAR, columns=False).fit(x, y, sensitive_features=s)
    alone = LogisticRegression().fit(x, y)
    new, *_ = population(2_000, seed=2)
    new = np.hstack([new, np.random.default_rng(3).normal(size=(2_000, 40))])
    label = encoder.label_probabilities(encoder.transform(new))
    assert (label.argmax(1) == alone.predict(new)).all()
    assert abs(label[:, 1] - 0.5).mean() < abs(alone.predict_proba(new)[:, 1] - 0.5).mean() - 0.01  # less sure


@pytest.mark.parametrize(
    ("sees", "rows", "limited"), [("levels", 2_000, True), ("levels", 10**6, False), ("rows", 2_000, False)]
)
def test_our_trees_use_one_thread_on_few_rows_and_classifiers_of_users_their_own(sees, rows, limited):
    before = [pool["num_threads"] for pool in threadpool_info()]
    with posterior.Learner("", None, sees).threads(rows):
        within = [pool["num_threads"] for pool in threadpool_info()]
    assert within == ([1] * len(before) if limited else before)
    assert [pool["num_threads"] for pool in threadpool_info()] == before
