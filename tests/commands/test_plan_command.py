"""`fairbits plan`, limits that `fairbits fit` refuses before it trains, and the options about groups."""

import json
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from people import population

from fairbits.commands import main
from fairbits.errors import InputError
from fairbits.workflow import fit_task

NAMED = ["--label", "paid", "--sensitive", "race"]
RACES = ["A", "B", "C", "D"]


def people(n, seed):
    """Return people of two large and two small races."""
    return population(n, seed).assign(race=np.random.default_rng(seed).choice(RACES, n, p=[0.5, 0.42, 0.04, 0.04]))


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people(800, 0).to_csv("t.csv", index=False)
    return "t.csv"


def test_a_plan_is_a_table_or_json(table, fairbits):
    ended = fairbits("plan", table, *NAMED)
    assert ended.code == 0
    for words in (
        "448 rows to train, 192 to certify and 160 to test",
        "C of race decides",
        "impossible: no model can",
        "in the split of --seed 0",
    ):
        assert words in ended.out
    found = json.loads(fairbits("plan", table, *NAMED, "--json").out)
    assert [one["limit"] for one in found["limits"]] == [0.02, 0.05, 0.1, 0.2, 0.3, 0.5]
    assert found["limits"][0]["codes"] == "impossible"
    assert json.loads(fairbits("plan", table, *NAMED, "--seed", "1", "--json").out)["groups"] != found["groups"]
    pooled = json.loads(fairbits("plan", table, *NAMED, "--merge-small", "100", "--json").out)
    assert {one["group"] for one in pooled["groups"]} == {"A", "B", "(other)"}
    assert pooled["codes"]["smallest"] < found["codes"]["smallest"]
    more = json.loads(fairbits("plan", table, *NAMED, "--calibration-share", "0.4", "--json").out)
    assert more["rows"] == {"train": 320, "calibration": 320, "test": 160}


def test_an_impossible_limit_is_refused_in_seconds(table, fairbits, monkeypatch):
    monkeypatch.setattr(fit_task, "fit_task", lambda *_: pytest.fail("trained all the same"))
    for asked in ([], ["--for", "codes"]):
        started = time.process_time()
        ended = fairbits("fit", table, *NAMED, "--seed", "0", "--max-disparity", "0.02", *asked, "-o", "m")
        assert time.process_time() - started < 3
        assert ended.code == 1
        assert "--max-disparity 0.02 cannot be proved: in this split (--seed 0), group 'C' of race has" in ended.err
        for way in ("rows like these", "--merge-small", "--calibration-share"):
            assert way in ended.err
    ended = fairbits(
        "fit",
        table,
        "--label",
        "paid",
        "--sensitive",
        "race,sex",
        "--crossed",
        "--max-disparity",
        "0.02",
        "--seed",
        "0",
    )
    assert "take each column on its own with --each" in ended.err


@pytest.fixture(scope="module")
def pooled(tmp_path_factory):
    """Return a folder with a model in m, fitted with every option about groups."""
    folder = tmp_path_factory.mktemp("pooled")
    people(800, 0).to_csv(folder / "t.csv", index=False)
    asked = ["--merge-small", "40", "--reference", "A", "--calibration-share", "0.3", "--max-disparity", "0.9"]
    with pytest.MonkeyPatch.context() as patch:
        command = [
            "fairbits",
            "fit",
            str(folder / "t.csv"),
            *NAMED,
            *asked,
            "--epochs",
            "2",
            "--seed",
            "0",
            "-o",
            str(folder / "m"),
        ]
        patch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as ended:
            main()
    assert ended.value.code in (None, 0, 5)  # two epochs are not useful
    return folder


def test_rare_groups_are_one_in_the_fit_and_later(pooled, fairbits, monkeypatch):
    monkeypatch.chdir(pooled)
    record = json.loads((pooled / "m" / "audit.json").read_text())
    assert record["task"]["rows"] == {"train": 400, "calibration": 240, "test": 160}
    assert set(record["task"]["group_sizes"]) == {"A", "B", "(other)"}
    notes = " ".join(record["task"]["notes"])
    assert "are pooled as '(other)': their groups have fewer than 40 training rows each" in notes
    later = people(500, 1)
    later.loc[:4, "race"] = "never seen"
    later.to_csv("later.csv", index=False)
    found = json.loads(fairbits("certify", "m", "later.csv", "--json").out)
    assert found["certificate"]["bounds"][0]["rows"] == {
        "(other)": int((~later.race.isin(["A", "B"])).sum()),
        **later.race[later.race.isin(["A", "B"])].value_counts().to_dict(),
    }


def test_ratios_are_to_the_reference(pooled):
    record = json.loads((pooled / "m" / "audit.json").read_text())
    rates = {one["group"]: one["selected"] for one in record["decision"]["rates"]}
    (ratio,) = record["decision"]["ratios"]
    assert ratio["reference"] == "A"
    assert ratio["shown"] == pytest.approx(min(rates[name] / rates["A"] for name in ("B", "(other)")))
    card = (pooled / "m" / "model_card.md").read_text()
    assert "The smallest ratio to the rate of A is" in card


def test_one_column_is_not_called_columns(table, fairbits, monkeypatch):
    def stop(*_, **__):
        raise InputError("Stopped.")

    monkeypatch.setattr(fit_task, "fit_task", stop)
    asked = ["--drop", "id,height,job,day,sex", "--max-disparity", "0.9", "-o", "m"]
    assert "rows, 1 column to predict paid from." in fairbits("fit", table, *NAMED, *asked).out


def test_a_reference_that_is_no_group_is_told_before_the_training(table, fairbits, monkeypatch):
    monkeypatch.setattr(fit_task, "fit_task", lambda *_: pytest.fail("trained all the same"))
    ended = fairbits("fit", table, *NAMED, "--max-disparity", "0.9", "--reference", "Z", "--seed", "0", "-o", "m")
    assert ended.code == 1
    assert "--reference Z is not among the groups A; B; C; D." in ended.err


def test_somebodys_decisions_are_compared_with_the_reference(table, fairbits):
    asked = ["certify", table, "--decision", "paid", "--sensitive", "sex,race", "--json"]
    found = json.loads(fairbits(*asked, "--reference", "B").out)
    rates = {one["group"]: one["selected"] for one in found["rates"] if one["column"] == "race"}
    ratios = {one["column"]: one for one in found["ratios"]}
    assert ratios["race"]["shown"] == pytest.approx(min(rates[name] / rates["B"] for name in "ACD"))
    assert [ratios[name]["reference"] for name in ("sex", "race", "sex x race")] == [None, "B", None]
    low = {one["group"]: one["selected_low"] for one in found["rates"] if one["column"] == "race"}
    high = next(one["selected_high"] for one in found["rates"] if one["group"] == "B")
    assert ratios["race"]["at_least"] == pytest.approx(min(low[name] / high for name in "ACD"))
    asked[5] = "sex,job"
    for more, columns in (([], {"sex", "job"}), (["--crossed"], {"sex x job"})):
        found = json.loads(fairbits(*asked, *more).out)
        assert {one["column"] for one in found["certificate"]["bounds"]} == columns


def test_a_stream_keeps_its_groups(table, fairbits):
    people(400, 2).to_csv("u.csv", index=False)
    asked = ["--decision", "paid", "--sensitive", "sex,race", "--max-disparity", "0.5"]
    assert fairbits("watch", table, *asked, "--crossed", "--state", "s.json").code == 0
    assert json.loads(Path("s.json").read_text())["groups"] == "intersection"
    assert fairbits("watch", table, *asked, "--state", "e.json").code == 0
    ended = fairbits("watch", "u.csv", *asked, "--crossed", "--state", "e.json")
    assert ended.code == 1
    assert "The state was begun with each column on its own." in ended.err
    assert fairbits("watch", "u.csv", *asked, "--state", "s.json").code == 0  # the state knows
    assert json.loads(Path("s.json").read_text())["groups"] == "intersection"
