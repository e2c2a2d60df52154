"""Files that cannot be trusted are refused with a sentence that says why; files are written whole."""

import hashlib
import json
import os
import struct

import numpy as np
import pytest
from battery import problem, quick
from model_zoo import certified, pipeline
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fairbits
from fairbits import (
    BinaryMIClassifier,
    CertifiedClassifier,
    LFRClassifier,
    ModelFileError,
    TableEncoder,
    VanillaClassifier,
    VFAEClassifier,
)
from fairbits.modelfile import ModelExistsError, manifest
from fairbits.modelfile.manifest import MANIFEST, MODEL, WEIGHTS, entry_of, manifest_of, write_json


@pytest.fixture(scope="module")
def model():
    X, y, s = problem(200)
    return quick(BinaryMIClassifier).fit(X, y, sensitive_features=s)


@pytest.fixture
def path(model, tmp_path):
    fairbits.save(model, tmp_path / "model")
    return tmp_path / "model"


def seal(path):
    """Write a manifest that is right for the files as they are."""
    entries = {name: entry_of((path / name).read_bytes()) for name in (MODEL, WEIGHTS) if (path / name).exists()}
    (path / MANIFEST).write_bytes(manifest_of(entries))


def edit(path, change):
    """Change model.json and write new digests, as a forger would."""
    content = json.loads((path / MODEL).read_text())
    change(content["model"])
    (path / MODEL).write_text(json.dumps(content))
    seal(path)


def edit_manifest(path, change):
    """Change the manifest and its own digest."""
    content = json.loads((path / MANIFEST).read_text())
    del content["manifest"]
    change(content)
    head = write_json(content).removesuffix(b"\n}\n")
    content["manifest"] = {"size": len(head), "sha256": hashlib.sha256(head).hexdigest()}
    (path / MANIFEST).write_bytes(write_json(content))


def edit_header(path, change):
    """Change the header of the weights and write new digests."""
    data = (path / WEIGHTS).read_bytes()
    end = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:end])
    change(header)
    header = json.dumps(header).encode()
    (path / WEIGHTS).write_bytes(struct.pack("<Q", len(header)) + header + data[end:])
    seal(path)


# ---------------------------------------------------------------------- accidents


@pytest.mark.parametrize("name", [MANIFEST, MODEL, WEIGHTS])
@pytest.mark.parametrize("damage", ["changed", "cut off", "longer", "empty", "missing", "a folder", "a link", "a pipe"])
def test_every_accident_is_found(path, name, damage):
    file = path / name
    data = file.read_bytes()
    file.unlink()
    if damage == "a folder":
        file.mkdir()
    elif damage == "a link":
        (path / "other").write_bytes(data)
        file.symlink_to(path / "other")
    elif damage == "a pipe":
        os.mkfifo(file)
    elif damage != "missing":
        middle = len(data) // 2
        changed = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
        file.write_bytes({"changed": changed, "cut off": data[:-1], "longer": data + b" ", "empty": b""}[damage])
    with pytest.raises(ModelFileError, match=f"{name} is a link" if damage == "a link" else name):
        fairbits.load(path)


@pytest.mark.parametrize("part", ["size", "sha256"])
def test_the_manifest_knows_its_own_size_and_digest(path, part):
    text = (path / MANIFEST).read_text()
    own = str(json.loads(text)["manifest"][part])
    other = own[:-1] + ("1" if own[-1] != "1" else "2")
    (path / MANIFEST).write_text(text.replace(own, other))
    with pytest.raises(ModelFileError, match=r"manifest\.json cannot be used: it has been changed or damaged"):
        fairbits.load(path)


def test_no_folder_or_another_one(tmp_path):
    for place in (tmp_path / "nowhere", __file__):
        with pytest.raises(ModelFileError, match="is not a folder"):
            fairbits.load(place)
    with pytest.raises(ModelFileError, match="No such file"):
        fairbits.load(tmp_path)


def test_other_files_in_the_folder_are_not_read(path):
    (path / "notes.txt").write_text("a report")
    fairbits.load(path)


# ---------------------------------------------------------------------- forgeries: with new digests


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda m: m.update(version=4), "Upgrade fairbits"),
        (lambda m: m.update(version="1"), "changed or damaged"),
        (lambda m: m.update(format="fairbits model "), "manifest of a fairbits model"),
        (lambda m: m["files"].update({"../model.json": m["files"][MODEL]}), "changed or damaged"),
        (lambda m: m["files"].update({"/etc/passwd": m["files"][MODEL]}), "changed or damaged"),
        (lambda m: m.update(files=None), "changed or damaged"),
        (lambda m: m.update(files=[MODEL]), "changed or damaged"),
        (lambda m: m["files"].update({MODEL: "a"}), "does not match the manifest"),
        (lambda m: m["files"].pop(MODEL), "not in the manifest"),
        (lambda m: m["files"].pop(WEIGHTS), "not in the manifest"),
        (lambda m: m["files"][WEIGHTS].update(size=10**13), "does not match the manifest"),
        (lambda m: m["files"][MODEL].update(size=-1), "does not match the manifest"),
        (lambda m: m["files"][MODEL].update(sha256="A" * 64), "does not match the manifest"),
        (lambda m: m["files"][MODEL].update(more=1), "does not match the manifest"),
        (lambda m: m.update(more=1), "changed or damaged"),
    ],
)
def test_a_forged_manifest(path, change, complaint):
    edit_manifest(path, change)
    with pytest.raises(ModelFileError, match=complaint):
        fairbits.load(path)


def set_setting(**settings):
    return lambda m: m["settings"].update(settings)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (set_setting(hidden_sizes=[10**9]), "needs"),
        (set_setting(hidden_sizes=[10**15, 10**15]), "cannot be read|overflow"),
        (set_setting(hidden_sizes=[16] * 300), "at most 256"),
        (set_setting(code_size=21201), "needs"),
        (set_setting(code_size=10**12), "needs"),
        (set_setting(code_size=9, running_tables=True), "needs"),
        (set_setting(gamma=float("inf")), "gamma.*finite number"),
        (set_setting(gamma=float("nan")), "gamma.*finite number"),
        (set_setting(gamma=-1), "gamma=-1 must be"),
        (set_setting(binary=1), "binary=1 must be one of"),
        (set_setting(temperature="hot"), "temperature='hot' must be"),
        (set_setting(batch_size=10**30), "batch_size=1e.30 must be"),
        (set_setting(device="cuda"), "no setting 'device'"),
        (set_setting(random_state=0), "no setting 'random_state'"),
        (set_setting(__class__="os.system"), "no setting '__class__'"),
        (set_setting(running_tables=True, code_size=20, wide="draws"), "2.code_size words"),
        (lambda m: m.update(name="os.system"), "'os.system' is unknown"),
        (lambda m: m.update(name="VanillaClassifier"), "no setting"),
        (lambda m: m.update(kind="pickle"), "does not match any of the expected tags"),
        (lambda m: m.update(more=1), "Extra inputs"),
        (lambda m: m.pop("history"), "Field required"),
        (lambda m: m.update(input_shape=[10**9]), "needs"),
        (lambda m: m.update(input_shape=[1, 2]), "neither"),
        (lambda m: m.update(input_shape=["3"]), "input_shape.0: Input should be a valid integer"),
        (lambda m: m.update(feature_names_in=["a"]), "1 feature names for 3"),
        (lambda m: m.update(best_epoch=7777), "not in the history"),
        (lambda m: m["history"][0].pop("information"), "different terms"),
        (lambda m: m.update(fingerprint="0"), "pattern"),
        (lambda m: m.update(output="numpy"), "output"),
        (lambda m: m["classes"].update(values=[1, 0]), "in order"),
        (lambda m: m["classes"].update(values=[1, 1]), "in order"),
        (lambda m: m["classes"].update(values=[0, 1, 2]), "needs"),
        (lambda m: m["classes"].update(values=[0, True]), "not of the type"),
        (lambda m: m["classes"].update(dtype="int8", values=[0, 500]), "out of bounds|not of the type"),
        (lambda m: m["classes"].update(dtype="str", width=1, values=["no", "yes"]), "not of the type"),
        (lambda m: m["classes"].update(dtype="str", width=2**16, values=[f"{i:05}" for i in range(9999)]), "too many"),
        (lambda m: m["groups"]["parameters"].update(groups="each"), "cells are for"),
        (lambda m: m["groups"].update(cells=[0, 5]), "rising order"),
        (lambda m: m["groups"].update(cells=[1, 0]), "rising order"),
        (lambda m: m["groups"].update(sizes=[[1, 2, 3]]), "group sizes"),
        (lambda m: m["groups"]["levels"][0].update(labels=["a", "a"]), "are the same"),
        (lambda m: m["groups"]["levels"][0].update(edges=[0.0, 2.0, 1.0]), "do not rise"),
        (lambda m: m["groups"]["levels"].append(m["groups"]["levels"][0]), "same name"),
        (lambda m: m["groups"]["levels"].extend([{"name": str(i), "labels": ["a"], "edges": None} for i in range(64)]),
         "at most 64"),
        (lambda m: m.clear(), "Unable to extract tag"),
    ],
)  # fmt: skip
def test_a_forged_model(path, change, complaint):
    edit(path, change)
    with pytest.raises(ModelFileError, match=complaint):
        fairbits.load(path)


def test_a_number_too_large_to_be_one(path):
    (path / MODEL).write_text((path / MODEL).read_text().replace('"gamma": 0.1', '"gamma": 1e999'))
    seal(path)
    with pytest.raises(ModelFileError, match=r"gamma.*finite number"):
        fairbits.load(path)


def many_groups(m):
    """Crossed groups whose names would take terabytes."""
    labels = [str(i) for i in range(1000)]
    m["groups"]["levels"] = [{"name": c * 10**5, "labels": labels, "edges": None} for c in "ab"]
    m["groups"].update(cells=list(range(10**5)), sizes=[[1] * 10**5])


def many_cells(m):
    """Parts for training that no weights are kept of."""
    m["settings"].update(condition_on_label=True, code_size=8)
    m["classes"]["values"] = list(range(10**5))


@pytest.mark.parametrize(("change", "complaint"), [(many_groups, "too long"), (many_cells, "too many")])
def test_few_bytes_do_not_become_many(path, change, complaint):
    edit(path, change)
    with pytest.raises(ModelFileError, match=complaint):
        fairbits.load(path)


def test_combinations_of_groups_are_counted_before_they_are_made(tmp_path):
    X, y, s = problem(200)
    both = np.column_stack([s, np.arange(200) % 2])
    model = quick(VFAEClassifier, groups="each").fit(X, y, sensitive_features=both)
    fairbits.save(model, tmp_path / "model")

    def change(m):
        level = {"name": "", "labels": [str(i) for i in range(50)], "edges": None}
        m["groups"]["levels"] = [{**level, "name": str(i)} for i in range(9)]
        m["groups"]["sizes"] = [[9] * 50] * 9

    edit(tmp_path / "model", change)
    with pytest.raises(ModelFileError, match=r"has \d+ bytes; this model needs 35\d+ to"):
        fairbits.load(tmp_path / "model")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda t: t["features"].pop(), "8 feature names for|feature names"),
        (lambda t: t["dropped"].clear(), "dropped columns"),
        (lambda t: t["features"][0].update(scale=-1.0), "greater than or equal"),
        (lambda t: t["features"][0].update(kind="code"), "expected tags"),
        (lambda t: t["features"][3].update(categories=["a"] * 9), "Two output columns"),
        (lambda t: t["features"][3]["categories"].append("z"), "is given"),
        (lambda t: t["parameters"].update(dtype="object"), "dtype"),
        (lambda t: t["parameters"].update(max_categories=True), "max_categories"),
        (lambda t: t["feature_names_in"].__setitem__(3, "n" * 10**6) or t["features"][3].update(
            categories=[str(i) for i in range(1000)]), "too long"),
    ],
)  # fmt: skip
def test_a_forged_table_encoder(change, complaint, fitted_pipeline, tmp_path):
    fairbits.save(fitted_pipeline, tmp_path / "model")
    edit(tmp_path / "model", lambda m: change(m["steps"][0]["model"]))
    with pytest.raises(ModelFileError, match=complaint):
        fairbits.load(tmp_path / "model")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda m: m["steps"].reverse(), "not consist of encoders"),
        (lambda m: m["steps"][0].update(name="a__b"), "hold no"),
        (lambda m: m["steps"][0].update(name=m["steps"][1]["name"]), "must differ"),
        (lambda m: m.update(steps=[]), "at least 1"),
    ],
)
def test_a_forged_pipeline(change, complaint, fitted_pipeline, tmp_path):
    fairbits.save(fitted_pipeline, tmp_path / "model")
    edit(tmp_path / "model", change)
    with pytest.raises(ModelFileError, match=complaint):
        fairbits.load(tmp_path / "model")


@pytest.fixture(scope="module")
def fitted_pipeline():
    return pipeline()[0]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda m: m["certificate"].update(bounds=[]), "among all rows"),
        (lambda m: m["certificate"].update(confidence=2.0), "confidence"),
        (lambda m: m["certificate"]["bounds"][0].update(total_variation=-0.1), "total_variation"),
        (lambda m: m.update(strengths=[0.5, 7]), "strengths"),
        (lambda m: m["certificate"]["release"].update(draws=0), "draws"),
        (lambda m: m["certificate"]["release"].update(eps=0.7), "eps"),
        (lambda m: m["certificate"]["release"].update(hard=0), "neither true nor false"),
        (
            lambda m: m["certificate"]["release"].update(hard=True),
            "about the hard code, and the model releases the random",
        ),
        (lambda m: m["certificate"]["bounds"][0]["rows"].update(a=-1), "greater than or equal"),
        (lambda m: m.update(max_disparity=7.0), "max_disparity"),
        (lambda m: m.update(chosen={**m}), "expected tags"),
        (lambda m: m["chosen"]["steps"][1]["model"].update(groups=None), "cannot have been certified"),
    ],
)
def test_a_forged_certificate(change, complaint, fitted_certified, tmp_path):
    fairbits.save(fitted_certified, tmp_path / "model")
    edit(tmp_path / "model", change)
    with pytest.raises(ModelFileError, match=complaint):
        fairbits.load(tmp_path / "model")


@pytest.fixture(scope="module")
def fitted_certified():
    return certified()[0]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (b"[" * 10**5, "recursion depth"),
        (b'{"a":' * 10**5, "recursion depth"),
        (b"[]", "where an object"),
        (b'{"a": 1, "a": 2}', "twice"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not valid JSON"),
        (b"\xff\xfe{\x00}\x00", "not valid JSON"),
        (b"{} {}", "not valid JSON"),
        (b'{"a": [' + b"{}," * 2**20 + b"{}]}", "more than 1048576 values"),
        (b'{"created": "\\ud800"}', "hex escape"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_text_that_is_no_model(path, text, complaint):
    (path / MODEL).write_bytes(text)
    seal(path)
    with pytest.raises(ModelFileError, match=complaint):
        fairbits.load(path)


def exchange(header):
    header["head.weight"], header["head.bias"] = header["head.bias"], header["head.weight"]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda h: h.pop("head.bias"), "'head.bias' is missing"),
        (lambda h: h.update(more=h["head.bias"]), "'more' is missing, or not a part"),
        (lambda h: h.update(__metadata__={"a": "b"}), "__metadata__"),
        (lambda h: h["head.bias"].update(shape=[10**12]), "invalid shape"),
        (lambda h: h["head.bias"].update(shape=[-2]), "expected usize"),
        (lambda h: h["head.bias"].update(dtype="I64"), "invalid shape, data type"),
        (lambda h: h["head.bias"].update(dtype="F64"), "invalid shape, data type"),
        (lambda h: h["head.bias"].update(data_offsets=[0, 8]), "invalid offset"),
        (lambda h: h["head.bias"].update(data_offsets=[8, 0]), "invalid offset"),
        (lambda h: h["head.bias"].update(data_offsets=[0, 10**15]), "invalid offset"),
        (lambda h: h["head.bias"].update(data_offsets=[0]), "tuple of size 2"),
        (exchange, "needs"),
        (lambda h: h.clear(), "is missing"),
    ],
)
def test_a_forged_header(path, change, complaint):
    edit_header(path, change)
    with pytest.raises(ModelFileError, match=complaint):
        fairbits.load(path)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda d: b"\xff" * 8 + d[8:], "cut off"),
        (lambda d: d[:4], "needs [0-9]"),
        (lambda d: d[:-4], "not fully covered"),
        (lambda d: d + b"\0" * 4, "not fully covered"),
        (lambda d: d[:-4] + struct.pack("<f", float("nan")), "not numbers"),
        (lambda d: d[:-4] + struct.pack("<f", float("inf")), "not numbers"),
        (lambda d: b"\x80\x04cos\nsystem\n" + d, "cut off"),
        (lambda d: d + b"\0" * 10**6, "needs [0-9]"),
    ],
)
def test_forged_weights(path, change, complaint):
    (path / WEIGHTS).write_bytes(change((path / WEIGHTS).read_bytes()))
    seal(path)
    with pytest.raises(ModelFileError, match=complaint):
        fairbits.load(path)


# ---------------------------------------------------------------------- writing


def left(place):
    return sorted(file.name for file in place.iterdir())


def test_a_model_is_replaced_only_when_asked(model, path):
    before = (path / MODEL).read_bytes()
    with pytest.raises(ModelExistsError, match=r"already holds a model\. Pass overwrite=True") as refused:
        fairbits.save(model, path)
    assert (refused.value.path, "overwrite" in refused.value.problem) == (path, False)
    assert (path / MODEL).read_bytes() == before
    X, y, _ = problem(200)
    fairbits.save(quick(VanillaClassifier).fit(X, y), path, overwrite=True)
    assert type(fairbits.load(path)) is VanillaClassifier
    fairbits.save(TableEncoder().fit(X), path, overwrite=True)
    assert left(path) == [MANIFEST, MODEL]
    assert left(path.parent) == ["model"]


def test_a_damaged_model_can_be_replaced(model, path):
    (path / WEIGHTS).write_bytes(b"")
    fairbits.save(model, path, overwrite=True)
    fairbits.load(path)


def test_nothing_but_models_is_replaced(model, path, tmp_path):
    (path / "notes.txt").write_text("mine")
    with pytest.raises(ModelFileError, match=r"notes\.txt"):
        fairbits.save(model, path, overwrite=True)
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(path)
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / MANIFEST).write_text('{"name": "a web page"}')
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "code.py").write_text("mine")
    before = left(tmp_path)
    for name in ("file", "link", "web", "src"):
        with pytest.raises(ModelFileError, match="is not a model"):
            fairbits.save(model, tmp_path / name, overwrite=True)
    assert left(tmp_path) == before
    assert left(tmp_path / "web") == [MANIFEST]


def test_new_places(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    for place in ("empty", "a/b/c", tmp_path / "x", "y/"):
        fairbits.save(model, place)
        fairbits.load(place)
    assert left(tmp_path) == ["a", "empty", "x", "y"]
    with pytest.raises(ModelFileError, match="cannot be written"):
        fairbits.save(model, tmp_path / "x" / MODEL / "inside")


@pytest.mark.parametrize("step", ["replace_file", "sync_folder", "read_manifest", "rename"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_failure_leaves_what_was_there(model, path, step, overwrite, monkeypatch):
    place = path if overwrite else path.parent / "new"
    before = left(path.parent), (path / MODEL).read_bytes()
    X, y, _ = problem(200)
    other = quick(VanillaClassifier).fit(X, y)

    def fail(*args, **kwargs):
        if step == "rename" and ".old" in str(args):  # only the second rename fails
            return rename(*args)
        raise OSError(28, "No space left on device")

    rename = os.rename
    home = {"rename": os}.get(step, manifest)
    with monkeypatch.context() as patched:
        patched.setattr(home, step, fail)
        with pytest.raises(ModelFileError, match="No space left"):
            fairbits.save(other, place, overwrite=overwrite)
    assert (left(path.parent), (path / MODEL).read_bytes()) == before
    assert type(fairbits.load(path)) is BinaryMIClassifier


def test_what_cannot_be_saved_is_named(model, tmp_path):
    X, y, _ = problem(200)
    scaled = make_pipeline(StandardScaler(), quick(VanillaClassifier)).fit(X, y)

    class Mine(VanillaClassifier):
        pass

    class Searched:
        best_estimator_ = model

    broken = quick(VanillaClassifier).fit(X, y)
    broken.net_.head.bias[0] = float("nan")
    odd = quick(VanillaClassifier).fit(X, y).set_params(batch_size={1})
    dated = quick(VanillaClassifier).fit(X, y)
    dated.classes_ = np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]")
    for wrong, complaint in [
        (BinaryMIClassifier(), "BinaryMIClassifier is not fitted"),
        (TableEncoder(), "TableEncoder is not fitted"),
        (CertifiedClassifier(), "CertifiedClassifier is not fitted"),
        (make_pipeline(TableEncoder(), LFRClassifier()), "is not fitted"),
        (LogisticRegression(), "LogisticRegression cannot be saved"),
        (scaled, "StandardScaler cannot be saved"),
        (
            make_pipeline(TableEncoder(), LogisticRegression()).fit(X, y),
            "LogisticRegression cannot be saved in a pipeline",
        ),
        (
            make_pipeline(TableEncoder().fit(X), CertifiedClassifier()),
            "CertifiedClassifier cannot be saved in a pipeline",
        ),
        (Mine(), "Mine cannot be saved"),
        (Searched(), "its best_estimator_"),
        (None, "NoneType cannot be saved"),
        (broken, r"/model/weights.safetensors cannot be read: 'head.bias' holds values that are infinite"),
        (odd, "not .{1}."),
        (dated, "not .2020-01-01."),
    ]:
        with pytest.raises(ModelFileError, match=complaint):
            fairbits.save(wrong, tmp_path / "model")
    assert left(tmp_path) == []
