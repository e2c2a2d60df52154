"""What onnxruntime makes of the exported files is what torch makes of the model."""

import copy
import json
import logging
import os
import re

import numpy as np
import pandas as pd
import pytest
import torch
from battery import by_kind, few_trees, one_quickly, problem, quick
from model_zoo import certified_fair_code, fair_code, mixed_table, posterior_pipeline
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline

import fairbits
from fairbits import (
    BinaryBernoulliClassifier,
    BinaryMIClassifier,
    CertifiedClassifier,
    ExactCodeClassifier,
    TableEncoder,
    VanillaClassifier,
    VFAEClassifier,
    export_onnx,
)
from fairbits.datasets import biased_digits
from fairbits.estimators.codes import TrainedCode
from fairbits.estimators.posterior import PosteriorEncoder
from fairbits.modelfile.onnx_export import tree_attributes

onnx, _, onnxruntime = (
    pytest.importorskip(library, reason="pip install 'fairbits[export]'")
    for library in ("onnx", "onnxscript", "onnxruntime")
)

pytestmark = [
    pytest.mark.usefixtures("operators"),
    *(
        pytest.mark.filterwarnings(f"ignore::fairbits.estimators.{name}")
        for name in ("CollapsedCodeWarning", "VanishedClassWarning", "SaturatedPenaltyWarning")
    ),
]
BATCHES = (1, 7, 1000)
TIE = 1e-6  # theta and noise closer than this may be told apart differently


def run(file, output=None, **inputs):
    """What onnxruntime computes, on one thread: its only output, or the named one."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    (found,) = onnxruntime.InferenceSession(str(file), options).run([output] if output else None, inputs)
    return found


def check_parity(model, folder, X):
    """Compare a folder with its model in batches of several sizes; X holds at least 1000 rows."""
    rng = np.random.default_rng(0)
    for n in BATCHES:
        x = X[:n]
        if not isinstance(model, TrainedCode):
            probabilities = run(folder / "model.onnx", x=x)
            np.testing.assert_allclose(probabilities, model.predict_proba(x), rtol=0, atol=1e-6)
            continue
        noise, theta = rng.random((n, model.code_size), dtype=np.float32), model.code_probabilities(x)
        bits = run(folder / "encoder.onnx", x=x, **({} if model.is_hard else {"noise": noise}))
        assert bits.dtype == np.uint8
        clear = np.abs(theta - noise) > TIE
        assert clear.mean() > 0.999
        np.testing.assert_array_equal(bits[clear], (noise < theta)[clear])
        probabilities = run(folder / "head.onnx", bits=bits)
        np.testing.assert_allclose(probabilities, model.decode(bits), rtol=0, atol=1e-6)


def images(dtype=np.uint8):
    data = biased_digits(0.9, "train")
    return (data.X if dtype == np.uint8 else (data.X / 255).astype(dtype)), data.y, data.s


@pytest.fixture(scope="module")
def code(tmp_path_factory):
    """A fitted method with a code, and its files."""
    X, y, s = problem(1000, n_groups=3, n_classes=3)
    model = quick(BinaryMIClassifier, code_size=5).fit(X, y, sensitive_features=s).set_params(random_state=None)
    return model, export_onnx(model, tmp_path_factory.mktemp("code")), X.astype(np.float32)


# ---------------------------------------------------------------------- parity


def test_a_code(code):
    check_parity(*code)


@pytest.mark.parametrize("cls", by_kind(kinds=(ExactCodeClassifier, VFAEClassifier)))  # tests here have other graphs
def test_every_method(cls, tmp_path):
    X, y, s = problem(1000, n_groups=3, n_classes=3)
    model = quick(cls).fit(X, y, sensitive_features=s)
    check_parity(model, export_onnx(model, tmp_path), X.astype(np.float32))


@pytest.mark.slow
def test_a_wide_code_without_layers(tmp_path):
    X, y, s = problem(1000)
    model = quick(BinaryBernoulliClassifier, code_size=40, hidden_sizes=()).fit(X, y, sensitive_features=s)
    check_parity(model, export_onnx(model, tmp_path), X.astype(np.float32))


@pytest.mark.parametrize(
    ("cls", "dtype", "settings"),
    [
        (BinaryMIClassifier, np.uint8, {"binary": True}),
        pytest.param(BinaryBernoulliClassifier, np.uint8, {}, marks=pytest.mark.slow),
        pytest.param(VanillaClassifier, np.float32, {}, marks=pytest.mark.slow),
    ],
)
def test_images(cls, dtype, settings, tmp_path):
    X, y, s = images(dtype)
    model = quick(cls, channels=(4, 8), max_epochs=1, **settings).fit(X, y, sensitive_features=s)
    folder = export_onnx(model, tmp_path)
    check_parity(model, folder, X)
    described = json.loads((folder / "export.json").read_text())["x"]
    assert described == {"shape": ["n", 3, 8, 8], "dtype": np.dtype(dtype).name, "names": None}


def test_fresh_noise_gives_bits_of_the_right_law(code):
    """Each bit is 1 as often as theta says, and two bits of a row are independent given the row."""
    model, folder, X = code
    x = np.repeat(X, 20, 0)
    noise = (np.frombuffer(os.urandom(4 * len(x) * 5), np.uint32) >> 8).reshape(-1, 5).astype(np.float32) / 2**24
    off = run(folder / "encoder.onnx", x=x, noise=noise) - model.code_probabilities(x)  # (n, 5), mean 0
    spread = np.sqrt((off**2).T @ off**2)
    np.fill_diagonal(spread, np.inf)
    assert np.abs(off.sum(0) / np.sqrt((off**2).sum(0))).max() < 5
    assert np.abs(off.T @ off / spread).max() < 5


# ---------------------------------------------------------------------- what is in the files


def test_the_encoder_returns_bits_and_nothing_of_the_training(code):
    model, folder, _ = code
    encoder, head = (onnx.load(folder / f"{name}.onnx") for name in ("encoder", "head"))
    shapes = {
        value.name: [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]
        for proto in (encoder, head)
        for value in (*proto.graph.input, *proto.graph.output)
    }
    assert shapes == {"x": ["n", 3], "noise": ["n", 5], "bits": ["n", 5], "probabilities": ["n", 3]}
    assert [value.name for value in encoder.graph.output] == ["bits"]
    held = {tensor.name for proto in (encoder, head) for tensor in proto.graph.initializer}
    assert {name.removeprefix("net.") for name in held} == {name for name, _ in model.net_.named_parameters()}
    for proto in (encoder, head):
        assert [(opset.domain, opset.version) for opset in proto.opset_import] == [("", 18)]
        assert not [node.op_type for node in proto.graph.node if "Random" in node.op_type]
        onnx.checker.check_model(proto, full_check=True)


def test_the_files_say_what_the_noise_must_be(code):
    _, folder, _ = code
    props = {p.key: p.value for p in onnx.load(folder / "encoder.onnx").metadata_props}
    described = json.loads((folder / "export.json").read_text())
    assert props["fairbits"] == described["fairbits"] == fairbits.__version__
    assert props["noise"] == described["noise"]["values"]
    assert "cryptographic" in props["noise"]
    assert "one draw per person" in props["bits"]
    assert described["bits"] == ["bit0", "bit1", "bit2", "bit3", "bit4"]
    assert described["files"] == ["encoder.onnx", "head.onnx"]
    assert described["classes"] == [0, 1, 2]


def test_an_export_is_silent_and_holds_neither_seed_nor_paths(code, tmp_path, capfd, caplog, operators):
    """Whatever the seed, the files are the same; torch's exporter would note its call stack in them."""
    model, folder, _ = code
    operators.cache_clear()
    caplog.set_level(logging.WARNING, logger="torch.onnx")
    other = export_onnx(copy.copy(model).set_params(random_state=123), tmp_path)
    assert capfd.readouterr() == ("", "")
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert logging.getLogger("torch.onnx").level == logging.WARNING
    assert sorted(file.name for file in other.iterdir()) == ["encoder.onnx", "export.json", "head.onnx"]
    for file in other.iterdir():
        assert file.read_bytes() == (folder / file.name).read_bytes()
        assert not re.search(rb"\.py\b|site-packages|/fairbits/", file.read_bytes())


# ---------------------------------------------------------------------- behind estimates


def odd_rows():
    table = mixed_table(1000, seed=5)[0]
    table.loc[0, "job"], table.loc[1, "score"], table.loc[2, "age"] = "unseen", np.inf, np.nan
    return table


def inputs_of(encoder, rows, file):
    """What a graph takes of the table: the encoded columns, and levels if it has trees."""
    table = encoder.table_encoder_
    given = {"x": table.transform(rows), "levels": table.levels(rows)}
    return {value.name: given[value.name] for value in onnx.load(file).graph.input if value.name in given}


def features_of(file, front):
    """Write the encoder once more, which also returns what its network sees, and return that file and the name."""
    model = onnx.load(file)
    made = {output: node for node in model.graph.node for output in node.output}
    ends = [node for node in model.graph.node if node.op_type == "Concat" and "x" in node.input]  # beside the columns
    if front.features == "probabilities" or not front.has_columns_:
        last = "Div" if front.features == "log-ratios" else "Reshape"
        casts = [node for node in model.graph.node if node.op_type == "Cast" and node.input[0] in made]
        ends = [node for node in casts if made[node.input[0]].op_type == last]
    (end,) = ends
    shape = ["n", len(front.get_feature_names_out())]
    model.graph.output.append(onnx.helper.make_tensor_value_info(end.output[0], onnx.TensorProto.FLOAT, shape))
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, file.with_name("both.onnx"))
    return file.with_name("both.onnx"), end.output[0]


def check_estimates(front, method, folder):
    """Compare the estimates as probabilities, then the bits, where theta is clear of its noise or of 1/2."""
    rows, file = odd_rows(), folder / "encoder.onnx"
    features, inputs = front.transform(rows), inputs_of(front, rows, file)
    theta = method.net_.theta(torch.from_numpy(features)).detach().numpy()
    noise = np.full_like(theta, 0.5)
    if not method.is_hard:
        noise = inputs["noise"] = np.random.default_rng(0).random(theta.shape, dtype=np.float32)
    both, name = features_of(file, front)
    found = run(both, name, **inputs)
    assert found.dtype == features.dtype == np.float32
    assert found.shape == features.shape
    clear = np.abs(theta - noise) > 1e-4
    if front.features == "probabilities":
        np.testing.assert_allclose(found, features, rtol=0, atol=1e-6)
        first, second = method.net_.scores(torch.from_numpy(features)).topk(2).values.T
        clear &= (first - second > 1e-4).numpy()[:, None]
    else:
        n = len(front.mean_)
        np.testing.assert_array_equal(found[:, n:], features[:, n:])
        # scikit-learn computes some estimates in float32: their log-ratios differ more than the probabilities.
        odds = [np.exp(f[:, :n].astype(float) * front.scale_ + front.mean_) for f in (found, features)]
        np.testing.assert_allclose(*(o / (1 + o) for o in odds), rtol=0, atol=1e-6)
    assert clear.mean() > 0.99
    bits = run(file, **inputs)
    np.testing.assert_array_equal(bits[clear], (noise < theta)[clear])
    assert 0.01 < bits.mean() < 0.99
    one = {name: values[:1] for name, values in inputs.items()}
    np.testing.assert_array_equal(run(file, **one), bits[:1])


@pytest.mark.parametrize(
    ("grouping", "n_classes", "settings"),
    [
        pytest.param("intersection", 2, {}, marks=pytest.mark.slow),  # as those of a fair code
        pytest.param("each", 3, {}, marks=pytest.mark.slow),
        pytest.param("intersection", 2, {"columns": False}, marks=pytest.mark.slow),
    ],
    ids=["crossed", "three classes", "estimates alone"],
)
def test_estimates_are_within_the_encoder(grouping, n_classes, settings, tmp_path):
    model, table, _ = posterior_pipeline(grouping, n_classes, **settings)
    folder = export_onnx(model, tmp_path)
    check_estimates(*model, folder)
    described = json.loads((folder / "export.json").read_text())
    kept = [name for name in table.columns if name != "land"]
    assert described["levels"]["names"] == kept
    assert described["levels"]["shape"] == ["n", len(kept)]
    assert described["x"]["names"] == list(model[0].table_encoder_.get_feature_names_out())
    assert [column["name"] for column in described["table"]["columns"]] == list(table.columns)
    assert described["files"] == ["encoder.onnx", "head.onnx"]


@pytest.mark.slow
def test_few_rows_have_no_trees(tmp_path):
    table, y, s = mixed_table(300)
    front, method = PosteriorEncoder(), quick(ExactCodeClassifier)
    method.fit(front.fit_transform(table, y, sensitive_features=s.sex), y, sensitive_features=s.sex)
    folder = export_onnx(Pipeline([("posterior", front), ("code", method)]), tmp_path)
    check_estimates(front, method, folder)
    assert json.loads((folder / "export.json").read_text())["levels"] is None


def test_a_tree_of_one_leaf_and_a_set_of_nothing(tmp_path):
    """Trees that find nothing to split, and splits by a category that ask only whether it is missing."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 4, 400), rng.normal(size=400)])
    y = (rng.random(400) < np.where(rng.random(400) < 0.4, 0.9, 0.1)).astype(int)
    X[(y == 1) & (rng.random(400) < 0.8), 0] = np.nan
    for rows in (X, np.zeros_like(X)):
        trees = HistGradientBoostingClassifier(categorical_features=[0], max_iter=3).fit(rows, y)
        node = onnx.helper.make_node("TreeEnsemble", ["x"], ["sum"], domain="ai.onnx.ml", **tree_attributes(trees))
        ends = [
            onnx.helper.make_tensor_value_info(name, onnx.TensorProto.DOUBLE, ["n", size])
            for name, size in (("x", 2), ("sum", 1))
        ]
        graph = onnx.helper.make_graph([node], "trees", ends[:1], ends[1:])
        opsets = [onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid("ai.onnx.ml", 5)]
        model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10)
        (tmp_path / "trees.onnx").write_bytes(model.SerializeToString())
        score = run(tmp_path / "trees.onnx", x=rows)[:, 0] + trees._baseline_prediction.item()
        np.testing.assert_allclose(score, trees.decision_function(rows), rtol=0, atol=1e-12)


@pytest.mark.parametrize("release", one_quickly(["hard", "random"]))
def test_a_fair_code_is_exported_whole(release, tmp_path):
    model, _, _ = fair_code(release=release)
    check_estimates(*model.estimator_, export_onnx(model, tmp_path))
    assert ("noise" in json.loads((tmp_path / "export.json").read_text())) == (release == "random")


@pytest.mark.slow
def test_a_certified_fair_code_is_exported_whole(tmp_path):
    model, _, _ = certified_fair_code()
    check_estimates(*model.estimator_, export_onnx(model, tmp_path))


@pytest.mark.slow
def test_a_method_without_a_code_behind_estimates(tmp_path):
    table, _, s = mixed_table()
    y = np.digitize(table.age, [0, 2])
    with few_trees():
        front = PosteriorEncoder().fit(table, y, sensitive_features=s[["sex"]])
    method = quick(VanillaClassifier).fit(front.transform(table), y)
    export_onnx(Pipeline([("posterior", front), ("method", method)]), tmp_path)
    inputs = inputs_of(front, table, tmp_path / "model.onnx")
    expected = method.predict_proba(front.transform(table))
    np.testing.assert_allclose(run(tmp_path / "model.onnx", **inputs), expected, rtol=0, atol=1e-5)


# ---------------------------------------------------------------------- around a method


def test_the_model_chosen_by_a_certificate_is_exported(tmp_path):
    """Its method has every setting that shapes a code."""
    X, y, s = problem(1000)
    shaped = {"binary": True, "hidden_sizes": (32, 16), "noise_floor": 0.2, "temperature": 0.1, "code_size": 3}
    method = make_pipeline(TableEncoder(), quick(BinaryBernoulliClassifier, **shaped))
    model = CertifiedClassifier(method, max_disparity=0.99, path=(0.5,)).fit(X, y, sensitive_features=s)
    encoder, own = model.estimator_
    check_parity(own, export_onnx(model, tmp_path), encoder.transform(X))
    assert own.net_.training is False
    assert len(json.loads((tmp_path / "export.json").read_text())["table"]["columns"]) == 3


def test_the_model_chosen_by_a_search_is_exported_with_the_names_of_the_fit(tmp_path):
    X, y, s = problem(1000, n_groups=3, n_classes=3)
    frame, names = pd.DataFrame(X, columns=["a", "b", "c"]), np.array(["no", "perhaps", "yes"])[y]
    search = GridSearchCV(quick(VanillaClassifier), {"learning_rate": [0.001]}, cv=2)
    search.fit(frame, names, sensitive_features=s)
    folder = export_onnx(search, str(tmp_path / "new" / "folder"))
    probabilities = search.predict_proba(frame)
    for n in BATCHES:
        found = run(folder / "model.onnx", x=X[:n].astype(np.float32))
        np.testing.assert_allclose(found, probabilities[:n], rtol=0, atol=1e-6)
    described = json.loads((folder / "export.json").read_text())
    assert described["x"]["names"] == ["a", "b", "c"]
    assert described["classes"] == ["no", "perhaps", "yes"]
    assert described["files"] == ["model.onnx"]
    assert "noise" not in described


class Counting(VanillaClassifier):
    """Makes a plain number of the rows' count."""

    def probabilities(self, net, x):
        return super().probabilities(net, x) * torch.ones(len(x), 1)


def test_a_file_for_one_number_of_rows_is_refused(tmp_path):
    X, y, _ = problem()
    with pytest.raises(ValueError, match=r"x\.shape\[0\]"):
        export_onnx(quick(Counting).fit(X, y), tmp_path)
