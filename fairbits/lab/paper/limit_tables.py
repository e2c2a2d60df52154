"""Methods over all strengths: the accuracy that each reaches within a limit on unfairness, on the same folds."""

from collections.abc import Iterable

import pandas as pd

from fairbits.lab.paper.estimates_of_folds import MISSING, estimate, verdict
from fairbits.lab.paper.record_frames import FOLD, ONE_DRAW, REFERENCES, Record, of_kind, tuned_scores, with_one_draw
from fairbits.lab.paper.strength_tables import frontiers, rows_of_folds
from fairbits.lab.paper.tradeoff_tables import OURS
from fairbits.report.text_tables import Section, Table

LIMITS = (0.05, 0.1, 0.15, 0.2)  # of GPA
HEAD = (
    "method",
    "strengths",
    "folds",
    *(f"AUC at GPA ≤ {limit:g} ↑" for limit in LIMITS),
    "least L1 to (1,1) ↓",
    "there (AUC, GPA)",
)
NOTE = (
    "Of all strengths the one with the largest mean AUC whose mean GPA is within the limit ({dash}: none), and the one "
    "with the least mean L1 distance to (1,1) in (AUC, 1-GPA). Mean over folds ± half-width of the 95 % t-interval of "
    "that one strength. The strength is chosen on the test rows, for all methods alike, so all are a little too good; "
    "other settings are fixed. More strengths to choose from are an advantage. Scores of the expected prediction, an "
    "average over draws, or, where it says so, of one draw. fairlearn TO is told the group of every test row."
)

PAIRED = (
    "Difference of the least L1 distances of the table above, fold by fold (means over seeds): less than 0 is closer. "
    "Mean ± half-width of the paired 95 % t-interval, not corrected for the number of comparisons; ahead or behind "
    "where it leaves out 0."
)


def within_limits(records: Iterable[Record]) -> list[Section]:
    """Return a section per dataset whose frontiers were run with one hidden layer."""
    return [_section(dataset, found) for dataset, found in frontier_folds(records).items()]


def frontier_folds(records: Iterable[Record]) -> dict[str, dict[str, pd.DataFrame]]:
    """Return the scores over strengths and folds by dataset and method, the references first."""
    records = list(records)
    found, references = frontiers(records), tuned_scores(of_kind(records, "reference"))
    return {
        str(name): _methods(own, references[references.dataset == name])
        for name, own in found[found.depth == 1].groupby("dataset")
    }


def _methods(scores: pd.DataFrame, references: pd.DataFrame) -> dict[str, pd.DataFrame]:
    scores = with_one_draw(scores)
    scores = scores.assign(fold=rows_of_folds(scores))
    beside = references.assign(value=0.0, fold=list(references[FOLD].itertuples(index=False, name=None)))
    scores = pd.concat([scores, beside[beside.fold.isin(set(scores.fold))]])
    folds = scores.groupby(["method", "value", "fold"], as_index=False)[["auc", "gpa", "distance"]].mean()  # over seeds
    found = {str(method): own for method, own in folds.groupby("method")}
    return {name: found.pop(name) for name in REFERENCES if name in found} | found


def _section(dataset: str, found: dict[str, pd.DataFrame]) -> Section:
    rows = tuple((method, *_cells(own)) for method, own in found.items())
    title, note = f"{dataset}: accuracy within limits", NOTE.format(dash=MISSING)
    tables = (Table(f"{dataset}-within", title, HEAD, rows, (note,)), _differences(dataset, found))
    return Section(f"{dataset}-within", f"{dataset}: frontiers on the same folds", tuple(t for t in tables if t.rows))


def _cells(folds: pd.DataFrame) -> list[str]:
    """Return the cells of one method."""
    means = folds.groupby("value")[["auc", "gpa", "distance"]].mean()
    cells = []
    for limit in LIMITS:
        fair = means[means.gpa <= limit]
        cells.append(estimate(folds[folds.value == fair.auc.idxmax()].auc).text() if len(fair) else MISSING)
    at = means.loc[means.distance.idxmin()]
    counts = (str(len(means)), str(folds.fold.nunique()))
    return [*counts, *cells, estimate(nearest(folds)).text(), f"{at.auc:.3f}, {at.gpa:.3f}"]


def nearest(folds: pd.DataFrame) -> pd.Series:
    """Return the distances of the folds at the strength whose mean is the least."""
    value = folds.groupby("value").distance.mean().idxmin()
    return folds[folds.value == value].set_index("fold").distance


def _rivals(one: str, found: Iterable[str]) -> list[str]:
    """Return whom a method is compared with: expected predictions, or one draw with one draw where there is one."""
    others = [name for name in found if name not in OURS and not name.endswith(ONE_DRAW)]
    return [f"{o}{ONE_DRAW}" if one.endswith(ONE_DRAW) and f"{o}{ONE_DRAW}" in found else o for o in others]


def _differences(dataset: str, found: dict[str, pd.DataFrame]) -> Table:
    rows = []
    for one in (name for name in OURS if name in found):
        for other in _rivals(one, found):
            difference = estimate(nearest(found[one]) - nearest(found[other]))
            if difference.n:  # folds that both have
                rows.append((one, other, str(difference.n), difference.text(signed=True), verdict(difference)))
    head = ("method", "against", "folds", "difference ↓", "the method is")
    title = f"{dataset}: paired differences of the least L1 distance"
    return Table(f"{dataset}-within-differences", title, head, tuple(rows), (PAIRED,))
