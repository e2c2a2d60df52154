"""Plans: what the sizes of groups make impossible, who is too small, and what would help."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from fairbits.certificate.confidence_bounds import information_bound
from fairbits.certificate.decision_rates import equal_limit, smallest_limit
from fairbits.errors import InputError
from fairbits.tables.task import make_task
from fairbits.workflow.planning import check_limits, groups_of, plan, plan_words, release_kind

N = 2_000


def table(**columns):
    rng = np.random.default_rng(0)
    base = {
        "grade": rng.normal(size=N),
        "race": rng.choice(["A", "B", "C"], N, p=[0.6, 0.36, 0.04]),
        "sex": rng.choice(["F", "M"], N),
        "paid": rng.choice(["no", "yes"], N, p=[0.7, 0.3]),
    }
    return pd.DataFrame({**base, **columns})


@pytest.fixture(scope="module")
def task():
    return make_task(table(), "paid", ["race"])


def options(promise="class", **limits):
    asked = {"max_disparity": None, "max_odds_disparity": None, "max_information": None, "odds_label": None}
    return SimpleNamespace(**asked | {"promise": promise, "code_size": None, "confidence": 0.95} | limits)


def sizes(task, own=slice(None)):
    held = task.parts[1][own]
    return task.s.race.iloc[held].value_counts().reindex(["A", "B", "C"]).to_numpy()


def test_groups_are_counted_among_the_calibration_rows(task):
    (found,) = groups_of(task, task.parts[1])
    assert (found.column, found.smallest) == ("race", "C")
    assert found.rows.tolist() == sizes(task).tolist()
    held = task.parts[1]
    (within,) = groups_of(task, held, ["yes"])
    assert within.rows.tolist() == sizes(task, task.y[held] == "yes").tolist()


def test_people_are_counted_once():
    panel = table(id=np.arange(N) // 2, race=np.repeat(np.random.default_rng(0).choice(["A", "B"], N // 2), 2))
    task = make_task(panel, "paid", ["race"], person=["id"])
    (found,) = groups_of(task, task.parts[1])
    assert found.rows.sum() == len(task.parts[1]) / 2
    assert release_kind(task, "class") == release_kind(task, "code") == "any values"


@pytest.mark.parametrize(
    ("promise", "name", "bound"),
    [
        ("class", "max_disparity", lambda rows: smallest_limit(rows, 0.05, "binary")),
        ("code", "max_disparity", lambda rows: smallest_limit(rows, 0.05, "hard")),
        ("code", "max_information", lambda rows: information_bound(0.0, rows, 0.05)),
    ],
)
def test_a_limit_is_refused_exactly_below_the_smallest_bound(task, promise, name, bound):
    least = bound(sizes(task))
    check_limits(task, options(promise, **{name: least + 1e-9}))
    with pytest.raises(InputError, match=rf"group 'C' of race has {sizes(task)[2]} calib") as caught:
        check_limits(task, options(promise, **{name: least - 1e-9}))
    assert "--merge-small" in caught.value.remedy
    assert "--each" not in caught.value.remedy
    assert caught.value.argument == name


def test_within_labels_the_people_with_the_label_count(task):
    own = sizes(task, task.y[task.parts[1]] == "yes")
    least = smallest_limit(own, 0.05, "binary")
    assert least > smallest_limit(sizes(task), 0.05, "binary")
    with pytest.raises(InputError, match=f"has {own[2]} calibration rows with label yes"):
        check_limits(task, options(max_odds_disparity=least - 1e-9))
    check_limits(task, options(max_odds_disparity=least - 1e-9, odds_label="no"))


def test_a_code_of_one_bit_and_a_class_of_three_have_the_bounds_of_their_kind(task):
    assert [release_kind(task, *asked) for asked in (("code", 1), ("code", 2), ("code",))] == ["binary", "hard", "hard"]
    three = make_task(table(paid=np.arange(N) % 3), "paid", ["race"])
    assert release_kind(three, "class") == "hard"


def test_the_rows_of_the_advice_are_those_of_the_slack(task):
    """At the advised rows the slack is about half of the limit."""
    found = plan(task)
    for limit in found["limits"]:
        for of, kind in (("codes", "hard"), ("decisions", "binary")):
            rows = np.rint(sizes(task) * limit[f"{of}_rows"] / N).astype(int)
            if rows.min() >= 60:  # with few rows, rates come in steps
                assert 0.8 < equal_limit(rows, 0.05, kind, 0.2) / (limit["limit"] / 2) < 1.05


def test_verdicts_agree_with_the_check(task):
    found = plan(task)
    verdicts = {one["limit"]: one for one in found["limits"]}
    for limit, one in verdicts.items():
        for of, promise in (("codes", "code"), ("decisions", "class")):
            try:
                check_limits(task, options(promise, max_disparity=limit))
                assert one[of] != "impossible"
            except InputError:
                assert one[of] in ("impossible", "not in this split")
    assert verdicts[0.02]["codes"] == "impossible"
    assert verdicts[0.5]["codes"] == "fine"


@pytest.mark.parametrize("columns", [["race"], ["race", "age"], ["age"]])
@pytest.mark.parametrize("person", [[], ["id"]])
def test_what_is_impossible_is_impossible_in_every_split(columns, person):
    """The split also decides which rare groups are pooled and where numbers are cut."""
    rng, people = np.random.default_rng(0), N // 2
    race = rng.choice(["A", "B", "C", "D", "E"], people, p=[0.84, 0.12, 0.02, 0.01, 0.01])
    known = table(race=race.repeat(2), age=rng.integers(20, 70, people).repeat(2), id=np.arange(N) // 2)
    known, kinds = known if person else known[::2].reset_index(drop=True), {"codes": "code", "decisions": "class"}
    found = plan(make_task(known, "paid", columns, person=person))
    assert found["codes"]["smallest_of_any_split"] > 0.03
    for seed in range(12):
        task = make_task(known, "paid", columns, person=person, seed=seed)
        for of, promise in kinds.items():
            with pytest.raises(InputError, match=rf"cannot be proved: in this split \(--seed {seed}\)"):
                check_limits(task, options(promise, max_disparity=found[of]["smallest_of_any_split"] - 1e-9))
            impossible = [one["limit"] for one in found["limits"] if one[of] == "impossible"]
            assert all(limit < plan(task)[of]["smallest"] for limit in impossible)


def test_the_advice_is_what_would_happen(task):
    found = plan(task)
    pooled = next(line for line in found["advice"] if "--merge-small" in line)
    n = int(pooled.split("--merge-small ")[1].rstrip(").").split(")")[0])
    merged = plan(make_task(table(), "paid", ["race"], merge_small=n))
    assert {group["group"] for group in merged["groups"]} == {"A", "(other)"}
    assert f"to about {merged['codes']['equal']:.3f}"[:-1] in pooled
    share = next(line for line in found["advice"] if "--calibration-share 0.4" in line)
    more = plan(make_task(table(), "paid", ["race"], calibration_share=0.4))["codes"]["equal"]
    assert float(share.split("to about ")[1].split()[0]) == pytest.approx(more, rel=0.1)
    crossed = plan(make_task(table(), "paid", ["race", "sex"], crossed=True))
    each = plan(make_task(table(), "paid", ["race", "sex"]))["codes"]["equal"]
    alone = next(line for line in crossed["advice"] if "--each" in line)
    assert float(alone.split("to about ")[1].split()[0]) == pytest.approx(each, rel=0.1)


def test_a_plan_in_words_names_the_groups_and_the_limits(task):
    words = plan_words(plan(task))
    assert "At 95% confidence, C of race decides" in words
    assert "0.02 impossible" in " ".join(words.split())
    assert words.splitlines()[-1].startswith("- ")
