"""Tuned methods on held-out folds: accuracy against fairness, and who is ahead."""

from collections.abc import Iterable

import pandas as pd

from fairbits.lab.paper.estimates_of_folds import Estimate, estimate, verdict
from fairbits.lab.paper.record_frames import (
    FOLD,
    ONE_DRAW,
    REFERENCES,
    TUNED_ON_ONE_DRAW,
    Record,
    tuned,
    tuned_scores,
    with_one_draw,
)
from fairbits.lab.paper.settings_table import settings_table
from fairbits.report.text_tables import Section, Table

OURS = tuple(f"{name}{how}" for name in ("BinaryBernoulli", "BinaryMI") for how in ("", ONE_DRAW, TUNED_ON_ONE_DRAW))
RIVALS = ("AdvCls", "VFAE", "HSIC", "Parity", "Vanilla", *REFERENCES)
SCORES = {
    "auc": "AUC ↑",
    "gpa": "GPA ↓",
    "audc": "AUDC ↓",
    "discrimination": "yDiscrim ↓",
    "one_draw_auc": "one-draw AUC ↑",
    "one_draw_gpa": "one-draw GPA ↓",
    "information": "I(T;S), bits ↓",
    "distance": "L1 to (1,1) of (AUC, 1-GPA) ↓",
    "audc_distance": "L1 to (1,1) of (AUC, 1-AUDC) ↓",
    "one_draw_distance": "the first, of one draw ↓",
    "objective": "objective ↑",
}
NOTES = (
    "Mean over external folds ± half-width of the 95 % t-interval (none for one fold); the folds' training rows "
    "overlap, so intervals are approximate. Scores are of the expected prediction; one-draw scores and I(T;S) are of "
    "one drawn code per person. Objective: AUC + (1-GPA) + (1-AUDC), what the search maximises; a constant predictor "
    "has 2.5. Methods in the order of their L1 distance to (1,1) in (AUC, 1-GPA).",
)
PAIRED = (
    "Difference of the L1 distance to (1,1) in (AUC, 1-GPA), fold by fold: less than 0 is closer. Of ours the expected "
    "prediction, and that of one draw, which is how the paper predicts. Mean ± half-width of the paired 95 % "
    "t-interval, not corrected for the number of comparisons; ahead or behind where it leaves out 0.",
)


def tradeoff(records: Iterable[Record]) -> list[Section]:
    """Return a section per dataset with scores, differences and the settings that the searches chose."""
    records = tuned(records)
    return [_section(str(dataset), scores, records) for dataset, scores in tuned_scores(records).groupby("dataset")]


def _section(dataset: str, scores: pd.DataFrame, records: list[Record]) -> Section:
    own = [record for record in records if record["run"]["dataset"] == dataset]
    tables = (_scores_table(dataset, scores), _differences_table(dataset, scores), settings_table(dataset, own))
    filled = tuple(table for table in tables if table.rows)
    return Section(f"{dataset}-tradeoff", f"{dataset}: tuned methods on held-out rows", filled)


def in_rank(scores: pd.DataFrame) -> list[str]:
    """Return the methods: references first, the others by their mean distance."""
    means = scores.groupby("method").distance.mean()
    others = sorted(set(means.index) - set(REFERENCES), key=lambda method: (means[method], method))
    return [*(method for method in REFERENCES if method in means), *others]


def _scores_table(dataset: str, scores: pd.DataFrame) -> Table:
    rows = []
    for method in in_rank(scores):
        own = scores[scores.method == method]
        cells = [estimate(own[name]).text(4 if name == "information" else 3) for name in SCORES]
        rows.append((method, str(len(own)), *cells))
    head = ("method", "folds", *SCORES.values())
    return Table(f"{dataset}-scores", f"{dataset}: accuracy and fairness", head, tuple(rows), NOTES)


def paired_difference(scores: pd.DataFrame, one: str, other: str) -> Estimate:
    """Return the difference of the distances of two methods over the folds that both have."""
    by_fold = scores.set_index(["method", *FOLD]).distance
    return estimate(by_fold[one] - by_fold[other])  # nan where a fold has one of the two


def _differences_table(dataset: str, scores: pd.DataFrame) -> Table:
    scores = with_one_draw(scores)
    present = set(scores.method)
    pairs = [(one, other) for one in OURS for other in RIVALS if {one, other} <= present]
    found = [(*pair, paired_difference(scores, *pair)) for pair in pairs]
    rows = tuple((*pair, str(d.n), d.text(signed=True), verdict(d)) for *pair, d in found if d.n)
    head = ("method", "against", "folds", "difference ↓", "the method is")
    title = f"{dataset}: paired differences of the L1 distance to (1,1)"
    return Table(f"{dataset}-differences", title, head, rows, PAIRED)
