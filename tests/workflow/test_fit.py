"""From a task to a model that is certified or says why not."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest

from fairbits.certificate.released_code import fitted_code
from fairbits.estimators import BinaryMIClassifier, FairCodeClassifier, SaturatedPenaltyWarning, VanishedClassWarning
from fairbits.report.page import model_card
from fairbits.report.wording import assumptions, at_least, at_most, summary, verdict
from fairbits.tables.task import make_task
from fairbits.workflow import fit_task as fitting
from fairbits.workflow.comparisons import threshold_disparity, verdict_changes
from fairbits.workflow.fit_records import fit_record
from fairbits.workflow.fit_task import STEPS, FitOptions, fit_task

BRIEF = {"code_size": 3, "max_epochs": 3}
LIMITS, GAMMAS = (0.05, 0.4), (0.0, 0.5)


def task_of(n):
    rng = np.random.default_rng(0)
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
    return make_task(table, "paid", ["sex", "race"], crossed=True)


@pytest.fixture(scope="module")
def task():
    return task_of(1500)


@pytest.fixture(scope="module")
def few():
    return task_of(1000)


@pytest.fixture(scope="module")
def certified(task):
    steps = []
    options = FitOptions(max_disparity=0.9, **BRIEF)
    fit = fit_task(task, options, lambda *step: steps.append(step), path=LIMITS)
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
    assert names == list(STEPS)
    assert [(place, count) for place, count, *_ in steps] == [(names.index(name), 4) for *_, name, _ in steps]
    for name in names:
        shares = [share for *_, step, share in steps if step == name]
        assert shares == sorted(shares)
        assert (shares[0], shares[-1]) == (0, 1)
        assert (len(shares) > 3) == (name == "training"), name  # which shows its epochs


def test_parts_share_no_rows(certified, task):
    fit, _, _ = certified
    assert fit.rows == {"train": 840, "calibration": 360, "test": 300}
    assert sum(fit.certificate.rows.values()) == 360
    assert fit.audit.rows == 300


def test_alternatives_are_scored_on_the_test_rows(certified):
    fit, _, _ = certified
    names = [a.name for a in fit.alternatives]
    assert names == ["fairbits", "fairbits", "unprotected", "logistic regression", "constant"]
    assert sorted(a.value for a in fit.alternatives[:2]) == list(LIMITS)
    by_name = {a.name: a.scores for a in fit.alternatives}
    assert by_name["constant"]["auc"] == 0.5
    assert by_name["constant"]["disparity"] == 0
    assert by_name["logistic regression"]["auc"] > 0.75
    assert by_name["unprotected"]["auc"] > 0.75
    for scores in by_name.values():  # a class is one of the decisions
        assert scores["discrimination"] <= scores["disparity"] + 1e-9


def test_the_scores_of_the_kept_model_are_those_of_its_audit(certified):
    fit, _, _ = certified
    (kept,) = [a for a in fit.alternatives if a.chosen]
    assert kept.value == fit.model[-1].limit
    assert kept.scores.items() >= fit.audit.task.items()


def test_the_disparity_of_a_code_is_that_of_its_worst_decision(certified, task):
    """Count it again from the codes of the test rows: half of the summed differences between two groups' shares."""
    fit, _, _ = certified
    X, _, s = task.part(fit.test)
    method, rows = fitted_code(fit.model, X)
    words = pd.Series(map(bytes, method.transform(rows)))
    cells = (s.sex + s.race).reset_index(drop=True)
    tables = pd.crosstab(words, cells, normalize="columns")
    worst = max((tables[a] - tables[b]).abs().sum() / 2 for a in tables for b in tables)
    (kept,) = [a for a in fit.alternatives if a.chosen]
    assert kept.scores["disparity"] == pytest.approx(worst)


def test_the_best_threshold_is_found():
    rng = np.random.default_rng(0)
    score, groups = rng.random(200).round(1), rng.integers(0, 3, 200)
    rates = [[(score[groups == g] > t).mean() for g in range(3)] for t in np.arange(0, 1, 0.05)]
    found = threshold_disparity(np.column_stack([1 - score, score]), groups[:, None])
    assert found == pytest.approx(max(max(r) - min(r) for r in rates))


def test_the_front_rises_with_the_disparity(certified):
    fit, _, _ = certified
    front = pd.DataFrame(fit.front)
    assert list(front) == ["disparity", "accuracy", "auc"]
    assert len(front) > 3
    for name in front:
        assert front[name].is_monotonic_increasing
        assert front[name].between(0, 1).all()
    assert front.disparity[0] < 1e-6


def test_no_decision_is_above_the_front_by_more_than_noise(task):
    """It has been: it was that of codes, on few cells, which are chosen by information."""
    fit = fit_task(task, FitOptions(max_disparity=0.9, promise="class"), path=LIMITS)
    front = pd.DataFrame(fit.front)
    assert front.disparity.is_monotonic_increasing
    assert front.accuracy.is_monotonic_increasing
    for model in fit.alternatives:
        accuracy = model.scores["accuracy"]
        best = np.interp(model.scores["disparity"], front.disparity, front.accuracy)
        noise = np.sqrt(accuracy * (1 - accuracy) / len(fit.test))
        assert accuracy < best + 2 * noise, model.name
    plain = next(model for model in fit.alternatives if model.name == "unprotected")
    assert front.accuracy.iloc[-1] >= plain.scores["accuracy"]  # one of the rules, on the same rows


@pytest.mark.parametrize(
    ("bounds", "shown", "p_values", "verdict", "sure"),
    [
        ([0.05, 0.08, 0.19], [0.01, 0.04, 0.15], [1e-9, 1e-9, 1e-9], "certified", True),  # safer ones are useful, too
        ([0.05, 0.08, 0.19], [0.01, 0.04, 0.15], [0.5, 0.5, 1e-9], "certified", False),  # only the last one is
        ([0.21, 0.25, 0.3], [0.005, 0.04, 0.1], [0.5, 0.5, 0.5], "not certified", True),  # the slack alone is too much
        ([0.21, 0.25, 0.3], [0.1, 0.14, 0.2], [0.5, 0.5, 0.5], "not certified", False),
        ([0.05, 0.08, 0.1], [0.01, 0.04, 0.06], [0.9, 0.9, 0.8], "certified but not useful", True),
    ],
)
def test_a_verdict_is_borderline_by_all_models_that_may_pass(bounds, shown, p_values, verdict, sure):
    columns = (np.array(values)[:, None] for values in (bounds, shown))
    shares = verdict_changes(*columns, [0.2], 0.95, np.array(p_values))
    assert sum(shares.values()) == pytest.approx(1)
    assert (1 - shares[verdict] <= fitting.UNSURE) == sure


def test_what_was_tested_ends_with_the_first_failure_and_the_kept_model_passed(certified):
    fit, _, _ = certified
    passed = {tested["limit"]: tested["loss"] for tested in fit.tested if tested["passed"]}
    assert min(passed, key=passed.get) == fit.model[-1].limit
    assert all(tested["passed"] for tested in fit.tested[:-1])


@pytest.fixture(scope="module")
def told(few):
    """Return a fit whose leakage is limited and whose encoder is told the groups."""
    return fit_task(few, FitOptions(max_information=0.9, encode_sensitive=True, **BRIEF), path=LIMITS)


def test_a_leakage_in_bits_can_be_limited(told):
    fit = told
    assert fit.certified
    assert fit.model[-1].measure == "information"
    assert "reveals at most 0.9 bits" in fit.certificate.promise


def test_a_model_may_read_the_sensitive_columns_and_says_so(told, few):
    fit = told
    record = fit_record(fit, few, "table.csv")
    assert {"sex (sensitive)=F", "race (sensitive)=p"} <= set(fit.model[0].table_encoder_.get_feature_names_out())
    assert not [concern for concern in fit.concerns if "sensitive column" in concern]  # it is meant to read them
    for text in (summary(record), model_card(record)):
        assert "This model reads sex, race: for sharing data. Do not use it for decisions about people" in text
    assert "This model reads" not in summary(record | {"asked": {**record["asked"], "encode_sensitive": False}})


def test_a_part_without_a_class_or_a_group_is_told_before_training(task):
    test = np.arange(100)
    rare = dataclasses.replace(task, y=np.where(np.arange(len(task.y)) == 500, "odd", task.y))
    parts = {"training": np.arange(400, 900), "test": test}
    with pytest.raises(ValueError, match="None of the 100 test rows has 'odd' in the label paid"):
        fitting._check_parts(rare, parts)
    alone = task.s.assign(sex=np.where(np.arange(len(task.y)) == 500, "X", task.s.sex))
    with pytest.raises(ValueError, match="test rows has 'X' in sex: it is too rare"):
        fitting._check_parts(dataclasses.replace(task, s=alone), parts)


def test_an_impossible_limit_is_refused_with_the_safest_model(few):
    fit = fit_task(few, FitOptions(max_disparity=0.001, **BRIEF), path=LIMITS)
    assert not fit.certified
    assert "No model could be certified to a disparity of at most 0.001 at 95% confidence: the" in fit.refusal
    assert fit.certificate.promise is None
    assert fit.certificate.total_variation > 0.001
    assert fit.model[-1].limit == fit.alternatives[0].value  # of a path that begins with the safest


class Loud(BinaryMIClassifier):
    """Warns of something, with its gamma."""

    def concerns(self, X, y=None, sensitive_features=None):
        kinds = (VanishedClassWarning, SaturatedPenaltyWarning) if len(X) == 560 else ()  # the training rows
        return [kind(f"{kind.__name__} of gamma {self.gamma}.") for kind in kinds]


@pytest.fixture(scope="module")
def fixed(few):
    """Return a fit of a given gamma in which every model warns of something."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting, "BinaryMIClassifier", Loud)
        return fit_task(few, FitOptions(gamma=0.2, **BRIEF), path=GAMMAS)


def test_a_fixed_gamma_has_a_certificate_and_no_promise(fixed):
    fit = fixed
    assert fit.model[-1].gamma == 0.2
    assert fit.certificate.promise is None
    assert fit.certified
    assert not fit.tested
    path = {a.value: a.chosen for a in fit.alternatives if a.name == "fairbits"}
    assert path == {0.2: True, **dict.fromkeys(GAMMAS, False)}


def test_only_the_chosen_model_is_minded_and_vanished_classes_by_the_test_rows(fixed):
    concerns = " ".join(fixed.concerns)
    assert "SaturatedPenaltyWarning of gamma 0.2. Try a smaller --code-size." in concerns
    assert concerns.count("of gamma") == 1


def test_the_record_is_json_and_holds_no_seed(certified, task):
    fit, _, _ = certified
    record = fit_record(fit, task, "table.csv")
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
    fit, _, _ = certified
    sizes = task.part(fit.test)[2].sex.value_counts()
    shown = fit_record(fit, task, "table.csv", fewest_shown=sizes.max())["scores_by_group"]
    assert {g["group"] for g in shown if g["column"] == "sex"} == {sizes.idxmax()}


@pytest.mark.parametrize("options", [{}, {"gamma": 0.1, "max_disparity": 0.1}])
def test_limits_or_gamma(options):
    with pytest.raises(ValueError, match="one of the two"):
        FitOptions(**options)


def test_what_a_method_cannot_do_is_said_before_training():
    with pytest.raises(ValueError, match="--encode-sensitive needs a limit"):
        FitOptions(gamma=0.1, encode_sensitive=True)
    with pytest.raises(ValueError, match="code_size=12 must be a whole number at least 1 and at most 10"):
        FitOptions(max_disparity=0.1, code_size=12).pipeline("each")
    assert FitOptions(gamma=0.1, code_size=14).pipeline("each")[-1].code_size == 14


def test_the_words_say_what_the_numbers_say(certified, task):
    fit, _, _ = certified
    record = fit_record(fit, task, "table.csv")
    text, card = summary(record), model_card(record)
    assert text.startswith("Certified at 95% confidence: the rates of any decision made from the code alone differ")
    assert f"disparity at {at_most(fit.certificate.total_variation)} or less" in " ".join(text.split())
    assert f"accuracy {fit.audit.task['accuracy']:.3f}" in text
    for group, size in task.group_sizes.items():
        assert f"{group} {size:,}" in card
    for line in fit.certificate.does_not_cover:
        assert f"- {line}" in card
    assert "leakage in bits, at most" in card
    assert f"| {at_most(fit.certificate.bounds[0].information, 4)} |" in card
    low, high = fit.audit.intervals["accuracy"]
    assert low < fit.audit.task["accuracy"] < high
    assert f" (95% interval {at_least(low)} to {at_most(high)})" in text
    rows = {line.split("|")[1].strip(): line for line in card.splitlines() if line.startswith("| ")}
    for name in (
        "this model",
        "logistic regression, no protection",
        "logistic regression",
        "always the majority class",
    ):
        assert rows[name].count(" to ") == 2, name  # AUC and accuracy
    for line in assumptions(record):
        assert f"- {line}" in card
    assert "draw" not in text + card


def test_bounds_of_rows_that_chose_the_model_are_no_promise(certified, task):
    fit, options, _ = certified
    promised = fit_record(fit, task, "table.csv")
    assert "only the limit is guaranteed" in verdict(promised)
    assert fit.audit.confidence == options.confidence


def test_a_refusal_is_the_first_thing_said(certified, task):
    fit, _, _ = certified
    record = {**fit_record(fit, task, "t"), "certified": False, "refusal": "No model could be certified."}
    assert summary(record).startswith("Not certified. No model")
    assert "Not certified. No model" in model_card(record).splitlines()[2]


def test_the_defaults_are_those_of_the_library():
    ours, theirs = FitOptions(max_disparity=0.1).pipeline("each"), FairCodeClassifier(groups="each").pipeline()
    for own, other in zip(ours, theirs, strict=True):
        assert own.get_params() == other.get_params()
