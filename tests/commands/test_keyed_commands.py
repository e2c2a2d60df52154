"""`fairbits key`, and codes that it draws: the same in one file, in parts and in any order."""

import json
import shutil
import stat

import numpy as np
import pandas as pd
import pytest
from people import population

from fairbits.tables import table_file as files


@pytest.fixture
def place(fitted, tmp_path, monkeypatch, fairbits):
    """Return a folder with a model that draws, new people in one file and in parts, and a key."""
    shutil.copytree(fitted / "m", tmp_path / "m")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(files, "PART_ROWS", 100)
    frame = population(400, 7)
    frame.to_parquet("new.parquet", index=False, row_group_size=100)
    frame.sample(frac=1, random_state=0).to_csv("mixed.csv", index=False)
    assert fairbits("key", "secret.key").code == 0
    return tmp_path


def codes(path):
    frame = pd.concat(map(pd.read_parquet, sorted(path.glob("part-*")))) if path.is_dir() else pd.read_csv(path)
    return frame.set_index("id").sort_index()


def test_a_person_has_one_code_wherever_it_is_drawn(place, fairbits):
    keyed = ["--key", "secret.key", "--person", "id", "--keep", "id"]
    ended = fairbits("transform", "m", "new.parquet", "-o", "bits.csv", *keyed)
    assert ended.code == 0, ended.err
    assert "for recipients without the key" in ended.out
    assert not list((place / "m").rglob("*.ledger"))
    fairbits("transform", "m", "mixed.csv", "-o", "again.csv", *keyed)
    parts = fairbits("transform", "m", "new.parquet", "-o", "parts", *keyed)
    assert "4 parts written" in parts.out
    assert "for recipients without the key" in parts.out
    for other in ("again.csv", "parts"):
        pd.testing.assert_frame_equal(codes(place / "bits.csv"), codes(place / other), check_dtype=False)
    fairbits("key", "other.key")
    fairbits("transform", "m", "new.parquet", "-o", "other.csv", "--key", "other.key", *keyed[2:])
    assert (codes(place / "bits.csv") != codes(place / "other.csv")).to_numpy().mean() > 0.1
    ended = fairbits("transform", "m", "new.parquet", "-o", "parts", "--key", "other.key", *keyed[2:])
    assert "parts holds parts of another table, model or options." in ended.err


def test_predictions_are_read_off_the_same_code(place, fairbits):
    keyed = ["--key", "secret.key", "--person", "id", "--keep", "id"]
    fairbits("predict", "m", "new.parquet", "-o", "one.csv", *keyed)
    fairbits("predict", "m", "new.parquet", "-o", "parts", *keyed)
    pd.testing.assert_frame_equal(codes(place / "one.csv"), codes(place / "parts"), check_dtype=False)


def test_the_key_stays_out_of_the_model_and_the_output(place, fairbits):
    secret = (place / "secret.key").read_text().split()[-1]
    assert stat.S_IMODE((place / "secret.key").stat().st_mode) == 0o600
    fairbits("transform", "m", "new.parquet", "-o", "parts", "--key", "secret.key", "--person", "id")
    for file in [*(place / "m").rglob("*"), *(place / "parts").rglob("*")]:
        assert not file.is_file() or secret.encode() not in file.read_bytes()
    ended = fairbits("key", "m/k.key")
    assert ended.code == 1
    assert "is the folder of a model" in ended.err
    assert "exists and is left as it is" in fairbits("key", "secret.key").err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-o", "parts"], "Parts of random codes are drawn with a key. Pass --key and --person"),
        (
            ["-o", "b.csv", "--key", "secret.key"],
            "--key needs to know which person each row belongs to. Pass --person.",
        ),
        (["-o", "b.csv", "--key", "secret.key", "--person", "id", "--reuse"], "--reuse is for a ledger"),
        (["-o", "parts", "--key", "secret.key", "--person", "id", "--ledger", "l"], "--ledger needs a ledger"),
        (["-o", "b.csv", "--key", "none.key", "--person", "id"], "none.key: No such file"),
        (["-o", "b.csv", "--key", "secret.key", "--person", "name"], "has no column 'name'"),
    ],
)
def test_what_a_key_needs_is_said(place, fairbits, arguments, words):
    ended = fairbits("transform", "m", "new.parquet", *arguments)
    assert ended.code == 1
    assert words in ended.err


def test_a_hard_code_needs_no_key(hard, tmp_path, fairbits, monkeypatch):
    monkeypatch.chdir(tmp_path)
    population(100, 3).to_csv("new.csv", index=False)
    fairbits("key", "k")
    ended = fairbits("transform", hard / "m", "new.csv", "--key", "k", "--person", "id")
    assert "--key is for random codes" in ended.err


def test_json_says_that_keyed_codes_are_covered(place, fairbits):
    ended = fairbits("transform", "m", "new.parquet", "-o", "b.csv", "--key", "secret.key", "--person", "id", "--json")
    record = json.loads(ended.out)
    assert record["covered"] is True
    assert np.isin(pd.read_csv("b.csv").to_numpy(), (0, 1)).all()
