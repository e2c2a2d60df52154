"""Accuracy within limits: the strength that a reader would pick by hand."""

import pytest
from paper_records import reference, scores, strengths

from fairbits.lab.paper.method_frontiers import within_limits

GPA = {0.0: 0.3, 0.5: 0.12, 1.0: 0.02}
AUC = {0.0: 0.8, 0.5: 0.7, 1.0: 0.5}


def falling(value, fold):
    return scores(AUC[value] + 0.02 * fold, GPA[value])


def test_the_most_accurate_strength_within_each_limit_is_shown():
    (section,) = within_limits([strengths("BinaryMI", falling, list(GPA))])
    (row,) = section.tables[0].rows
    reached = [cell.split(" ")[0] for cell in row[3:7]]  # GPA at most 0.05, 0.1, 0.15, 0.2
    assert reached == ["0.510", "0.510", "0.710", "0.710"]
    assert row[0] == "BinaryMI"
    assert row[1:3] == ("3", "2")  # strengths, folds
    assert row[-1] == "0.710, 0.120"
    assert row[-2].startswith("0.410 ± ")


def test_a_limit_that_no_strength_keeps_has_no_number():
    (section,) = within_limits([strengths("Parity", falling, [0.0, 0.5])])
    assert section.tables[0].rows[0][3:5] == ("–", "–")


def test_the_least_distances_are_compared_fold_by_fold():
    def rival(value, fold):
        return scores(AUC[value] + 0.02 * fold - 0.1 - 0.01 * fold, GPA[value])

    records = [strengths("BinaryMI", falling, list(GPA)), strengths("AdvCls", rival, list(GPA))]
    (row,) = within_limits(records)[0].tables[1].rows
    assert row[:2] == ("BinaryMI", "AdvCls")
    assert row[2] == "2"
    assert row[3].startswith("-0.105 ± ")
    assert row[4] == "ahead"


def test_one_draw_is_compared_as_one_draw_where_the_rival_has_one():
    def both(value, fold):
        return falling(value, fold) | {"one_draw_auc": 0.6 + 0.02 * fold, "one_draw_gpa": 0.1}

    bounded = strengths("fairlearn EG", both, list(GPA), strength="difference_bound")
    records = [strengths("BinaryMI", both, list(GPA)), bounded, strengths("AdvCls", falling, list(GPA))]
    within, differences = within_limits(records)[0].tables
    assert [row[:2] for row in differences.rows] == [
        ("BinaryMI", "AdvCls"),
        ("BinaryMI", "fairlearn EG"),
        ("BinaryMI, one draw", "AdvCls"),
        ("BinaryMI, one draw", "fairlearn EG, one draw"),
    ]
    assert differences.rows[2][3] == "+0.080 ± 0.000"  # 0.49 and 0.41
    assert {row[0]: row[-1] for row in within.rows}["BinaryMI, one draw"] == "0.610, 0.100"


@pytest.mark.parametrize("other", [{"folds": 3}, {"fold_seed": 1}], ids=str)
def test_folds_of_other_splits_are_not_compared(other):
    records = [strengths("BinaryMI", falling, list(GPA)), strengths("AdvCls", falling, list(GPA), **other)]
    assert len(within_limits(records)[0].tables) == 1


def test_the_references_of_the_same_folds_stand_first():
    path = strengths("BinaryMI", falling, list(GPA), folds=3)
    constant = [reference("constant", fold, scores(0.5, 0.0)) for fold in (0, 1)]
    (section,) = within_limits([path, *constant])
    first, _ = section.tables[0].rows
    assert first[:4] == ("constant", "1", "2", "0.500 ± 0.000")
    assert section.tables[1].rows[0][:4] == ("BinaryMI", "constant", "2", "-0.090 ± 0.127")
    elsewhere = strengths("BinaryMI", falling, list(GPA), fold_seed=1)
    assert [row[0] for row in within_limits([elsewhere, *constant])[0].tables[0].rows] == ["BinaryMI"]
