"""What is promised: the code, the class, limits within labels, and any classifiers as candidates."""

import re

import numpy as np
import pandas as pd
import pytest
from battery import problem, quick
from scipy.stats import binom
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from fairbits import (
    BinaryMIClassifier,
    CertifiedClassifier,
    ExactCodeClassifier,
    FairCodeClassifier,
    InputError,
    NotCertifiedError,
    audit,
    certify,
    release,
)
from fairbits.datasets import make_shifted_bits
from fairbits.errors import InputWarning
from fairbits.estimators.candidates import Decision
from fairbits.rivals import FairTreeClassifier

DELTA = 0.3


class Rule(ClassifierMixin, BaseEstimator):
    """Decides by a bit of `make_shifted_bits`, of some labels alone: the true disparity within these labels is DELTA.

    The last column is the label, and neither it nor the labels' shares depend on the group.
    """

    def __init__(self, bit=0, labels=(0, 1)):
        self.bit, self.labels = bit, labels

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return (X[:, self.bit] * np.isin(X[:, -1] > 0, self.labels)).astype(int)


def bits(n=6000, seed=0, delta=DELTA):
    data = make_shifted_bits(n, delta=delta, random_state=seed)
    return data.X, data.y, data.s


def certified(estimator, rows, **settings):
    X, y, s = rows
    return CertifiedClassifier(estimator, random_state=0, **settings).fit(X, y, sensitive_features=s)


# ------------------------------------------------------------------ candidates


@pytest.fixture(scope="module")
def three():
    candidates = [make_pipeline(StandardScaler(), LogisticRegression()), DecisionTreeClassifier(), DummyClassifier()]
    return certified(candidates, problem(6000), max_disparity=0.15)


def test_the_most_accurate_candidate_that_passed_is_kept(three):
    assert three.path_.candidate[0] == "DummyClassifier()"  # a constant reveals nothing
    assert three.path_.passed[0]
    assert three.path_.accuracy[three.path_.passed].max() == three.path_.accuracy[three.passed_.index(three.estimator_)]
    assert three.passed_ == three.candidates_[: len(three.passed_)]
    X, y, s = problem(20_000, seed=1)
    accuracy = [(model.predict(X) == y).mean() for model in three.passed_]
    assert accuracy[three.passed_.index(three.estimator_)] == pytest.approx(max(accuracy), abs=0.01)
    assert three.score(X, y) == max(accuracy)
    for model in three.passed_:
        assert abs(model.predict(X)[s == 0].mean() - model.predict(X)[s == 1].mean()) <= 0.15


def test_trees_are_ordered_by_rows_that_they_have_not_seen():
    """A tree has learnt by heart that labels follow the group; about new rows, whose columns are noise, it guesses."""
    X, _, s = bits(3000)
    rng = np.random.default_rng(0)
    noise, y = rng.normal(size=X.shape), np.where(rng.random(3000) < 0.9, s, 1 - s)
    noise[:, 0], noise[:, -1] = X[:, 0], 1.0
    tree = make_pipeline(FunctionTransformer(lambda rows: rows[:, 1:-1]), DecisionTreeClassifier())
    model = certified([Rule(), tree], (noise, y, s), max_disparity=0.9)
    assert model.path_.candidate.tolist() == ["DecisionTreeClassifier()", "Rule()"]


def test_a_candidate_above_the_limit_is_not_kept_however_accurate():
    X, _, s = problem(4000)
    model = certified([LogisticRegression(), DummyClassifier()], (X, s, s), max_disparity=0.2)  # the label is the group
    assert model.path_.passed.tolist() == [True, False]
    assert isinstance(model.estimator_, DummyClassifier)
    assert len(model.passed_) == 1


def test_methods_with_a_code_bring_their_path_to_the_candidates():
    method = quick(ExactCodeClassifier, code_size=2)
    model = certified([method, DummyClassifier()], problem(3000), max_disparity=0.9, path=(0.1, 0.5))
    names = " ".join(model.path_.candidate)
    assert len(model.candidates_) == 3
    assert names.count("ExactCodeClassifier") == 2
    assert model.predict(problem(50, seed=1)[0]).shape == (50,)


class Told(Rule):
    """Wants to know the groups, and counts its decisions."""

    asked = 0

    def fit(self, X, y, sensitive_features):
        assert len(sensitive_features) == len(y)
        return super().fit(X, y)

    def predict(self, X, sensitive_features):
        type(self).asked += len(X)
        return (1 - np.asarray(sensitive_features)) * (X[:, 0] > 0)


def test_groups_are_told_to_who_asks_and_decisions_are_drawn_once():
    X, y, s = bits(3000)
    model = certified(make_pipeline(StandardScaler(), Told()), (X, y, s), max_disparity=0.9)
    assert Told.asked == 3000  # the training rows out of fold, the calibration rows once
    np.testing.assert_array_equal(model.predict(X, sensitive_features=s), (1 - s) * X[:, 0])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fairlearn_reductions_are_candidates():
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient

    X, y, s = problem(4000)
    reduced = ExponentiatedGradient(LogisticRegression(), DemographicParity())
    model = certified([reduced, LogisticRegression()], (X, y, s), max_disparity=0.15)
    assert len(model.candidates_) == 2
    assert set(model.predict(X)) <= {0, 1}


# ------------------------------------------------------------------ the class alone


def test_the_class_alone_is_covered_and_nothing_else(three):
    X, y, s = problem(2000, seed=2)
    text = str(three.certificate_)
    assert "the rates of the decision differ between two groups by at most 0.15, in the population that" in text
    assert "the score behind the decision" in text
    for use in (three.transform, lambda rows: release(three, rows)):
        with pytest.raises(InputError, match=r"about the predicted class alone.*Use predict"):
            use(X)
    again = certify(three, X, sensitive_features=s)
    assert again.release["decision"]
    assert again.total_variation == certify(three.predict(X), sensitive_features=s).total_variation
    found = audit(three, X, y, sensitive_features=s)
    assert found.certificate.total_variation == again.total_variation
    assert found.probes[0].view == "decision"
    assert found.task["accuracy"] == three.score(X, y)
    assert three.certificate_.selection_ratio(0.5) == pytest.approx(1 - 0.15 / 0.5)


@pytest.mark.parametrize("release", ["hard", "random"])
def test_the_class_is_asked_no_less_by_a_promise_about_it_than_by_one_about_the_code(release):
    """What passes by its hard code passes by its class, which is a function of it; both are chosen by their own."""
    X, y, s = problem(3000)
    method = quick(ExactCodeClassifier, code_size=3, release=release)
    limits = {"path": (0.02, 0.3, 0.8), "max_disparity": 0.9, "max_information": 0.9, "max_odds_disparity": 0.9}
    by_class = certified(method, (X, y, s), promise="class", **limits)
    by_code = CertifiedClassifier(method, promise="code", **limits)
    assert list(by_class.path_.columns[1:4]) == ["class_total_variation", "class_odds_disparity", "class_information"]
    X, y, s = problem(2000, seed=1)
    for model in by_class.candidates_:
        claims = {
            of: selector._claims(model, selector._certificates(model, X, s, y), len(y))
            for of, selector in (("class", by_class), ("code", by_code))
        }
        for own, whole in zip(claims["class"], claims["code"], strict=True):
            assert (own.of, own.kind, own.limit) == ("class", whole.kind, whole.limit)
            assert release == "random" or own.bound <= whole.bound
    assert by_class.estimator_ is by_class.passed_[by_class.path_.accuracy[by_class.path_.passed].argmax()]
    with pytest.raises(InputError, match="class alone"):
        by_class.transform(X)


def test_a_random_code_may_be_promised_without_its_class():
    method = quick(BinaryMIClassifier, code_size=2)
    found = {
        promise: certified(method, problem(1500), max_disparity=0.95, path=(0.9,), promise=promise)
        for promise in (None, "code", "both")
    }
    columns = {
        promise: [c for c in model.path_ if c.endswith("variation") and not c.startswith("shown")]
        for promise, model in found.items()
    }
    assert columns[None] == columns["both"] == ["code_total_variation", "class_total_variation"]
    assert columns["code"] == ["code_total_variation"]
    assert "made from one draw of the code alone differ" in found["code"].certificate_.promise
    assert "one draw of the code, or from the predicted class, alone," in found["both"].certificate_.promise


# ------------------------------------------------------------------ within labels


def test_a_disparity_within_one_label_is_found_there():
    """True disparity within label 1 is DELTA, within label 0 it is 0, and DELTA/2 among all."""
    rule, rows = Rule(labels=(1,)), bits(20_000)
    for odds_label, kept in ((None, False), (1, False), (0, True)):
        limits = {"max_disparity": 0.25, "max_odds_disparity": 0.25, "odds_label": odds_label}
        if kept:
            model = certified(rule, rows, **limits)
            assert "among people with label 0, the rates of the decision differ" in model.certificate_.promise
            assert model.path_.class_odds_disparity[0] < 0.1
        else:
            with pytest.raises(NotCertifiedError, match=r"disparity within a label of at most 0\.25") as caught:
                certified(rule, rows, **limits)
            assert caught.value.estimate == pytest.approx(DELTA, abs=0.06)
            assert caught.value.bound > DELTA
    alone = certified(rule, rows, max_disparity=None, max_odds_disparity=0.45)
    assert "among people with the same label, the rates" in alone.certificate_.covers
    assert alone.certificate_.within_labels >= DELTA
    assert "class_total_variation" not in alone.path_


def test_people_count_once_within_a_label():
    X, y, s = bits(2000)
    twice = np.repeat(np.arange(2000), 2)
    model = CertifiedClassifier(Rule(), max_disparity=0.9, max_odds_disparity=0.9, random_state=0)
    model.fit(X[twice], y[twice], sensitive_features=s[twice], person=twice)
    rows = {bound.label: sum(bound.rows.values()) for bound in model.certificate_.bounds}
    assert rows[None] == 600
    assert rows[0] + rows[1] == 600  # all rows of a person have the same label here
    assert model.certificate_.by_person


def test_training_and_promise_should_look_at_the_same_rows():
    odds = {"max_disparity": None, "max_odds_disparity": 0.1}
    for given in (None, FairCodeClassifier()):
        assert CertifiedClassifier(given, **odds)._templates()[0][-1].condition_on_label
        assert not CertifiedClassifier(given, max_odds_disparity=0.1)._templates()[0][-1].condition_on_label
    within = ExactCodeClassifier(condition_on_label=True)
    assert max(m.limit for m in CertifiedClassifier(max_odds_disparity=0.1)._stacks(within, np.array([9, 9]))[0]) == 0.1
    with pytest.warns(InputWarning, match=r"only limit is within labels.*Set condition_on_label=True"):
        CertifiedClassifier(ExactCodeClassifier(), **odds)._templates()
    with pytest.warns(InputWarning, match="no limit is within labels"):
        CertifiedClassifier(within)._templates()


@pytest.mark.parametrize("estimator", [FairTreeClassifier(), [DummyClassifier(), FairTreeClassifier()]])
def test_a_code_without_a_path_is_a_candidate_like_any_other_classifier(estimator):
    model = certified(estimator, bits(400), max_disparity=0.9)
    assert f"{FairTreeClassifier()}" in model.path_.candidate.tolist()
    assert model.certificate_.release["decision"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"promise": "code"}, "LogisticRegression has no code to guarantee. Pass promise='class'."),
        ({"promise": "code", "estimator": FairTreeClassifier()}, "has no limit or gamma to choose a code by. Pass"),
        ({"promise": "both", "estimator": [DummyClassifier()]}, "list of candidates has no code to guarantee"),
        ({"promise": "score"}, "promise='score' must be one of"),
        ({"estimator": []}, "list of candidates is empty"),
        ({"estimator": StandardScaler()}, "is not a classifier"),
        ({"odds_label": 1}, "odds_label=1 is for a limit within labels. Set max_odds_disparity."),
        ({"odds_label": 7, "max_odds_disparity": 0.1}, "odds_label=7 is not among the labels 0, 1."),
        ({"max_odds_disparity": 2}, "max_odds_disparity=2"),
        ({"max_disparity": None}, "no limit to certify"),
    ],
)
def test_nonsense_gets_a_sentence(settings, words):
    with pytest.raises(InputError, match=re.escape(words)):
        certified(**{"estimator": LogisticRegression(), "rows": bits(400), **settings})


def test_labels_are_needed_and_each_has_calibration_rows():
    X, y, s = bits(400)
    with pytest.raises(InputError, match=r"needs labels\. Pass y"):
        certified(LogisticRegression(), (X, None, s), max_odds_disparity=0.1)
    model = CertifiedClassifier(LogisticRegression(), max_odds_disparity=0.1)
    with pytest.raises(InputError, match="No calibration row has label '0'"):
        model.fit(X, y, sensitive_features=s, calibration=np.flatnonzero(y == 1)[:100])


# ------------------------------------------------------------------ coverage


@pytest.mark.slow
def test_no_more_promises_are_broken_than_stated():
    """Candidates just above both limits behind a safe one: at 80 %, all that passed keep them in 80 % of draws."""
    limit, draws, rows = 0.2, 120, 400
    selector = CertifiedClassifier(max_disparity=limit, max_odds_disparity=limit, odds_label=1, confidence=0.8)
    rng = np.random.default_rng(0)
    groups, labels = np.repeat([0, 1], rows), np.tile([0, 1], rows)
    encoder = certified(Rule(), bits(400), max_disparity=0.99).group_encoder_
    truth = np.r_[0.02, np.full(5, limit + 1e-9)]
    broken = found = 0
    for _ in range(draws):
        chance = (1 + np.outer(2 * groups - 1, truth)) / 2
        decided = (rng.random(chance.shape) < chance).astype(int)
        models = [Decision(None, str(i), i, np.array([0, 1]), encoder) for i in range(len(truth))]
        try:
            selector._test(models, selector._in_memory(decided, (decided, labels, groups), None))
        except NotCertifiedError:
            continue
        found += 1
        broken += int(selector.path_.passed.sum()) > 1
    assert found > 0.9 * draws
    assert broken <= binom.isf(1e-3, draws, 0.2)
    assert broken > 0  # the case is bad enough


def test_the_path_is_a_frame_of_what_was_tested(three):
    assert isinstance(three.path_, pd.DataFrame)
    names = ["candidate", "class_total_variation", "shown_class_total_variation", "passed", "accuracy"]
    assert list(three.path_) == names
    assert (three.path_.shown_class_total_variation <= three.path_.class_total_variation).all()


def test_a_person_is_in_one_part_only():
    X, y, s = problem(600)
    model = CertifiedClassifier(LogisticRegression(), max_disparity=0.5)
    with pytest.raises(InputError, match=r"150 people have rows for training and for calibration\."):
        model.fit(X, y, sensitive_features=s, person=np.arange(600) // 4, calibration=np.arange(0, 600, 2))
    counted = model.fit(X, y, sensitive_features=s, calibration=[*range(300), *range(300)]).certificate_
    assert sum(counted.rows.values()) == 300  # a place that is named twice is one row
    assert "Each row counts as a different person." in counted.covers
