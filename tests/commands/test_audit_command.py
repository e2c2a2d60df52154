"""`fairbits audit`: of anybody's table, and of a model on new rows."""

import json

import numpy as np
import pandas as pd
import pytest
from people import population


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_columns_that_tell_are_told_from_columns_that_do_not(place, fairbits):
    population(800, 3, told=2.0).to_csv("t.csv", index=False)
    told = json.loads(fairbits("audit", "t.csv", "--sensitive", "sex", "--columns", "grade", "--json").out)
    silent = json.loads(fairbits("audit", "t.csv", "--sensitive", "sex", "--columns", "job", "--json").out)
    assert told["audits"][0]["adversaries"][0]["reached"] > 0.85
    assert silent["audits"][0]["adversaries"][0]["reached"] == 0.5
    assert all(p["auc_low"] < 0.5 < p["auc_high"] for p in silent["audits"][0]["probes"])


def test_it_speaks_in_words_and_writes_the_record(place, fairbits):
    population(400, 3, told=2.0).to_csv("t.csv", index=False)
    ended = fairbits("audit", "t.csv", "--sensitive", "sex", "--label", "paid", "--drop", "day", "-o", "audit.json")
    assert ended.code == 0, ended.err
    assert "guesses the group with a balanced accuracy of at least 0." in ended.out.replace("\n", " ")
    assert "Audited columns: grade, height, job." in ended.out
    assert "id was left out: it looks like an identifier" in ended.out
    assert json.loads((place / "audit.json").read_text())["audits"][0]["rows"] == 400


def test_a_column_of_decisions_is_called_so_and_has_rates(place, fairbits):
    table = population(400, 3)
    table.to_csv("t.csv", index=False)
    asked = ["audit", "t.csv", "--sensitive", "sex", "--columns", "paid"]
    said = fairbits(*asked).out
    for words in ("Audit of the decision on 400 rows", "anyone who receives the decision", "Rates of 'yes' by group"):
        assert words in said
    assert "code" not in said.replace("postcode", "")
    rates = json.loads(fairbits(*asked, "--json").out)["rates"]["rates"]
    expected = (table.paid == "yes").groupby(table.sex).mean()
    assert {rate["group"]: rate["selected"] for rate in rates} == pytest.approx(expected.to_dict())
    assert json.loads(fairbits(*asked[:-1], "paid,job", "--json").out)["rates"] is None


def test_bits_have_a_hint_to_the_model(place, fairbits):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(2, size=(200, 3)), columns=["bit0", "bit1", "bit2"])
    frame.assign(sex=rng.choice(["F", "M"], 200)).to_csv("b.csv", index=False)
    assert "--model MODEL" in fairbits("audit", "b.csv", "--sensitive", "sex").out


def test_each_column_is_audited_on_its_own_or_all_are_crossed(place, fairbits):
    table = population(400, 3)
    table["race"] = np.where(np.arange(400) < 12, "rare", "common")
    table.to_csv("t.csv", index=False)
    found = json.loads(fairbits("audit", "t.csv", "--sensitive", "sex,race", "--columns", "grade", "--json").out)
    assert [a["leakage"][0]["column"] for a in found["audits"]] == ["sex", "race"]
    assert "Each sensitive column is taken on its own; --crossed takes their combinations." in found["notes"]
    asked = ["--sensitive", "sex,job", "--crossed", "--columns", "grade", "--json"]
    crossed = json.loads(fairbits("audit", "t.csv", *asked).out)
    assert [a["leakage"][0]["column"] for a in crossed["audits"]] == ["sex x job"]


def test_numbers_and_missing_values_of_the_sensitive_column(place, fairbits):
    table = population(400, 3)
    table["age"] = np.where(np.arange(400) % 10, np.arange(400) % 60 + 18.0, np.nan)
    table.to_csv("t.csv", index=False)
    ended = fairbits("audit", "t.csv", "--sensitive", "age", "--columns", "grade")
    assert "age was cut into 4 groups at its quantiles." in ended.out
    assert "age is missing in 40 rows, which are a group of their own." in ended.out
    assert "on 400 rows" in ended.out


def test_a_model_on_new_rows(place, fairbits, fitted):
    population(500, 3).assign(paid=lambda t: t.paid.where(t.index > 9)).to_csv("t.csv", index=False)
    ended = fairbits("audit", "t.csv", "--model", fitted / "m", "--label", "paid", "--json")
    assert ended.code == 0, ended.err
    record = json.loads(ended.out)
    (found,) = record["audits"]
    assert record["rates"]["positive"] == "yes"
    assert sum(rate["rows"] for rate in record["rates"]["rates"]) == 490
    assert found["subject"] == "BinaryMIClassifier"
    assert found["rows"] == 490
    assert found["task"]["one_draw_auc"] > 0.7
    assert {p["view"] for p in found["probes"]} == {"one draw", "16 draws", "theta"}


def test_without_labels_it_asks_for_them_and_not_for_the_model(place, fairbits, fitted):
    population(500, 3).to_csv("t.csv", index=False)
    (found,) = json.loads(fairbits("audit", "t.csv", "--model", fitted / "m", "--json").out)["audits"]
    assert found["unavailable"]["task"] == "the scores of the model need its label (--label)."


def test_a_model_on_the_rows_of_its_fit_is_invalid(place, fairbits, fitted):
    invalid = "Invalid: these rows were used in the fit."
    assert invalid in fairbits("audit", fitted / "pay.csv", "--model", fitted / "m").out
    population(500, 3).to_csv("new.csv", index=False)
    assert invalid not in fairbits("audit", "new.csv", "--model", fitted / "m").out


def test_missing_values_tell_and_are_audited(place, fairbits):
    table = population(600, 3)
    table["wage"] = np.where(table.sex == "F", np.nan, 1.0)  # says nothing but by its absence
    table["odd"] = np.where(table.index % 7, 1.0, np.inf)
    table.to_csv("t.csv", index=False)
    ended = fairbits("audit", "t.csv", "--sensitive", "sex", "--columns", "wage,odd")
    assert "wage is missing or infinite in" in ended.out
    assert "odd is missing or infinite in 86 rows" in ended.out
    record = json.loads(fairbits("audit", "t.csv", "--sensitive", "sex", "--columns", "wage", "--json").out)
    assert record["audits"][0]["adversaries"][0]["reached"] > 0.85


def test_a_large_table_is_audited_by_a_sample_that_has_the_rare_groups(hard, place, fairbits, monkeypatch):
    """The sample is about as large as was asked, and attacks find in it what they find in all rows."""
    table = population(6_000, 3, told=2.0)
    table["race"] = np.where(np.arange(6_000) % 100 == 0, "rare", "common")
    table[:3_000].to_parquet("t.parquet")
    (place / "parts").mkdir()
    for part in range(3):
        table[part * 2_000 : (part + 1) * 2_000].to_parquet(f"parts/{part}.parquet")
    asked = ["--sensitive", "sex,race", "--columns", "grade,height", "--json"]
    whole = json.loads(fairbits("audit", "t.parquet", *asked).out)
    monkeypatch.setattr("fairbits.workflow.decision_checks.MOST_ROWS", 3_000)
    assert json.loads(fairbits("audit", "t.parquet", *asked).out) == whole  # a table that fits is read whole
    monkeypatch.setattr("fairbits.tables.table_sample.FEWEST_SAMPLED", 50)
    found = json.loads(fairbits("audit", "parts", *asked).out)
    rows = found["audits"][0]["rows"]
    assert 2_800 < rows < 3_200
    assert f"Of 6,000 rows, {rows:,} drawn at random are used: of groups with few rows" in " ".join(found["notes"])
    assert found["audits"][1]["leakage"][0]["rows"]["rare"] == 60  # each row of a group with few
    both = [one["audits"][0]["adversaries"][0]["reached"] for one in (whole, found)]
    assert both == pytest.approx([both[0]] * 2, abs=0.05)
    monkeypatch.setattr("fairbits.workflow.model_checks.MOST_ROWS", 3_000)
    model = json.loads(fairbits("audit", "parts", "--model", hard / "m", "--label", "paid", "--json").out)
    assert 2_800 < model["audits"][0]["rows"] < 3_200
    assert "Of 6,000 rows," in " ".join(model["notes"])
