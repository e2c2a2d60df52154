"""A frontier in one call."""

import json

import battery
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from fairbits import (
    BinaryBernoulliClassifier,
    BinaryMIClassifier,
    FairCodeClassifier,
    LinearCodeClassifier,
    TableEncoder,
    TradeoffPath,
    VanillaClassifier,
)
from fairbits.estimators.codes import held_out_scores
from fairbits.estimators.fitting import stratified_folds
from fairbits.estimators.path_chart import path_chart


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    y, s = rng.integers(0, 2, (2, 900))
    return np.column_stack([2 * y, 2 * s, y + s]) + rng.normal(size=(900, 3)), y, np.array(["f", "m"])[s]


def quick(**settings):
    return battery.quick(BinaryBernoulliClassifier, **settings)


@pytest.mark.parametrize(
    ("cls", "settings"),
    [
        pytest.param(BinaryMIClassifier, {"min_steps": 200}, marks=pytest.mark.slow),
        (BinaryBernoulliClassifier, {"min_steps": 100, "learning_rate": 0.003}),
    ],
)
def test_a_path_has_an_estimator_per_gamma_and_a_score_per_fold(table, cls, settings):
    X, y, s = table
    estimator = battery.quick(cls, **settings)
    path = TradeoffPath(estimator, [0.0, 0.5, 0.95]).fit(X, y, sensitive_features=s)
    assert [m.gamma for m in path.estimators_] == [0.0, 0.5, 0.95]
    assert len(path.scores_) == 9
    means = path.scores_.groupby("gamma")[["auc", "information"]].mean()
    assert means.information.is_monotonic_decreasing
    assert means.information.iloc[-1] < means.information.iloc[0] / 5
    assert means.auc.iloc[0] > 0.85
    assert path.summary().shape == (3, 22)


def test_scores_are_those_of_the_rows_left_out(table):
    X, y, s = table
    path = TradeoffPath(quick(), [0.3], cv=2, random_state=4).fit(X, y, sensitive_features=s)
    codes = (s == "m").astype(int)[:, None]
    train, test = stratified_folds(y, codes, 2, 4)[0]
    alone = quick(gamma=0.3).fit(X[train], y[train], sensitive_features=s[train])
    expected = held_out_scores(alone, X[test], y[test], codes[test])
    assert path.scores_.iloc[0].auc == pytest.approx(expected["auc"], abs=0.01)


def test_folds_hold_their_share_of_every_cell(table):
    _, y, s = table
    codes = (s == "m").astype(int)[:, None]
    for train, test in stratified_folds(y, codes, 3, 0):
        assert not set(train) & set(test)
        for label in (0, 1):
            for group in (0, 1):
                cell = (y == label) & (codes[:, 0] == group)
                assert abs(cell[test].sum() - cell.sum() / 3) <= 1


def test_frames_are_taken_as_they_are(table):
    X, y, s = table
    frame = pd.DataFrame(X, columns=list("abc"), index=np.arange(900)[::-1])
    path = TradeoffPath(quick(), [0.3], cv=2).fit(frame, pd.Series(y), sensitive_features=pd.Series(s, name="sex"))
    bare = TradeoffPath(quick(), [0.3], cv=2).fit(X, y, sensitive_features=s)
    pd.testing.assert_frame_equal(path.scores_, bare.scores_)
    assert list(path.estimators_[0].feature_names_in_) == ["a", "b", "c"]


def test_a_pipeline_encodes_every_fold_by_its_own_rows(table):
    X, y, s = table
    frame = pd.DataFrame(X, columns=list("abc")).assign(job=np.where(y > 0, "cook", "nurse"))
    pipeline = make_pipeline(TableEncoder(), quick())
    path = TradeoffPath(pipeline, [0.0, 0.3], cv=2, random_state=4).fit(frame, y, sensitive_features=s)
    codes = (s == "m").astype(int)[:, None]
    train, test = stratified_folds(y, codes, 2, 4)[0]
    alone = clone(pipeline).set_params(binarybernoulliclassifier__gamma=0.3)
    alone.fit(frame.iloc[train], y[train], binarybernoulliclassifier__sensitive_features=s[train])
    expected = held_out_scores(alone[-1], alone[0].transform(frame.iloc[test]), y[test], codes[test])
    found = path.scores_.query("gamma == 0.3 and fold == 0").iloc[0]
    assert found.auc == pytest.approx(expected["auc"], abs=1e-4)
    assert found.information == pytest.approx(expected["information"], abs=1e-4)
    assert [(len(model), model[-1].gamma) for model in path.estimators_] == [(2, 0.0), (2, 0.3)]
    assert path.estimators_[0].predict(frame).shape == (900,)
    np.testing.assert_allclose(path.estimators_[0][0].features_[0].center, frame.a.mean())  # of all rows


def test_a_plot_has_every_fold_and_says_which_side_is_fairer(table):
    X, y, s = table
    scores = TradeoffPath(quick(), [0.0, 0.3], cv=2).fit(X, y, sensitive_features=s)
    chart = scores.plot().to_dict()
    text = json.dumps(chart)
    for words in ("(\\u2190 fairer)", "one fold", "mean of the folds", "as good as the best mean", "gamma"):
        assert words in text
    assert chart["title"]["text"] == "BinaryBernoulliClassifier"
    drawn = [row for rows in chart["datasets"].values() for row in rows if row.get("what") == "one fold"]
    assert sorted({row["gpa"] for row in drawn}) == sorted(scores.scores_.one_draw_gpa)
    hard = path_chart(scores.scores_.drop(columns=["one_draw_auc", "information"]), "no code")  # of a rival
    assert len(hard.to_dict()["hconcat"]) == 1


def largest_difference(codes, y, groups, label=None):
    """Return the total variation between the words of two groups, counted."""
    rows = np.full(len(y), True) if label is None else y == label
    words = pd.crosstab(codes[rows] @ 2 ** np.arange(codes.shape[1]), groups[rows], normalize="columns")
    return (words.iloc[:, 0] - words.iloc[:, 1]).abs().sum() / 2


@pytest.fixture(scope="module")
def limited(table):
    X, y, s = table
    return TradeoffPath(FairCodeClassifier(random_state=0), limits=[0.05, 0.4], cv=2).fit(X, y, sensitive_features=s)


def test_a_path_over_limits_has_the_models_that_are_fitted_alone(table, limited):
    X, y, s = table
    assert [model[-1].limit for model in limited.estimators_] == [0.05, 0.4]
    assert limited.estimators_[0][0] is limited.estimators_[1][0]  # the estimates of p(y,s|x) are made once
    train, test = stratified_folds(y, (s == "m").astype(int)[:, None], 2, 0)[0]
    for limit, model in zip(limited.limits, limited.estimators_, strict=True):
        whole = FairCodeClassifier(limit=limit, random_state=0).fit(X, y, sensitive_features=s)
        np.testing.assert_array_equal(model.transform(X), whole.transform(X))
        fold = FairCodeClassifier(limit=limit, random_state=0).fit(X[train], y[train], sensitive_features=s[train])
        found = limited.scores_.query("limit == @limit and fold == 0").iloc[0]
        assert found.accuracy == fold.score(X[test], y[test])
        assert found.disparity == pytest.approx(largest_difference(fold.transform(X[test]), y[test], s[test]))


def test_a_path_over_limits_trades_accuracy_for_disparity(limited):
    means = limited.summary().xs("mean", axis=1, level=1)
    assert means.index.name == "limit"
    assert means.disparity.is_monotonic_increasing
    assert means.accuracy.is_monotonic_increasing
    assert list(limited.front_) == ["disparity", "accuracy", "auc"]
    assert (limited.front_.disparity <= np.array([0.05, 0.4]) + 1e-9).all()
    assert (limited.front_.auc - means.auc.to_numpy() > -0.03).all()  # an estimate of the best there is


def test_the_disparity_of_equalised_odds_is_that_within_labels(table):
    X, y, s = table
    method = LinearCodeClassifier(condition_on_label=True, random_state=0)
    path = TradeoffPath(method, limits=[0.2], cv=2).fit(X, y, sensitive_features=s)
    assert path.front_ is None
    train, test = stratified_folds(y, (s == "m").astype(int)[:, None], 2, 0)[0]
    alone = clone(method).set_params(limit=0.2).fit(X[train], y[train], sensitive_features=s[train])
    codes = alone.transform(X[test])
    expected = max(largest_difference(codes, y[test], s[test], label) for label in (0, 1))
    assert path.scores_.disparity[0] == pytest.approx(expected)


def test_the_plot_of_limits_stands_before_the_optimal_front(limited):
    text = json.dumps(limited.plot("mine").to_dict())
    for words in ("mine", "optimal front, estimated", "the limit itself", "accuracy (more accurate"):
        assert words in text
    drawn = [row for rows in limited.plot().to_dict()["datasets"].values() for row in rows]
    assert {row["disparity"] for row in drawn} >= {*limited.scores_.disparity, *limited.front_.disparity}
    assert limited.plot().to_dict()["title"]["text"] == "FairCodeClassifier"
    assert "optimal front" not in json.dumps(path_chart(limited.scores_, "of numbers").to_dict())


@pytest.mark.parametrize("estimator", [quick(), make_pipeline(TableEncoder(), quick())], ids=["method", "pipeline"])
def test_progress_runs_from_nothing_to_everything(table, estimator):
    X, y, s = table
    seen = []
    path = TradeoffPath(estimator, [0.1, 0.9], cv=2, on_epoch=lambda done, most: seen.append(done / most))
    path.fit(X, y, sensitive_features=s)
    assert seen == sorted(seen)
    assert seen[-1] == 1


def test_bad_arguments_are_named(table):
    X, y, s = table
    with pytest.raises(ValueError, match=r"VanillaClassifier.*no gamma and no limit"):
        TradeoffPath(VanillaClassifier()).fit(X, y, sensitive_features=s)
    with pytest.raises(ValueError, match="sensitive_features is None"):
        TradeoffPath(quick()).fit(X, y, sensitive_features=None)
    with pytest.raises(ValueError, match=r"3 folds.*cell of row 0"):
        TradeoffPath(quick(), [0.1]).fit(X, np.where(np.arange(900) < 4, 2, y), sensitive_features=s)
    with pytest.raises(ValueError, match="LinearCodeClassifier has a limit to vary, and no gamma"):
        TradeoffPath(LinearCodeClassifier(), [0.1]).fit(X, y, sensitive_features=s)
    with pytest.raises(ValueError, match="BinaryBernoulliClassifier has a gamma to vary, and no limit"):
        TradeoffPath(quick(), limits=[0.1]).fit(X, y, sensitive_features=s)
    with pytest.raises(ValueError, match="no limits to try"):
        TradeoffPath(LinearCodeClassifier(), limits=[]).fit(X, y, sensitive_features=s)
    with pytest.raises(ValueError, match=r"limit=1.5"):
        TradeoffPath(LinearCodeClassifier(), limits=[1.5]).fit(X, y, sensitive_features=s)
    with pytest.raises(ValueError, match="no gammas to try"):
        TradeoffPath(quick(), []).fit(X, y, sensitive_features=s)
    with pytest.raises(ValueError, match="cv=1"):
        TradeoffPath(quick(), [0.1], cv=1).fit(X, y, sensitive_features=s)
    with pytest.raises(ValueError, match=r"gamma=1.5"):
        TradeoffPath(quick(), [1.5]).fit(X, y, sensitive_features=s)
