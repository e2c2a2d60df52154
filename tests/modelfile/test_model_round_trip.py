"""A loaded model is the saved one, but for its seed and its memory of single rows."""

import copy
import functools
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from battery import CODES, ESTIMATORS, WAYS, by_kind, one_quickly, problem, quick
from model_zoo import certified, certified_fair_code, fair_code, images, mixed_table, pipeline, posterior_pipeline
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

import fairbits
from fairbits import (
    BinaryBernoulliClassifier,
    BinaryMIClassifier,
    CertifiedClassifier,
    DebiasedBernoulliClassifier,
    ExactCodeClassifier,
    FairCodeClassifier,
    InputError,
    LinearCodeClassifier,
    ModelFileError,
    TableEncoder,
    VanillaClassifier,
    VFAEClassifier,
    certify,
    save,
)
from fairbits.auditing import probes
from fairbits.certificate import TrainingRowsWarning
from fairbits.encoding import GroupEncoder
from fairbits.estimators import InvariantClassifier, Schedule
from fairbits.estimators import certified as certified_classifier
from fairbits.estimators.posterior import PosteriorEncoder
from fairbits.modelfile.model_content import describe, of_today, plain, with_settings
from fairbits.modelfile.save_and_load import SAVED
from fairbits.nn import HiddenOutput


def again(model, tmp_path):
    """The model after a journey through a file."""
    fairbits.save(model, tmp_path / "model")
    return fairbits.load(tmp_path / "model")


def assert_same(model, loaded, X):
    """Same attributes, settings, predictions and, with the same seed, draws."""
    assert type(loaded) is type(model)
    assert vars(loaded).keys() == vars(model).keys()
    forgotten = {"random_state", "device", "verbose"}
    settings, own = model.get_params(), loaded.get_params()
    assert {k: v for k, v in own.items() if k not in forgotten} == {
        k: v for k, v in settings.items() if k not in forgotten
    }
    assert loaded.random_state is None
    assert loaded.groups_ == model.groups_
    assert loaded.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(loaded.classes_, model.classes_)
    assert repr(loaded.history_) == repr(model.history_)
    assert (loaded.best_epoch_, loaded.n_iter_) == (model.best_epoch_, model.n_iter_)
    same_answers(model, loaded, X)
    loaded = copy.copy(loaded).set_params(random_state=model.random_state)
    drawn, expected = loaded.transform(X), model.transform(X)
    assert type(drawn) is type(expected)
    assert np.asarray(drawn).dtype == np.asarray(expected).dtype
    np.testing.assert_array_equal(drawn, expected)


def same_answers(model, loaded, X):
    for name in ("predict_proba", "predict", "code_probabilities", "get_feature_names_out"):
        if hasattr(model, name):
            answer, expected = (getattr(m, name)(*[X] * (name != "get_feature_names_out")) for m in (loaded, model))
            assert answer.dtype == expected.dtype
            np.testing.assert_array_equal(answer, expected)


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_every_method(cls, tmp_path):
    X, y, s = problem()
    frame = pd.DataFrame(X, columns=["a", "b", "ü"])
    model = quick(cls).fit(frame, y, sensitive_features=pd.Series(s, name="sex"))
    loaded = again(model, tmp_path)
    assert_same(model, loaded, frame)
    assert list(loaded.feature_names_in_) == ["a", "b", "ü"]


class LineClassifier(InvariantClassifier):
    """Logistic regression: a method that shares no representation, by a network that draws nothing."""

    class Line(torch.nn.Linear):
        def forward(self, x, noise=None):
            return HiddenOutput(x, super().forward(x))

    def build(self, inputs, n_classes):
        return self.Line(inputs, n_classes)


def test_a_method_without_a_representation(tmp_path, monkeypatch):
    monkeypatch.setattr(fairbits, "LineClassifier", LineClassifier, raising=False)
    monkeypatch.setattr(fairbits, "__all__", [*fairbits.__all__, "LineClassifier"])
    X, y, s = problem()
    model = quick(LineClassifier).fit(X, y, sensitive_features=s)
    loaded = again(model, tmp_path)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("cls", [case for case in by_kind() if case.values[0] is not LinearCodeClassifier])
def test_every_method_on_images(cls, tmp_path):
    model, pictures = images(cls)
    assert_same(model, again(model, tmp_path), pictures)


@pytest.mark.parametrize("cls", by_kind(kinds=WAYS))
def test_every_method_without_groups(cls, tmp_path):
    X, y, _ = problem(n=200)
    model = quick(cls).fit(X, y)
    loaded = again(model, tmp_path)
    assert loaded.group_encoder_ is None
    assert_same(model, loaded, X)


@pytest.mark.parametrize(
    ("cls", "settings"),
    [
        (BinaryMIClassifier, {"groups": "each"}),
        (BinaryMIClassifier, {"code_size": 14}),  # predictions by fixed draws
        (BinaryMIClassifier, {"condition_on_label": True, "hidden_sizes": (4, 3)}),
        (BinaryMIClassifier, {"running_tables": False, "temperature": 0.5, "noise_floor": 0.1}),
        (BinaryBernoulliClassifier, {"binary": True, "prediction": "expected"}),
        (DebiasedBernoulliClassifier, {"rebalance": "prior+independent"}),
        (BinaryBernoulliClassifier, {"gamma": 1, "selection": "last", "learning_rate": np.float32(0.01)}),
        (VFAEClassifier, {"groups": "each"}),
        (VFAEClassifier, {"encode_sensitive": False, "representation": "mean"}),
    ],
)
def test_settings_and_several_sensitive_columns(cls, settings, tmp_path):
    X, y, s = problem(n_classes=3)
    both = pd.DataFrame({"sex": np.array(["f", "m"])[s], "age": np.random.default_rng(3).uniform(18, 80, len(s))})
    with pytest.warns(UserWarning, match="quantiles"):
        model = quick(cls, **settings).fit(X, y, sensitive_features=both)
    loaded = again(model, tmp_path)
    assert_same(model, loaded, X)
    encoder, expected = loaded.group_encoder_, model.group_encoder_
    np.testing.assert_array_equal(encoder.transform(both), expected.transform(both))
    assert plain(describe(encoder, SAVED)) == plain(describe(expected, SAVED))


@pytest.mark.parametrize(
    "names",
    [
        np.array(["no", "ja"]),
        np.array(["no", "ja"], dtype="<U20"),
        np.array(["no", "ja"], dtype=object),
        np.array([False, True]),
        np.array([-3, 7], dtype=np.int8),
        np.array([2**40, 2**41]),
        np.array([1.0, 2.0], dtype=np.float32),
    ],
    ids=lambda names: f"{names.dtype}-{names[0]}",
)
def test_labels_keep_value_and_type(names, tmp_path):
    X, y, _ = problem(n=200)
    model = quick(VanillaClassifier).fit(X, names[y])
    assert_same(model, again(model, tmp_path), X)


def test_settings_that_are_objects():
    schedule, groups = Schedule(patience=np.int64(7)), GroupEncoder(n_bins=3)
    model = BinaryMIClassifier(gamma=np.float64(0.5), hidden_sizes=(2, 3), schedule=schedule, groups=groups)
    model.set_params(random_state=3, device="meta", verbose=True)
    state = plain(model)
    assert state["schedule"] == {**vars(Schedule()), "patience": 7}
    assert state["groups"] == {**vars(GroupEncoder()), "n_bins": 3}
    assert (state["gamma"], state["hidden_sizes"]) == (0.5, [2, 3])
    assert not {"random_state", "device", "verbose"} & state.keys()
    assert of_today("BinaryMIClassifier", state) == ("BinaryMIClassifier", state)
    loaded = with_settings("BinaryMIClassifier", state)
    assert loaded.schedule == Schedule(patience=7)
    assert vars(loaded.groups) == vars(groups)
    own = model.set_params(random_state=None, device="cpu", verbose=False, groups=loaded.groups).get_params()
    assert loaded.get_params() == own
    assert with_settings("BinaryMIClassifier", {"schedule": None}).schedule is None
    for wrong, said in [
        ({"schedule": {"speed": 1}}, "unexpected keyword argument 'speed'"),
        ({"schedule": {"patience": 0}}, "patience=0 must be"),
        ({"gamma": {"a": 1}}, "gamma={'a': 1} must be a number"),
        ({"speed": 1}, "BinaryMIClassifier has no setting 'speed'"),
        ({"random_state": 3}, "has no setting"),
        ({"device": "cuda"}, "has no setting"),
    ]:
        with pytest.raises((ValueError, TypeError), match=said):
            with_settings("BinaryMIClassifier", wrong)


def test_settings_of_the_first_version_move_into_objects():
    old = {"gamma": 0.5, "groups": "each", "n_bins": 3, "patience": 9, "leakage_rows": "independent"}
    name, settings = of_today("BinaryMIClassifier", old)
    assert (name, settings["rebalance"]) == ("DebiasedMIClassifier", "independent")
    model = with_settings(name, settings)
    assert model.schedule == Schedule(patience=9)
    assert vars(model.groups) == vars(GroupEncoder(groups="each", n_bins=3))


@pytest.mark.parametrize(
    ("name", "rows", "expected"),
    [
        ("method", problem(200)[0], [0.4949080, 0.4988817, 0.5069408, 0.4766585]),
        ("certified", mixed_table(3000)[0], [0.5994502, 0.5941702, 0.6074207, 0.5997300]),
    ],
)
def test_models_saved_by_the_first_version(name, rows, expected):
    loaded = fairbits.load(Path(__file__).parent / "saved_by_0.1" / name)
    np.testing.assert_allclose(loaded.predict_proba(rows[:4])[:, 1], expected, atol=1e-6)
    method = loaded if name == "method" else loaded.estimator_[-1]
    assert method.schedule == Schedule(min_steps=30)
    if name == "certified":
        assert 0 < loaded.certificate_.total_variation < 0.9
        assert loaded.path == (0.5, 0.9)
        assert loaded.estimator[-1].gamma == 0.2
        return
    assert method.get_params()["rebalance"] == "prior+independent"
    assert vars(method.groups) == vars(GroupEncoder(groups="each", n_bins=3))


def test_a_group_encoder_among_the_settings(tmp_path):
    X, y, s = problem()
    groups = GroupEncoder(groups="each", n_bins=3)
    model = quick(BinaryMIClassifier, groups=groups).fit(X, y, sensitive_features=s)
    loaded = again(model, tmp_path)
    assert vars(loaded.groups) == vars(groups)
    assert_same(model, loaded.set_params(groups=groups), X)


def test_rows_without_label(tmp_path):
    X, y, s = problem()
    y[::5] = -1
    model = quick(BinaryMIClassifier).fit(X, y, sensitive_features=s, unlabelled=-1)
    assert_same(model, again(model, tmp_path), X)


@pytest.mark.parametrize("output", [None, "pandas"])
def test_a_pipeline_of_a_mixed_table(output, tmp_path):
    model, table, _ = pipeline()
    if output:
        model = model.set_output(transform=output)
        model.fit(table, mixed_table()[1], binarymiclassifier__sensitive_features=mixed_table()[2])
    loaded = again(model, tmp_path)
    assert [name for name, _ in loaded.steps] == ["tableencoder", "binarymiclassifier"]
    odd = mixed_table(seed=5)[0]
    odd.loc[0, "job"], odd.loc[1, "score"] = "unseen", np.inf
    same_answers(model, loaded, odd)
    encoded, expected = loaded[0].transform(odd), model[0].transform(odd)
    assert type(encoded) is type(expected)
    np.testing.assert_array_equal(encoded, expected)
    assert plain(describe(loaded[0], SAVED)) == plain(describe(model[0], SAVED))
    assert loaded[0].describe() == model[0].describe()
    assert_same(model[-1], loaded[-1], expected)


@pytest.mark.filterwarnings("ignore::fairbits.certificate.SmallGroupWarning")
def test_what_is_measured_about_it(tmp_path, monkeypatch):
    few = functools.partial(HistGradientBoostingClassifier, max_iter=4)
    monkeypatch.setattr(probes, "HistGradientBoostingClassifier", few)
    model, table, s = pipeline(groups="each")
    loaded = again(model, tmp_path)
    fresh, labels, groups = mixed_table(400, seed=9)
    x = model[0].transform(fresh)
    assert loaded[-1].information(x, sensitive_features=groups) == model[-1].information(x, sensitive_features=groups)
    certificates = [m[-1].certify(x, sensitive_features=groups) for m in (loaded, model)]
    assert certificates[0].bounds == certificates[1].bounds
    found, expected = (m[-1].concerns(model[0].transform(table), None, s) for m in (loaded, model))
    assert list(map(str, found)) == list(map(str, expected))
    audits = [fairbits.audit(m, fresh, labels, sensitive_features=groups).to_dict() for m in (loaded, model)]
    for found in audits:
        found["certificate"].pop("seeded")  # it was with the saved one
        found["certificate"].pop("does_not_cover")
    assert audits[0] == audits[1]


def test_training_rows_are_recognised_as_a_table(tmp_path):
    X, y, s = problem()
    loaded = again(quick(BinaryMIClassifier).fit(X, y, sensitive_features=s), tmp_path)
    with pytest.warns(TrainingRowsWarning, match="same table"):
        loaded.certify(X[::-1], sensitive_features=s[::-1])


def test_a_certified_classifier(tmp_path):
    model, table, _ = certified()
    loaded = again(model, tmp_path)
    assert loaded.certificate_ == model.certificate_
    assert str(loaded.certificate_) == str(model.certificate_)
    pd.testing.assert_frame_equal(loaded.path_, model.path_)
    same_answers(model, loaded, table)
    assert_same(model.estimator_[-1], loaded.estimator_[-1], model.estimator_[0].transform(table))
    assert vars(loaded).keys() == vars(model).keys() - {"candidates_", "passed_"}  # the kept model alone is handed on
    settings, own = (m.get_params(deep=False) for m in (model, loaded))
    given, template = settings.pop("estimator"), own.pop("estimator")
    assert own == {**settings, "random_state": None}
    assert repr(template) == repr(clone(given).set_params(binarymiclassifier__random_state=None))
    assert not hasattr(template[-1], "net_")
    fresh, _, groups = mixed_table(2000, seed=9)
    certificates = [fairbits.certify(m, fresh, sensitive_features=groups[["sex"]]) for m in (model, loaded)]
    assert certificates[0].bounds == certificates[1].bounds


def test_a_certified_classifier_of_the_default_method(tmp_path):
    model = copy.copy(certified()[0])
    model.estimator, model.estimator_ = None, model.estimator_[-1]
    loaded = again(model, tmp_path)
    assert loaded.estimator is None
    assert loaded.estimator_.gamma == model.estimator_.gamma


def odd_table(seed=5):
    """Other rows of the mixed table, with values that training did not see."""
    table, _, s = mixed_table(seed=seed)
    table.loc[0, "job"], table.loc[1, "score"], table.loc[2, "age"] = "unseen", np.inf, np.nan
    return table, s


@pytest.mark.filterwarnings("ignore::fairbits.estimators.SensitiveFeatureInXWarning")
@pytest.mark.parametrize(
    ("grouping", "n_classes", "settings"),
    [
        pytest.param("intersection", 2, {}, marks=pytest.mark.slow),  # as those of a fair code
        ("each", 3, {}),
        pytest.param(GroupEncoder(groups="each", n_bins=3), 2, {"columns": False, "cv": 3}, marks=pytest.mark.slow),
        ("intersection", 3, {"encode_sensitive": True}),
    ],
    ids=["plain", "each", "without columns", "told"],
)
def test_a_pipeline_with_estimates(grouping, n_classes, settings, tmp_path):
    model, _, _ = posterior_pipeline(grouping, n_classes, **settings)
    loaded = again(model, tmp_path)
    table, s = odd_table()
    known = {"sensitive_features": s} if settings.get("encode_sensitive") else {}
    rows, expected = (m[0].transform(table, **known) for m in (loaded, model))
    np.testing.assert_array_equal(rows, expected)
    np.testing.assert_array_equal(loaded[0].get_feature_names_out(), model[0].get_feature_names_out())
    if not known:
        np.testing.assert_array_equal(loaded[0].posterior(rows), model[0].posterior(rows))
    assert_same(model[-1], loaded[-1], rows)
    assert plain(describe(loaded[0], SAVED)) == plain(describe(model[0], SAVED))
    assert vars(loaded[0]).keys() == vars(model[0]).keys()


@pytest.mark.parametrize("settings", [{}, {"release": "random"}, {"encode_sensitive": True, "groups": "each"}], ids=str)
def test_a_fair_code(settings, tmp_path):
    model, _, _ = fair_code(limit=0.3, code_size=3, **settings)
    loaded = again(model, tmp_path)
    table, s = odd_table()
    known = {"sensitive_features": s[["sex"]]} if "encode_sensitive" in settings else {}
    for name in ("predict_proba", "predict"):
        np.testing.assert_array_equal(getattr(loaded, name)(table, **known), getattr(model, name)(table, **known))
    loaded.estimator_[-1].random_state = 0  # of the draws of a random code
    np.testing.assert_array_equal(loaded.transform(table, **known), model.transform(table, **known))
    assert loaded.get_params() == {**model.get_params(), "random_state": None}
    assert vars(loaded).keys() == vars(model).keys()
    assert list(loaded.feature_names_in_) == list(table.columns)


@pytest.mark.parametrize(
    "estimator",
    one_quickly(["pipeline", None, FairCodeClassifier(limit=0.7, code_size=3)]),
    ids=["pipeline", "default", "fair code"],
)
def test_a_certified_fair_code(estimator, tmp_path):
    if estimator == "pipeline":
        estimator = make_pipeline(PosteriorEncoder(columns=False), quick(ExactCodeClassifier, limit=0.7))
    model, _, _ = certified_fair_code(estimator)
    loaded = again(model, tmp_path)
    table, _ = odd_table()
    for name in ("predict_proba", "predict", "transform"):
        np.testing.assert_array_equal(getattr(loaded, name)(table), getattr(model, name)(table))
    assert loaded.certificate_ == model.certificate_
    pd.testing.assert_frame_equal(loaded.path_, model.path_)
    forgotten = "pipeline" if isinstance(estimator, Pipeline) else "seed"
    given = estimator if forgotten == "seed" else clone(estimator).set_params(exactcodeclassifier__random_state=None)
    assert repr(loaded.estimator) == repr(given)
    assert loaded.path == model.path


def test_a_table_encoder_that_is_told_the_groups(tmp_path):
    table, _, s = mixed_table()
    encoder = TableEncoder(encode_sensitive=True).fit(table, sensitive_features=s)
    loaded = again(encoder, tmp_path)
    for name in ("transform", "levels"):
        rows = [getattr(e, name)(table, sensitive_features=s) for e in (encoder, loaded)]
        np.testing.assert_array_equal(*rows)
    assert loaded.sensitive_names == ["sex", "old"]


def test_encoders_alone(tmp_path):
    table, _, s = mixed_table()
    encoder = (
        TableEncoder(max_categories=2, dtype=np.float64, impute="median").fit(table).set_output(transform="pandas")
    )
    fairbits.save(encoder, tmp_path / "table")
    loaded = fairbits.load(tmp_path / "table")
    pd.testing.assert_frame_equal(loaded.transform(table), encoder.transform(table))
    assert loaded.get_params() == encoder.get_params()
    assert not (tmp_path / "table" / "weights.safetensors").exists()
    groups = GroupEncoder().fit(s)
    fairbits.save(groups, tmp_path / "groups")
    np.testing.assert_array_equal(fairbits.load(tmp_path / "groups").transform(s), groups.transform(s))


@pytest.mark.parametrize("seed", [987654321, np.random.RandomState(987654321)], ids=["int", "generator"])
def test_no_seed_and_no_row_enters_the_file(seed, tmp_path):
    X, y, s = problem()
    frame = pd.DataFrame(X, columns=list("abc"), index=[f"person{i}" for i in range(len(X))])
    model = quick(BinaryMIClassifier, random_state=seed).fit(frame, y, sensitive_features=s)
    model.transform(frame)
    state = np.random.RandomState(987654321).get_state()[1]
    loaded = again(model, tmp_path)
    content = b"".join(file.read_bytes() for file in (tmp_path / "model").iterdir())
    hidden = [b"987654321", b"person", b"random_state", str(state[5]).encode(), state[:2].tobytes()]
    hidden += [int(h).to_bytes(8, "little") for h in model.training_rows_.hashes]
    hidden += [str(h).encode() for h in model.training_rows_.hashes] + [row.tobytes() for row in X.astype(np.float32)]
    assert not [part for part in hidden if part in content]
    assert loaded.training_rows_.hashes is None
    assert loaded.training_rows_.index is None
    assert not np.array_equal(loaded.transform(frame), fairbits.load(tmp_path / "model").transform(frame))  # fresh bits


def test_loading_leaves_the_generators_alone(tmp_path):
    X, y, s = problem(200)
    fairbits.save(quick(VFAEClassifier).fit(X, y, sensitive_features=s), tmp_path / "model")
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    fairbits.load(tmp_path / "model")
    assert torch.equal(torch.get_rng_state(), torch_state)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_state)  # noqa: NPY002


@pytest.mark.parametrize("cls", [*CODES, VFAEClassifier])
def test_a_loaded_model_can_be_copied_saved_and_fitted_again(cls, tmp_path):
    X, y, s = problem()
    model = quick(cls).fit(X, y, sensitive_features=s)
    loaded = again(model, tmp_path)
    for other in (copy.deepcopy(loaded), pickle.loads(pickle.dumps(loaded)), again(loaded, tmp_path / "2")):
        same_answers(model, other, X)
    assert not [name for name, buffer in loaded.net_.named_buffers() if buffer.is_meta]
    loaded.set_params(random_state=0).fit(X, y, sensitive_features=s)
    same_answers(model, loaded, X)


def test_learning_curves_that_left_the_numbers(tmp_path):
    X, y, _ = problem(200)
    model = quick(VanillaClassifier).fit(X, y)
    model.history_[0].update(total=float("nan"), cross_entropy=float("inf"), validation_total=-float("inf"))
    assert repr(again(model, tmp_path).history_) == repr(model.history_)


def test_what_is_promised_is_kept_and_that_the_path_was_not_chosen_by_hand(tmp_path, monkeypatch):
    monkeypatch.setattr(certified_classifier, "SHARES", (0.2, 0.5, 1.0))
    limits = {"promise": "class", "max_disparity": None, "max_odds_disparity": 0.9, "odds_label": "yes", "path": None}
    model, table, s = certified_fair_code(**limits)
    loaded = again(model, tmp_path)
    assert {name: getattr(loaded, name) for name in limits} == limits
    assert loaded.certificate_ == model.certificate_
    np.testing.assert_array_equal(loaded.predict(table), model.predict(table))
    for kept in (model, loaded):
        with pytest.raises(InputError, match="about the predicted class alone"):
            kept.transform(table)
    new = certify(loaded, table[:300], sensitive_features=s[:300])
    assert new.release["decision"]


def test_the_estimator_keeps_its_words_where_a_code_of_fewer_was_chosen(tmp_path):
    X, y, s = problem(900)
    given = fairbits.LinearCodeClassifier(max_epochs=5)
    model = CertifiedClassifier(given, max_disparity=0.9, random_state=0).fit(X, y, sensitive_features=s)
    model.estimator_ = next(one for one in model.candidates_ if one.max_words == 4)
    loaded = again(model, tmp_path)
    assert (loaded.estimator_.max_words, loaded.estimator.max_words) == (4, 1024)


@pytest.mark.parametrize("candidates", [LogisticRegression(), [DummyClassifier(), LogisticRegression()]])
def test_what_cannot_be_saved_says_so(candidates, tmp_path):
    X, y, s = problem(900)
    model = CertifiedClassifier(candidates, max_disparity=0.9, random_state=0).fit(X, y, sensitive_features=s)
    with pytest.raises(ModelFileError, match="cannot be saved"):
        save(model, tmp_path / "m")
