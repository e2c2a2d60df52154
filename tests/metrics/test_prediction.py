"""Scores equal scikit-learn's."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, roc_auc_score

from fairbits.metrics import UndefinedGapError, auc, group_pairwise_accuracy_gap
from fairbits.metrics.gaps import prediction_scores

LABELS = [np.array([0, 1]), np.array(["no", "yes"]), np.array(["a", "b", "c"])]


def sample(labels, digits):
    rng = np.random.default_rng(0)
    y, s = labels[rng.integers(len(labels), size=500)], rng.integers(2, size=(500, 1))
    p = (rng.dirichlet(np.ones(len(labels)), size=500) + 0.5 * (y[:, None] == labels)).round(digits)
    return y, s, p / p.sum(1, keepdims=True)


@pytest.mark.parametrize("digits", [1, 8], ids=["many ties", "none"])
@pytest.mark.parametrize("labels", LABELS, ids=str)
def test_auc_and_accuracy_are_those_of_scikit_learn(labels, digits):
    y, s, p = sample(labels, digits)
    scores = prediction_scores(p, labels, y, s)
    expected = roc_auc_score(y, p[:, 1] if len(labels) == 2 else p, multi_class="ovr")
    assert scores["auc"] == auc(y, p) == auc(list(y), p.tolist()) == pytest.approx(expected, abs=1e-12)
    assert scores["accuracy"] == accuracy_score(y, labels[p.argmax(1)])


@pytest.mark.parametrize("labels", [[1, 2], [-1, 1], [False, True], ["b", "a"]])
def test_auc_takes_any_scores_of_two_labels(labels):
    y = np.array(labels)[np.random.default_rng(1).integers(2, size=300)]
    score = np.random.default_rng(2).normal(size=300).round(1)
    assert auc(y, score) == auc(y, score[:, None]) == pytest.approx(roc_auc_score(y, score), abs=1e-12)
    assert auc(y, -score) == pytest.approx(1 - auc(y, score), abs=1e-12)


def test_auc_names_what_is_wrong():
    with pytest.raises(ValueError, match="y_true has 2 rows and y_score has 3"):
        auc([0, 1], [0.1, 0.2, 0.3])
    with pytest.raises(ValueError, match=r"y_score is .*nan.* in row 1"):
        auc([0, 1], [0.1, np.nan])
    with pytest.raises(ValueError, match="columns in 'y_score'"):
        auc([0, 1, 1], np.full((3, 3), 1 / 3))


def test_a_gap_that_is_undefined_says_how_many_groups_there_are():
    with pytest.raises(UndefinedGapError, match="fewer than 2 of the 3 groups") as error:
        group_pairwise_accuracy_gap([1, 0, 1, 0], [0.9, 0.2, 0.4, 0.6], sensitive_features=list("aabc"))
    assert error.value.groups == 3
    assert "merge groups" in error.value.remedy
