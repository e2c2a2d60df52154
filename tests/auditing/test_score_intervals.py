"""Intervals of accuracy and AUC: Wilson's and DeLong's, and as often right as they say."""

import numpy as np
import pytest
from scipy.stats import binomtest, norm

from fairbits.auditing.probes import score_intervals


@pytest.mark.parametrize("right", [0, 37, 50])
def test_the_accuracy_has_wilsons_interval(right):
    labels = np.arange(50) % 2
    said = np.where(np.arange(50) < right, labels, 1 - labels)
    found = score_intervals(np.eye(2)[said], labels, 0.9)["accuracy"]
    assert found == pytest.approx(tuple(binomtest(right, 50).proportion_ci(0.9, "wilson")), abs=1e-12)


def test_the_auc_is_within_its_interval_as_often_as_it_says():
    rng, truth, missed = np.random.default_rng(0), norm.cdf(1 / np.sqrt(2)), 0
    for _ in range(400):
        labels = (rng.random(120) < 0.4).astype(int)
        score = 1 / (1 + np.exp(-rng.normal(size=120) - labels))
        low, high = score_intervals(np.column_stack([1 - score, score]), labels, 0.9)["auc"]
        missed += not low <= truth <= high
    assert 0.05 < missed / 400 < 0.13


def test_three_classes_and_one_that_is_not_there():
    rng = np.random.default_rng(0)
    probabilities, labels = rng.dirichlet([1, 1, 1], 90), np.arange(90) % 3
    assert set(score_intervals(probabilities, labels, 0.95)) == {"accuracy", "auc"}
    assert set(score_intervals(probabilities, labels % 2, 0.95)) == {"accuracy"}
