"""Accuracy within limits: the strength that a reader would pick by hand."""

from paper_records import scores, strengths

from fairbits.report.paper.within import within_limits

GPA = {0.0: 0.3, 0.5: 0.12, 1.0: 0.02}
AUC = {0.0: 0.8, 0.5: 0.7, 1.0: 0.5}


def falling(value, fold):
    return scores(AUC[value] + 0.02 * fold, GPA[value])


def test_the_most_accurate_strength_within_each_limit_is_shown():
    (section,) = within_limits([strengths("BinaryMI", falling, list(GPA))])
    (row,) = section.tables[0].rows
    reached = [cell.split(" ")[0] for cell in row[2:6]]  # GPA at most 0.05, 0.1, 0.15, 0.2
    assert reached == ["0.510", "0.510", "0.710", "0.710"]
    assert row[0] == "BinaryMI"
    assert row[1] == "3"
    assert row[-1] == "0.710, 0.120"
    assert row[-2].startswith("0.410 ± ")


def test_a_limit_that_no_strength_keeps_has_no_number():
    (section,) = within_limits([strengths("Parity", falling, [0.0, 0.5])])
    assert section.tables[0].rows[0][2:4] == ("–", "–")


def test_the_least_distances_are_compared_fold_by_fold():
    def rival(value, fold):
        return scores(AUC[value] + 0.02 * fold - 0.1 - 0.01 * fold, GPA[value])

    records = [strengths("BinaryMI", falling, list(GPA)), strengths("AdvCls", rival, list(GPA))]
    (row,) = within_limits(records)[0].tables[1].rows
    assert row[:2] == ("BinaryMI", "AdvCls")
    assert row[2].startswith("-0.105 ± ")
    assert row[3] == "ahead"
