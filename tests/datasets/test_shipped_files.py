import gzip
import hashlib
import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from fairbits.datasets import load_bank, load_compas
from fairbits.datasets import shipped as files
from fairbits.datasets.shipped import parse_table, shipped_table

NAMES = ["adult_test.csv.gz", "adult_train.csv.gz", "bank_full.csv.gz", "compas.csv.gz"]

ADDITIONAL = (
    b'"age";"job";"marital";"education";"duration";"pdays";"y"\r\n'
    b'24;"student";"single";"unknown";10;999;"no"\r\n'
    b'25;"admin.";"single";"basic.4y";300;999;"yes"\r\n'
    b'65;"retired";"married";"basic.4y";30;6;"no"\r\n'
    b'66;"retired";"married";"basic.4y";40;999;"yes"\r\n'
)


def test_every_shipped_file_has_a_checksum():
    assert sorted(json.loads((files.SHIPPED / "checksums.json").read_text())) == NAMES
    assert sorted(path.name for path in files.SHIPPED.iterdir() if path.name.endswith(".gz")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_shipped_files_are_reproducible_gzip(name):
    header = (files.SHIPPED / name).read_bytes()[:10]
    assert header[3] == 0, "no file name inside"
    assert header[4:8] == bytes(4), "no time stamp inside"


def test_shipped_files_are_small():
    assert sum(len((files.SHIPPED / name).read_bytes()) for name in NAMES) < 1_200_000


def test_compas_ships_nobodys_identity():
    table = shipped_table("compas.csv.gz")
    assert set(table) == {
        *[
            "sex",
            "age",
            "age_cat",
            "race",
            "juv_fel_count",
            "juv_misd_count",
            "juv_other_count",
            "priors_count",
        ],
        *["days_b_screening_arrest", "c_charge_degree", "decile_score", "score_text"],
        *["is_recid", "two_year_recid", "full_follow_up"],
    }
    text = table.select_dtypes(exclude="number")
    assert text.nunique().max() <= 6, "a text column with many values could name people"


def test_everyone_screened_too_late_is_positive():
    table = shipped_table("compas.csv.gz")
    late = table[table["full_follow_up"] == 0]
    assert len(late) == 998
    assert late["two_year_recid"].all()


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """Work on a copy of the shipped folder."""
    shutil.copytree(Path(str(files.SHIPPED)), tmp_path / "data")
    monkeypatch.setattr(files, "SHIPPED", tmp_path / "data")
    return tmp_path / "data"


def test_one_changed_byte_is_an_error(copied):
    path = copied / "compas.csv.gz"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(OSError, match=r"compas\.csv\.gz is damaged.*expected \w{64}\. Install fairbits again"):
        load_compas()


def test_a_readable_but_different_table_is_an_error(copied):
    text = gzip.decompress((copied / "bank_full.csv.gz").read_bytes())
    (copied / "bank_full.csv.gz").write_bytes(gzip.compress(text.replace(b"58,", b"59,", 1)))
    with pytest.raises(OSError, match=r"bank_full\.csv\.gz is damaged"):
        load_bank()


def test_question_mark_and_none_stay_text():
    table = parse_table(b"a,b,c\n?,None,\nunknown,NA,2\n")
    assert table["a"].tolist() == ["?", "unknown"]
    assert table["b"].tolist() == ["None", "NA"]
    assert table["c"].isna().tolist() == [True, False]


@pytest.mark.parametrize("folder", [".", "bank-additional"])
def test_additional_bank_file_is_read_where_the_user_has_it(tmp_path, monkeypatch, folder):
    monkeypatch.setattr(files, "ADDITIONAL_SHA256", hashlib.sha256(ADDITIONAL).hexdigest())
    (tmp_path / folder).mkdir(exist_ok=True)
    (tmp_path / folder / "bank-additional-full.csv").write_bytes(ADDITIONAL)
    data = load_bank(version="additional", data_home=str(tmp_path))
    assert data.s.tolist() == ["under 25 or over 65", "25 to 65", "25 to 65", "under 25 or over 65"]
    assert data.y.tolist() == [0, 1, 0, 1]
    pd.testing.assert_series_equal(data.X["pdays"], pd.Series([999, 999, 6, 999], name="pdays"))
    assert any("pdays = 999" in caveat for caveat in data.caveats)


def test_another_additional_file_is_refused(tmp_path):
    (tmp_path / "bank-additional-full.csv").write_bytes(ADDITIONAL)
    with pytest.raises(OSError, match=r"another file.*expected 74adfc57.*bank-additional\.zip"):
        load_bank(version="additional", data_home=tmp_path)


def test_missing_additional_file_is_explained(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"holds no bank-additional-full\.csv\. Take .* put it there"):
        load_bank(version="additional", data_home=tmp_path)
