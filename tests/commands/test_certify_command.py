"""`fairbits certify`: confirmed, not contradicted, contradicted, invalid; each with its exit code."""

import json
import math
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from people import population

from fairbits import certify
from fairbits.encoding.recognition import row_hashes, table_fingerprint
from fairbits.modelfile.manifest import write_record
from fairbits.tables.fitted_model import RowReader, open_model
from fairbits.tables.table_file import TableFile
from fairbits.workflow.decision_checks import rates_and_ratios
from fairbits.workflow.recertified import Compared


@pytest.fixture
def place(fitted, tmp_path, monkeypatch):
    shutil.copytree(fitted / "m", tmp_path / "m")
    shutil.copy(fitted / "pay.csv", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def with_bound(place, bound, promise=None, **asked):
    """Let the earlier certificate say something else."""
    record = json.loads((place / "m" / "audit.json").read_text())
    record["certificate"]["bounds"][0]["total_variation"] = bound
    record["certificate"]["promise"] = promise
    record["asked"] |= asked
    write_record(place / "m", record)


def fingerprint_of(model, table):
    """Return what a record says of a table of its fit."""
    opened = open_model(Path(model))
    rows = RowReader(opened, TableFile(Path(table))).encoded()
    return table_fingerprint(row_hashes(opened.encoder.own_columns(rows)))


def test_rows_of_the_same_population_confirm_a_loose_bound(place, fairbits):
    population(2000, 5).to_csv("new.csv", index=False)
    ended = fairbits("certify", "m", "new.csv", "--sensitive", "sex")
    assert ended.code == 0, ended.err
    assert "Confirmed. These rows alone prove the bound from its fit, at 95% confidence" in ended.out
    assert "On 2,000 rows, at 95% confidence" in ended.out


def test_an_earlier_bound_is_rounded_up():
    assert str(Compared("sex", "code", "disparity", 0.12341, 0.0499, 0.2)).split()[-3:] == [
        "0.1235",
        "0.0499",
        "0.2000",
    ]


def test_few_rows_do_not_contradict_and_confirm_nothing(place, fairbits):
    with_bound(place, 0.12)
    population(300, 5).to_csv("new.csv", index=False)
    ended = fairbits("certify", "m", "new.csv")
    assert ended.code == 0
    assert ended.out.count("Not contradicted. These rows do not disprove") == 1
    assert "Confirmed" not in ended.out


def test_rows_of_another_population_contradict(place, fairbits):
    with_bound(place, 0.3)
    population(3000, 5, told=2.0).to_csv("told.csv", index=False)
    ended = fairbits("certify", "m", "told.csv", "--json")
    assert ended.code == 4
    record = json.loads(ended.out)
    assert record["verdict"] == "contradicted"
    (compared,) = record["compared"]
    assert compared["said"] == 0.3 < compared["at_least"] < compared["at_most"]
    words = fairbits("certify", "m", "told.csv")
    assert words.code == 4
    assert words.out.count("<- contradicted") == 1
    assert (
        "Contradicted. These rows prove, at 95% confidence, that the model exceeds the bound from its fit" in words.out
    )


def test_a_promise_is_for_the_class_and_the_information_too(place, fairbits):
    with_bound(place, 0.05, "for the code ...", max_disparity=0.3, max_information=0.01, gamma=None)
    population(3000, 5, told=2.0).to_csv("told.csv", index=False)
    record = json.loads(fairbits("certify", "m", "told.csv", "--json").out)
    assert record["promised"]
    assert [(c["of"], c["what"], c["said"]) for c in record["compared"]] == [
        ("code", "disparity", 0.3),
        ("code", "information", 0.01),
        ("class", "disparity", 0.3),
        ("class", "information", 0.01),
    ]
    assert record["compared"][1]["contradicted"]
    assert record["compared"][2]["contradicted"]


def test_the_error_is_shared_among_all_that_is_compared(place, fairbits):
    """A second kind of claim leaves less of it for the first, whose lower limit falls."""
    population(3000, 5, told=2.0).to_csv("told.csv", index=False)
    proved = []
    for information in (None, 0.01):
        with_bound(place, 0.05, "for the code ...", max_disparity=0.3, max_information=information, gamma=None)
        compared = json.loads(fairbits("certify", "m", "told.csv", "--json").out)["compared"]
        proved.append([c["at_least"] for c in compared if c["what"] == "disparity"])
    assert len(proved[0]) == len(proved[1]) == 2
    assert all(shared < alone for alone, shared in zip(*proved, strict=True))


@pytest.mark.parametrize("change", ["none", "order", "label missing"])
def test_rows_of_the_fit_are_invalid(place, fairbits, change):
    table = population(600, 0)
    if change == "order":
        table = table.sample(frac=1, random_state=0)
    if change == "label missing":
        extra = population(30, 9)
        extra["paid"] = None
        table = pd.concat([table, extra])
    table.to_csv("again.csv", index=False)
    ended = fairbits("certify", "m", "again.csv")
    assert ended.code == 3
    assert "Invalid: these rows were used in the fit." in ended.out
    assert ended.out.count("the fit") == 1
    assert not re.search(r"\d", ended.out)  # what proves nothing has no bound


@pytest.mark.parametrize(("own", "new", "code"), [(400, 0, 3), (500, 200, 3), (5, 600, 0), (0, 600, 0)])
def test_a_table_of_which_many_rows_were_in_the_fit_is_invalid(place, fairbits, own, new, code):
    pd.concat([population(600, 0)[:own], population(new, 5)]).to_csv("mixed.csv", index=False)
    ended = fairbits("certify", "m", "mixed.csv", "--json")
    assert ended.code == code
    record = json.loads(ended.out)
    assert (record["verdict"] == "not fresh") == (record["certificate"] is None) == (code == 3)
    if code:
        audited = fairbits("audit", "mixed.csv", "--model", "m", "--json")
        assert json.loads(audited.out)["audits"] == []


def test_a_model_beside_that_knows_the_rows_is_no_less_invalid(place, fairbits):
    """The other one has seen them."""
    population(900, 5).to_csv("new.csv", index=False)
    record = json.loads(Path("m/audit.json").read_text())
    shutil.copytree("m", "other")
    write_record(Path("other"), record | {"table": fingerprint_of("other", "new.csv")})
    assert fairbits("certify", "m", "new.csv").code == 0
    assert fairbits("certify", "m", "new.csv", "--beside", "other").code == 3


def test_more_draws_tell_more_and_are_not_compared(place, fairbits):
    population(2000, 5).to_csv("new.csv", index=False)
    one, two = (json.loads(fairbits("certify", "m", "new.csv", "--json", "--draws", n).out) for n in (1, 2))
    assert two["certificate"]["information"] > one["certificate"]["information"]
    assert two["verdict"] == "nothing to compare with"


def test_unknown_groups_are_left_out_and_said(place, fairbits):
    table = population(900, 5)
    table.loc[:9, "sex"] = "X"
    table.loc[10:29, "sex"] = None
    table.to_csv("new.csv", index=False)
    ended = fairbits("certify", "m", "new.csv")
    assert ended.code == 0
    assert "30 rows have a sex that the model does not know ((missing), X): left out." in ended.out
    assert "On 870 rows" in ended.out


def test_a_model_without_a_record_has_nothing_to_compare(place, fairbits):
    (place / "m" / "audit.json").unlink()
    population(900, 5).to_csv("new.csv", index=False)
    assert "no earlier certificate" in fairbits("certify", "m/model", "new.csv").out


def test_the_inner_folder_knows_its_record(place, fairbits):
    with_bound(place, 0.3)
    population(3000, 5, told=2.0).to_csv("told.csv", index=False)
    assert fairbits("certify", "m/model", "told.csv").code == 4


def test_two_models_are_certified_as_one_code(place, fairbits):
    shutil.copytree("m", "old")
    population(1500, 5).to_csv("new.csv", index=False)
    alone, both = (
        json.loads(fairbits("certify", "m", "new.csv", "--json", *more).out) for more in ([], ["--beside", "old"])
    )
    assert both["certificate"]["beside"] == 1
    assert both["certificate"]["total_variation"] > alone["certificate"]["total_variation"]
    assert both["verdict"] == "nothing to compare with"
    assert both["certificate"]["release_words"].endswith(" and what 1 other model released about the person")
    ended = fairbits("certify", "m", "new.csv", "--beside", "absent")
    assert (ended.code, "absent" in ended.err) == (1, True)


@pytest.fixture
def decisions(tmp_path, monkeypatch):
    """A table of decisions: 3,000 people with one row each, or 1,500 with two."""
    rng, n = np.random.default_rng(0), 3000
    sex = rng.choice(["F", "M"], n // 2).repeat(2)
    approved = np.where(rng.random(n) < np.where(sex == "F", 0.4, 0.45), "yes", "no")
    table = {"sex": sex, "age": rng.integers(20, 70, n), "approved": approved, "repaid": rng.choice(["yes", "no"], n)}
    pd.DataFrame({**table, "score": rng.random(n), "who": np.arange(n) // 2}).to_csv(tmp_path / "d.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return pd.read_csv("d.csv")


def test_a_table_of_decisions_is_certified(decisions, fairbits):
    ended = fairbits(
        "certify", "d.csv", "--decision", "approved", "--sensitive", "sex,age", "--label", "repaid", "--json"
    )
    assert ended.code == 0, ended.err
    record = json.loads(ended.out)
    rates = {(r["column"], r["group"]): r for r in record["rates"]}
    women = decisions[decisions.sex == "F"]
    assert rates["sex", "F"]["selected"] == pytest.approx((women.approved == "yes").mean())
    paid = women[women.repaid == "yes"]
    assert rates["sex", "F"]["true_positive"] == pytest.approx((paid.approved == "yes").mean())
    assert len(rates) == 2 + 4 + 8
    alone = certify(decisions.approved, sensitive_features=decisions.sex)
    own = fairbits("certify", "d.csv", "--decision", "approved", "--sensitive", "sex").out
    assert f"{math.ceil(alone.total_variation * 1e4) / 1e4:.4f} (these rows: " in own
    assert "at 95% confidence" in own
    assert "Each row is counted as a different person." in own


def test_a_crossing_of_one_person_is_not_shown_and_whole_numbers_stay_whole(decisions, fairbits):
    """One missing decision makes numbers of a CSV fractional; one person of a rare crossing has a rate of 0 or 1."""
    decisions = decisions.assign(approved=(decisions.approved == "yes").astype(float), race="common")
    women, men = (np.flatnonzero(decisions.sex == sex) for sex in ("F", "M"))
    decisions.loc[0, "approved"], decisions.loc[[*women[:40], men[1]], "race"] = np.nan, "rare"
    decisions.to_csv("d.csv", index=False)
    asked = ("--decision", "approved", "--sensitive", "sex,race", "--positive", "1", "--json")
    record = json.loads(fairbits("certify", "d.csv", *asked).out)
    assert record["positive"] == "1"
    shown = [rate["group"] for rate in record["rates"] if "sex" in rate["column"] and "race" in rate["column"]]
    assert len(shown) == 3
    assert min(rate["rows"] for rate in record["rates"]) >= 10
    sex = pd.DataFrame({"sex": [*"F" * 30, *"M" * 5]})
    rates, ratios, hidden = rates_and_ratios(np.arange(35) % 2 == 0, sex, None, None, 0.95)
    assert (rates.group.tolist(), ratios, hidden) == (["F"], [], [{"column": "sex", "group": "M"}])


@pytest.mark.filterwarnings("ignore::fairbits.certificate.SmallGroupWarning")
def test_a_ratio_is_over_groups_whose_rates_are_hidden_too(tmp_path, monkeypatch, fairbits):
    monkeypatch.chdir(tmp_path)
    race, selected = np.repeat(["a", "b", "c"], [500, 500, 9]), np.repeat([260, 250, 0], [500, 500, 9])
    got = np.where(np.r_[np.arange(500), np.arange(500), np.arange(9)] < selected, "yes", "no")
    pd.DataFrame({"race": race, "got": got}).to_csv("d.csv", index=False)
    asked = ("certify", "d.csv", "--decision", "got", "--sensitive", "race")
    (ratio,) = json.loads(fairbits(*asked, "--json").out)["ratios"]
    assert (ratio["shown"], ratio["at_least"], ratio["worst"]) == (0, 0, "b")
    said = fairbits(*asked).out
    assert "the ratio of two groups' rates of 'yes' is at least 0.0000 (these rows: 0.0000)" in said
    assert "ratios are over all groups. Hidden: race: c." in said
    assert not re.search(r"^ +c ", said, re.MULTILINE)


@pytest.mark.filterwarnings("ignore::fairbits.certificate.SmallGroupWarning")
def test_a_group_without_rows_of_a_label_is_named(decisions, fairbits):
    decisions["repaid"] = np.where(decisions.sex == "F", "yes", decisions.repaid)
    decisions.to_csv("d.csv", index=False)
    said = fairbits("certify", "d.csv", "--decision", "approved", "--sensitive", "sex", "--label", "repaid").out
    assert "sex, among people with label no: nothing is proved, as no row is of F" in said
    assert "1.0000" not in said
    assert "sex, among people with label yes: rates of two groups differ by at most 0." in said


def test_of_three_classes_the_accuracy_is_of_all(decisions, fairbits):
    """A row of class b that gets c is wrong, though neither is the favourable class a."""
    rng = np.random.default_rng(0)
    decisions["repaid"], decisions["approved"] = rng.choice(["a", "b", "c"], (2, len(decisions)))
    decisions.to_csv("d.csv", index=False)
    asked = ("--decision", "approved", "--sensitive", "sex", "--label", "repaid", "--positive", "a", "--json")
    rates = {rate["group"]: rate["accuracy"] for rate in json.loads(fairbits("certify", "d.csv", *asked).out)["rates"]}
    expected = (decisions.approved == decisions.repaid).groupby(decisions.sex).mean()
    assert rates == pytest.approx(expected.to_dict())


def test_labels_with_other_values_than_the_decisions_are_said(decisions, fairbits):
    decisions["repaid"] = (decisions.repaid == "yes").astype(int)
    decisions.to_csv("d.csv", index=False)
    for command in (["certify", "d.csv", "--decision", "approved"], ["audit", "d.csv", "--columns", "approved"]):
        said = fairbits(*command, "--sensitive", "sex", "--label", "repaid").out
        assert "The labels are 0, 1 and the decisions no, yes: base rates, error rates and accuracy need" in said
        assert "TPR" not in said


def test_people_and_levels_on_the_command_line(decisions, fairbits):
    by_person = fairbits("certify", "d.csv", "--decision", "approved", "--sensitive", "sex", "--person", "who").out
    assert "Each person counts once" in by_person
    assert "Rates and ratios are of one row of each person, drawn at random." in by_person
    women = decisions[decisions.sex == "F"].who.nunique()
    assert f"F {women:>5} " in " ".join(by_person.split("Rates of")[1].split("  ")) or f" {women} " in by_person
    levels = fairbits("certify", "d.csv", "--decision", "score", "--sensitive", "sex", "--levels", "0.3,0.6")
    assert "rates of two groups differ" in levels.out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["d.csv"], "Name a model and a table"),
        (["d.csv", "--decision", "approved"], "--sensitive"),
        (["d.csv", "d.csv", "--decision", "approved", "--sensitive", "sex"], "name the table alone"),
        (["d.csv", "--decision", "score", "--sensitive", "sex"], "--levels"),
        (["d.csv", "--decision", "score", "--sensitive", "sex", "--levels", "low"], "must be numbers"),
        (
            ["d.csv", "--decision", "approved", "--sensitive", "sex", "--levels", "0.5"],
            "must be rising cuts of numbers",
        ),
        (["d.csv", "--decision", "approved", "--sensitive", "approved"], "different columns"),
        (["d.csv", "--decision", "nothing", "--sensitive", "sex"], "nothing"),
        (["d.csv", "--decision", "approved", "--sensitive", "sex", "--positive", "maybe"], "No row has the decision"),
        (["m", "d.csv", "--positive", "yes"], "are for --decision"),
        (["absent.csv", "--decision", "approved", "--sensitive", "sex"], "absent.csv"),
    ],
)
def test_wrong_uses_with_decisions_get_a_sentence(decisions, fairbits, arguments, sentence):
    ended = fairbits("certify", *arguments)
    assert ended.code == 1
    assert sentence in ended.err
