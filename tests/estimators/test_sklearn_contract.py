"""scikit-learn's own checks and its tools around our estimators."""

import pickle

import numpy as np
import pytest
import sklearn
from battery import CODES, ESTIMATORS, KINDS, LEARNS, WAYS, by_kind, fitted, problem, quick
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from fairbits.estimators import (
    BinaryMIClassifier,
    MissingSensitiveFeaturesWarning,
    Schedule,
)


@pytest.mark.filterwarnings("ignore::fairbits.estimators.MissingSensitiveFeaturesWarning")
def test_scikit_learn_checks():
    brief = BinaryMIClassifier(max_epochs=1, learning_rate=0.02, schedule=Schedule(min_steps=20))
    check_estimator(brief, on_skip=None)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fairbits.estimators.MissingSensitiveFeaturesWarning")
@pytest.mark.parametrize("cls", ESTIMATORS)
def test_scikit_learn_checks_of_all_with_their_own_settings(cls):
    check_estimator(cls(), on_skip=None)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.parametrize("cls", by_kind(kinds=KINDS[:2]))
def test_routing_through_a_pipeline_and_cross_validation(cls, routing):
    X, y, s = problem()
    model = make_pipeline(StandardScaler(), quick(cls, **LEARNS).set_fit_request(sensitive_features=True))
    scores = cross_validate(model, X, y, params={"sensitive_features": s}, cv=2, scoring="roc_auc")
    assert scores["test_score"].min() > 0.75


@pytest.mark.parametrize("cls", CODES)
def test_grid_search_over_gamma_with_routing(cls, routing):
    X, y, s = problem()
    search = GridSearchCV(quick(cls).set_fit_request(sensitive_features=True), {"gamma": [0.0, 0.5]}, cv=2)
    search.fit(X, y, sensitive_features=s)
    assert search.best_params_["gamma"] in (0.0, 0.5)
    assert len(search.best_estimator_.groups_[0]) == 2


@pytest.mark.parametrize("cls", by_kind(kinds=WAYS))
def test_pipelines_without_routing(cls):
    X, y, s = problem()
    model = make_pipeline(StandardScaler(), quick(cls))
    model.fit(X, y, **{f"{cls.__name__.lower()}__sensitive_features": s})
    assert model[-1].groups_ == [["0", "1"]]


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_clone_and_pickle(cls):
    X, _, _ = problem()
    model = fitted(cls)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict_proba(X), model.predict_proba(X))
    assert copy.history_ == model.history_
    assert clone(model).get_params() == model.get_params()
    assert not hasattr(clone(model), "net_")


def test_a_pickle_holds_each_parameter_once():
    X, y, s = problem()
    sizes = [
        len(pickle.dumps(quick(CODES[0], hidden_sizes=(width,) * 4).fit(X, y, sensitive_features=s)))
        for width in (8, 64)
    ]
    n_parameters = 4 * (3 * 64**2)  # bytes of the wide net's hidden layers
    assert sizes[1] - sizes[0] < 2 * n_parameters


@pytest.mark.parametrize("cls", CODES)
def test_transform_returns_named_bits(cls):
    X, y, s = problem()
    model = quick(cls, code_size=3).fit(X, y, sensitive_features=s)
    code = model.transform(X)
    assert code.dtype == np.uint8
    assert code.shape == (600, 3)
    assert set(np.unique(code)) <= {0, 1}
    assert list(model.get_feature_names_out()) == ["bit0", "bit1", "bit2"]
    frame = clone(model).set_output(transform="pandas").fit(X, y, sensitive_features=s).transform(X)
    assert list(frame.columns) == ["bit0", "bit1", "bit2"]


@pytest.mark.parametrize("cls", CODES)
def test_a_fit_without_sensitive_features_warns(cls):
    X, y, _ = problem()
    with pytest.warns(MissingSensitiveFeaturesWarning, match="nothing is protected"):
        quick(cls).fit(X, y)
