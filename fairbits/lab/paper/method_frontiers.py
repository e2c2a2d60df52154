"""Methods over all strengths on the same folds: accuracy within limits on unfairness, and all datasets side by side."""

from collections.abc import Iterable

import pandas as pd

from fairbits.lab.paper import record_frames as frames
from fairbits.lab.paper.record_frames import FOLD, MISSING, NOTES, ONE_DRAW, OURS, REFERENCES, Record, estimate
from fairbits.lab.paper.strength_paths import frontiers
from fairbits.report.page import Section
from fairbits.report.wording import Table

LIMITS = (0.05, 0.1, 0.15, 0.2)  # of GPA
LIMITED = tuple(f"AUC at GPA ≤ {limit:g} ↑" for limit in LIMITS)
HEAD = ("method", "strengths", "folds", *LIMITED, "least L1 to (1,1) ↓", "there (AUC, GPA)")


def within_limits(records: Iterable[Record]) -> list[Section]:
    """Return a section per dataset whose frontiers were run with one hidden layer."""
    sections = []
    for dataset, found in frontier_folds(records).items():
        rows = tuple((method, *_cells(own)) for method, own in found.items())
        within = Table(
            f"{dataset}-within", f"{dataset}: accuracy within limits", HEAD, rows, (NOTES["within"]["table"],)
        )
        least = {name: nearest(own) for name, own in found.items()}
        pairs = [(one, other) for one in OURS if one in found for other in _rivals(one, found)]
        differences = frames.differences_table(
            f"{dataset}-within-differences",
            f"{dataset}: paired differences of the least L1 distance",
            NOTES["within"]["paired"],
            [(one, other, estimate(least[one] - least[other])) for one, other in pairs],
        )
        tables = tuple(table for table in (within, differences) if table.rows)
        sections.append(Section(f"{dataset}-within", f"{dataset}: frontiers on the same folds", tables))
    return sections


def frontier_folds(records: Iterable[Record]) -> dict[str, dict[str, pd.DataFrame]]:
    """Return the scores over strengths and folds by dataset and method, the references first."""
    records = list(records)
    found, references = frontiers(records), frames.tuned_scores(frames.of_kind(records, "reference"))
    return {
        str(name): _methods(own, references[references.dataset == name])
        for name, own in found[found.depth == 1].groupby("dataset")
    }


def _methods(scores: pd.DataFrame, references: pd.DataFrame) -> dict[str, pd.DataFrame]:
    scores = frames.with_one_draw(scores.assign(fold=scores.split))
    beside = references.assign(value=0.0, fold=list(references[FOLD].itertuples(index=False, name=None)))
    scores = pd.concat([scores, beside[beside.fold.isin(set(scores.fold))]])
    folds = scores.groupby(["method", "value", "fold"], as_index=False)[["auc", "gpa", "distance"]].mean()  # over seeds
    found = {str(method): own for method, own in folds.groupby("method")}
    return {name: found.pop(name) for name in REFERENCES if name in found} | found


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


def overview(records: Iterable[Record]) -> list[Section]:
    """Return one section with the distances of all methods, if two datasets or more were run."""
    records = list(records)
    tuned = frames.with_one_draw(frames.tuned_scores(records))
    if tuned.dataset.nunique() < 2:
        return []
    columns: dict[str, dict[str, str]] = {}
    for name, scores in tuned.groupby("dataset"):
        columns[f"{name}, tuned"] = {str(m): estimate(own.distance).text() for m, own in scores.groupby("method")}
    for name, found in frontier_folds(records).items():
        columns[f"{name}, over strengths"] = {method: estimate(nearest(own)).text() for method, own in found.items()}
    head = sorted(columns, key=lambda name: (name.partition(",")[0], name.endswith("strengths")))
    present = {method for column in columns.values() for method in column}
    first = [method for method in (*REFERENCES, *OURS) if method in present]
    methods = [*first, *sorted(present - set(first))]
    rows = tuple((method, *(columns[c].get(method, MISSING) for c in head)) for method in methods)
    table = Table(
        "overview", "How close every method comes to (1,1) ↓", ("method", *head), rows, (NOTES["overview"]["table"],)
    )
    return [Section("overview", "All datasets", (table,))]
