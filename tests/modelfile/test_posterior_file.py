"""The models of a PosteriorEncoder in model.json: what is kept, what is left out, and what nobody can smuggle in."""

import base64
import json

import numpy as np
import polars as pl
import pytest
from damage import sealed
from model_zoo import few_trees, mixed_table
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

import fairbits
from fairbits import ModelFileError
from fairbits.estimators.posterior import PosteriorEncoder
from fairbits.modelfile.boosted_trees import NODE
from fairbits.modelfile.manifest import MODEL


def table_for_trees():
    """Numbers and categories as pandas has them, which boosted trees take as they are."""
    table = mixed_table()[0].drop(columns=["since", "land"])
    return table.assign(job=table.job.astype("category"), member=table.member.astype(int))


def fit(estimators="default", rows=None):
    table, y, s = mixed_table()
    with few_trees():
        return PosteriorEncoder(estimators, cv=2).fit(table if rows is None else rows, y, sensitive_features=s.sex)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The files of an encoder with trees that split by numbers and by categories."""
    path = tmp_path_factory.mktemp("encoder") / "model"
    fairbits.save(fit(), path)
    return {file.name: file.read_bytes() for file in path.iterdir()}


def load(path, files):
    path.mkdir()
    for name, data in sealed(files).items():
        (path / name).write_bytes(data)
    return fairbits.load(path)


def refused(path, files, said, change):
    """Load with another content of model.json, under digests that are right, and expect a refusal."""
    content = json.loads(files[MODEL])
    change(content["model"])
    with pytest.raises(ModelFileError, match=rf"model\.json does not describe a model.*{said}"):
        load(path, {**files, MODEL: json.dumps(content).encode()})


# ---------------------------------------------------------------------- what it keeps


OWN = ["linear", "trees", "texts", "polars", "numbers", "several", "frozen", "stopped early", "weighed", "no penalty"]


@pytest.mark.parametrize("kind", OWN)
def test_your_own_classifiers_of_scikit_learn(kind, tmp_path):
    table, y, _ = mixed_table()
    numbers, trees = table[["age", "score"]], HistGradientBoostingClassifier(max_iter=3)
    frozen = FrozenEstimator(HistGradientBoostingClassifier(max_iter=3).fit(numbers, y))
    rows, estimators = {
        "linear": (numbers.to_numpy(), LogisticRegression(C=0.5)),
        "trees": (numbers, trees),
        "texts": (table_for_trees(), trees),
        "polars": (pl.DataFrame({"age": table.age, "job": pl.Series(table.job, dtype=pl.Categorical)}), trees),
        "numbers": (
            table[["age"]].assign(member=table.member.astype(int)).to_numpy(),
            HistGradientBoostingClassifier(max_iter=3, categorical_features=[1]),
        ),
        "several": (numbers, [LogisticRegression(), trees]),
        "frozen": (numbers, [LogisticRegression(), frozen]),
        "stopped early": (numbers, HistGradientBoostingClassifier(max_iter=3, early_stopping=True, scoring="roc_auc")),
        "weighed": (numbers.to_numpy(), LogisticRegression(class_weight={0: 2, 1: 1})),
        "no penalty": (numbers.to_numpy(), LogisticRegression(C=np.inf)),
    }[kind]
    encoder = fit(estimators, rows)
    fairbits.save(encoder, tmp_path / "model")
    loaded = fairbits.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(rows), encoder.transform(rows))
    assert repr(loaded) == repr(encoder.set_params(random_state=0))
    for before, after in zip(encoder.models_, loaded.models_, strict=True):
        assert [getattr(m, "feature_names_in_", [None])[0] for m in after] == [
            getattr(m, "feature_names_in_", [None])[0] for m in before
        ]
    assert vars(fit(loaded.estimators, rows)).keys() == vars(encoder).keys()  # its classifiers can be fitted again


@pytest.mark.parametrize("kind", ["linear", "trees", "frozen"])
def test_your_own_classifiers_that_are_told_the_groups(kind, tmp_path):
    table, y, s = mixed_table()
    rows, known = table[["age", "score"]], {"sensitive_features": s}
    estimators = {
        "linear": LogisticRegression(),
        "trees": HistGradientBoostingClassifier(max_iter=3),
        "frozen": [LogisticRegression(), FrozenEstimator(LogisticRegression().fit(rows, y))],
    }[kind]
    encoder = PosteriorEncoder(estimators, cv=2, encode_sensitive=True).fit(rows, y, **known)
    fairbits.save(encoder, tmp_path / "model")
    loaded = fairbits.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(rows, **known), encoder.transform(rows, **known))


class Foreign(ClassifierMixin, BaseEstimator):
    """A classifier of somebody else."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))


@pytest.mark.parametrize("classifier", [Foreign(), RandomForestClassifier(2), FrozenEstimator(Foreign())])
def test_other_classifiers_are_refused_with_the_remedy(classifier, tmp_path):
    table, y, _ = mixed_table()
    inner = classifier.estimator if isinstance(classifier, FrozenEstimator) else classifier
    inner.fit(table[["age"]], y)
    encoder = fit([LogisticRegression(), classifier], table[["age"]])
    with pytest.raises(
        ModelFileError, match=f"with a {type(inner).__name__} cannot be saved.*LogisticRegression"
    ) as caught:
        fairbits.save(encoder, tmp_path / "model")
    assert "with the tools of its own library" in str(caught.value)
    assert not (tmp_path / "model").exists()


def test_a_function_of_yours_is_refused(tmp_path):
    table, *_ = mixed_table()
    trees = HistGradientBoostingClassifier(max_iter=2, early_stopping=True, scoring=_score)
    with pytest.raises(ModelFileError, match=r"numbers, texts and truth values, but not .*_score"):
        fairbits.save(fit(trees, table[["age"]]), tmp_path / "model")


def _score(model, X, y):
    return 0.0


def test_no_seed_and_no_generator_enters_the_file(tmp_path):
    table, *_ = mixed_table()
    models = [
        LogisticRegression(random_state=987654321),
        HistGradientBoostingClassifier(max_iter=2, random_state=987654321),
    ]
    encoder = fit(models, table[["age"]])
    fairbits.save(encoder, tmp_path / "model")
    content = (tmp_path / "model" / MODEL).read_bytes()
    learners = json.loads(content)["model"]["learners"]
    content += b"".join(base64.b64decode(model.get("nodes", "")) for learner in learners for model in learner["models"])
    seeds = [model._random_seed for models in encoder.models_ for model in models if hasattr(model, "_random_seed")]
    assert len(seeds) == 2
    hidden = [b"987654321", b"Generator", b"_random_seed", *(str(seed).encode() for seed in seeds)]
    assert not [part for part in [*hidden, *(seed.tobytes() for seed in seeds)] if part in content]
    assert encoder.models_[1][0].random_state == 987654321  # the model itself stays as it was


# ---------------------------------------------------------------------- numbers


def of_label(content, learner):
    """What a file says of the model of the label by the first learner, which is linear, or by the second, trees."""
    return content["learners"][learner]["models"][0]


def text(array):
    return base64.b64encode(array.tobytes()).decode()


@pytest.mark.parametrize(
    ("learner", "new", "said"),
    [
        (0, {"coef": text(np.zeros(3, np.float32))}, "a model takes 3 columns, not"),
        (0, {"coef": "AAA"}, "Base64"),
        (0, {"coef": text(np.zeros(3, np.uint8))}, "buffer size"),
        (0, {"intercept": text(np.zeros(2, np.float32))}, "does not know the classes"),
        (0, {"intercept": text(np.full(1, np.nan, np.float32))}, "infinite or not numbers"),
        (0, {"dtype": "|O"}, "'<f4' or '<f8'"),
        (0, {"feature_names_in": ["a"]}, "1 feature names for"),
        (1, {"nodes": text(np.zeros(3, np.uint8))}, "buffer size"),
        (1, {"nodes": ""}, "more or fewer nodes"),
        (1, {"sets": ""}, "a set of categories that does not exist"),
        (1, {"sizes": []}, "more or fewer nodes"),
        (1, {"sizes": [1]}, "more or fewer nodes"),
        (1, {"sizes": [2**52, 2**52]}, "more or fewer nodes"),
        (1, {"baseline": [0.0, 0.0]}, "does not know the classes"),
        (1, {"feature_names_in": ["a"] * 7}, "the names of 7 columns"),
        (1, {"kind": "linear"}, "kind|missing|Field required|extra"),
        (1, {"kind": "sklearn.svm.SVC"}, "'linear', 'boosted'"),
    ],
    ids=str,
)
def test_numbers_that_are_no_model(learner, new, said, files, tmp_path):
    refused(tmp_path / "model", files, said, lambda m: of_label(m, learner).update(new))


@pytest.mark.parametrize(
    ("categories", "said"),
    [
        ([None] * 7, "a set of categories that does not exist"),
        ([None] * 8, "a model takes 8 columns, not 7"),
        ([list(map(float, range(300)))] * 7, "cannot have 300 categories"),
        ([["a", "b"]] * 7, "are numbers, not texts"),
        ([["a", 1.0]] * 7, "are numbers, not texts"),
        ([[2**64 - 1, -1]] * 7, "are numbers, not texts"),
    ],
)
def test_categories_of_other_columns(categories, said, files, tmp_path):
    refused(tmp_path / "model", files, said, lambda m: of_label(m, 1).update(categories=categories))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"steps": 3}, "unexpected keyword"),
        ({"solver__x": 3}, "unexpected keyword"),
        ({"C": {"a": [1]}}, "settings"),
    ],
)
def test_settings_that_there_are_not(settings, said, files, tmp_path):
    refused(tmp_path / "model", files, said, lambda m: m["learners"][0].update(settings=settings))


# ---------------------------------------------------------------------- trees: nobody else looks where they lead


def forged_tree(files, change):
    """Change the nodes of one tree that splits by numbers and by a category: a change of the content."""

    def forge(content):
        model = of_label(content, 1)
        nodes, end = np.frombuffer(base64.b64decode(model["nodes"]), NODE).copy(), 0
        for size in model["sizes"]:
            tree, end = nodes[end : end + size], end + size
            if tree["is_categorical"].any():
                change(tree)
                break
        else:
            raise AssertionError("there is no such tree")
        model["nodes"] = text(nodes)

    return forge


def last_inner(nodes):
    return np.flatnonzero(nodes["is_leaf"] == 0)[-1]


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("left", 0, "leads nowhere, or back"),
        ("right", lambda nodes: last_inner(nodes), "leads nowhere, or back"),
        ("right", lambda nodes: len(nodes), "leads nowhere, or back"),
        ("left", 2**32 - 1, "leads nowhere, or back"),
        ("left", lambda nodes: nodes["right"][last_inner(nodes)], "lead to the same place"),
        ("feature_idx", 7_000, "a column that does not exist"),
        ("feature_idx", -1, "a column that does not exist"),
    ],
)
def test_a_tree_that_steps_aside(field, value, said, files, tmp_path):
    def change(nodes):
        nodes[field][last_inner(nodes)] = value(nodes) if callable(value) else value

    refused(tmp_path / "model", files, said, forged_tree(files, change))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_leaf_without_a_number(value, files, tmp_path):
    def change(nodes):
        nodes["value"][-1] = value

    refused(tmp_path / "model", files, "infinite or not a number", forged_tree(files, change))


@pytest.mark.parametrize("wrong", ["set", "column"])
def test_a_tree_that_asks_for_a_set_there_is_not(wrong, files, tmp_path):
    def change(nodes):
        place = np.flatnonzero(nodes["is_categorical"])[0]
        if wrong == "set":  # one more than there are
            nodes["is_categorical"][np.flatnonzero(nodes["is_leaf"])[0]] = 1
        else:  # trees see the categories first, and a number last
            nodes["feature_idx"][place] = nodes["feature_idx"][nodes["is_leaf"] == 0].max()

    refused(tmp_path / "model", files, "a set of categories that does not exist", forged_tree(files, change))


# ---------------------------------------------------------------------- the rest of the encoder


def frozen_learner(content):
    """A learner with the model of the label of another one, which knows a class that does not exist."""
    learner = content["learners"][0]
    return {**learner, "models": learner["models"][:1], "frozen": {**content["classes"], "values": ["no", "who"]}}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m: m["learners"].pop(), "a model takes 2 columns, not 1"),
        (lambda m: m["blends"].pop(), "1 blends where 2 are needed"),
        (lambda m: m["learners"][0]["models"].reverse(), "a model takes"),
        (lambda m: m["learners"][0]["models"].__setitem__(1, m["learners"][1]["models"][1]), "several kinds"),
        (lambda m: m["learners"][1].update(frozen=m["classes"]), "2 models of 'boosted', not 1"),
        (lambda m: m["mean"].pop(), "scales are not those of 6 estimates"),
        (lambda m: m["scale"].__setitem__(0, 0.0), "greater than 0"),
        (lambda m: m["learners"][1].update(sees="numbers"), "a model takes"),
        (lambda m: m["learners"][0].update(sees="pickles"), "'numbers', 'levels' or 'rows'"),
        (lambda m: m.update(estimators="one"), "not several learners"),
        (lambda m: m.update(encode_sensitive=True), "reads the groups"),
        (lambda m: m.update(groups=None), "2 models of 'linear'"),
        (lambda m: m["classes"].update(values=["a", "b", "c"]), "a model does not know the classes"),
        (lambda m: m["learners"].append(frozen_learner(m)), "a frozen model does not know the classes"),
    ],
)
def test_parts_that_do_not_fit_the_models(change, said, files, tmp_path):
    refused(tmp_path / "model", files, said, change)


def test_names_cannot_take_much_memory(files, tmp_path, monkeypatch):
    """Learner, group and label are parts of one name: long ones, many times."""
    monkeypatch.setattr("fairbits.modelfile.model_content.MAX_TEXT", 6 * 204)
    load(tmp_path / "model", files)  # six estimates, each with "yes" and "f" or "m" in its name
    monkeypatch.setattr("fairbits.modelfile.model_content.MAX_TEXT", 6 * 204 - 1)
    with pytest.raises(ModelFileError, match="names of the estimates would be too long"):
        load(tmp_path / "again", files)
