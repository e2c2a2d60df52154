"""What onnxruntime makes of the exported files is what torch makes of the model."""

import copy
import functools
import json
import logging
import os
import re

import numpy as np
import pandas as pd
import pytest
import torch
from battery import ESTIMATORS, problem, quick
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import fairbits
from fairbits import (
    BinaryBernoulliClassifier,
    BinaryMIClassifier,
    CertifiedClassifier,
    TableEncoder,
    VanillaClassifier,
    export_onnx,
)
from fairbits.datasets import biased_digits
from fairbits.estimators import CodeClassifier

onnx, _, onnxruntime = (
    pytest.importorskip(library, reason="pip install 'fairbits[export]'")
    for library in ("onnx", "onnxscript", "onnxruntime")
)

pytestmark = [
    pytest.mark.filterwarnings(f"ignore::fairbits.estimators.{name}")
    for name in ("CollapsedCodeWarning", "VanishedClassWarning", "SaturatedPenaltyWarning")
]
BATCHES = (1, 7, 1000)
TIE = 1e-6  # theta and noise closer than this may be told apart differently


@pytest.fixture(autouse=True, scope="module")
def operators():
    """Let torch read its table of operators once: it would at every export, and that is most of the time."""
    registry = pytest.importorskip("torch.onnx._internal.exporter._registration").ONNXRegistry
    cached = functools.cache(registry.from_torchlib)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "from_torchlib", staticmethod(cached))
        yield cached


def run(file, **inputs):
    """What onnxruntime computes, on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    (output,) = onnxruntime.InferenceSession(str(file), options).run(None, inputs)
    return output


def check_parity(model, folder, X):
    """Compare a folder with its model in batches of several sizes; X holds at least 1000 rows."""
    rng = np.random.default_rng(0)
    for n in BATCHES:
        x = X[:n]
        if not isinstance(model, CodeClassifier):
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
    X, y, s = problem(1000)
    model = quick(BinaryMIClassifier, code_size=5, random_state=None).fit(X, y, sensitive_features=s)
    return model, export_onnx(model, tmp_path_factory.mktemp("code")), X.astype(np.float32)


# ---------------------------------------------------------------------- parity


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_every_method(cls, tmp_path):
    X, y, s = problem(1000, n_groups=3, n_classes=3)
    model = quick(cls).fit(X, y, sensitive_features=s)
    check_parity(model, export_onnx(model, tmp_path), X.astype(np.float32))


@pytest.mark.parametrize(
    "settings",
    [
        {"binary": True, "hidden_sizes": (32, 16)},
        {"noise_floor": 0.2, "temperature": 0.1},
        {"code_size": 40, "hidden_sizes": ()},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_codes_with_every_setting_that_shapes_them(settings, tmp_path):
    X, y, s = problem(1000)
    model = quick(BinaryBernoulliClassifier, **settings).fit(X, y, sensitive_features=s)
    check_parity(model, export_onnx(model, tmp_path), X.astype(np.float32))


@pytest.mark.parametrize(
    ("cls", "dtype", "settings"),
    [
        (BinaryBernoulliClassifier, np.uint8, {}),
        (BinaryMIClassifier, np.uint8, {"binary": True}),
        (VanillaClassifier, np.float32, {}),
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
    assert shapes == {"x": ["n", 3], "noise": ["n", 5], "bits": ["n", 5], "probabilities": ["n", 2]}
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
    assert described["classes"] == [0, 1]


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


def test_names_are_those_of_the_fit(tmp_path):
    X, y, s = problem()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = quick(VanillaClassifier).fit(frame, np.array(["no", "yes"])[y], sensitive_features=s)
    described = json.loads((export_onnx(model, str(tmp_path / "new" / "folder")) / "export.json").read_text())
    assert described["x"]["names"] == ["a", "b", "c"]
    assert described["classes"] == ["no", "yes"]
    assert described["files"] == ["model.onnx"]
    assert "noise" not in described


# ---------------------------------------------------------------------- around a method


def test_the_model_chosen_by_a_certificate_is_exported(tmp_path):
    X, y, s = problem(1000)
    method = make_pipeline(TableEncoder(), quick(BinaryMIClassifier, code_size=3))
    model = CertifiedClassifier(method, max_disparity=0.99, path=(0.5,)).fit(X, y, sensitive_features=s)
    encoder, own = model.estimator_
    check_parity(own, export_onnx(model, tmp_path), encoder.transform(X))
    assert own.net_.training is False
    assert len(json.loads((tmp_path / "export.json").read_text())["table"]["columns"]) == 3


def test_the_model_chosen_by_a_search_is_exported(tmp_path):
    X, y, s = problem()
    search = GridSearchCV(quick(VanillaClassifier), {"learning_rate": [0.001]}, cv=2).fit(X, y, sensitive_features=s)
    probabilities = run(export_onnx(search, tmp_path) / "model.onnx", x=X.astype(np.float32))
    np.testing.assert_allclose(probabilities, search.predict_proba(X), rtol=0, atol=1e-6)


class Counting(VanillaClassifier):
    """Makes a plain number of the rows' count."""

    def probabilities(self, net, x):
        return super().probabilities(net, x) * torch.ones(len(x), 1)


def test_a_file_for_one_number_of_rows_is_refused(tmp_path):
    X, y, _ = problem()
    with pytest.raises(ValueError, match=r"x\.shape\[0\]"):
        export_onnx(quick(Counting).fit(X, y), tmp_path)
