"""All datasets side by side: the numbers are those of each dataset's own tables."""

from paper_records import drawn, reference, scores, search, strengths

from fairbits.lab.paper.method_frontiers import overview, within_limits
from fairbits.lab.paper.tuned_methods import tradeoff


def falling(value, fold):
    return scores(0.8 - 0.2 * value + 0.02 * fold, 0.3 - 0.3 * value)


def found():
    records = [strengths("BinaryMI", falling), strengths("AdvCls", falling, dataset="adult")]
    for fold in range(3):
        for dataset in ("compas", "adult"):
            ours = scores(0.7 + 0.01 * fold, 0.1, **drawn(0.65, 0.08))
            records += [reference("constant", fold, scores(0.5, 0.0), dataset)]
            records += [search("BinaryMI", fold, ours, dataset=dataset)]
            records += [search("BinaryMI tuned on one draw", fold, ours, dataset=dataset)]
    return records


def test_each_cell_is_that_of_the_datasets_own_table():
    (table,) = overview(found())[0].tables
    head = ("method", "adult, tuned", "adult, over strengths", "compas, tuned", "compas, over strengths")
    assert table.head == head
    cells = {row[0]: dict(zip(head, row, strict=True)) for row in table.rows}
    assert list(cells)[:2] == ["constant", "BinaryMI"]
    for section in (section for section in tradeoff(found()) if section.name.endswith("-tuned")):
        for row in section.tables[0].rows:
            own = dict(zip(section.tables[0].head, row, strict=True))
            column = f"{section.name.removesuffix('-tuned')}, tuned"
            assert cells[row[0]][column] == own["L1 to (1,1) of (AUC, 1-GPA) ↓"]
            if row[0] == "BinaryMI":
                assert cells["BinaryMI, one draw"][column] == own["the first, of one draw ↓"]
    for section in within_limits(found()):
        for row in section.tables[0].rows:
            assert cells[row[0]][f"{section.name.removesuffix('-within')}, over strengths"] == row[-2]
    assert "BinaryMI tuned on one draw, one draw" not in cells


def test_one_dataset_needs_no_overview():
    assert overview([search("BinaryMI", 0, scores(0.7, 0.1))]) == []
