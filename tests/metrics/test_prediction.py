"""Scores equal scikit-learn's."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, roc_auc_score

from fairbits.metrics.prediction import prediction_scores


@pytest.mark.parametrize("digits", [1, 8], ids=["many ties", "none"])
@pytest.mark.parametrize("labels", [np.array([0, 1]), np.array(["no", "yes"]), np.array(["a", "b", "c"])], ids=str)
def test_auc_and_accuracy_are_those_of_scikit_learn(labels, digits):
    rng = np.random.default_rng(0)
    y, s = labels[rng.integers(len(labels), size=500)], rng.integers(2, size=(500, 1))
    p = (rng.dirichlet(np.ones(len(labels)), size=500) + 0.5 * (y[:, None] == labels)).round(digits)
    p = p / p.sum(1, keepdims=True)
    scores = prediction_scores(p, labels, y, s)
    expected = roc_auc_score(y, p[:, 1] if len(labels) == 2 else p, multi_class="ovr")
    assert scores["auc"] == pytest.approx(expected, abs=1e-12)
    assert scores["accuracy"] == accuracy_score(y, labels[p.argmax(1)])
