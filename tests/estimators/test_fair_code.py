"""The recommended estimator and its encoders inside scikit-learn, on tables of all kinds, and told S."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from battery import LEARNS, PIPELINE, brief_pipeline, quick
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import DataConversionWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_validate, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator

from fairbits import (
    AdversarialClassifier,
    BinaryMIClassifier,
    CertifiedClassifier,
    ExactCodeClassifier,
    FairCodeClassifier,
    InputError,
    PosteriorEncoder,
    TableEncoder,
    VFAEClassifier,
    audit,
    certify,
    release,
)
from fairbits.certificate import TrainingRowsWarning
from fairbits.encoding import BinnedSensitiveFeaturesWarning, NothingToEncodeError, SmallGroupError, UnseenGroupError
from fairbits.estimators.inputs import SensitiveFeatureInXWarning

OWN = ExactCodeClassifier.own_schedule
LEARNING = quick(BinaryMIClassifier, **LEARNS)  # to be cloned


@pytest.fixture(autouse=True)
def _brief(request, monkeypatch):
    """Train for a moment, unless the test is slow."""
    if not request.node.get_closest_marker("slow"):
        monkeypatch.setattr(ExactCodeClassifier, "own_schedule", replace(OWN, min_steps=40))
        monkeypatch.setattr(FairCodeClassifier, "pipeline", brief_pipeline)


def people(n=600, seed=0, frame=pd.DataFrame):
    """A mixed table with gaps, a label and the sex that moves both; 600 rows are for logistic regression alone."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], n)
    y = np.where(rng.random(n) < np.where(sex == "m", 0.6, 0.4), "yes", "no")
    pay = 30 + 10 * (y == "yes") + 5 * (sex == "m") + 5 * rng.normal(size=n)
    job = np.where(rng.random(n) < 0.7, np.where(y == "yes", "clerk", "cook"), rng.choice(["nurse", "smith"], n))
    pay[rng.random(n) < 0.1] = np.nan
    job = [None if gap else str(name) for gap, name in zip(rng.random(n) < 0.1, job, strict=True)]
    return frame({"pay": pay, "job": job, "age": rng.integers(20, 70, n)}), y, sex


def numbers(n=400, seed=0, n_classes=2):
    rng = np.random.default_rng(seed)
    y, s = rng.integers(0, n_classes, n), rng.integers(0, 2, n)
    return np.column_stack([2 * y, s, y + s]) + rng.normal(size=(n, 3)), y, s


# ------------------------------------------------------------------ scikit-learn's checks

FOLDS = "three copies of a row are three people, in folds of their own; one row of weight 3 is in one fold"
HELD_OUT = "fit_transform returns estimates by models that have not seen the row, transform those of all rows"
INHERENT = {
    "FairCodeClassifier": {"check_sample_weight_equivalence_on_dense_data": FOLDS},
    "PosteriorEncoder": {
        "check_sample_weight_equivalence_on_dense_data": FOLDS,
        "check_transformer_general": HELD_OUT,
        "check_transformer_data_not_an_array": HELD_OUT,
    },
    "TableEncoder": {},
}
BRIEF = ("supervised_y", "requires_y", "one_label", "parameters")  # those that hardly train


def check_all(estimator):
    check_estimator(estimator, expected_failed_checks=INHERENT[type(estimator).__name__], on_skip=None)


@pytest.mark.parametrize("encoder", [PosteriorEncoder, TableEncoder])
def test_scikit_learn_checks_of_the_encoders(encoder):
    check_all(encoder())


@pytest.mark.filterwarnings("ignore::fairbits.estimators.MissingSensitiveFeaturesWarning")
@pytest.mark.parametrize("part", BRIEF)
def test_some_scikit_learn_checks(part):
    found = [check for _, check in estimator_checks_generator(FairCodeClassifier()) if part in check.func.__name__]
    assert found
    for check in found:
        check(FairCodeClassifier())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fairbits.estimators.MissingSensitiveFeaturesWarning")
@pytest.mark.parametrize("release", ["hard", "random"])
def test_scikit_learn_checks(release):
    check_all(FairCodeClassifier(release=release))


# ------------------------------------------------------------------ tables, rows and weights


def test_mixed_tables_with_gaps_from_any_library():
    shown = []
    for frame in (pd.DataFrame, pl.DataFrame):
        X, y, s = people(frame=frame)
        model = FairCodeClassifier(limit=0.2, random_state=0).fit(X, y, sensitive_features=s)
        assert (model.predict(X) == y).mean() > 0.75
        assert list(model.feature_names_in_) == ["pay", "job", "age"]
        shown.append(model.predict_proba(X))
    np.testing.assert_array_equal(*shown)
    X, y, s = people(frame=dict)
    as_category = pd.DataFrame(X).astype({"job": "category"})
    model = FairCodeClassifier(limit=0.2, random_state=0).fit(as_category, y, sensitive_features=pd.Series(s))
    np.testing.assert_array_equal(model.predict_proba(as_category), shown[0])


def test_the_order_of_the_rows_does_not_matter():
    X, y, s = people()
    order = np.random.default_rng(1).permutation(len(y))
    encoder, other = PosteriorEncoder(), PosteriorEncoder()
    held = encoder.fit_transform(X, y, sensitive_features=s)
    shuffled = other.fit_transform(X.iloc[order], y[order], sensitive_features=s[order])
    same = held[order] == shuffled  # but for people with the same values, who may have changed places
    assert same.all(1).mean() > 0.98
    np.testing.assert_array_equal(np.unique(held, axis=0), np.unique(shuffled, axis=0))
    models = [FairCodeClassifier(random_state=0) for _ in range(2)]
    models[0].fit(X, y, sensitive_features=s)
    models[1].fit(X.iloc[order], y[order], sensitive_features=s[order])
    np.testing.assert_array_equal(*(m.predict_proba(X) for m in models))


def test_a_row_of_weight_zero_counts_as_absent_and_equal_weights_as_none():
    X, y, s = people()
    weight = np.where(np.arange(len(y)) % 5 == 0, 0.0, 2.5)
    X.loc[::5, "pay"] = 1e6  # would move the scales
    kept = weight > 0
    weighted = FairCodeClassifier(random_state=0).fit(X, y, sensitive_features=s, sample_weight=weight)
    removed = FairCodeClassifier(random_state=0).fit(X[kept], y[kept], sensitive_features=s[kept])
    np.testing.assert_allclose(weighted.predict_proba(X), removed.predict_proba(X), atol=1e-6)
    held = PosteriorEncoder().fit_transform(X, y, sensitive_features=s, sample_weight=weight)
    assert held.shape[0] == len(y)
    assert np.isfinite(held).all()


def test_weights_move_the_models_and_the_scales():
    X, y, s = people()
    weight = np.random.default_rng(0).uniform(0.5, 1, len(y)) * np.where(y == "yes", 6, 1)
    noise = y[np.random.default_rng(1).permutation(len(y))]  # y itself a hard code predicts too well for weights
    for kind, labels, shift in (("random", y, 0.1), ("hard", noise, 0.25)):
        own = weight * np.where(labels == "yes", 6, 1) / np.where(y == "yes", 6, 1)
        given = [{"sensitive_features": s, "sample_weight": w} for w in (None, own)]
        fits = (FairCodeClassifier(release=kind, random_state=0).fit(X, labels, **known) for known in given)
        plain, weighted = (model.predict_proba(X)[:, 1].mean() for model in fits)
        assert weighted > plain + shift
    encoder = PosteriorEncoder(LogisticRegression(), columns=False)
    Z = encoder.fit_transform(X[["age"]], y, sensitive_features=s, sample_weight=weight)
    np.testing.assert_allclose(np.average(Z, axis=0, weights=weight), 0, atol=1e-5)
    np.testing.assert_allclose(np.average(Z**2, axis=0, weights=weight), 1, atol=1e-5)


def test_a_column_of_labels_is_taken_with_a_warning():
    X, y, s = numbers()
    with pytest.warns(DataConversionWarning):
        model = FairCodeClassifier(random_state=0).fit(X, y[:, None], sensitive_features=s)
    assert model.predict(X).shape == (400,)


def test_training_rows_that_come_back_are_recognised():
    """The code was trained on estimates of models that had not seen the row; later ones have."""
    X, y, s = people()
    model = FairCodeClassifier(limit=0.5, random_state=0).fit(X, y, sensitive_features=s)
    with pytest.warns(TrainingRowsWarning):
        model.certify(X, sensitive_features=s)
    certified = CertifiedClassifier(model, max_disparity=0.9, path=(0.5,), random_state=0)
    certified.fit(X, y, sensitive_features=s)
    for part in train_test_split(np.arange(600), test_size=0.3, random_state=0):  # those that train, and that certify
        with pytest.warns(TrainingRowsWarning):
            certify(certified, X.iloc[part], sensitive_features=s[part])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fresh, _, groups = people(seed=1)
        model.certify(fresh, sensitive_features=groups)


# ------------------------------------------------------------------ scikit-learn's tools


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_routing_through_pipelines_cross_validation_and_searches(routing):
    X, y, s = numbers()
    model = FairCodeClassifier(limit=0.3, random_state=0).set_fit_request(sensitive_features=True)
    pipeline = make_pipeline(StandardScaler(), model)
    scores = cross_validate(pipeline, X, y, params={"sensitive_features": s}, cv=2, scoring="roc_auc")
    assert scores["test_score"].min() > 0.7
    search = GridSearchCV(model, {"limit": [0.1, 0.9]}, cv=2).fit(X, y, sensitive_features=s)
    assert search.best_estimator_.estimator_[-1].groups_ == [["0", "1"]]
    fresh, _, groups = numbers(seed=1)
    assert certify(search, fresh, sensitive_features=groups).release["hard"]
    np.testing.assert_array_equal(release(search, fresh).codes, search.transform(fresh))


def test_routing_of_groups_that_the_encoder_is_told(routing):
    X, y, s = numbers()
    model = FairCodeClassifier(limit=0.3, encode_sensitive=True, random_state=0)
    model.set_fit_request(sensitive_features=True).set_score_request(sensitive_features=True)
    scores = cross_validate(model, X, y, params={"sensitive_features": s}, cv=2)
    assert scores["test_score"].min() > 0.6
    encoder = PosteriorEncoder(encode_sensitive=True)
    encoder.set_fit_request(sensitive_features=True).set_transform_request(sensitive_features=True)
    pipeline = make_pipeline(encoder, LogisticRegression()).fit(X, y, sensitive_features=s)
    assert (pipeline.predict(X, sensitive_features=s) == y).mean() > 0.7


def test_clone_parameters_and_pickle():
    X, y, s = people()
    model = FairCodeClassifier(0.1, code_size=3, estimators=LogisticRegression(), random_state=0)
    assert clone(model).get_params() | {"estimators": None} == model.get_params() | {"estimators": None}
    assert clone(model.set_params(estimators__C=0.5)).get_params()["estimators__C"] == 0.5
    model.set_params(estimators="default").fit(X, y, sensitive_features=s)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.transform(X), model.transform(X))
    assert not hasattr(clone(model), "estimator_")
    encoder = model.estimator_[0]
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(encoder)).transform(X), encoder.transform(X))


def test_outputs_have_names():
    X, y, s = people()
    model = FairCodeClassifier(code_size=3, random_state=0).set_output(transform="pandas")
    codes = model.fit_transform(X, y, sensitive_features=s)
    assert list(codes.columns) == ["bit0", "bit1", "bit2"]
    encoder = PosteriorEncoder().set_output(transform="pandas")
    features = encoder.fit_transform(X, y, sensitive_features=s)
    assert list(features.columns[:3]) == ["linear: yes", "linear: m if no", "linear: m if yes"]
    assert list(features.columns[3:]) == list(TableEncoder().fit(X).get_feature_names_out())
    with sklearn.config_context(transform_output="pandas"):
        everywhere = FairCodeClassifier(code_size=3, random_state=0).fit(X, y, sensitive_features=s)
        np.testing.assert_array_equal(everywhere.transform(X), codes)


def test_a_second_fit_forgets_the_names_of_the_first():
    X, y, s = people()
    model = FairCodeClassifier(random_state=0).fit(X, y, sensitive_features=s)
    rows, labels, groups = numbers()
    model.fit(rows, labels, sensitive_features=groups)
    assert not hasattr(model, "feature_names_in_")
    assert (model.n_features_in_, model.predict(rows).shape) == (3, (400,))


# ------------------------------------------------------------------ the classifiers behind it


@pytest.mark.parametrize("told", [False, True])
def test_any_classifier_of_scikit_learn_may_estimate(told):
    X, y, s = numbers()
    frozen = FrozenEstimator(LogisticRegression().fit(*numbers(seed=9)[:2]))
    own = [RandomForestClassifier(10, random_state=0), KNeighborsClassifier(), frozen]
    model = FairCodeClassifier(0.3, estimators=own, encode_sensitive=told, random_state=0)
    model.fit(X, y, sensitive_features=s, sample_weight=np.where(y == 1, 1.5, 1.0))
    known = {"sensitive_features": s} if told else {}
    assert model.score(X, y, **known) > 0.7
    names = [learner.name for learner in model.estimator_[0].learners_]
    assert names == ["RandomForestClassifier0", "KNeighborsClassifier1", "FrozenEstimator2"]


def test_several_sensitive_columns_and_thin_crossings():
    X, y, s = people()
    columns = pd.DataFrame({"sex": s, "town": np.where(np.arange(600) < 6, "small", np.where(X["age"] > 45, "a", "b"))})
    with pytest.raises(SmallGroupError, match="groups='each'"):
        FairCodeClassifier().fit(X, y, sensitive_features=columns)
    columns["town"] = columns["town"].replace("small", "a")
    crossed, each = (PosteriorEncoder(columns=False, groups=g) for g in ("intersection", "each"))
    assert crossed.fit_transform(X, y, sensitive_features=columns).shape[1] == 1 + 3 * 2
    assert each.fit_transform(X, y, sensitive_features=columns).shape[1] == 1 + 2 + 2


def test_a_combination_of_three_rows_joins_the_folds_of_the_largest():
    X, y, s = numbers()
    y[s == 1] = 0
    y[np.flatnonzero(s == 1)[:3]] = 1
    model = FairCodeClassifier(0.9, random_state=0).fit(X, y, sensitive_features=s)
    encoder = model.estimator_[0]
    features = encoder.fit_transform(X, y, sensitive_features=s)
    assert np.isfinite(features).all()
    assert encoder.posterior(features)[s == 1, 1, 1].mean() == pytest.approx(3 / (s == 1).sum(), abs=0.05)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"estimators": LinearSVC()}, "has no predict_proba.*CalibratedClassifierCV"),
        ({"estimators": "best"}, "estimators='best' must be 'default', a classifier"),
        ({"estimators": FrozenEstimator(LogisticRegression().fit([[0], [1]], [0, 7]))}, "knows the class 7"),
        ({"limit": 2.0}, r"limit=2\.0"),
        ({"release": "both"}, "release='both'"),
    ],
)
def test_settings_that_cannot_work_get_a_sentence(change, message):
    X, y, s = numbers()
    with pytest.raises(InputError, match=message):
        FairCodeClassifier(**change).fit(X[:, :1], y, sensitive_features=s)


def test_rows_that_cannot_work_get_a_sentence():
    X, y, s = numbers()
    fit = FairCodeClassifier(random_state=0).fit
    for arguments, message in (
        ((np.ones((400, 2)), y), "Nothing is left to encode, every column was dropped"),
        ((X, np.zeros(400)), "only one class"),
        ((X, np.where(np.arange(400) == 0, 1, 0)), "all rows but those of one class"),
        ((X, y[:-1]), "399"),
        ((X, None), "requires y to be passed"),
    ):
        with pytest.raises(InputError, match=message):
            fit(*arguments, sensitive_features=s)
    assert issubclass(NothingToEncodeError, InputError)
    for cv in (1, 2.5, 1000):
        with pytest.raises(InputError, match=f"cv={cv}"):
            PosteriorEncoder(cv=cv).fit(X, y, sensitive_features=s)


def test_a_posterior_that_knows_nothing_is_no_trouble():
    """The features tell neither the label nor the group."""
    rng = np.random.default_rng(0)
    y, s = rng.integers(0, 2, (2, 400))
    encoder = PosteriorEncoder(LogisticRegression(C=1e-9), columns=False)
    found = encoder.fit_transform(rng.normal(size=(400, 2)), y, sensitive_features=s)
    assert np.isfinite(found).all()
    assert np.abs(encoder.posterior(found).sum(2)[:, 1] - y.mean()).max() < 0.05
    model = FairCodeClassifier(estimators=LogisticRegression(C=1e-9), random_state=0)
    assert model.fit(rng.normal(size=(400, 2)), y, sensitive_features=s).predict(rng.normal(size=(9, 2))).shape == (9,)


# ------------------------------------------------------------------ S among the inputs, by mistake and on purpose


@pytest.mark.parametrize("wrap", [lambda m: m, lambda m: CertifiedClassifier(m, max_disparity=0.9, path=(0.5,))])
def test_a_column_that_is_s_is_named_once_with_the_way_to_use_it(wrap):
    X, y, s = people()
    X["gender"] = np.where(s == "m", 1, 0)
    with pytest.warns(SensitiveFeatureInXWarning) as caught:
        wrap(FairCodeClassifier(random_state=0)).fit(X, y, sensitive_features={"sex": s})
    found = [str(w.message) for w in caught if isinstance(w.message, SensitiveFeatureInXWarning)]
    assert len(found) == 1
    assert "column 'gender' is one-to-one with the sensitive column 'sex'" in found[0]
    assert "encode_sensitive=True" in found[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error", SensitiveFeatureInXWarning)
        told = wrap(FairCodeClassifier(encode_sensitive=True, random_state=0))
        told.fit(X.drop(columns="gender"), y, sensitive_features={"sex": s})


def test_bins_of_a_sensitive_number_are_told_once():
    X, y, _ = people()
    with pytest.warns(BinnedSensitiveFeaturesWarning) as caught:
        FairCodeClassifier(random_state=0).fit(X[["pay"]], y, sensitive_features=X["age"])
    assert sum(isinstance(w.message, BinnedSensitiveFeaturesWarning) for w in caught) == 1


TOLD = {
    "TableEncoder": lambda: TableEncoder(encode_sensitive=True),
    "PosteriorEncoder": lambda: PosteriorEncoder(encode_sensitive=True),
    "FairCodeClassifier": lambda: FairCodeClassifier(encode_sensitive=True, random_state=0),
}


@pytest.mark.parametrize("make", TOLD.values(), ids=TOLD)
def test_told_encoders_need_groups_they_know(make):
    X, y, s = people()
    model = make().fit(X, y, sensitive_features=s)
    assert len(model.transform(X, sensitive_features=s)) == len(y)
    missing = np.where(np.arange(600) == 5, None, s)
    for groups, error, message in (
        (None, InputError, "encode_sensitive=True puts the groups among the inputs.*Pass the sensitive columns"),
        (np.where(s == "f", "x", s), UnseenGroupError, r"Group 'x' .* unseen in fit .*Known are \['f', 'm'\]"),
        (missing, InputError, "is missing .* in 1 of 600 rows.*'unknown'"),
        (s[:-1], InputError, "599 values for 600 rows"),
    ):
        with pytest.raises(error, match=message):
            model.transform(X, sensitive_features=groups)
        if groups is None or groups is missing:
            with pytest.raises(InputError, match=message):
                make().fit(X, y, sensitive_features=groups)


def test_groups_that_are_told_are_indicators_whatever_stands_beside_them():
    X, y, _ = people()
    s = np.array(["a", "b", "c"])[np.arange(600) % 3]
    for encoder in (PosteriorEncoder(columns=False, encode_sensitive=True), TableEncoder(encode_sensitive=True)):
        encoder.fit(X, y, sensitive_features=s)
        found = encoder.transform(X, sensitive_features=s)
        np.testing.assert_array_equal(found[:, -3:], np.eye(3)[np.arange(600) % 3])
        names = [f"sensitive_features (sensitive)={name}" for name in "abc"]
        assert list(encoder.get_feature_names_out()[-3:]) == names


def shifted(n, seed=0):
    """S shifts every column by as much as the label does: without S the two are hard to tell apart."""
    rng = np.random.default_rng(seed)
    y, s = rng.integers(0, 2, (2, n))
    return (y + s)[:, None] + 0.5 * rng.normal(size=(n, 2)), y, s


def test_told_s_a_code_keeps_more_of_the_label_at_the_same_limit(monkeypatch):
    """No more than noise separates y from x - s: 92 % of the labels, Phi(sqrt 2), with no disparity at all."""
    monkeypatch.setattr(FairCodeClassifier, "pipeline", PIPELINE)
    monkeypatch.setattr(ExactCodeClassifier, "own_schedule", replace(OWN, min_steps=400))
    (X, y, s), (X_new, y_new, s_new) = shifted(3_000), shifted(20_000, seed=1)
    kept, bounds = [], []
    for told in (False, True):
        model = FairCodeClassifier(
            0.05, code_size=3, estimators=LogisticRegression(), encode_sensitive=told, random_state=0
        )
        model.fit(X, y, sensitive_features=s)
        known = {"sensitive_features": s_new} if told else {}
        kept.append(1 - log_loss(y_new, model.predict_proba(X_new, **known)[:, 1]) / np.log(2))
        bounds.append(model.certify(X_new, sensitive_features=s_new))
        assert (model.score(X_new, y_new, **known) > 0.88) == told
    assert max(bound.total_variation for bound in bounds) < 0.12
    assert kept[1] > kept[0] + 0.3


@pytest.mark.parametrize(
    "make",
    [
        lambda: FairCodeClassifier(encode_sensitive=True, code_size=3, random_state=0),
        lambda: Pipeline([("table", TableEncoder(encode_sensitive=True)), ("code", LEARNING)]),
        lambda: Pipeline([("table", TableEncoder(encode_sensitive=True)), ("code", quick(ExactCodeClassifier))]),
    ],
    ids=["recommended", "paper", "exact"],
)
@pytest.mark.filterwarnings("ignore::fairbits.estimators.inputs.SensitiveFeatureInXWarning")
def test_whatever_needs_a_code_takes_the_groups_of_told_encoders(make, tmp_path):
    X, y, s = people(1_000)
    X_new, y_new, s_new = people(700, seed=1)
    path = (0.5,) if isinstance(make(), FairCodeClassifier) or "limit" in make()[-1].get_params() else (0.2,)
    chosen = CertifiedClassifier(make(), max_disparity=0.95, path=path, random_state=0)
    chosen.fit(X, y, sensitive_features=s)
    assert (chosen.predict(X_new, sensitive_features=s_new) == y_new).mean() > 0.6
    hard = chosen.certificate_.release["hard"]
    for model in (chosen, chosen.estimator_):
        assert certify(model, X_new, sensitive_features=s_new).total_variation < 1
        ledger = {} if hard else {"ledger": tmp_path / f"{type(model).__name__}.ledger"}
        codes = release(model, X_new, sensitive_features=s_new, **ledger).codes
        if hard:
            np.testing.assert_array_equal(codes, chosen.transform(X_new, sensitive_features=s_new))
        with pytest.raises(InputError, match="sensitive_features is None"):
            release(model, X_new, ledger=tmp_path / "no.ledger")
    assert audit(chosen, X_new, y_new, sensitive_features=s_new).certificate.release["hard"] == hard
    for use in (chosen.predict, chosen.predict_proba, chosen.transform):
        with pytest.raises(InputError, match="sensitive_features is None"):
            use(X_new)
    shown = chosen.predict_proba(X_new, sensitive_features=s_new)
    np.testing.assert_array_equal(chosen.classes_[shown.argmax(1)], chosen.predict(X_new, sensitive_features=s_new))


@pytest.mark.parametrize("cls", [AdversarialClassifier, VFAEClassifier])
@pytest.mark.filterwarnings("ignore::fairbits.estimators.inputs.SensitiveFeatureInXWarning")
def test_rivals_that_give_s_to_the_encoder_are_told_it_as_published(cls):
    X, y, s = people()
    encoder = TableEncoder(encode_sensitive=True)
    Z = encoder.fit_transform(X, y, sensitive_features=s)
    assert encoder.get_feature_names_out()[-1] == "sensitive_features (sensitive)=m"
    model = quick(cls, min_steps=80, learning_rate=0.01).fit(Z, y, sensitive_features=s)
    X_new, y_new, s_new = people(seed=1)
    rows = encoder.transform(X_new, sensitive_features=s_new)
    assert (model.predict(rows) == y_new).mean() > 0.7
    other = encoder.transform(X_new, sensitive_features=np.where(s_new == "f", "m", "f"))
    assert np.abs(model.predict_proba(rows) - model.predict_proba(other)).max() > 1e-3
    pipeline = Pipeline([("table", encoder), ("method", model)])
    found = audit(pipeline, X_new, y_new, sensitive_features=s_new)
    assert found.task is not None


def test_a_posterior_of_groups_that_were_told_or_never_given_says_why_there_is_none():
    X, y, s = people()
    for told, groups, reason in ((True, s, "they are known"), (False, None, "Fit with sensitive_features")):
        encoder = PosteriorEncoder(encode_sensitive=told)
        features = encoder.fit_transform(X, y, sensitive_features=groups)
        with pytest.raises(InputError, match=f"no estimate of the groups.*{reason}"):
            encoder.posterior(features)
