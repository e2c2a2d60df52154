"""Columns that fairbits asks about before it trains."""

import time

import numpy as np
import pandas as pd
import pytest

from fairbits.tables.task import make_task

N = 600
RNG = np.random.default_rng(0)
SEX, PAID, GRADE = RNG.choice(["F", "M"], N), RNG.choice(["no", "yes"], N), RNG.normal(size=N)
PERSON = np.repeat(RNG.choice(10**6, N // 3, replace=False), 3)
DAYS = pd.Timestamp("2024-01-01") + pd.to_timedelta(RNG.integers(0, 300, N), "D")
BORN = pd.Timestamp("1940-01-01") + pd.to_timedelta(RNG.integers(0, 20_000, N), "D")
OF_PEOPLE = np.repeat(RNG.choice(["F", "M"], N // 3), 3)


def task(n=N, drop=(), person=(), sex=SEX, **columns):
    frame = pd.DataFrame({"grade": GRADE, "height": GRADE[::-1], "sex": sex, "paid": PAID, **columns})
    return make_task(frame, "paid", ["sex"], drop=drop, person=person)


LEFT_OUT = {
    "names of people": ("full_name", [f"Ann {i % 300}" for i in range(N)]),
    "e-mail addresses": ("contact", [f"a{i % 100}@b.org" for i in range(N)]),
    "an identifier, 336 distinct values in 336 rows": ("anything", [f"x{i}" for i in range(N)]),
    "an identifier, a different whole number in every row": ("account_id", RNG.permutation(N) * 1000 + 7),
    "an identifier, whole numbers, each once, as those of the rows": ("anything", RNG.permutation(N)),
}


@pytest.mark.parametrize("what", LEFT_OUT)
def test_what_names_people_is_left_out(what):
    name, values = LEFT_OUT[what]
    made = task(**{name: values})
    assert made.notes == [f"{name} was left out: it looks like {what}."]
    assert list(made.X) == ["grade", "height"]


ASKED = {
    "number": ("case", RNG.permutation(N) * 1000 + 7, "case has a different whole number in every row. It is kept"),
    "birth date": ("seen", BORN, "seen looks like a birth date. It is kept and reveals the age"),
    "birth year": ("birth_year", BORN.year, "birth_year looks like a birth date"),
    "dates": ("day", DAYS, "day holds dates, which the model reads as numbers of days"),
    "label": ("outcome", np.where(PAID == "yes", 1, 0), "outcome alone predicts the label paid with accuracy 1.000"),
    "label, finer": ("sum", np.where(PAID == "yes", 9, 1) + RNG.random(N), "sum alone predicts the label paid"),
    "label, dates": ("day", DAYS + pd.to_timedelta((PAID == "yes") * 400, "D"), "day alone predicts the label paid"),
    "group": ("gender", SEX == "F", "gender alone predicts the sensitive column sex with accuracy 1.000. It is kept"),
    "group, finer": ("title", np.where(SEX == "F", RNG.choice(["Ms", "Mrs"], N), "Mr"), "the sensitive column sex"),
}


@pytest.mark.parametrize("case", ASKED)
def test_what_is_doubtful_is_kept_and_asked_about(case):
    name, values, words = ASKED[case]
    made = task(**{name: values})
    (note,) = made.notes
    assert words in note
    assert f"--drop {name}" in note
    assert name in made.X
    assert task(**{name: values}, drop=[name]).notes == [f"Left out, as you asked: {name}."]


@pytest.mark.parametrize("values", [PERSON, PERSON.astype(str), PERSON * 1.0], ids=["numbers", "texts", "floats"])
def test_rows_that_share_a_value_and_their_group_may_be_of_one_person(values):
    made = task(sex=OF_PEOPLE, key=values)
    *_, note = made.notes
    assert note.startswith("key has 200 values in 600 rows, and rows with the same one share their sex.")
    assert note.endswith("if this column identifies a person, pass --person key.")
    told = task(sex=OF_PEOPLE, key=values, person=["key"]).notes
    assert told == ["Rows with the same key are one person: 200 people."]


PLAIN = {
    "an amount that repeats": RNG.integers(0, 300, N),
    "fractions": (GRADE * 100).round(1),
    "nearly the label": np.where(RNG.random(N) < 0.99, PAID, "no"),
    "nearly the group": np.where(RNG.random(N) < 0.99, SEX, "F"),
    "towns": RNG.choice([f"town {i}" for i in range(60)], N),
    "a rare mark": np.arange(N) == 3,
}


@pytest.mark.parametrize("case", PLAIN)
def test_ordinary_columns_raise_no_question(case):
    assert task(column=PLAIN[case]).notes == []


def test_a_rare_class_has_no_twins_by_chance():
    n = 100_000
    rare = np.where(np.arange(n) % 3_000 == 2_999, "yes", "no")  # always "no" is right in 0.9997
    frame = pd.DataFrame({"x": RNG.normal(size=n), "sex": np.where(np.arange(n) % 7 < 3, "F", "M"), "y": rare})
    assert make_task(frame, "y", ["sex"]).notes == []


def test_only_the_training_rows_decide_what_is_left_out():
    train = task().parts[0]
    code = np.array([f"b{i % 5}" for i in range(N)], dtype=object)
    code[np.setdiff1d(np.arange(N), train)] = "a@b.org"
    code[train[::3]] = "c@b.org"
    assert pd.Series(code[:100]).str.contains("@").mean() > 0.5  # of all rows most are e-mail addresses
    assert "code" in task(code=code).X
    code[train] = "c@b.org"
    assert "code" not in task(code=code).X


def test_a_wide_table_costs_well_under_a_second():
    n, rng = 30_000, np.random.default_rng(1)
    numbers = {f"n{i}": rng.normal(size=n) for i in range(15)}
    texts = {f"t{i}": rng.choice([f"v{j}" for j in range(200)], n) for i in range(10)}
    s = {"sex": rng.choice(["F", "M"], n), "race": rng.choice(["A", "B", "C"], n)}
    frame = pd.DataFrame({**numbers, **texts, **s, "paid": rng.choice(["no", "yes"], n)})
    frame["twin"] = (frame.paid == "yes") * 1.0 + rng.random(n)
    started = time.process_time()
    made = make_task(frame, "paid", ["sex", "race"])
    assert time.process_time() - started < 1
    assert any("twin alone predicts the label" in note for note in made.notes)
