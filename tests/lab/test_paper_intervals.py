"""Intervals, differences and correlations against scipy and numbers worked out by hand."""

import math

import numpy as np
import pandas as pd
import pytest
from paper_records import scores, search
from scipy import stats

from fairbits.lab.paper.record_frames import (
    Estimate,
    correlation,
    estimate,
    in_order,
    rank_correlation,
    tuned_scores,
    verdict,
)
from fairbits.lab.paper.tuned_methods import in_rank, paired_difference


@pytest.mark.parametrize("n", [2, 3, 9])
def test_the_interval_is_scipys(n):
    values = np.random.default_rng(n).normal(size=n)
    low, high = stats.t.interval(0.95, n - 1, loc=values.mean(), scale=stats.sem(values))
    found = estimate(values)
    assert found.n == n
    assert (found.mean - found.margin, found.mean + found.margin) == pytest.approx((low, high))


def test_one_value_has_no_interval_and_none_has_no_mean():
    assert math.isnan(estimate([0.7]).margin)
    assert estimate([0.7]).text() == estimate([0.7, math.nan]).text() == "0.700"
    assert estimate([]).text() == estimate([math.nan]).text() == "–"


def test_text_rounds_to_no_negative_zero():
    assert Estimate(-0.0004, 0.01, 3).text() == "0.000 ± 0.010"
    assert Estimate(-0.0004, 0.01, 3).text(signed=True) == "+0.000 ± 0.010"


@pytest.mark.parametrize(
    ("mean", "margin", "word"),
    [
        (-0.2, 0.1, "ahead"),
        (0.2, 0.1, "behind"),
        (-0.1, 0.1, "not distinguishable"),
        (0.05, 0.1, "not distinguishable"),
        (0.0, 0.0, "not distinguishable"),
        (-0.2, math.nan, "no interval"),
    ],
)
def test_a_difference_is_told_where_its_interval_leaves_out_0(mean, margin, word):
    assert verdict(Estimate(mean, margin, 3)) == word


def test_correlations_are_scipys():
    x, y = np.random.default_rng(0).normal(size=(2, 12)).round(1)  # rounded: with ties
    assert correlation(x, y) == pytest.approx(stats.pearsonr(x, y).statistic)
    assert rank_correlation(x, y) == pytest.approx(stats.spearmanr(x, y).statistic)
    assert math.isnan(correlation(x, np.ones(12)))
    assert math.isnan(rank_correlation(np.ones(12), y))
    assert math.isnan(correlation([1.0], [2.0]))


def pair(folds_of_rival=(0, 1, 2)):
    ours = [search("BinaryMI", fold, scores(0.7 + 0.1 * fold, 0.1)) for fold in range(3)]
    rival = [search("AdvCls", fold, scores(0.6 + 0.1 * fold, 0.1 + 0.05 * fold)) for fold in folds_of_rival]
    return tuned_scores([*ours, *rival])


def test_differences_are_paired_by_fold():
    found = paired_difference(pair(), "BinaryMI", "AdvCls")  # distances 0.4, 0.3, 0.2 and 0.5, 0.45, 0.4
    expected = estimate([-0.1, -0.15, -0.2])
    assert (found.mean, found.margin, found.n) == pytest.approx((expected.mean, expected.margin, 3))
    unpaired = stats.ttest_ind([0.4, 0.3, 0.2], [0.5, 0.45, 0.4]).confidence_interval()
    assert 2 * found.margin < unpaired.high - unpaired.low


def test_a_difference_takes_the_folds_that_both_have():
    found = paired_difference(pair(folds_of_rival=(1,)), "BinaryMI", "AdvCls")
    assert found.n == 1
    assert found.mean == pytest.approx(-0.15)
    assert math.isnan(found.margin)


def test_distances_and_objective_by_hand():
    drawn = {"one_draw_auc": 0.6, "one_draw_gpa": 0.05}
    row = tuned_scores([search("BinaryMI", 0, {**scores(0.7, 0.1, 0.02), **drawn})]).iloc[0]
    assert row.distance == pytest.approx(0.4)
    assert row.audc_distance == pytest.approx(0.32)
    assert row.one_draw_distance == pytest.approx(0.45)
    assert row.objective == pytest.approx(0.7 + 0.9 + 0.98)


def test_methods_are_ranked_by_distance_after_the_references():
    found = pair()
    found = pd.concat([found, found.iloc[[0]].assign(method="constant", distance=9.0)])
    assert in_rank(found) == ["constant", "BinaryMI", "AdvCls"]


def test_of_several_searches_for_a_fold_that_of_the_most_trials_counts():
    few, many = (search("BinaryMI", 0, scores(auc, 0.1), trials=n) for auc, n in ((0.6, 8), (0.7, 200)))
    for records in ([few, many], [many, few]):
        assert tuned_scores(records).auc.tolist() == [0.7]


def test_of_two_searches_with_as_many_trials_always_the_same_one_counts():
    one, other = (search("BinaryMI", 0, scores(auc, 0.1), inner_folds=n) for auc, n in ((0.6, 3), (0.7, 4)))
    found = [tuned_scores(in_order(records)).auc.tolist() for records in ([one, other], [other, one])]
    assert found == [[0.7], [0.7]]


def test_a_search_for_another_objective_is_another_method():
    both = [search("BinaryMI", 0, scores(0.7, 0.1), objective=objective) for objective in ("paper", "pareto")]
    assert sorted(tuned_scores(both).method) == ["BinaryMI", "BinaryMI (pareto)"]
