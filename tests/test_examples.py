"""The examples run as they stand."""

import ast
import json
import re
import runpy
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from battery import LEARNS, few_rows, few_trees, quick
from sklearn.pipeline import make_pipeline

from fairbits import (
    BinaryMIClassifier,
    FairCodeClassifier,
    Schedule,
    TableEncoder,
    export_onnx,
)
from fairbits.estimators import InvariantClassifier

EXAMPLES = Path(__file__).parent.parent / "examples"
RIGHT, LEAKED = r"one draw ([\d.]+);", r"reveals ([\d.]+) bits"


def run(name, *arguments, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return capsys.readouterr().out


def test_the_correlation_remover_is_audited(capsys, monkeypatch):
    with few_rows("load_compas", 10), few_trees():
        text = run("correlation_remover.py", "compas", capsys=capsys, monkeypatch=monkeypatch)
    assert text.startswith("compas: a logistic regression on top has a disparity of")
    assert text.count(" AUC ") == 3
    assert "proved: an attack predicts S" in text


@pytest.mark.slow
def test_a_forest_reads_what_the_correlation_remover_leaves(capsys, monkeypatch):
    text = run("correlation_remover.py", "compas", capsys=capsys, monkeypatch=monkeypatch)
    auc = {line.split()[0]: float(line.split()[2]) for line in text.splitlines() if " AUC " in line}
    assert auc["logistic"] < 0.55
    assert auc["forest"] > 0.999


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("gallery/*.py")), ids=lambda file: file.name)
def test_the_gallery_uses_public_names(file):
    """`make docs` runs it."""
    found = [node for node in ast.parse(file.read_text()).body if isinstance(node, ast.ImportFrom)]
    ours = [(node.module, name.name) for node in found for name in node.names if node.module.startswith("fairbits")]
    assert ours
    assert [name for module, name in ours if not hasattr(import_module(module), name)] == []


def test_the_concepts_page_quotes_the_worked_example(capsys, monkeypatch):
    text = run("worked_code.py", capsys=capsys, monkeypatch=monkeypatch)
    page = (EXAMPLES.parent / "docs" / "concepts.md").read_text()
    assert f"```text\n{text}```" in page


def test_codes_of_a_table_of_ones_own_are_released_within_the_limit(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(InvariantClassifier, "own_schedule", Schedule(min_steps=60, patience=1))
    text = run("own_table.py", str(tmp_path / "codes.csv"), "3000", "0", capsys=capsys, monkeypatch=monkeypatch)
    assert "differ between two groups by at most 0.15" in text
    assert float(text.split()[-1]) < 0.15
    released = pd.read_csv(tmp_path / "codes.csv", index_col=0)
    assert list(released.columns) == [f"bit{i}" for i in range(8)]
    assert released.isin([0, 1]).all(axis=None)
    assert list(released.index) == list(range(3000, 6000))


@pytest.mark.parametrize(
    ("step", "min_steps", "auc"),
    [
        pytest.param(6, 10, 0, marks=pytest.mark.filterwarnings("ignore::fairbits.estimators.VanishedClassWarning")),
        pytest.param(1, 100, 0.6, marks=pytest.mark.slow),
    ],
)
def test_sensitive_features_pass_through_cross_validation(step, min_steps, auc, capsys, monkeypatch):
    pytest.importorskip("fairlearn", reason="pip install 'fairbits[compare]'")
    monkeypatch.setattr(InvariantClassifier, "own_schedule", Schedule(min_steps=min_steps))  # of its eight fits
    with few_rows("load_compas", step):
        lines = run("cross_validation.py", capsys=capsys, monkeypatch=monkeypatch).splitlines()
    assert min(map(float, lines[0].split()[-3:])) > auc
    assert "selection rate" in lines[2]


def test_a_loop_of_ones_own_runs(capsys, monkeypatch):
    text = run("torch_loop.py", "3", capsys=capsys, monkeypatch=monkeypatch)
    assert len(re.findall(RIGHT, text)) == len(re.findall(LEAKED, text)) == 3


@pytest.mark.slow
def test_the_penalty_works_in_a_loop_of_ones_own(capsys, monkeypatch):
    lines = run("torch_loop.py", "150", capsys=capsys, monkeypatch=monkeypatch).splitlines()
    right, leaked = (np.array([float(n) for n in re.findall(pattern, "".join(lines))]) for pattern in (RIGHT, LEAKED))
    assert right[0] > 0.9
    assert right[2] > 0.65
    assert leaked[2] < leaked[0] / 5


# ---------------------------------------------------------------------- a consumer without torch


def mixed_table(n, seed):
    """Return numbers and texts with gaps, truth values, rare and constant columns."""
    rng = np.random.default_rng(seed)
    number = rng.normal(40, 12, n)
    return pd.DataFrame(
        {
            "age": number.round(1),
            "income": np.where(rng.random(n) < 0.2, np.nan, number * 1e3),
            "half known": np.where(rng.random(n) < 0.5, np.nan, 7.0),
            "job": rng.choice(["a", "b, c", 'd"', "é", "rare", f"only {seed}"], n, p=[0.3, 0.3, 0.2, 0.1, 0.05, 0.05]),
            "colour": rng.choice(np.array(["red", "blue", None]), n),
            "owner": rng.random(n) < 0.5,
            "country": "NL",
        }
    )


@pytest.fixture(scope="module")
def exported(tmp_path_factory, operators):
    """A fitted pipeline, its exported files, and a table it has not seen, also as a file."""
    folder, table, new = tmp_path_factory.mktemp("export"), mixed_table(600, 0), mixed_table(200, 1)
    y = np.where(table["age"] > 40, "old", "young")
    model = make_pipeline(TableEncoder(max_categories=5), quick(BinaryMIClassifier, code_size=6, **LEARNS))
    model.fit(table, y, binarymiclassifier__sensitive_features=table["age"] % 2 > 1)
    new.to_csv(folder / "new.csv", index=False)
    return model, export_onnx(model, folder), new


def test_the_consumer_encodes_a_table_as_the_encoder_does(exported):
    model, folder, new = exported
    example = runpy.run_path(str(EXAMPLES / "onnx_consumer.py"))
    export = json.loads((folder / "export.json").read_text())
    x = example["read_rows"](str(folder / "new.csv"), export)["x"]
    np.testing.assert_array_equal(x, model[0].transform(new))
    assert x.shape[1] == len(export["x"]["names"]) == 14
    assert x.dtype == np.float32
    numbers = {"table": None, "x": {"names": ["age", "age"]}}
    np.testing.assert_allclose(example["read_rows"](str(folder / "new.csv"), numbers)["x"][:, 1], new["age"])


def test_the_consumer_predicts_from_fresh_bits_without_torch(exported):
    model, folder, new = exported
    example = str(EXAMPLES / "onnx_consumer.py")
    program = f"import runpy, sys; runpy.run_path({example!r}, run_name='__main__'); print(*sys.modules)"
    command = [sys.executable, "-c", program, str(folder), str(folder / "new.csv")]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines() for _ in range(2)]
    assert not {"torch", "sklearn", "pandas", "fairbits"} & set(runs[0][-1].split())
    codes, classes, chances = zip(*(line.split() for line in runs[0][:-1]), strict=True)
    bits = np.array([list(map(int, code)) for code in codes])
    probabilities = model[-1].decode(bits)
    np.testing.assert_array_equal(classes, model.classes_[probabilities.argmax(1)])
    np.testing.assert_allclose(np.array(chances, float), probabilities.max(1), atol=6e-4)
    theta = model[-1].code_probabilities(model[0].transform(new))
    assert np.abs((bits - theta).sum(0) / np.sqrt((theta * (1 - theta)).sum(0))).max() < 5
    assert [line.split()[0] for line in runs[1][:-1]] != list(codes)


@pytest.mark.slow
def test_the_consumer_computes_the_hard_code_of_a_fair_model(exported, capsys, monkeypatch):
    """Boosted trees read the levels of columns, so a table of many rows takes the way through them."""
    _, folder, new = exported
    table = mixed_table(600, 0)
    y = np.where(table["age"] > 40, "old", "young")
    with few_trees():
        model = FairCodeClassifier(code_size=3, random_state=0).fit(table, y, sensitive_features=np.arange(600) % 2)
    export_onnx(model, folder / "fair")
    text = run(
        "onnx_consumer.py", str(folder / "fair"), str(folder / "new.csv"), capsys=capsys, monkeypatch=monkeypatch
    )
    codes, classes, _ = zip(*(line.split() for line in text.splitlines()), strict=True)
    expected = ["".join(map(str, code)) for code in model.transform(new)]
    assert len(set(expected)) > 1
    assert np.mean(np.array(codes) == expected) > 0.99  # but for ties
    assert np.mean(np.array(classes) == model.predict(new)) > 0.99
