"""Tasks: what becomes of every column, and a sentence for each table that makes none."""

import re

import numpy as np
import pandas as pd
import pytest

from fairbits.tables.protected_groups import as_groups, pool
from fairbits.tables.task import make_task


def table(n=400, **columns):
    rng = np.random.default_rng(0)
    base = {
        "income": rng.normal(size=n),
        "job": rng.choice(["clerk", "nurse", "cook"], n),
        "sex": rng.choice(["F", "M"], n),
        "age": rng.integers(18, 80, n),
        "approved": rng.integers(2, size=n),
    }
    return pd.DataFrame({**base, **columns})


def test_label_and_sensitive_columns_are_not_predicted_from():
    task = make_task(table(), "approved", ["sex", "age"], drop=["job"])
    assert list(task.X.columns) == ["income"]
    assert list(task.s.columns) == ["sex", "age"]
    assert set(task.y) == {0, 1}


def test_numbers_are_cut_into_groups_and_it_is_said():
    task = make_task(table(), "approved", ["age"], n_bins=3)
    assert len(task.group_sizes) == 3
    assert sum(task.group_sizes.values()) == 400
    assert task.notes == ["age was cut into 3 groups at its quantiles."]


def test_new_rows_get_the_same_intervals():
    task = make_task(table(), "approved", ["age"])
    old = table()["age"]
    few = old.iloc[:7]
    assert as_groups(few.to_frame(), task.cuts)["age"].tolist() == task.s["age"].iloc[:7].tolist()
    assert as_groups(pd.DataFrame({"age": [-3, 200]}), task.cuts)["age"].nunique() == 2


def test_numbers_with_missing_ones_are_cut_too():
    age = pd.Series(np.random.default_rng(1).integers(18, 80, 400), dtype=float)
    age[:35], age[35] = None, np.inf
    task = make_task(table(age=age), "approved", ["age"])
    assert len(task.group_sizes) == 5
    assert task.group_sizes["(missing)"] == 36


def test_dates_are_cut_into_intervals_of_days():
    born = pd.Series(pd.Timestamp("1960-01-01") + pd.to_timedelta(np.arange(400) * 30, "D"))
    born[:60] = None
    task = make_task(table(born=born), "approved", ["born"], n_bins=2)
    assert len(task.group_sizes) == 3
    own = born.iloc[task.parts[0]].dropna().sort_values()  # the training rows decide
    assert task.cuts["born"] == [(own.iloc[len(own) // 2] - pd.Timestamp("1970-01-01")).days]


def test_rows_without_label_are_left_out():
    label = pd.Series(np.random.default_rng(1).choice(["yes", "no"], 400), dtype=object)
    label[:30] = None
    task = make_task(table(approved=label), "approved", ["sex"])
    assert len(task.X) == len(task.y) == len(task.s) == 370
    assert task.notes == ["30 rows without a label were left out."]


@pytest.mark.parametrize("kind", ["text", "number"])
def test_missing_groups_are_a_group(kind):
    sex = pd.Series(np.random.default_rng(1).choice(["F", "M"], 400) if kind == "text" else np.arange(400) % 2 * 1.0)
    sex[:40] = None
    task = make_task(table(sex=sex), "approved", ["sex"])
    assert task.group_sizes["(missing)"] == 40
    assert len(task.group_sizes) == 3
    assert "40 rows" in task.notes[0]


EACH = "Each sensitive column is taken on its own; --crossed takes their combinations."


def test_columns_are_taken_on_their_own_unless_they_are_crossed():
    rare = np.where(np.random.default_rng(0).random(400) < 0.1, "rare", "common")
    task = make_task(table(race=rare), "approved", ["sex", "race"])
    assert task.groups == "each"
    assert set(task.group_sizes) == {"sex=F", "sex=M", "race=rare", "race=common"}
    assert task.notes == [EACH]
    crossed = make_task(table(), "approved", ["sex", "job"], crossed=True)
    assert crossed.groups == "intersection"
    assert len(crossed.group_sizes) == 6
    assert crossed.notes == ["The combinations of sex, job are the groups; --each takes each column on its own."]


@pytest.mark.parametrize("crossed", [False, True])
def test_deleting_rows_never_changes_how_columns_are_protected(crossed):
    """Before, a crossing of 17 training rows was protected, and none if it had 16."""
    race = np.where(np.arange(400) % 25 < 2, "rare", np.where(np.arange(400) % 2, "p", "q"))
    whole = table(race=race)
    for n in range(300, 400, 7):
        task = make_task(whole[:n], "approved", ["sex", "race"], crossed=crossed)
        assert task.groups == ("intersection" if crossed else "each")


def test_rare_groups_are_pooled_and_it_is_said():
    race = np.random.default_rng(0).choice(["A", "B", "C", "D", "E"], 400, p=[0.5, 0.41, 0.03, 0.03, 0.03])
    task = make_task(table(race=race), "approved", ["race"])
    rare = np.isin(race, ["C", "D", "E"])
    assert task.s.race.tolist() == np.where(rare, "(other)", race).tolist()
    assert task.group_sizes["(other)"] == rare.sum()
    (note,) = task.notes
    assert note.startswith(f"{rare.sum()} rows of race are pooled as '(other)': their groups have fewer than 17 train")
    assert f"C ({(race == 'C').sum()} rows)" in note
    new = pool(pd.DataFrame({"race": ["A", "C", "Z"]}), task.pooled)
    assert new.race.tolist() == ["A", "(other)", "(other)"]


def test_merge_small_is_about_training_rows():
    race = np.random.default_rng(0).choice(["A", "B", "C"], 400, p=[0.6, 0.25, 0.15])
    alone = make_task(table(race=race), "approved", ["race"])
    trained = pd.Series(race[alone.parts[0]]).value_counts()
    for n, groups in ((trained.B, {"A", "B"}), (trained.B + 1, {"A"})):
        task = make_task(table(race=race), "approved", ["race"], merge_small=int(n))
        assert {*task.group_sizes} == groups | {"(other)"}
        assert sum(task.group_sizes.values()) == 400
    with pytest.raises(ValueError, match="'race' has 3 groups, none of at least 300 training rows: there is nothing"):
        make_task(table(race=race), "approved", ["race"], merge_small=300)


def test_rare_combinations_are_pooled_too():
    race = np.where(np.arange(400) % 10 == 0, "q", "p")
    task = make_task(table(race=race), "approved", ["sex", "race"], crossed=True, merge_small=20)
    assert set(task.group_sizes) == {"sex=F, race=p", "sex=M, race=p", "sex=(other), race=(other)"}
    assert task.group_sizes["sex=(other), race=(other)"] == 40
    new = pool(pd.DataFrame({"sex": ["F", "F"], "race": ["p", "q"]}), task.pooled)
    assert new.to_numpy().tolist() == [["F", "p"], ["(other)", "(other)"]]


def test_pooled_numbers_stay_in_their_order():
    size = np.random.default_rng(0).choice([9, 10, 11, 12], 400, p=[0.35, 0.35, 0.15, 0.15])
    task = make_task(table(size=size), "approved", ["size"], merge_small=60)
    assert list(task.group_sizes) == ["9", "10", "(other)"]
    missing = pd.Series(size, dtype=float).mask(np.arange(400) % 4 == 0)
    named = make_task(table(size=missing), "approved", ["size"]).group_sizes
    assert list(named) == ["9", "10", "11", "12", "(missing)"]


def test_rare_classes_are_left_out_and_it_is_said():
    label = np.array(["yes", "no"] * 200, dtype=object)
    label[:15] = "maybe"
    task = make_task(table(approved=label), "approved", ["sex"])
    assert set(task.y) == {"yes", "no"}
    assert len(task.y) == len(task.X) == len(task.s) == sum(map(len, task.parts)) == 385
    about = "15 rows of rare classes are left out, and the certificate is not about such people: maybe (15 rows)."
    assert task.notes == [about]


def test_the_calibration_share_is_that_of_all_rows():
    for share, sizes in ((0.24, [224, 96, 80]), (0.4, [160, 160, 80]), (0.1, [280, 40, 80])):
        assert [len(part) for part in make_task(table(), "approved", ["sex"], calibration_share=share).parts] == sizes
    rare = np.where(np.arange(400) % 10, "A", "B")
    with pytest.raises(ValueError, match="'race' has 2 groups, one of at least 42 training"):  # 6 of 42 certify
        make_task(table(race=rare), "approved", ["race"], calibration_share=0.1)
    with pytest.raises(ValueError, match=r"calibration_share=0\.7 must be between 0\.05 and 0\.6"):
        make_task(table(), "approved", ["sex"], calibration_share=0.7)


def test_columns_that_number_or_name_the_rows_are_left_out():
    named = [f"person {i}" for i in range(400)]
    task = make_task(table(id=np.random.default_rng(0).permutation(400), name=named), "approved", ["sex"])
    assert list(task.X.columns) == ["income", "job", "age"]
    assert sorted(note.split(":")[0] for note in task.notes) == ["id was left out", "name was left out"]
    with pytest.raises(ValueError, match="Nothing is left to predict from"):
        make_task(table(id=np.arange(400)), "approved", ["sex"], drop=["income", "job", "age"])


def test_a_column_that_numbers_the_rows_is_left_out_where_rows_are_left_out():
    label = pd.Series(np.random.default_rng(1).choice(["yes", "no"], 400), dtype=object)
    label[50:80] = None
    task = make_task(table(id=np.arange(400), approved=label), "approved", ["sex"])
    assert "id" not in task.X
    assert len(task.X) == 370


def test_dates_of_birth_are_sensitive_too():
    born = pd.to_datetime("1950-01-01") + pd.to_timedelta(np.random.default_rng(0).integers(0, 20000, 400), "D")
    task = make_task(table(born=born), "approved", ["born"])
    assert len(task.group_sizes) == 4
    assert task.notes == ["born holds dates and was cut into 4 groups at its quantiles."]
    edges = [name.split()[0] for name in task.group_sizes][1:]
    counts = np.bincount(np.searchsorted(pd.to_datetime(edges), born, side="right"))
    assert counts.tolist() == list(task.group_sizes.values())


def test_times_within_a_day_are_told_apart():
    met = pd.Timestamp("2024-05-01") + pd.to_timedelta(np.arange(400), "min")
    task = make_task(table(met=met), "approved", ["met"], n_bins=2)
    own = np.sort(met[task.parts[0]])
    middle = np.datetime_as_string(own[len(own) // 2], unit="s")
    assert list(task.group_sizes) == [f"before {middle}", f"{middle} or later"]


def test_times_of_several_days_are_cut_at_midnight():
    """Then their names say no time at which somebody came."""
    met = pd.Timestamp("2024-05-01 00:17") + pd.to_timedelta(np.arange(400), "h")
    task = make_task(table(met=met), "approved", ["met"])
    assert all(re.fullmatch(r"[\d-]{10} (or later|to before [\d-]{10})|before [\d-]{10}", g) for g in task.group_sizes)
    (day,) = (name.split()[1] for name in task.group_sizes if name.startswith("before"))
    assert task.group_sizes[f"before {day}"] == (met < day).sum()


def test_groups_of_numbers_are_in_numeric_order():
    task = make_task(table(age=np.arange(400) % 200), "approved", ["age"])
    edges = [int(name.split()[0]) for name in list(task.group_sizes)[1:]]
    assert edges == sorted(edges) == task.cuts["age"]
    assert edges[0] < 100 <= edges[-1]  # another order as texts


def test_names_of_few_rows_are_not_written():
    _, held, _ = make_task(table(), "approved", ["sex"]).parts
    race = np.where(np.isin(np.arange(400), held[:3]), "Manx", np.where(np.arange(400) % 2, "A", "B"))
    task = make_task(table(race=race), "approved", ["race"])
    left_out = "3 rows of race are left out: their groups have fewer than 17 training rows, too few to pool"
    assert task.notes == [f"{left_out} (1 group of fewer than 10 rows)."]


many = np.arange(400).astype(str)
BAD = {
    "label unknown": ({}, "aproved", ["sex"], "did you mean 'approved'"),
    "sensitive unknown": ({}, "approved", ["gender"], "The table has no column 'gender'; its columns are income"),
    "none sensitive": ({}, "approved", [], "Name at least one sensitive column"),
    "both": ({}, "approved", ["approved"], "is both the label and sensitive"),
    "twice": ({}, "approved", ["sex", "sex"], "named twice"),
    "one value": ({"approved": 1}, "approved", ["sex"], "The label 'approved' is 1 in every row"),
    "continuous label": ({}, "income", ["sex"], "has 400 different values"),
    "rare class": ({"approved": [1] * 5 + [0] * 395}, "approved", ["sex"], "Only 5 rows have the label 1;"),
    "a thousand groups": ({"sex": many}, "approved", ["sex"], "'sex' has 400 groups, none of at least 17 tr"),
    "one group": ({"sex": "F"}, "approved", ["sex"], "'sex' has only one group, 'F'"),
    "a copy of the label": ({"sex": np.arange(400) % 2, "approved": np.arange(400) % 2}, "approved", ["sex"], "hardly"),
    "two classes in one group": (
        {"sex": ["A"] * 200 + ["B"] * 200, "approved": [1] * 100 + [0] * 300},
        "approved",
        ["sex"],
        "'approved' hardly varies within the groups of 'sex'",
    ),
    "tiny group": ({"sex": ["X"] * 3 + ["F"] * 397}, "approved", ["sex"], "'sex' has 2 groups, one of at least 17"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_task_gets_a_sentence(name):
    columns, label, sensitive, words = BAD[name]
    with pytest.raises(ValueError, match=words):
        make_task(table(**columns), label, sensitive)


def test_too_few_rows_and_nothing_to_predict_from_get_a_sentence():
    with pytest.raises(ValueError, match="at least 200 are needed"):
        make_task(table(n=50), "approved", ["sex"])
    with pytest.raises(ValueError, match="Nothing is left to predict from"):
        make_task(table(), "approved", ["sex"], drop=["income", "job", "age"])


def test_training_rows_alone_decide():
    """Other values in the rows that calibrate and test change neither groups nor columns."""
    first = make_task(table(), "approved", ["age"])
    train, held, test = first.parts
    assert sorted(np.concatenate(first.parts)) == list(range(400))
    assert [len(train), len(held), len(test)] == [224, 96, 80]
    age = table()["age"].to_numpy().copy()
    age[np.concatenate([held, test])] += 1000
    assert make_task(table(age=age), "approved", ["age"]).cuts == first.cuts
    job = table()["job"].to_numpy().astype(object).copy()
    job[held[:3]] = "judge"
    told = make_task(table(job=job), "approved", ["job"])
    (note,) = told.notes
    assert note.startswith("3 rows of job are left out: their groups have fewer than 17 training rows")
    assert len(told.y) == 397
    assert [len(part) for part in told.parts] == [224, 93, 80]
    assert "judge" not in told.group_sizes


def test_rows_of_a_combination_that_no_training_row_has_are_left_out():
    columns = table()
    train, held, _ = make_task(columns, "approved", ["sex", "job"], crossed=True).parts
    race = np.where(columns.sex == "F", "p", np.where(np.arange(400) % 2, "p", "q"))
    women = held[(columns.sex.to_numpy() == "F")[held]][:2]
    race[women] = "q"
    told = make_task(table(race=race), "approved", ["sex", "race"], crossed=True)
    assert told.notes[0].startswith("2 rows of sex x race are left out: their groups have fewer than 17 training rows")
    assert len(told.group_sizes) == 3
    assert [len(part) for part in told.parts] == [len(train), len(held) - 2, 80]
    assert len(told.X) == len(told.y) == len(told.s) == 398


def test_few_missing_values_are_left_out():
    age = np.random.default_rng(0).integers(18, 80, 400).astype(float)
    age[:12] = np.nan
    task = make_task(table(age=age), "approved", ["age"])
    assert len(task.X) == len(task.y) == len(task.s) == 388
    said = "12 rows of age are left out: their groups have fewer than 17 training rows, too few to pool ((missing) (12"
    assert task.notes[1].startswith(said)
    assert len(task.group_sizes) == 4


def test_a_whole_number_has_the_same_name_with_and_without_missing_values():
    kind = pd.Series(np.arange(400) % 2 * 1.0)
    kind[:40] = None
    assert set(make_task(table(sex=kind), "approved", ["sex"]).group_sizes) == {"0", "1", "(missing)"}
