"""People with several rows on the command line: split, certified and audited by person."""

import json

import numpy as np
import pandas as pd
import pytest
from people import population

from fairbits.encoding.recognition import split_people
from fairbits.tables.task import make_task
from fairbits.workflow import fit_task


@pytest.fixture(scope="module")
def panel():
    """400 people with 2 rows each."""
    people = population(400, 0)
    return pd.concat([people, people]).rename(columns={"id": "patient_id"}).reset_index(drop=True)


def test_the_fit_keeps_a_persons_rows_together_and_counts_people(panel, tmp_path, monkeypatch, fairbits):
    monkeypatch.chdir(tmp_path)
    panel.to_csv("panel.csv", index=False)
    asked = ["--label", "paid", "--sensitive", "sex", "--epochs", "2", "--max-disparity", "0.9", "-o", "m"]
    ended = fairbits("fit", "panel.csv", *asked, "--seed", "0", "--person", "patient_id")
    assert ended.code == 0, ended.err
    record = json.loads((tmp_path / "m" / "audit.json").read_text())
    assert record["certificate"]["by_person"]
    assert sum(record["certificate"]["bounds"][0]["rows"].values()) == 96  # of 400 people: 24 %
    assert record["task"]["rows"] == {"train": 448, "calibration": 192, "test": 80}
    assert "patient_id" not in " ".join(record["task"]["columns"])
    assert "Rows with the same patient_id are one person: 400 people." in record["task"]["notes"]
    new = population(300, 7).rename(columns={"id": "patient_id"})
    pd.concat([new, new]).to_csv("new.csv", index=False)
    again = fairbits("certify", "m", "new.csv", "--person", "patient_id", "--json")
    assert sum(json.loads(again.out)["certificate"]["bounds"][0]["rows"].values()) == 300
    audited = fairbits("audit", "new.csv", "--model", "m", "--person", "patient_id", "--json")
    assert json.loads(audited.out)["audits"][0]["rows"] == 300
    values = fairbits(
        "audit", "new.csv", "--sensitive", "sex", "--columns", "grade", "--person", "patient_id", "--json"
    )
    assert json.loads(values.out)["audits"][0]["rows"] == 300


def test_a_repeated_identifier_asks(panel):
    asking = make_task(panel, "paid", ["sex"]).notes
    assert any("pass --person patient_id" in note for note in asking)
    told = make_task(panel, "paid", ["sex"], person=["patient_id"])
    assert not any("pass --person" in note for note in told.notes)
    assert "patient_id" not in told.X
    with pytest.raises(ValueError, match="identifies people"):
        make_task(panel, "paid", ["sex"], person=["sex"])


@pytest.mark.parametrize(
    "command",
    [
        ["certify", "m", "new.csv"],
        ["certify", "new.csv", "--decision", "paid", "--sensitive", "sex"],
        ["audit", "new.csv", "--sensitive", "sex", "--columns", "job"],
        ["audit", "new.csv", "--model", "m"],
        ["watch", "m", "new.csv", "--state", "w.json"],
        ["watch", "new.csv", "--decision", "paid", "--sensitive", "sex", "--max-disparity", "0.5", "--state", "w.json"],
    ],
    ids=" ".join,
)
def test_every_command_that_counts_rows_asks(hard, tmp_path, monkeypatch, fairbits, command):
    new = population(300, 7).rename(columns={"id": "patient_id"})
    pd.concat([new, new]).to_csv(tmp_path / "new.csv", index=False)
    (tmp_path / "m").symlink_to(hard / "m")
    monkeypatch.chdir(tmp_path)
    asked = (
        "patient_id has 300 values in 600 rows. Rows of one person are not independent: if this column identifies a "
        "person"
    )
    ended = fairbits(*command)
    assert ended.code == 0, ended.err
    assert asked in ended.out + ended.err
    if "--state" in command:
        (tmp_path / "w.json").unlink()
    ended = fairbits(*command, "--person", "patient_id")
    assert ended.code == 0, ended.err
    assert asked not in ended.out + ended.err


def test_no_person_is_in_two_parts(panel):
    kept, held = split_people(len(panel), 0.3, 0, panel[["patient_id"]])
    assert not set(panel.patient_id[kept]) & set(panel.patient_id[held])
    assert len(kept) + len(held) == len(panel)
    assert len(held) == 2 * 120
    alone = split_people(50, 0.3, 0)
    assert sorted(np.concatenate(alone)) == list(range(50))


def test_people_in_two_groups_are_refused_before_the_training(tmp_path, monkeypatch, fairbits):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(fit_task, "fit_task", lambda *_: pytest.fail("trained all the same"))
    table = population(600, 0).assign(who=np.arange(600) // 2)
    table["sex"] = table.groupby("who").sex.transform("first")
    table.loc[[0, 2, 4], "sex"] = table.sex[[0, 2, 4]].map({"F": "M", "M": "F"})
    table.to_csv("t.csv", index=False)
    for command in (["plan"], ["fit", "-o", "m", "--max-disparity", "0.9"]):
        ended = fairbits(
            *command[:1], "t.csv", "--label", "paid", "--sensitive", "sex", "--person", "who", *command[1:]
        )
        assert ended.code == 1
        assert "3 people have rows in two groups of sex. Give all rows of a person the same group" in ended.err
