"""The signed GPA and the AUDC of ranks: against the unsigned ones, by brute force, and their laws."""

import numpy as np
import pytest

from fairbits.metrics import discrimination_curve_area, group_pairwise_accuracy_gap
from fairbits.metrics.ranks import rank_curve_area, signed_pairwise_gap

RNG = np.random.default_rng(0)
Y, S = RNG.integers(2, size=300), RNG.integers(2, size=300)
SCORES = {"continuous": RNG.random(300), "tied": RNG.integers(5, size=300) / 4}


@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize("n_groups", [2, 3])
def test_its_size_is_the_gpa(kind, n_groups):
    groups = S if n_groups == 2 else RNG.integers(3, size=300)
    for score in (SCORES[kind], -SCORES[kind]):
        signed = signed_pairwise_gap(Y, score, sensitive_features=groups)
        assert abs(signed) == pytest.approx(group_pairwise_accuracy_gap(Y, score, sensitive_features=groups))


def test_its_sign_turns_with_the_groups_and_with_the_scores():
    signed = signed_pairwise_gap(Y, SCORES["tied"], sensitive_features=S)
    assert signed
    assert signed_pairwise_gap(Y, SCORES["tied"], sensitive_features=1 - S) == pytest.approx(-signed)
    shifted = SCORES["tied"] + (S == 0)  # the first group above everybody
    assert signed_pairwise_gap(Y, shifted, sensitive_features=S) > 0.9


def test_without_positives_in_two_groups_there_is_no_gap():
    assert np.isnan(signed_pairwise_gap([1, 0, 0, 0], [0.1, 0.2, 0.3, 0.4], sensitive_features=[0, 0, 1, 1]))


@pytest.mark.parametrize("kind", SCORES)
def test_squeezing_the_scores_does_not_lower_the_area_of_ranks(kind):
    score = SCORES[kind]
    squeezed = 0.5 + 0.01 * score**3
    area = rank_curve_area(score, sensitive_features=S)
    assert rank_curve_area(squeezed, sensitive_features=S) == pytest.approx(area)
    assert discrimination_curve_area(squeezed, sensitive_features=S, n_thresholds=None) < 0.02


def test_it_is_the_mean_disparity_over_selection_rates():
    order = SCORES["continuous"].argsort()
    chosen = np.array(
        [[np.mean(S[order[k:]] == g) * (300 - k) / np.sum(g == S) for g in (0, 1)] for k in range(1, 300)]
    )
    area = rank_curve_area(SCORES["continuous"], sensitive_features=S)
    assert area == pytest.approx(np.abs(chosen[:, 0] - chosen[:, 1]).sum() / 300, abs=1e-9)
