"""Whatever is wrong with an input gets a sentence: no traceback, no word of Python, nothing written or changed."""

import gzip
import hashlib
import importlib
import os
import pkgutil
import re
import shutil

import numpy as np
import pandas as pd
import pytest
from people import population

import fairbits as package
from fairbits.errors import InputError, InputWarning
from fairbits.tables import file_formats
from fairbits.tables import table_file as files
from fairbits.workflow.option_words import REMEDIES, worded

PYTHON_WORDS = re.compile(
    r"sensitive_features|min_group_size|n_bins|max_values|groups=|\bX:|Traceback|\b[a-z]+_[a-z]+="
)
NAMED = ["--label", "paid", "--sensitive", "sex"]


def table(n=300, **columns):
    return population(n, 7).assign(**columns).to_csv(index=False).encode()


def change(row, **values):
    frame = population(300, 7).astype(object)
    for name, value in values.items():
        frame.loc[row, name] = value
    return frame.to_csv(index=False).encode()


def without(*names):
    return population(300, 7).drop(columns=list(names)).to_csv(index=False).encode()


def nested(file):
    pd.DataFrame({"grade": [1.0, 2.0], "job": [["clerk"], ["cook", "nurse"]]}).to_parquet(file)


GOOD = table()
MANY = np.array([f"town {i}" for i in range(300)])
TRANSFORM = ["transform", "m", "t.csv", "-o", "out.csv"]
AUDIT = ["audit", "t.csv", "--sensitive", "sex"]
CERTIFY = ["certify", "m", "t.csv"]
OF_LEDGERS = {"--reuse", "--again", "--person"}
FIT = ["fit", "t.csv", *NAMED, "-o", "new"]

# content of t.csv (or a function that writes t.parquet), arguments, words of the answer
BAD = {
    # files, seen by every command that reads one
    "empty": (b"", TRANSFORM, "t.csv is empty"),
    "blank lines": (b"\n\n \n", TRANSFORM, "t.csv is empty"),
    "header only": (GOOD.splitlines()[0] + b"\n", TRANSFORM, "column names but no rows"),
    "header only, to audit": (GOOD.splitlines()[0] + b"\n", AUDIT, "column names but no rows"),
    "header only, to certify": (GOOD.splitlines()[0] + b"\n", CERTIFY, "column names but no rows"),
    "wrong separator": (GOOD.replace(b",", b":"), TRANSFORM, "Pass --separator"),
    "separator of two characters": (GOOD, [*TRANSFORM, "--separator", "::"], "must be a single character"),
    "separator that is not there": (GOOD, [*TRANSFORM, "--separator", "#"], "has one column"),
    "duplicate columns": (GOOD.replace(b"height", b"grade", 1), TRANSFORM, "more than one column named 'grade'"),
    "nameless column": (GOOD.replace(b"height", b"", 1), TRANSFORM, "Column 3 of t.csv has no name"),
    "no header": (b"1,2,3\n4,5,6\n", TRANSFORM, "holds numbers, not names"),
    "not UTF-8": (change(3, job="clérk").decode().encode("latin-1"), TRANSFORM, "--encoding latin-1"),
    "not UTF-8, far down": (GOOD + b"\xe9,1\n", TRANSFORM, "is not UTF-8 text"),
    "unknown encoding": (GOOD, [*TRANSFORM, "--encoding", "klingon"], "--encoding klingon is unknown"),
    "wrong encoding": (change(3, job="clérk"), [*TRANSFORM, "--encoding", "ascii"], "is not ascii text"),
    "too wide an encoding": (GOOD, [*TRANSFORM, "--encoding", "utf-16"], "is not utf-16 text"),
    "an encoding of no text": (GOOD, [*TRANSFORM, "--encoding", "base64"], "--encoding base64 is unknown"),
    "NUL bytes, far down": (GOOD + b"\0\0\n", TRANSFORM, "holds binary data"),
    "Excel": (b"PK\x03\x04" + bytes(50), AUDIT, "an Excel or zip file"),
    "a line too long": (GOOD + b"a,b,c,d,e,f,g,h,i\n", TRANSFORM, "Expected 7 fields in line 302, saw 9"),
    "a quote never closed": (GOOD + b'"7-1,1,1,cook\n', TRANSFORM, "cannot be read as a table"),
    "cut-off gzip": (GOOD, ["transform", "m", "t.csv.gz", "-o", "out.csv"], "is cut off"),
    "nested Parquet": (nested, ["transform", "m", "t.parquet", "-o", "out.csv"], "holds lists or records"),
    "not Parquet": (GOOD, ["transform", "m", "fake.parquet", "-o", "out.csv"], "not a readable Parquet"),
    "another ending": (GOOD, ["transform", "m", "t.xlsx", "-o", "out.csv"], "t.xlsx is an Excel file"),
    "no file": (GOOD, ["transform", "m", "none.csv", "-o", "out.csv"], "There is no file none.csv"),
    "a folder for a file": (GOOD, ["audit", "m", "--sensitive", "sex"], "There is no CSV or Parquet file in m."),
    "a file of a folder that is none": (GOOD, ["certify", "m", "t.csv/u.csv"], "There is no file t.csv/u.csv"),
    # what the model reads
    "renamed column": (GOOD.replace(b"height", b"Height", 1), TRANSFORM, "did you mean 'Height'?"),
    "number now text": (change(16, grade="high"), TRANSFORM, "in row 17 it is 'high'"),
    "number now text, later": (table(grade=["1"] * 299 + ["x"]), TRANSFORM, "in row 300 it is 'x'"),
    "number with a comma": (change(0, grade="1,5"), ["predict", "m", "t.csv", "-o", "out.csv"], "in row 1 it is '1,5'"),
    "date now text": (table(day="tomorrow"), TRANSFORM, "held dates such as 2026-01-31 when the model was fitted"),
    "date now number": (table(day=7), TRANSFORM, "held dates such as 2026-01-31"),
    # the model
    "damaged weights": (GOOD, ["transform", "damaged", "t.csv"], "cut off, changed or damaged"),
    "damaged record": (GOOD, ["certify", "misread", "t.csv"], "audit.json is not as `fairbits fit` wrote it"),
    "damaged ledger": (GOOD, ["transform", "forged", "t.csv"], "released.ledger is damaged"),
    # what is written
    "output exists": (GOOD, ["transform", "m", "t.csv", "-o", "mine.csv"], "mine.csv exists and is left as it is"),
    "output is the input": (GOOD, ["transform", "m", "t.csv", "-o", "./t.csv"], "is the table itself"),
    "output of another kind": (GOOD, ["predict", "m", "t.csv", "-o", "out.xlsx"], "ends in neither .csv nor .parquet"),
    "no output folder": (GOOD, ["predict", "m", "t.csv", "-o", "no/out.csv"], "There is no folder no"),
    "audit exists": (GOOD, [*AUDIT, "-o", "mine.csv"], "mine.csv exists and is left as it is"),
    "fetched file exists": (GOOD, ["data", "fetch", "compas", "-o", "mine.csv"], "is left as it is"),
    "images to a file": (GOOD, ["data", "fetch", "mnist", "-o", "out.csv"], "mnist is images, not a table"),
    "a shipped table to a home": (GOOD, ["data", "fetch", "adult", "--data-home", "."], "comes with fairbits"),
    # options
    "keep nobody": (GOOD, [*TRANSFORM, "--keep", "identifier"], "has no column 'identifier'"),
    "keep a bit": (table(bit0=1), [*TRANSFORM, "--keep", "bit0"], "twice; rename that column"),
    "keep twice": (GOOD, [*TRANSFORM, "--keep", "id,id"], "twice; rename that column"),
    "reuse of a hard code": (GOOD, ["transform", "h", "t.csv", "--reuse"], "--reuse is for random codes."),
    "again of a hard code": (GOOD, ["predict", "h", "t.csv", "--again"], "the same code every time: leave it out"),
    "loss without a ledger": (GOOD, ["transform", "h", "t.csv", "--accept-loss"], "--accept-loss is for random codes."),
    "expected of a hard code": (GOOD, ["predict", "h", "t.csv", "--expected"], "--expected is for random codes."),
    "draws of a hard code": (GOOD, ["certify", "h", "t.csv", "--draws", "2"], "--draws 2 is for random codes"),
    "both at once": (GOOD, [*TRANSFORM, "--reuse", "--again"], "pass only one of the two"),
    "expected and reuse": (GOOD, ["predict", "m", "t.csv", "--expected", "--reuse"], "--expected draws no codes"),
    "person unknown": (GOOD, [*TRANSFORM, "--person", "name"], "has no column 'name'"),
    "person without a name": (change(4, id=""), [*TRANSFORM, "--person", "id"], "Row 5 has no value in id"),
    # sensitive columns and labels
    "no S in the audit": (GOOD, ["audit", "t.csv"], "Name the sensitive columns with --sensitive"),
    "unknown S": (GOOD, ["audit", "t.csv", "--sensitive", "gender"], "has no column 'gender'"),
    "S of one group": (table(sex="F"), AUDIT, "'sex' has only one group, 'F'"),
    "S of 300 values": (table(sex=MANY), AUDIT, "more than 50 groups. Merge them"),
    "S missing everywhere": (table(sex=None), AUDIT, "has only one group, '(missing)'"),
    "one row": (population(1, 7).to_csv(index=False).encode(), AUDIT, "at least 20 are needed"),
    "one row, to certify": (population(1, 7).to_csv(index=False).encode(), [*CERTIFY, "--sensitive", "race"], "sex"),
    "nothing to audit": (GOOD, [*AUDIT, "--columns", "sex"], "Nothing is left to audit"),
    "no such column to audit": (GOOD, [*AUDIT, "--columns", "bit*"], "has no column 'bit*'"),
    "other S of the model": (GOOD, [*CERTIFY, "--sensitive", "job"], "fitted to protect sex, not job"),
    "S not in the table": (without("sex"), CERTIFY, "has no column 'sex', which the model was fitted to protect"),
    "label of another kind": (
        table(paid="maybe"),
        ["audit", "t.csv", "--model", "m", "--label", "paid"],
        "'maybe' in a row of t.csv; the model knows no, yes",
    ),
    "columns of a model": (
        GOOD,
        ["audit", "t.csv", "--model", "m", "--drop", "job"],
        "a model knows its columns and groups",
    ),
    "S not there to encode": (
        without("sex"),
        ["transform", "e", "t.csv"],
        "no column 'sex', which this model reads: it was fitted with --encode-sensitive",
    ),
    "S missing to encode": (change(4, sex=""), ["transform", "e", "t.csv"], "Row 5 of t.csv has no sex that the model"),
    "S unknown to encode": (change(4, sex="X"), ["predict", "e", "t.csv"], "its code depends on it. Correct it"),
    # to fit; test_first_mistakes.py has more
    "fit: only a name": (GOOD, [*FIT, "--drop", "grade,height,job,day"], "every column was dropped"),
    "fit: empty columns": (
        table(grade=None, height=None, job=None, day=None),
        FIT,
        "every row is missing",
    ),
}


@pytest.fixture
def place(fitted, hard, seeing, tmp_path, monkeypatch):
    """Return a folder with models, damaged copies of one, and other things that must stay as they are."""
    for name, folder in {
        "h": hard,
        "e": seeing,
        **dict.fromkeys(("m", "damaged", "misread", "forged"), fitted),
    }.items():
        shutil.copytree(folder / "m", tmp_path / name, ignore=shutil.ignore_patterns("report.html"))  # it is large
    with (tmp_path / "damaged" / "model" / "weights.safetensors").open("r+b") as file:
        file.seek(-9, os.SEEK_END)
        file.write(b"\xff")
    (tmp_path / "misread" / "audit.json").write_text('{"certificate": 1}')
    (tmp_path / "forged" / "model" / "released.ledger").write_bytes(b"no one, ever, was here")
    (tmp_path / "void").mkdir()
    for name in ("mine.csv", "void/mine.csv", "fake.parquet", "t.xlsx"):
        (tmp_path / name).write_text("a,b\n1,2\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(folder):
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


ALIKE = {name: bad for name, bad in BAD.items() if bad[1][:2] == ["transform", "m"] and not OF_LEDGERS & {*bad[1]}}


@pytest.mark.parametrize("name", [*BAD, *(f"{name}, hard" for name in ALIKE)])
def test_a_sentence_and_nothing_else(place, fairbits, monkeypatch, name):
    """Tables are read in several pieces and blocks."""
    monkeypatch.setattr(files, "PIECE_ROWS", 100)
    monkeypatch.setattr(file_formats, "HEAD_BYTES", 2**12)
    content, arguments, words = BAD[name.removesuffix(", hard")]
    if name.endswith(", hard"):
        arguments = ["transform", "h", *arguments[2:]]
    if callable(content):
        content(place / "t.parquet")
    else:
        (place / "t.csv").write_bytes(content)
        (place / "t.csv.gz").write_bytes(gzip.compress(content)[:-30])
    before = contents(place)
    ended = fairbits(*arguments)
    said = " ".join(ended.err.split())
    assert ended.code == 1, said
    assert words in said
    assert said.startswith("fairbits: ")
    assert not PYTHON_WORDS.search(said), said
    assert contents(place) == before


def test_there_are_well_over_forty():
    assert len(BAD) > 60


def test_a_file_that_must_not_be_read(place, fairbits, monkeypatch):
    (place / "t.csv").write_bytes(GOOD)
    if os.geteuid():
        (place / "t.csv").chmod(0)
    else:  # root reads everything

        def closed(self, *args, **kwargs):
            raise PermissionError(13, "Permission denied", str(self))

        monkeypatch.setattr("pathlib.Path.open", closed)
    ended = fairbits(*AUDIT)
    assert ended.code == 1
    assert "Permission denied" in ended.err


def test_a_folder_that_must_not_be_written(place, fairbits, monkeypatch):
    (place / "t.csv").write_bytes(GOOD)
    (place / "shut").mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: "shut" not in str(path))
    ended = fairbits("transform", "m", "t.csv", "-o", "shut/out.csv")
    assert "The folder shut cannot be written" in ended.err


GOOD_ENOUGH = {
    "byte-order mark": b"\xef\xbb\xbf" + GOOD,
    "UTF-16": GOOD.decode().encode("utf-16"),
    "CRLF": GOOD.replace(b"\n", b"\r\n"),
    "quoted newlines": change(3, job="clerk\nor cook"),
    "extra columns": table(extra="x", more=1),
    "infinities": change(3, grade="inf", height="-inf"),
    "huge integers": change(3, grade="1" + "0" * 30),
    "an empty column": table(grade=None),
    "unseen categories": table(job="astronaut"),
    "mixed types": change(3, job=17),
    "a few dates that are none": change(3, day="soon"),
}


@pytest.mark.parametrize("model", ["m", "h"])
@pytest.mark.parametrize("name", GOOD_ENOUGH)
def test_what_can_be_understood_is(place, fairbits, name, model):
    (place / "t.csv").write_bytes(GOOD_ENOUGH[name])
    ended = fairbits("transform", model, *TRANSFORM[2:])
    assert ended.code == 0, ended.err
    assert len(pd.read_csv("out.csv")) == 300


def test_the_command_line_has_its_own_remedies():
    for name, remedy in REMEDIES.items():
        kind = type(name, (InputWarning,), {"people": ["id"]})
        warning = kind("The model is odd.", remedy="Pass groups='each' to fit.")
        said = worded(warning)
        assert said == f"The model is odd. {remedy(warning) if callable(remedy) else remedy}"
        assert not PYTHON_WORDS.search(said)
    assert said == "The model is odd. Pass --person id."


def test_every_remedy_is_of_an_error_that_exists():
    for module in pkgutil.walk_packages(package.__path__, "fairbits."):
        importlib.import_module(module.name)
    kinds = [InputError, InputWarning]
    for kind in kinds:
        kinds += kind.__subclasses__()
    assert set(REMEDIES) <= {kind.__name__ for kind in kinds}


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (InputError("must be positive.", argument="max_epochs", value=0), "--epochs 0 must be positive."),
        (InputError("has one group.", argument="sensitive_features", value=[1]), "The sensitive column has one group."),
        (InputError("t.csv is empty.", remedy="Name another file."), "t.csv is empty. Name another file."),
        (InputError("It is odd.", remedy="Pass rows to certify(X)."), "It is odd."),
        (InputError("t.csv has no column 'code_size'."), "t.csv has no column 'code_size'."),
    ],
)
def test_errors_are_in_options_and_columns(error, words):
    assert worded(error) == words
