"""Methods over all strengths: the accuracy that each reaches within a limit on unfairness, on the same folds."""

from collections.abc import Iterable

import pandas as pd

from fairbits.report.paper.intervals import MISSING, estimate
from fairbits.report.paper.records import Record
from fairbits.report.paper.strengths import frontiers
from fairbits.report.paper.tables import Section, Table

LIMITS = (0.05, 0.1, 0.15, 0.2)  # of GPA
HEAD = (
    "method",
    "strengths",
    *(f"AUC at GPA ≤ {limit:g} ↑" for limit in LIMITS),
    "least L1 to (1,1) ↓",
    "there (AUC, GPA)",
)
NOTE = (
    "Of all strengths the one with the largest mean AUC whose mean GPA is within the limit ({dash}: none), and the one "
    "with the least mean L1 distance to (1,1) in (AUC, 1-GPA). Mean over folds ± half-width of the 95 % t-interval of "
    "that one strength. The strength is chosen on the test rows, for all methods alike, so all are a little too good; "
    "other settings are fixed. Scores of the expected prediction. fairlearn TO is told the group of every test row."
)


def within_limits(records: Iterable[Record]) -> list[Section]:
    """Return a section per dataset whose frontiers were run with one hidden layer."""
    found = frontiers(records)
    return [_section(str(name), own) for name, own in found[found.depth == 1].groupby("dataset")]


def _section(dataset: str, scores: pd.DataFrame) -> Section:
    rows = [(str(method), *_cells(own)) for method, own in scores.groupby("method")]
    note = NOTE.format(dash=MISSING)
    table = Table(f"{dataset}-within", f"{dataset}: accuracy within limits", HEAD, tuple(rows), (note,))
    return Section(f"{dataset}-within", f"{dataset}: frontiers on the same folds", (table,))


def _cells(scores: pd.DataFrame) -> list[str]:
    """Return the cells of one method."""
    folds = scores.assign(distance=1 - scores.auc + scores.gpa)
    folds = folds.groupby(["value", "fold"], as_index=False)[["auc", "gpa", "distance"]].mean()  # over seeds
    means = folds.groupby("value")[["auc", "gpa", "distance"]].mean()
    cells = []
    for limit in LIMITS:
        fair = means[means.gpa <= limit]
        cells.append(estimate(folds[folds.value == fair.auc.idxmax()].auc).text() if len(fair) else MISSING)
    nearest = means.distance.idxmin()
    least = estimate(folds[folds.value == nearest].distance).text()
    return [str(len(means)), *cells, least, f"{means.auc[nearest]:.3f}, {means.gpa[nearest]:.3f}"]
