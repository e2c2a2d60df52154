"""The stability and the complexity analysis as tables of correlations."""

from collections.abc import Iterable

import pandas as pd

from fairbits.lab.paper.estimates_of_folds import MISSING
from fairbits.lab.paper.published import CORRELATIONS
from fairbits.lab.paper.record_frames import Record
from fairbits.lab.paper.strength_tables import correlations, one_depth_each, several_depths_each
from fairbits.report.text_tables import Section, Table

FACTS = ("method", "strength", "hidden layers", "prediction", "seeds")
HEAD = (*FACTS, "1-GPA, Pearson", "1-GPA, Spearman", "AUC, Pearson", "AUC, Spearman")
PAPER = ("paper: 1-GPA", "paper: AUC")
PREDICTIONS = {"expected": "", "one draw": "one_draw_"}
NOTE = (
    "Correlation of the strength with 1-GPA and with AUC: for each seed over all {values} strengths, on means over "
    "{folds} folds; then the mean over seeds ± half-width of the 95 % t-interval (none for one seed). Expected: the "
    "prediction averaged over draws; one draw: from one drawn code, which is how the paper predicts."
)
PLACES = "For {names} Pearson's correlation is that of the place in the grid, which is not evenly spaced."


def stability(records: Iterable[Record]) -> list[Section]:
    """Return a section per dataset and depth of runs at one depth; for COMPAS with the paper's correlations."""
    found = one_depth_each(records).items()
    return [_section(name, scores, "stability", scores.dataset.iloc[0] == "compas") for name, scores in found]


def complexity(records: Iterable[Record]) -> list[Section]:
    """Return a section per dataset of runs at several depths; the paper has no numbers for them."""
    return [_section(name, scores, "complexity", False) for name, scores in several_depths_each(records).items()]


def _section(name: str, scores: pd.DataFrame, analysis: str, with_paper: bool) -> Section:
    dataset = scores.dataset.iloc[0]
    rows = []
    for (method, _), part in scores.groupby(["method", "depth"]):
        paper = CORRELATIONS.get(method, (MISSING, MISSING)) if with_paper else ()
        rows += [(*row, *paper) for row in _rows(part)]
    title = f"{dataset}: correlation of the strength with fairness and accuracy"
    table = Table(name, title, (*HEAD, *PAPER) if with_paper else HEAD, tuple(rows), _notes(scores))
    return Section(name, f"{dataset}: {analysis}", (table,))


def _rows(scores: pd.DataFrame) -> list[tuple[str, ...]]:
    """Return the rows of one method at one depth: one per prediction that it has."""
    first = scores.iloc[0]
    facts = (first.method, first.strength, str(first.depth))
    return [
        (*facts, prediction, str(scores.seed.nunique()), *(c.text(signed=True) for c in correlations(scores, prefix)))
        for prediction, prefix in PREDICTIONS.items()
        if scores[f"{prefix}auc"].notna().all()
    ]


def _notes(scores: pd.DataFrame) -> tuple[str, ...]:
    values, folds = (_range(scores.groupby("method")[name].nunique()) for name in ("value", "fold"))
    others = scores[scores.strength != "gamma"][["method", "strength"]].drop_duplicates()
    names = [f"{row.method} ({row.strength})" for row in others.itertuples()]
    note = NOTE.format(values=values, folds=folds)
    return (note, PLACES.format(names=", ".join(names))) if names else (note,)


def _range(counts: pd.Series) -> str:
    low, high = counts.min(), counts.max()
    return f"{low}" if low == high else f"{low} to {high}"
