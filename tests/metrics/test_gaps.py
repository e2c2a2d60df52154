from itertools import combinations, permutations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from fairbits.metrics import (
    discrimination,
    discrimination_curve_area,
    group_pairwise_accuracy_gap,
    random_guess_distance,
)


def brute_accuracy(positives, negatives):
    return np.mean([1.0 if p > n else 0.5 if p == n else 0.0 for p in positives for n in negatives])


def brute_gpa(y, score, groups):
    """The definition, pair of rows by pair of rows; None when no pair of groups is defined."""
    cells = {g: (score[(groups == g) & y], score[(groups == g) & ~y]) for g in np.unique(groups)}
    cells = {g: cell for g, cell in cells.items() if len(cell[0]) and len(cell[1])}
    gaps = [
        abs(brute_accuracy(cells[i][0], cells[j][1]) - brute_accuracy(cells[j][0], cells[i][1]))
        for i, j in combinations(cells, 2)
    ]
    return max(gaps, default=None)


def brute_audc(score, groups, thresholds):
    curves = [[np.mean(score[groups == g] >= t) for t in thresholds] for g in np.unique(groups)]
    return max(np.mean(np.abs(np.subtract(a, b))) for a, b in combinations(curves, 2))


def exact_audc(score, groups):
    """The integral between the sorted scores, where the curves are flat."""
    grid = np.sort(score)
    curves = [np.searchsorted(np.sort(score[groups == g]), grid[:-1], "right") for g in np.unique(groups)]
    rates = [curve / (groups == g).sum() for curve, g in zip(curves, np.unique(groups), strict=True)]
    return max(np.abs(a - b) @ np.diff(grid) for a, b in combinations(rates, 2))


@st.composite
def tied_rows(draw, max_groups=3):
    """y, scores on a coarse grid (many ties) and at least two groups."""
    n = draw(st.integers(2, 40))
    row = st.tuples(st.booleans(), st.integers(0, 6), st.integers(0, max_groups - 1))
    rows = draw(st.lists(row, min_size=n, max_size=n))
    y, score, groups = (np.array(column) for column in zip(*rows, strict=True))
    assume(len(np.unique(groups)) > 1)
    return y, score / 6, groups


def sample(n=400, n_groups=3, seed=0):
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, n_groups, n)
    y = rng.integers(0, 2, n)
    return y, rng.beta(1 + y, 1 + groups), groups


@given(tied_rows())
@settings(deadline=None)
def test_gpa_equals_brute_force_over_pairs_of_rows(rows):
    y, score, groups = rows
    assume(len(np.unique(y)) > 1)
    expected = brute_gpa(y, score, groups)
    if expected is None:
        with pytest.raises(ValueError, match=r"undefined.*merge"):
            group_pairwise_accuracy_gap(y, score, sensitive_features=groups)
    else:
        actual = group_pairwise_accuracy_gap(y, score, sensitive_features=groups)
        assert actual == pytest.approx(expected, abs=1e-12)


@given(tied_rows(), st.sampled_from([1, 3, 7, 100]))
@settings(deadline=None)
def test_audc_equals_brute_force_and_nears_the_exact_area(rows, n_thresholds):
    _, score, groups = rows
    actual = discrimination_curve_area(score, sensitive_features=groups, n_thresholds=n_thresholds)
    midpoints = [(k + 0.5) / n_thresholds for k in range(n_thresholds)]
    assert actual == pytest.approx(brute_audc(score, groups, midpoints), abs=1e-12)
    exact = discrimination_curve_area(score, sensitive_features=groups, n_thresholds=None)
    assert exact == pytest.approx(exact_audc(score, groups), abs=1e-12)
    assert abs(actual - exact) <= 1 / n_thresholds + 1e-12


@pytest.mark.parametrize("n_groups", [2, 3, 5])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_audc_is_the_wasserstein_distance(n_groups, dtype):
    _, score, groups = sample(5000, n_groups)
    score = score.astype(dtype)
    exact = discrimination_curve_area(score, sensitive_features=groups, n_thresholds=None)
    assert exact == pytest.approx(exact_audc(score.astype(float), groups), abs=1e-12)
    assert abs(discrimination_curve_area(score, sensitive_features=groups) - exact) < 0.01


def test_audc_within_a_hundredth_for_scores_at_single_points():
    for a, b in np.random.default_rng(0).random((200, 2)):
        area = discrimination_curve_area([a, b], sensitive_features=[0, 1])
        assert abs(area - abs(a - b)) <= 0.01


def test_audc_takes_the_maximum_over_pairs_after_integration():
    score = np.array([0.3, 0.3, 0.0, 0.6, 0.1, 0.1])
    groups = np.array(list("aabbcc"))
    grid = (np.arange(100) + 0.5) / 100
    envelope = np.mean([np.ptp([np.mean(score[groups == g] >= t) for g in "abc"]) for t in grid])
    assert discrimination_curve_area(score, sensitive_features=groups) < envelope - 0.05


def test_audc_of_hard_predictions_is_the_discrimination():
    y, _, groups = sample()
    assert discrimination_curve_area(y, sensitive_features=groups) == pytest.approx(
        discrimination(y, sensitive_features=groups), abs=1e-12
    )


def test_thresholds_are_inclusive():
    score, groups = [0.285, 0.284], [0, 1]  # 0.285 * 100 + 0.5 rounds below 29
    assert discrimination_curve_area(score, sensitive_features=groups) == pytest.approx(0.01, abs=1e-12)


def test_gpa_by_auc_of_each_pair():
    y, score, groups = sample(3000, 3)

    def auc(i, j):
        rows = ((groups == i) & (y == 1)) | ((groups == j) & (y == 0))
        return roc_auc_score(y[rows], score[rows])

    expected = max(abs(auc(i, j) - auc(j, i)) for i, j in combinations(range(3), 2))
    assert group_pairwise_accuracy_gap(y, score, sensitive_features=groups) == pytest.approx(expected, abs=1e-12)


def test_gpa_one_vs_rest_is_the_maximum_over_classes():
    rng = np.random.default_rng(1)
    y, groups, score = rng.integers(0, 4, 300), rng.integers(0, 3, 300), rng.random((300, 4)).round(1)
    expected = max(brute_gpa(y == c, score[:, c], groups) for c in range(4))
    assert group_pairwise_accuracy_gap(y, score, sensitive_features=groups) == pytest.approx(expected, abs=1e-12)
    names = np.array(["d0", "d1", "d2", "d3"])[y]
    assert group_pairwise_accuracy_gap(names, score, sensitive_features=groups) == pytest.approx(expected)


def test_two_columns_of_probabilities_equal_one():
    y, score, groups = sample()
    both = np.column_stack([1 - score, score])
    assert group_pairwise_accuracy_gap(y, both, sensitive_features=groups) == pytest.approx(
        group_pairwise_accuracy_gap(y, score, sensitive_features=groups), abs=1e-12
    )
    one = score[:, None]
    assert discrimination_curve_area(one, sensitive_features=groups) == discrimination_curve_area(
        score, sensitive_features=groups
    )


def test_audc_of_columns_is_the_maximum():
    rng = np.random.default_rng(2)
    score, groups = rng.dirichlet([1, 2, 3], 300), rng.integers(0, 3, 300)
    for n_thresholds in (100, None):
        columns = [discrimination_curve_area(c, sensitive_features=groups, n_thresholds=n_thresholds) for c in score.T]
        area = discrimination_curve_area(score, sensitive_features=groups, n_thresholds=n_thresholds)
        assert area == max(columns) > min(columns)


def test_gpa_does_not_move_under_monotone_transforms():
    y, score, groups = sample()
    expected = group_pairwise_accuracy_gap(y, score, sensitive_features=groups)
    for transformed in (score**3, np.log(score), 1e6 * score - 5):
        assert group_pairwise_accuracy_gap(y, transformed, sensitive_features=groups) == expected
    assert discrimination_curve_area(score / 2, sensitive_features=groups, n_thresholds=None) == pytest.approx(
        discrimination_curve_area(score, sensitive_features=groups, n_thresholds=None) / 2
    )


def test_gpa_does_not_depend_on_which_label_is_positive():
    y, score, groups = sample()
    assert group_pairwise_accuracy_gap(1 - y, score, sensitive_features=groups) == pytest.approx(
        group_pairwise_accuracy_gap(y, score, sensitive_features=groups), abs=1e-12
    )


def test_renaming_groups_and_permuting_rows_change_nothing():
    y, score, groups = sample()
    order = np.random.default_rng(3).permutation(len(y))
    for names in permutations(["x", "y", "zz"]):
        renamed = np.array(names)[groups]
        for take in (slice(None), order):
            assert group_pairwise_accuracy_gap(y[take], score[take], sensitive_features=renamed[take]) == (
                pytest.approx(group_pairwise_accuracy_gap(y, score, sensitive_features=groups), abs=1e-12)
            )
            assert discrimination_curve_area(score[take], sensitive_features=renamed[take]) == pytest.approx(
                discrimination_curve_area(score, sensitive_features=groups), abs=1e-12
            )


def test_group_without_positives_is_left_out():
    y, score, groups = sample(300, 2)
    expected = group_pairwise_accuracy_gap(y, score, sensitive_features=groups)
    more = [np.concatenate([a, b]) for a, b in zip((y, score, groups), ([0, 0], [0.1, 0.9], [7, 7]), strict=True)]
    assert group_pairwise_accuracy_gap(more[0], more[1], sensitive_features=more[2]) == expected


def test_constant_scores_are_fair():
    y, score, groups = sample()
    flat = np.full_like(score, 0.3)
    assert group_pairwise_accuracy_gap(y, flat, sensitive_features=groups) == 0
    assert discrimination_curve_area(flat, sensitive_features=groups) == 0
    assert discrimination(flat, sensitive_features=groups) == pytest.approx(0, abs=1e-12)


def test_discrimination_by_hand():
    groups = ["a"] * 4 + ["b"] * 2 + ["c"] * 5
    y_pred = [1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 1]
    assert discrimination(y_pred, sensitive_features=groups) == pytest.approx(3 / 4 - 1 / 5)
    signs = [2 * y - 1 for y in y_pred]
    words = ["yes" if y else "no" for y in y_pred]
    for same in (signs, words, np.array(y_pred, dtype=bool), np.array(y_pred, dtype=float)):
        assert discrimination(same, sensitive_features=groups) == pytest.approx(3 / 4 - 1 / 5)


def test_discrimination_of_labels_probabilities_and_columns():
    groups = ["a", "a", "b", "b"]
    assert discrimination([0, 1, 2, 2], sensitive_features=groups) == 1.0  # rates of 2: 0 and 1; means 0.5 and 2
    assert discrimination([[0], [1], [2], [2]], sensitive_features=groups) == 1.0
    assert discrimination([0.25, 0.75, 0.5, 1.0], sensitive_features=groups) == 0.25
    assert discrimination(pd.Series([0.25, 0.75, 0.5, 1.0], dtype="Float64"), sensitive_features=groups) == 0.25
    one_hot = np.eye(3)[[0, 1, 2, 2]]
    assert discrimination(one_hot, sensitive_features=groups) == 1.0
    assert discrimination(["p", "p", "p", "p"], sensitive_features=groups) == 0.0


def test_random_guess_distance():
    s = ["a", "a", "a", "b", "c"]
    assert random_guess_distance(s, s) == pytest.approx(0.4)
    assert random_guess_distance(s, ["a"] * 5) == 0.0
    assert random_guess_distance(s, ["b", "b", "b", "b", "d"]) == pytest.approx(0.4)  # 1/5 right, 3/5 largest
    assert random_guess_distance(np.array([0, 0, 1]), [0.0, 0.0, 1.0]) == pytest.approx(1 / 3)
    two = [["f", 0], ["f", 0], ["m", 0], ["m", 1]]
    assert random_guess_distance(two, [["f", 0], ["f", 1], ["m", 0], ["m", 0]]) == pytest.approx(0.0)


@pytest.mark.parametrize(
    "convert",
    [
        list,
        pd.Series,
        pd.Index,
        pl.Series,
        lambda a: pd.Series(a, index=np.arange(len(a))[::-1]),
        lambda a: np.asarray(a)[:, None],
        lambda a: pd.DataFrame({"column": a}),
        lambda a: pl.DataFrame({"column": a}),
    ],
)
@pytest.mark.parametrize("names", [np.array([3, 1, 2]), np.array(["x", "yy", "z"]), np.array([0.5, 1.5, 2.5])])
def test_containers_agree(convert, names):
    y, score, groups = sample()
    s = convert(names[groups])
    assert group_pairwise_accuracy_gap(convert(y), convert(score), sensitive_features=s) == pytest.approx(
        group_pairwise_accuracy_gap(y, score, sensitive_features=groups), abs=1e-12
    )
    assert discrimination_curve_area(convert(score), sensitive_features=s) == pytest.approx(
        discrimination_curve_area(score, sensitive_features=groups), abs=1e-12
    )
    assert discrimination(convert(y), sensitive_features=s) == discrimination(y, sensitive_features=groups)
    guesses = convert(names[np.roll(groups, 1)])
    assert random_guess_distance(s, guesses) == random_guess_distance(groups, np.roll(groups, 1))


@pytest.mark.parametrize(
    "groups",
    [
        pd.Series(["x", "y", "y", "x"], dtype="category"),
        pd.Categorical(["x", "y", "y", "x"]),
        pl.Series(["x", "y", "y", "x"], dtype=pl.Categorical),
        np.array(["x", 1, 1, "x"], dtype=object),
        np.array([True, False, False, True]),
        np.array(["2020", "2021", "2021", "2020"], dtype="datetime64[Y]"),
        pd.Series([1, 2, 2, 1], dtype="Int64"),
    ],
)
def test_kinds_of_groups(groups):
    assert discrimination([1, 0, 1, 1], sensitive_features=groups) == 0.5


def test_a_rare_label_outside_the_sampled_rows_is_still_a_group():
    names = np.full(5000, "common")
    names[4321] = "rare"
    y_pred = np.zeros(5000)
    y_pred[4321] = 1
    assert discrimination(y_pred, sensitive_features=names) == 1.0


@pytest.mark.parametrize("frame", [np.column_stack, list, pd.DataFrame, pl.DataFrame])
def test_several_columns_intersect(frame):
    y, score, groups = sample(400, 4)
    sex, old = groups % 2, groups // 2
    columns = {"sex": np.array(["f", "m"])[sex], "old": old}
    if frame is list:
        s = list(zip(columns["sex"], old, strict=True))
    else:
        s = frame(list(columns.values())) if frame is np.column_stack else frame(columns)
    assert group_pairwise_accuracy_gap(y, score, sensitive_features=s) == pytest.approx(
        group_pairwise_accuracy_gap(y, score, sensitive_features=groups), abs=1e-12
    )


def test_opposite_corners_of_an_intersection_are_two_groups():
    corners = [["f", 0], ["f", 1], ["m", 0], ["m", 1]]
    assert discrimination([0, 1, 0, 0], sensitive_features=corners) == 1.0
    assert discrimination([0, 0, 1, 0], sensitive_features=np.array(corners)) == 1.0


Y, SCORE, S = [1, 0, 1, 0], [0.9, 0.2, 0.4, 0.6], ["a", "a", "b", "b"]


@pytest.mark.parametrize(
    ("y", "score", "s", "message"),
    [
        (Y[:3], SCORE, S, "y_true has 3 rows and y_score has 4"),
        (Y, SCORE, S[:3], "sensitive_features has 3 rows and y_score has 4"),
        (Y, [0.9, np.nan, 0.4, 0.6], S, "y_score is .*nan.* in row 1. Drop or fill"),
        (Y, [0.9, 0.1, np.inf, 0.6], S, "y_score is .*inf.* in row 2"),
        (Y, pd.Series([0.9, None, 0.4, 0.6], dtype="Float64"), S, "y_score"),
        (Y, ["high", "low", "low", "low"], S, "y_score must be numbers.*high"),
        (Y, np.zeros((4, 1, 1)), S, r"y_score must have shape .*\(4, 1, 1\)"),
        (Y, [], S, r"y_score must have shape .*\(0,\)"),
        (Y, SCORE, ["a", None, "b", "b"], "sensitive_features has missing values. Drop"),
        (Y, SCORE, ["a", np.nan, "b", "b"], "sensitive_features has missing values"),
        (Y, SCORE, np.array([0.0, np.nan, 1, 1]), "sensitive_features has missing values"),
        (Y, SCORE, pd.Series(["a", pd.NA, "b", "b"]), "sensitive_features has missing values"),
        (Y, SCORE, pl.Series([0, None, 1, 1]), "sensitive_features has missing values"),
        (Y, SCORE, np.array(["2020", "NaT", "2021", "2021"], dtype="datetime64[Y]"), "missing values"),
        (Y, SCORE, ["a"] * 4, r"sensitive_features has one group, \['a'\]. Pass"),
        (Y, SCORE, None, r"sensitive_features must have shape .*\(\)"),
        ([1, 1, 1, 1], SCORE, S, r"y_true has one class, \[1\]. Pass"),
        ([0, 1, 2, 1], SCORE, S, "y_true has 3 classes.*y_score 1 columns"),
        ([0, 1, 0, 1], np.ones((4, 3)), S, "y_true has 2 classes.*y_score 3 columns"),
        ([[0, 1]] * 4, SCORE, S, "y_true has 2 columns"),
        ([None, 1, 0, 1], SCORE, S, "y_true has missing values"),
        ([1, 1, 0, 0], SCORE, S, "GPA is undefined"),
    ],
)
def test_gpa_errors_name_argument_and_remedy(y, score, s, message):
    with pytest.raises(ValueError, match=message):
        group_pairwise_accuracy_gap(y, score, sensitive_features=s)


def test_audc_errors():
    with pytest.raises(ValueError, match=r"y_score ranges from -3\.0 to 2\.0.*n_thresholds=None"):
        discrimination_curve_area([-3.0, 2.0], sensitive_features=[0, 1])
    assert discrimination_curve_area([-3.0, 2.0], sensitive_features=[0, 1], n_thresholds=None) == 5.0
    for bad in (0, -1, 2.5, "exact"):
        with pytest.raises(ValueError, match=r"n_thresholds=.* must be"):
            discrimination_curve_area([0.1, 0.2], sensitive_features=[0, 1], n_thresholds=bad)
    with pytest.raises(ValueError, match=r"1001 groups, over 1000\. Bin"):
        discrimination_curve_area(np.zeros(1001), sensitive_features=np.arange(1001.0))


def test_other_errors():
    with pytest.raises(ValueError, match="sensitive_features has 2 rows and y_pred has 3"):
        discrimination([0, 1, 1], sensitive_features=[0, 1])
    with pytest.raises(ValueError, match=r"y_pred is .*nan"):
        discrimination([0, np.nan, 1], sensitive_features=[0, 1, 1])
    with pytest.raises(ValueError, match="s_pred has 2 rows and s_true has 3"):
        random_guess_distance([0, 1, 1], [0, 1])
    with pytest.raises(ValueError, match="s_true has one group"):
        random_guess_distance([0, 0], [0, 1])
    with pytest.raises(ValueError, match=r"s_pred has no label of s_true.*Code both"):
        random_guess_distance(["f", "m"], [0, 1])
    with pytest.raises(ValueError, match="s_true has 2 columns and s_pred 1"):
        random_guess_distance([[0, 1], [1, 1]], [0, 1])
    with pytest.raises(TypeError):
        discrimination([0, 1], [0, 1])
