"""Which runs over strengths belong together, and their correlations against scipy."""

import numpy as np
import pandas as pd
import pytest
from paper_records import BETAS, GAMMAS, drawn, scores, strengths
from scipy import stats

from fairbits.lab.paper.strength_paths import (
    complexity,
    correlations,
    frontiers,
    one_depth_each,
    several_depths_each,
    spline,
    stability,
    strength_scores,
)

RNG = np.random.default_rng(0)
NOISE = {(value, fold): RNG.normal(size=4) for value in GAMMAS + BETAS for fold in (0, 1)}


def noisy(value, fold, seed=0):
    a, g, one_a, one_g = 0.05 * NOISE[value, fold]
    return scores(0.7 + a - 0.01 * seed * value, 0.2 + g - 0.1 * min(value, 1), **drawn(0.6 + one_a, 0.2 + one_g))


def means(score, prefix=""):
    """Return 1 - GPA and AUC for each gamma, averaged over folds by hand."""
    both = [[score(value, fold) for fold in (0, 1)] for value in GAMMAS]
    fair = [1 - np.mean([one[f"{prefix}gpa"] for one in folds]) for folds in both]
    return fair, [np.mean([one[f"{prefix}auc"] for one in folds]) for folds in both]


@pytest.mark.parametrize("prefix", ["", "one_draw_"])
def test_correlations_of_one_seed_are_scipys_on_fold_means(prefix):
    found = correlations(strength_scores([strengths("BinaryMI", noisy)]), prefix)
    fair, auc = means(noisy, prefix)
    expected = [f(GAMMAS, y).statistic for y in (fair, auc) for f in (stats.pearsonr, stats.spearmanr)]
    assert [c.mean for c in found] == pytest.approx(expected)
    assert [c.n for c in found] == [1] * 4


def test_correlations_are_averaged_over_seeds():
    seeds = [strengths("BinaryMI", lambda v, f, k=k: noisy(v, f, 9 * k), seed=k) for k in range(3)]
    each = [correlations(strength_scores([seed]))[2].mean for seed in seeds]
    found = correlations(strength_scores(seeds))[2]
    assert len(set(each)) == 3
    low, high = stats.t.interval(0.95, 2, loc=np.mean(each), scale=stats.sem(each))
    assert (found.mean - found.margin, found.mean + found.margin) == pytest.approx((low, high))


def test_a_strength_in_equal_ratios_is_correlated_by_its_place():
    frame = strength_scores([strengths("VFAE", noisy, BETAS, strength="beta")])
    auc = [np.mean([noisy(value, fold)["auc"] for fold in (0, 1)]) for value in BETAS]
    assert correlations(frame)[2].mean == pytest.approx(stats.pearsonr(range(4), auc).statistic)
    assert frame.groupby("value").tint.first().tolist() == pytest.approx([0, 1 / 3, 2 / 3, 1])
    (section,) = stability([strengths("VFAE", noisy, BETAS, strength="beta")])
    assert "VFAE (beta)" in section.tables[0].notes[1]


def test_stability_and_complexity_do_not_mix():
    fine = strengths("BinaryMI", noisy, GAMMAS)
    coarse = [strengths("BinaryMI", noisy, GAMMAS[::2], depth=depth) for depth in (1, 2)]
    records = [fine, *coarse]
    (alone,), (deep,) = one_depth_each(records).items(), several_depths_each(records).items()
    assert (alone[0], deep[0]) == ("compas-stability", "compas-complexity")
    assert sorted(set(alone[1].value)) == GAMMAS
    assert set(deep[1].depth) == {1, 2}
    assert sorted(set(deep[1].value)) == GAMMAS[::2]


def test_a_bound_has_a_frontier_and_no_stability():
    records = [strengths("fairlearn EG", noisy, strength="difference_bound"), strengths("BinaryMI", noisy)]
    assert set(frontiers(records).method) == {"fairlearn EG", "BinaryMI"}
    assert set(one_depth_each(records)["compas-stability"].method) == {"BinaryMI"}


def test_of_two_grids_at_a_depth_the_larger_counts():
    found = one_depth_each([strengths("BinaryMI", noisy, GAMMAS[:2]), strengths("BinaryMI", noisy, GAMMAS)])
    assert len(found["compas-stability"]) == 2 * len(GAMMAS)


def test_tables_show_the_paper_beside_one_draw_and_expected_predictions():
    records = [strengths("BinaryMI", noisy), strengths("HSIC", lambda v, f: scores(0.7 - 0.1 * v, 0.3 - 0.1 * v))]
    (section,) = stability(records)
    rows = {(row[0], row[3]): row for row in section.tables[0].rows}
    assert set(rows) == {("BinaryMI", "expected"), ("BinaryMI", "one draw"), ("HSIC", "expected")}
    assert rows["BinaryMI", "expected"][-2:] == ("+0.781", "-0.760")
    assert rows["HSIC", "expected"][-6:] == ("+1.000", "+1.000", "-1.000", "-1.000", "–", "–")
    assert complexity(records) == []


def test_the_papers_correlations_are_of_compas_and_of_stability():
    (elsewhere,) = stability([strengths("BinaryMI", noisy, dataset="adult")])
    (deeper,) = complexity([strengths("BinaryMI", noisy, depth=depth) for depth in (1, 2)])
    for section in (elsewhere, deeper):
        assert section.tables[0].head[-1] == "AUC, Spearman"


def test_scores_that_do_not_move_have_no_correlation():
    (section,) = stability([strengths("HSIC", lambda v, f: scores(0.7, 0.3 - 0.1 * v))])
    assert section.tables[0].rows[0][-4:] == ("–", "–", "–", "–")


def test_the_spline_goes_through_all_points_and_stays_between_them():
    points = pd.DataFrame({"place": [2, 0, 1], "fair": [0.9, 0.7, 0.8], "auc": [0.6, 0.7, 0.75], "tint": [1, 0, 0.2]})
    curve = spline(points)
    ends = set(zip(curve.fair2.round(9), curve.auc2.round(9), strict=True))
    assert (curve.fair[0], curve.auc[0]) == (0.7, 0.7)
    assert {(0.8, 0.75), (0.9, 0.6)} <= ends
    assert curve.fair2.is_monotonic_increasing
    assert curve.auc2.max() <= 0.75
    np.testing.assert_allclose(curve.fair[1:], curve.fair2[:-1])
    assert spline(points.head(1)).empty


def test_the_distance_by_depth_is_that_of_the_best_strength_at_each():
    def score(value, fold, depth):
        gpa = {1: 0.2, 2: 0.2 - 0.1 * (value == 0.5)}[depth]
        return scores(0.7 - 0.1 * (value == 1.0) * (2 - depth) + 0.02 * fold, gpa, **drawn(0.6, 0.3))

    records = [strengths("BinaryMI", lambda v, f, d=d: score(v, f, d), depth=d) for d in (1, 2)]
    (section,) = complexity(records)
    rows = {row[0]: row[1:] for row in section.tables[1].rows}
    margin = stats.t.ppf(0.975, 1) * stats.sem([0.0, 0.02])
    assert rows["BinaryMI"] == ("1", f"0.490 ± {margin:.3f} at 0", f"0.390 ± {margin:.3f} at 0.5")
    assert rows["BinaryMI, one draw"][1:] == ("0.700 ± 0.000 at 0", "0.700 ± 0.000 at 0")
    assert section.tables[1].head == ("method", "seeds", "1 hidden layer", "2 hidden layers")


def test_ours_are_compared_at_every_depth_on_the_same_folds():
    def better(value, fold, depth):
        return scores(0.7 + 0.02 * fold + 0.01 * depth * (1 + fold), 0.2)

    def worse(value, fold, depth):
        return scores(0.7 + 0.02 * fold, 0.2 + 0.1 * (value != 0.5))

    records = [strengths("BinaryMI", lambda v, f, d=d: better(v, f, d), depth=d) for d in (1, 2)]
    records += [strengths("AdvCls", lambda v, f, d=d: worse(v, f, d), depth=d) for d in (1, 2)]
    (section,) = complexity(records)
    pairs = {row[0]: row[1:] for row in section.tables[2].rows}
    margin = stats.t.ppf(0.975, 1) * stats.sem([0.02, 0.04])
    assert pairs["BinaryMI, 1 hidden layer"][:2] == ("AdvCls", "2")
    assert pairs["BinaryMI, 2 hidden layers"][2] == f"-0.030 ± {margin:.3f}"
    (alone,) = complexity(records[:2])
    assert len(alone.tables) == 2


def test_runs_with_common_seeds_have_tables_of_their_own():
    assert strength_scores([strengths("BinaryMI", noisy, common=True)]).empty
