"""Comparisons by common random numbers: interpolation by hand, intervals against their formula, pairs that belong."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from paper_records import drawn, ordered, scores, strengths
from scipy import stats

from fairbits.lab.paper.paired_comparisons import (
    AT_PARITY,
    DISTANCE,
    WITHIN,
    auc_at_parity,
    auc_within,
    common_scores,
    comparisons,
    corrected,
    path_measures,
)

VALUES = [0.0, 0.5, 1.0]
NOISE = np.random.default_rng(0).normal(size=(4, 2)) / 20  # of test rows, which all methods share


def run(name, lead, repeat=0, seed=0, **more):
    """Return a record whose signed gap crosses 0 at strength 0.75, with an AUC of 0.65 + lead + noise there."""

    def score(value, fold):
        auc = 0.8 - 0.2 * value + lead + NOISE[repeat, fold]
        signed = {0.0: 0.3, 0.5: 0.1, 1.0: -0.1}[value]
        one = {"one_draw_signed_gpa": signed, "one_draw_rank_audc": 0.01} | drawn(auc - 0.1, abs(signed))
        return {**scores(auc, abs(signed)), **ordered(signed), **(one if name == "BinaryMI" else {})}

    return strengths(name, score, VALUES, common=True, fold_seed=repeat, seed=seed, **more)


RECORDS = [run(n, lead, r, s) for n, lead in (("BinaryMI", 0.03), ("AdvCls", 0.0)) for r in range(4) for s in range(2)]


@given(st.lists(st.tuples(st.floats(0.5, 1), st.floats(-1, 1)), min_size=2, max_size=8))
def test_at_parity_and_within_a_limit_the_auc_is_that_of_a_point_of_the_path(points):
    auc, signed = np.array(points).T
    fine = [np.interp(np.linspace(0, len(auc) - 1, 20_001), np.arange(len(auc)), part) for part in (auc, signed)]
    at, within = auc_at_parity(auc, signed), auc_within(auc, np.abs(signed), 0.25)
    assert np.isnan(at) == bool((signed > 0).all() or (signed < 0).all())
    assert np.isnan(at) or auc.min() - 1e-9 <= at <= auc.max() + 1e-9
    free = fine[0][np.abs(np.interp(np.linspace(0, len(auc) - 1, 20_001), np.arange(len(auc)), np.abs(signed))) <= 0.25]
    if len(free):
        assert within >= free.max() - 1e-3


def test_a_method_is_measured_where_its_signed_gap_is_0():
    found = path_measures(common_scores([run("AdvCls", 0.0)]))
    assert found[AT_PARITY].tolist() == pytest.approx(list(0.65 + NOISE[0]))
    assert (found[WITHIN[0]] == 0.5).all()  # the area of ranks is 0.05 at all strengths
    assert found[WITHIN[1]].tolist() == pytest.approx(list(0.8 + NOISE[0]))
    assert found[DISTANCE].tolist() == pytest.approx(list(1 - 0.7 - NOISE[0] + 0.1))  # at 0.5


def test_the_interval_allows_for_training_rows_that_folds_share():
    values = np.random.default_rng(0).normal(size=15)
    found = corrected(values, folds=3)
    naive = stats.t.ppf(0.975, 14) * stats.sem(values)
    assert (found.mean, found.n) == (pytest.approx(values.mean()), 15)
    assert found.margin == pytest.approx(naive * np.sqrt(1 + 15 / 2))


def test_noise_that_methods_share_drops_out_of_their_difference():
    (section,) = comparisons(RECORDS)
    rows = {(row[0], row[2]): row for row in section.tables[1].rows}
    row = rows["BinaryMI", AT_PARITY]
    assert row[3:5] == ("8", "+0.030 ± 0.000")
    apart = np.sqrt(2) * corrected(NOISE.ravel(), 2).margin
    assert row[5:] == (f"{apart:.3f}", "ahead")
    assert rows["BinaryMI", DISTANCE][4:7:2] == ("-0.030 ± 0.000", "ahead")
    assert rows["BinaryMI, one draw", AT_PARITY][4:7:2] == ("-0.070 ± 0.000", "behind")


def test_a_path_that_never_reaches_0_counts_as_the_constant_predictor():
    away = strengths("HSIC", lambda v, f: {**scores(0.7, 0.2), **ordered(0.2 - 0.3 * v * f)}, VALUES, common=True)
    (section,) = comparisons([run("AdvCls", 0.0), away])
    rows = {row[0]: row for row in section.tables[0].rows}
    assert rows["HSIC"][1:3] == ("2", "50 %")
    assert rows["HSIC"][3].startswith("0.600 ")
    assert rows["AdvCls"][1:3] == ("2", "100 %")


def test_depths_are_compared_apart():
    sections = comparisons([run("AdvCls", 0.0), run("AdvCls", 0.0, depth=3)])
    assert [section.name for section in sections] == ["compas-comparison", "compas-comparison-3"]
