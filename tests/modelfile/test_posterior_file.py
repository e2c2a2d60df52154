"""posterior.skops: what it keeps, what it leaves out, and what nobody can smuggle in."""

import io
import json
import sys
import zipfile

import numpy as np
import pytest
from damage import sealed, unzipped, zipped
from model_zoo import few_trees, mixed_table
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

import fairbits
from fairbits import ModelFileError
from fairbits.estimators.posterior import PosteriorEncoder
from fairbits.modelfile.sealed_folder import MODEL, POSTERIOR

SCHEMA = "schema.json"
TREES = "sklearn.ensemble._hist_gradient_boosting"


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


def refused(path, files, said, **members):
    """Load with other members in the file of the models, under digests that are right, and expect a refusal."""
    data = zipped({**unzipped(files[POSTERIOR]), **members})
    with pytest.raises(ModelFileError, match=rf"posterior\.skops|cannot be used.*{said}") as caught:
        load(path, {**files, POSTERIOR: data})
    assert said in str(caught.value)


# ---------------------------------------------------------------------- what it keeps


@pytest.mark.parametrize("kind", ["linear", "trees", "texts", "several", "frozen", "stopped early"])
def test_your_own_classifiers_of_scikit_learn(kind, tmp_path):
    table, y, _ = mixed_table()
    numbers, trees = table[["age", "score"]], HistGradientBoostingClassifier(max_iter=3)
    frozen = FrozenEstimator(HistGradientBoostingClassifier(max_iter=3).fit(numbers, y))
    rows, estimators = {
        "linear": (numbers.to_numpy(), LogisticRegression(C=0.5)),
        "trees": (numbers, trees),
        "texts": (table_for_trees(), trees),
        "several": (numbers, [LogisticRegression(), trees]),
        "frozen": (numbers, [LogisticRegression(), frozen]),
        "stopped early": (numbers, trees.set_params(early_stopping=True, scoring="roc_auc")),
    }[kind]
    encoder = fit(estimators, rows)
    fairbits.save(encoder, tmp_path / "model")
    loaded = fairbits.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(rows), encoder.transform(rows))
    assert repr(loaded) == repr(encoder.set_params(random_state=0))


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
    assert "means of the library that it comes from" in str(caught.value)
    assert not (tmp_path / "model").exists()


def test_a_function_of_yours_is_refused(tmp_path):
    table, *_ = mixed_table()
    trees = HistGradientBoostingClassifier(max_iter=2, early_stopping=True, scoring=_score)
    with pytest.raises(ModelFileError, match="_score, which is no part of a model"):
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
    content = b"".join((tmp_path / "model" / POSTERIOR).read_bytes().split())
    seeds = [model._random_seed for models in encoder.models_ for model in models if hasattr(model, "_random_seed")]
    assert len(seeds) == 2
    hidden = [b"987654321", b"Generator", b"_random_seed", *(str(seed).encode() for seed in seeds)]
    assert not [part for part in [*hidden, *(seed.tobytes() for seed in seeds)] if part in content]
    assert encoder.models_[1][0].random_state == 987654321  # the model itself stays as it was


# ---------------------------------------------------------------------- types


@pytest.mark.parametrize(
    ("module", "name", "loader"),
    [
        ("os", "system", "FunctionNode"),
        ("builtins", "eval", "FunctionNode"),
        ("builtins", "eval", "TypeNode"),
        ("this", "d", "FunctionNode"),
        ("numpy", "exp", "FunctionNode"),
        ("operator", "methodcaller", "OperatorFuncNode"),
        ("sklearn.ensemble._forest", "RandomForestClassifier", "ObjectNode"),
        ("sklearn.tree._tree", "Tree", "TreeNode"),
        ("numpy.random._generator", "Generator", "RandomGeneratorNode"),
        ("sklearn.utils.validation", "check_array", "ObjectNode"),
        (f"{TREES}.predictor", "TreePredictor", "ConstructorFromReduceNode"),
        (None, None, "CachedNode"),
    ],
)
def test_a_forged_type_is_refused_and_not_imported(module, name, loader, files, tmp_path):
    schema = json.loads(unzipped(files[POSTERIOR])[SCHEMA])
    schema["content"].append({"__module__": module, "__class__": name, "__loader__": loader, "content": []})
    refused(tmp_path / "model", files, f"{module}.{name}", **{SCHEMA: json.dumps(schema)})
    assert "this" not in sys.modules


def test_another_protocol_of_skops_is_refused(files, tmp_path):
    schema = json.loads(unzipped(files[POSTERIOR])[SCHEMA])
    refused(tmp_path / "model", files, "protocol 0", **{SCHEMA: json.dumps({**schema, "protocol": 0})})


# ---------------------------------------------------------------------- sizes


def test_nothing_is_unpacked(files, tmp_path):
    data = zipped(unzipped(files[POSTERIOR]), zipfile.ZIP_DEFLATED)
    with pytest.raises(ModelFileError, match="larger than the file"):
        load(tmp_path / "model", {**files, POSTERIOR: data})


def test_two_entries_cannot_share_their_bytes(files, tmp_path):
    """Many members that overlap are how a small zip file becomes a large one."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("0.npy", bytes(10_000))
        for i in range(1, 9):
            archive.infolist().append(twin := zipfile.ZipInfo(f"{i}.npy"))
            twin.file_size, twin.compress_size, twin.CRC = 10_000, 10_000, archive.getinfo("0.npy").CRC
            twin.header_offset = archive.getinfo("0.npy").header_offset
    with pytest.raises(ModelFileError, match="larger than the file"):
        load(tmp_path / "model", {**files, POSTERIOR: data.getvalue()})


@pytest.mark.parametrize(("descr", "shape"), [("<f8", (2**40,)), ("|O", (10,)), ("<U100000000", (7,)), ("<f8", (-1,))])
def test_an_array_takes_the_memory_that_it_has_in_the_file(descr, shape, files, tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": descr, "fortran_order": False, "shape": shape})
    name = next(name for name in unzipped(files[POSTERIOR]) if name != SCHEMA)
    refused(tmp_path / "model", files, "does not hold the array", **{name: header.getvalue() + bytes(80)})


def test_a_schema_with_too_many_values_is_refused(files, tmp_path):
    refused(tmp_path / "model", files, "too many", **{SCHEMA: json.dumps({"content": [0] * 2**21})})


# ---------------------------------------------------------------------- trees: nobody else looks where they lead


def forged_tree(files, change):
    """Change the nodes of one tree that splits by numbers and by a category: name and content of the member."""
    for name, data in unzipped(files[POSTERIOR]).items():
        if name != SCHEMA:
            array = np.load(io.BytesIO(data)).copy()
            if array.dtype.names and array["is_categorical"].any():
                change(array)
                changed = io.BytesIO()
                np.save(changed, array)
                return {name: changed.getvalue()}
    raise AssertionError("there is no such tree")


def last_inner(nodes):
    return np.flatnonzero(nodes["is_leaf"] == 0)[-1]


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("left", 0, "leads nowhere, or back"),
        ("right", lambda nodes: last_inner(nodes), "leads nowhere, or back"),
        ("right", lambda nodes: len(nodes), "leads nowhere, or back"),
        ("left", 2**32 - 1, "leads nowhere, or back"),
        ("feature_idx", 7_000, "a column that there is not"),
        ("feature_idx", -1, "a column that there is not"),
    ],
)
def test_a_tree_that_steps_aside(field, value, said, files, tmp_path):
    def change(nodes):
        nodes[field][last_inner(nodes)] = value(nodes) if callable(value) else value

    refused(tmp_path / "model", files, said, **forged_tree(files, change))


@pytest.mark.parametrize("wrong", ["set", "column"])
def test_a_tree_that_asks_for_a_set_there_is_not(wrong, files, tmp_path):
    def change(nodes):
        place = np.flatnonzero(nodes["is_categorical"])[0]
        if wrong == "set":
            nodes["bitset_idx"][place] = 99
        else:  # trees see the categories first, and a number last
            nodes["feature_idx"][place] = nodes["feature_idx"][nodes["is_leaf"] == 0].max()

    refused(tmp_path / "model", files, "a set of categories that there is not", **forged_tree(files, change))


# ---------------------------------------------------------------------- the rest of the encoder


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m: m["learners"].pop(), "more or fewer classifiers"),
        (lambda m: m["mean"].pop(), "scales are not those of 6 estimates"),
        (lambda m: m["scale"].__setitem__(0, 0.0), "greater than 0"),
        (lambda m: m["learners"][1].update(sees="numbers"), "a model takes"),
        (lambda m: m["learners"][0].update(sees="pickles"), "'numbers', 'levels' or 'rows'"),
        (lambda m: m.update(estimators="one"), "not several learners"),
        (lambda m: m.update(encode_sensitive=True), "reads the groups"),
        (lambda m: m.update(groups=None), "2 models of 'linear'"),
        (lambda m: m["classes"].update(values=["a", "b", "c"]), "a model does not know the classes"),
    ],
)
def test_parts_that_do_not_fit_the_models(change, said, files, tmp_path):
    content = json.loads(files[MODEL])
    change(content["model"])
    with pytest.raises(ModelFileError, match=said):
        load(tmp_path / "model", {**files, MODEL: json.dumps(content).encode()})


def test_names_cannot_take_much_memory(files, tmp_path, monkeypatch):
    """Learner, group and label are parts of one name: long ones, many times."""
    monkeypatch.setattr("fairbits.modelfile.posterior_models.MAX_TEXT", 6 * 204)
    load(tmp_path / "model", files)  # six estimates, each with "yes" and "f" or "m" in its name
    monkeypatch.setattr("fairbits.modelfile.posterior_models.MAX_TEXT", 6 * 204 - 1)
    with pytest.raises(ModelFileError, match="names of the estimates would be too long"):
        load(tmp_path / "again", files)


def test_the_file_is_needed(files, tmp_path):
    with pytest.raises(ModelFileError, match=r"posterior\.skops is not in the manifest"):
        load(tmp_path / "model", {name: data for name, data in files.items() if name != POSTERIOR})
