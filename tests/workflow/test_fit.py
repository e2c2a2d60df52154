"""From a task to a model that is certified or says why not."""

import dataclasses
import json
import warnings

import numpy as np
import pandas as pd
import pytest

from fairbits.estimators import SaturatedPenaltyWarning, Schedule, VanishedClassWarning
from fairbits.report.wording import ASSUMPTIONS, at_least, at_most, model_card, summary, verdict
from fairbits.tables.task import make_task
from fairbits.workflow import fit_task as fitting
from fairbits.workflow.fit_record import fit_record
from fairbits.workflow.fit_task import STEPS, Contest, FitOptions, fit_task

BRIEF = {"code_size": 3, "max_epochs": 3}
STRENGTHS, OTHERS = (0.1, 0.9), (0.0, 0.5)
PATHS = {"gammas": (0.0, 0.9), "strengths": STRENGTHS, "others": OTHERS}


@pytest.fixture(scope="module")
def task():
    rng = np.random.default_rng(0)
    n = 3000
    sex, grade = rng.choice(["F", "M"], n), rng.normal(size=n)
    paid = np.where(grade + 0.8 * (sex == "M") + rng.normal(size=n) > 0.4, "yes", "no")
    table = pd.DataFrame(
        {
            "grade": grade,
            "height": rng.normal(size=n) + (sex == "M"),
            "job": rng.choice(["a", "b", "c"], n),
            "sex": sex,
            "race": rng.choice(["p", "q"], n),
            "paid": paid,
        }
    )
    return make_task(table, "paid", ["sex", "race"])


@pytest.fixture(scope="module")
def certified(task):
    steps = []
    options = FitOptions(max_disparity=0.9, **BRIEF)
    fit = fit_task(task, options, lambda *step: steps.append(step), **PATHS)
    return fit, options, steps


def test_a_loose_limit_is_certified(certified, task):
    fit, _, _ = certified
    assert fit.certified
    assert fit.refusal is None
    assert fit.certificate.total_variation <= 0.9
    assert "at most 0.9" in fit.certificate.promise
    assert sum(fit.rows.values()) == len(task.y)


def test_every_step_is_told_from_its_beginning_to_its_end(certified):
    _, _, steps = certified
    names = list(dict.fromkeys(name for _, _, name, _ in steps))
    assert names == [name for name in STEPS if name != "path"]
    assert [(place, count) for place, count, *_ in steps] == [(names.index(name), 7) for *_, name, _ in steps]
    for name in names:
        shares = [share for *_, step, share in steps if step == name]
        assert shares == sorted(shares)
        assert (shares[0], shares[-1]) == (0, 1)
        assert (len(shares) > 3) == (name not in ("audit", "references")), name  # trainings tell their epochs


def test_parts_share_no_rows(certified, task):
    fit, _, _ = certified
    assert fit.rows == {"train": 1680, "calibration": 720, "test": 600}
    assert sum(fit.certificate.rows.values()) == 720
    assert fit.audit.rows == 600


def test_alternatives_are_scored_on_the_test_rows(certified):
    fit, _, _ = certified
    names = [a.name for a in fit.alternatives]
    rivals = [name for name in ("Parity", "HSIC") for _ in STRENGTHS]
    assert names == ["BinaryMI", "BinaryMI", *rivals, "unmitigated", "logistic regression", "constant"]
    assert [a.gamma for a in fit.alternatives if a.name == "HSIC"] == list(STRENGTHS)
    assert {a.rows for a in fit.alternatives} == {1680}
    by_name = {a.name: a.scores for a in fit.alternatives}
    assert by_name["constant"]["auc"] == 0.5
    assert by_name["logistic regression"]["auc"] > 0.75


def test_the_scores_of_the_kept_model_are_those_of_its_audit(certified):
    fit, _, _ = certified
    (kept,) = [a for a in fit.alternatives if a.chosen]
    assert kept.gamma == fit.model[-1].gamma
    assert kept.scores == fit.audit.task


def test_what_was_tested_ends_with_the_kept_model_or_the_first_failure(certified):
    fit, _, _ = certified
    passed = [tested["gamma"] for tested in fit.tested if tested["passed"]]
    assert passed[-1] == fit.model[-1].gamma
    assert all(tested["passed"] for tested in fit.tested[:-1])


def test_the_plane_is_of_the_kept_setting(certified):
    fit, _, _ = certified
    assert fit.plane["rows"] == 1680
    assert len(fit.plane["epochs"]) >= 3
    for epoch in fit.plane["epochs"]:
        assert -1e-6 <= epoch["about_s"] <= epoch["about_x"] + 1e-6


def test_models_for_comparison_train_on_few_rows_unless_a_group_would_be_missing(task):
    train, test = np.arange(2400), np.arange(2400, 3000)
    contest = Contest(task, train, test, {"max_epochs": 2, "schedule": Schedule(min_steps=0)}, most_rows=500)
    assert {scored.rows for scored in contest.path("Parity", STRENGTHS)} == {500}
    rare = dataclasses.replace(task, s=task.s.assign(race=np.where(np.arange(3000) % 2399 == 1500, "r", task.s.race)))
    assert len(Contest(rare, train, test, {}, most_rows=500).few) == 2400


def test_a_sensitive_number_has_as_many_groups_as_were_asked_for(task):
    table = task.X.assign(age=np.arange(len(task.y)) % 60, paid=task.y)
    halved = make_task(table, "paid", ["age"], n_bins=2)
    assert len(halved.group_sizes) == 2
    assert set(Contest(halved, [], [], {}).groups[:, 0]) == {0, 1}


def test_a_part_without_a_class_or_a_group_is_told_before_training(task):
    test = np.arange(100)
    rare = dataclasses.replace(task, y=np.where(np.arange(len(task.y)) == 500, "odd", task.y))
    parts = {"training": np.arange(400, 900), "test": test}
    with pytest.raises(ValueError, match="None of the 100 test rows has 'odd' in the label paid"):
        fitting._check_parts(rare, parts)
    alone = task.s.assign(sex=np.where(np.arange(len(task.y)) == 500, "X", task.s.sex))
    with pytest.raises(ValueError, match="test rows has 'X' in sex: it is too rare"):
        fitting._check_parts(dataclasses.replace(task, s=alone), parts)


def test_an_impossible_limit_is_refused_with_the_safest_model(task):
    fit = fit_task(task, FitOptions(max_disparity=0.001, **BRIEF), **PATHS)
    assert not fit.certified
    assert "No model could be certified to a disparity of at most 0.001" in fit.refusal
    assert fit.certificate.promise is None
    assert fit.certificate.total_variation > 0.001
    assert fit.model[-1].gamma == fit.alternatives[0].gamma  # of a path that begins with the safest


@pytest.fixture(scope="module")
def fixed(task):
    """Return a fit of a given gamma in which every part warns of something."""

    def warns(name, category, words):
        original = getattr(fitting, name)

        def loud(*arguments):
            warnings.warn(words, category, stacklevel=2)
            return original(*arguments)

        patch.setattr(fitting, name, loud)

    with pytest.MonkeyPatch.context() as patch:
        warns("_plain", SaturatedPenaltyWarning, "of the unmitigated model")
        warns("_fit_gamma", VanishedClassWarning, "of the training rows")
        warns("_fit_gamma", SaturatedPenaltyWarning, "of the chosen model")
        return fit_task(task, FitOptions(gamma=0.2, **BRIEF), **PATHS)


def test_a_fixed_gamma_has_a_certificate_and_no_promise(fixed):
    fit = fixed
    assert fit.model[-1].gamma == 0.2
    assert fit.certificate.promise is None
    assert fit.certified
    assert not fit.tested
    path = {a.gamma: a.chosen for a in fit.alternatives if a.name == "BinaryMI"}
    assert path == {0.2: True, **dict.fromkeys(OTHERS, False)}


def test_only_the_chosen_model_is_minded_and_vanished_classes_by_the_test_rows(fixed):
    concerns = " ".join(fixed.concerns)
    assert "of the chosen model Try a smaller --code-size." in concerns
    assert "of the unmitigated model" not in concerns
    assert "of the training rows" not in concerns


def test_the_record_is_json_and_holds_no_seed(certified, task):
    fit, options, _ = certified
    record = fit_record(fit, task, options, "table.csv")
    text = json.dumps(record, allow_nan=False)
    assert "seed" not in json.loads(text)["asked"]
    assert record["task"]["group_sizes"] == task.group_sizes
    assert [(b["about"], b["role"]) for b in record["bits"]] == [
        ("paid", "label"),
        ("sex", "sensitive"),
        ("race", "sensitive"),
    ]
    for column in record["bits"]:
        assert len(column["each"]) == 3
        assert max(column["each"]) <= column["joint"] + 1e-9 <= column["entropy"]
    assert {g["group"]: sum(g["counts"]) for g in record["scores_by_group"] if g["column"] == "sex"} == (
        task.part(fit.test)[2].sex.value_counts().to_dict()
    )


def test_scores_of_a_small_group_are_not_shown(certified, task):
    fit, options, _ = certified
    sizes = task.part(fit.test)[2].sex.value_counts()
    shown = fit_record(fit, task, options, "table.csv", fewest_shown=sizes.max())["scores_by_group"]
    assert {g["group"] for g in shown if g["column"] == "sex"} == {sizes.idxmax()}


@pytest.mark.parametrize("options", [{}, {"gamma": 0.1, "max_disparity": 0.1}])
def test_limits_or_gamma(options):
    with pytest.raises(ValueError, match="one of the two"):
        FitOptions(**options)


def test_the_words_say_what_the_numbers_say(certified, task):
    fit, options, _ = certified
    record = fit_record(fit, task, options, "table.csv")
    text, card = summary(record), model_card(record)
    assert text.startswith("Certified at 95% confidence: the rates of any decision made from one draw of the code")
    assert f"a disparity of at most {at_most(fit.certificate.total_variation)}" in text
    assert f"accuracy {fit.audit.task['one_draw_accuracy']:.3f}" in text
    for group, size in task.group_sizes.items():
        assert f"{group} {size:,}" in card
    for line in fit.certificate.does_not_cover:
        assert f"- {line}" in card
    assert "leakage in bits, at most" in card
    assert f"| {at_most(fit.certificate.bounds[0].information, 4)} |" in card
    assert "| unprotected network |" in card
    low, high = fit.audit.intervals["one_draw_accuracy"]
    assert low < fit.audit.task["one_draw_accuracy"] < high
    assert f" (95% interval {at_least(low)} to {at_most(high)})" in text
    rows = {line.split("|")[1].strip(): line for line in card.splitlines() if line.startswith("| ")}
    for name in ("this model, one draw", "unprotected network", "logistic regression", "always the majority class"):
        assert rows[name].count(" to ") == 2, name  # AUC and accuracy
    for line in ASSUMPTIONS:
        assert f"- {line}" in card


def test_bounds_of_rows_that_chose_the_model_are_no_promise(certified, task):
    fit, options, _ = certified
    promised = fit_record(fit, task, options, "table.csv")
    assert "only the limit is guaranteed" in verdict(promised)
    assert fit.audit.confidence == options.confidence


def test_a_refusal_is_the_first_thing_said(certified, task):
    fit, options, _ = certified
    record = {**fit_record(fit, task, options, "t"), "certified": False, "refusal": "No model could be certified."}
    assert summary(record).startswith("Not certified. No model")
    assert "Not certified. No model" in model_card(record).splitlines()[2]
