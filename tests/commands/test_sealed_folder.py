"""What `fairbits fit` wrote belongs together: an edited, swapped or forged file is refused with a sentence."""

import json
import shutil
from pathlib import Path

import pytest
from people import population

import fairbits as library
from fairbits.modelfile import BrokenSealError
from fairbits.modelfile.manifest import (
    MANIFEST,
    MODEL,
    RECORD,
    WEIGHTS,
    manifest_of,
    read_manifest,
    read_record,
    write_record,
)
from fairbits.tables.fitted_model import open_model

CHANGED = "audit.json is not as `fairbits fit` wrote it with the model in m/model: changed, cut off or replaced."
OTHER = "audit.json is about another model than the one in m/model."
DAMAGED = "does not match the manifest: it was cut off, changed or damaged."
MANIFEST_CHANGED = "manifest.json cannot be used: it has been changed or damaged since it was written."


def edited(*path, value=None):
    """Set a value of the record, or delete it, and write the record as fairbits writes it."""

    def forge(own, _):
        record = json.loads((own / RECORD).read_text())
        place = record
        for key in path[:-1]:
            place = place[key]
        if value is None:
            del place[path[-1]]
        else:
            place[path[-1]] = value(place[path[-1]]) if callable(value) else value
        (own / RECORD).write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")

    return forge


def rewritten(name, change):
    """Change the bytes of a file."""

    def forge(own, _):
        (own / name).write_bytes(change((own / name).read_bytes()))

    return forge


def swapped(*names):
    """Take files of another fit."""

    def forge(own, other):
        for name in names:
            shutil.copyfile(other / name, own / name)

    return forge


def saved_again(own, _):
    """Save the same model with Python, in its place."""
    (own / "model" / "released.ledger").unlink(missing_ok=True)
    library.save(library.load(own / "model"), own / "model", overwrite=True)


def as_version_2(own, _):
    """Write a manifest as before there were seals, with right digests."""
    (own / "model" / MANIFEST).write_bytes(manifest_of(read_manifest(own / "model").files, 2))


def about_the_other(own, other):
    edited("model", value=json.loads((other / RECORD).read_text())["model"])(own, other)


def flipped(data):
    return data[:-9] + bytes([data[-9] ^ 1]) + data[-8:]


BOUND = ("certificate", "bounds", 0)
INNER = f"model/{MODEL}", f"model/{WEIGHTS}"
FORGED = {
    "limit": (edited("asked", "max_disparity", value=0.01), CHANGED),
    "bound": (edited(*BOUND, "total_variation", value=0.001), CHANGED),
    "bound in the last digit": (edited(*BOUND, "total_variation", value=lambda bound: bound - 1e-15), CHANGED),
    "confidence": (edited("certificate", "confidence", value=0.999), CHANGED),
    "verdict": (edited("certified", value=lambda certified: not certified), CHANGED),
    "rows": (edited(*BOUND, "rows", "F", value=10**6), CHANGED),
    "group names": (edited(*BOUND, "rows", value=lambda rows: {"young": rows["F"], "old": rows["M"]}), CHANGED),
    "model name": (edited("method", "name", value="VanillaClassifier"), CHANGED),
    "promise": (edited("certificate", "promise", value="nobody can tell anything"), CHANGED),
    "no promise": (edited("certificate", "promise"), CHANGED),
    "limits of the guarantee": (edited("certificate", "does_not_cover", value=[]), CHANGED),
    "draws": (edited("certificate", "release", "draws", value=16), CHANGED),
    "warnings": (edited("concerns", value=["all is well"]), CHANGED),
    "attacks": (edited("audit", "probes", value=[]), CHANGED),
    "fingerprint of the table": (edited("table", value="0" * 64), CHANGED),
    "sketch of the rows": (edited("sketch"), CHANGED),
    "digest of the model": (edited("model", value="0" * 64), OTHER),
    "digest of another model": (about_the_other, OTHER),
    "no digest": (edited("model"), CHANGED),
    "a space at the end": (rewritten(RECORD, lambda data: data + b" "), CHANGED),
    "written in one line": (rewritten(RECORD, lambda data: json.dumps(json.loads(data)).encode()), CHANGED),
    "cut off": (rewritten(RECORD, lambda data: data[: len(data) // 2]), CHANGED),
    "empty": (rewritten(RECORD, lambda _: b""), CHANGED),
    "a list": (rewritten(RECORD, lambda _: b"[]"), CHANGED),
    "the record of another fit": (swapped(RECORD), OTHER),
    "model.json edited": (rewritten(INNER[0], lambda data: data.replace(b'"nurse"', b'"nuns"')), DAMAGED),
    "model.json cut off": (rewritten(INNER[0], lambda data: data[:-20]), DAMAGED),
    "model.json of another fit": (swapped(INNER[0]), DAMAGED),
    "a bit of the weights": (rewritten(INNER[1], flipped), DAMAGED),
    "weights cut off": (rewritten(INNER[1], lambda data: data[:-4]), "bytes; this model needs|" + DAMAGED),
    "weights of another fit": (swapped(INNER[1]), "bytes; this model needs|" + DAMAGED),
    "both of another fit": (swapped(*INNER), DAMAGED),
    "manifest edited": (rewritten(f"model/{MANIFEST}", lambda d: d.replace(b'"record"', b'"extra"')), MANIFEST_CHANGED),
    "manifest cut off": (rewritten(f"model/{MANIFEST}", lambda data: data[:-5]), "manifest.json is not valid JSON"),
    "manifest of another fit": (swapped(f"model/{MANIFEST}"), DAMAGED),
    "manifest as of an earlier version": (as_version_2, CHANGED),
    "the model of another fit": (swapped(*INNER, f"model/{MANIFEST}"), OTHER),
    "the model saved again": (saved_again, OTHER),
}
COMMANDS = {
    "report": ["report", "m", "-o", "out"],
    "transform": ["transform", "m", "new.csv", "-o", "out.csv"],
    "predict": ["predict", "m/model", "new.csv", "-o", "out.csv"],
    "certify": ["certify", "m", "new.csv"],
}


@pytest.fixture(scope="module")
def original(hard, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sealed")
    population(50, 5).to_csv(folder / "new.csv", index=False)
    shutil.copytree(hard / "m", folder / "m")
    return folder


@pytest.fixture
def place(original, tmp_path, monkeypatch):
    shutil.copytree(original, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_file_is_refused_by_every_command(place, fairbits, seeing, name):
    forge, sentences = FORGED[name]
    forge(Path("m"), seeing / "m")
    for command, arguments in COMMANDS.items():
        ended = fairbits(*arguments)
        assert ended.code == 1, (command, ended)
        assert any(sentence in " ".join(ended.err.split()) for sentence in sentences.split("|")), (command, ended.err)
        assert not ended.out
        assert sorted(file.name for file in place.iterdir()) == ["m", "new.csv"]


def test_what_fit_wrote_is_read_by_every_command_also_elsewhere(place, fairbits):
    Path("m").rename("moved")
    for command, *arguments in COMMANDS.values():
        ended = fairbits(command, *({"m": "moved", "m/model": "moved/model"}.get(name, name) for name in arguments))
        assert ended.code == 0, ended.err
        Path("out.csv").unlink(missing_ok=True)


def test_a_record_without_its_model_is_refused(place, fairbits):
    shutil.rmtree("m/model")
    ended = fairbits("report", "m")
    assert (ended.code, "audit.json is about a model, but m/model holds none." in ended.err) == (1, True)


def test_a_folder_of_an_earlier_version_is_read_with_what_it_has(place, fairbits):
    record = read_record(Path("m"))
    del record["model"], record["sketch"]
    Path("m", RECORD).write_text(json.dumps(record))
    as_version_2(Path("m"), None)
    assert open_model(Path("m")).record == record
    assert fairbits("report", "m").code == 0
    assert "covers them" in fairbits("transform", "m", "new.csv", "-o", "out.csv").out


def test_the_seal_can_be_written_again_by_anyone(place):
    """It notices edits; it is no signature."""
    record = read_record(Path("m"))
    record["asked"]["max_disparity"] = 0.01
    assert write_record(Path("m"), record) == read_record(Path("m"))
    assert open_model(Path("m")).limit.total_variation == {"sex": 0.01}


def test_the_error_is_one_of_input(place):
    Path("m", RECORD).write_text("{}")
    with pytest.raises(BrokenSealError, match="changed, cut off or replaced"):
        open_model(Path("m"))
