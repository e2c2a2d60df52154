"""Methods over many strengths, as frames: which runs belong together, and how steadily they move."""

import json
from collections.abc import Iterable
from typing import Any

import pandas as pd

from fairbits.lab.paper.estimates_of_folds import Estimate, correlation, estimate, rank_correlation
from fairbits.lab.paper.record_frames import Record, of_kind

BOUNDS = ("difference_bound", "tol")  # less is stronger: frontiers, no matter of stability
COLUMNS = ["dataset", "method", "depth", "grid", "seed", "place", "fold", "strength", "value", "tint"]
ALIKE = ("values", "folds", "fold_seed", "selection", "threads", "method")  # what runs of one grid share
SCORES = ["auc", "gpa", "audc", "one_draw_auc", "one_draw_gpa"]


def strength_scores(records: Iterable[Record]) -> pd.DataFrame:
    """Return the scores of methods over strengths: a row per run, strength and fold.

    `strength` is the name of the setting and `value` its value, `place` counts the values of a grid from 0, and `tint`
    runs from 0 to 1: gamma itself, or the place of another setting's value. Runs that can be compared share `grid`.
    """
    rows = [row for record in of_kind(records, "strengths") for row in _rows(record)]
    frame = pd.DataFrame(rows, columns=[*COLUMNS, *SCORES]).astype(dict.fromkeys(SCORES, float))
    frame = frame.assign(fair=1 - frame.gpa, even=1 - frame.audc, one_draw_fair=1 - frame.one_draw_gpa)
    frame = frame.assign(distance=1 - frame.auc + frame.gpa)
    return frame.sort_values(COLUMNS[:7], ignore_index=True)


def _rows(record: Record) -> Iterable[dict[str, Any]]:
    run, values = record["run"], record["run"]["values"]
    facts = {name: run[name] for name in ("dataset", "depth", "seed")}
    facts |= {"method": run["name"], "strength": run["method"]["strength"], "grid": _grid(run)}
    for scores in record["result"]["scores"]:
        value, place = scores["strength"], values.index(scores["strength"])
        tint = value if facts["strength"] == "gamma" else place / max(len(values) - 1, 1)
        yield {**scores, **facts, "value": value, "place": place, "tint": tint}


def _grid(run: dict[str, Any]) -> str:
    return json.dumps({name: run[name] for name in ALIKE}, sort_keys=True)


def rows_of_folds(scores: pd.DataFrame) -> pd.Series:
    """Return what tells the test rows of a fold from those of others: the seed and the number of folds, and the fold.

    >>> rows_of_folds(pd.DataFrame({"grid": ['{"fold_seed": 0, "folds": 3}'], "fold": [2]})).tolist()
    [(0, 3, 2)]
    """
    splits = [json.loads(grid) for grid in scores.grid]
    keys = [(split["fold_seed"], split["folds"], fold) for split, fold in zip(splits, scores.fold, strict=True)]
    return pd.Series(keys, index=scores.index, dtype=object)


def one_depth_each(records: Iterable[Record]) -> dict[str, pd.DataFrame]:
    """Return the stability analyses by name: of a dataset and depth, every method's largest grid run there alone."""
    found = frontiers(records)
    groups = found[~found.strength.isin(BOUNDS)].groupby(["dataset", "depth"])
    return {f"{dataset}-stability" + f"-{depth}" * (depth != 1): scores for (dataset, depth), scores in groups}


def frontiers(records: Iterable[Record]) -> pd.DataFrame:
    """Return every method's largest grid run at one depth alone, of every dataset and depth."""
    scores = strength_scores(records)
    return _largest(scores[_depths(scores) == 1], ["dataset", "method", "depth"])


def several_depths_each(records: Iterable[Record]) -> dict[str, pd.DataFrame]:
    """Return the complexity analyses by name: of a dataset, every method's largest grid run at several depths."""
    scores = strength_scores(records)
    groups = _largest(scores[_depths(scores) > 1], ["dataset", "method"]).groupby("dataset")
    return {f"{dataset}-complexity": found for dataset, found in groups}


def _depths(scores: pd.DataFrame) -> pd.Series:
    return scores.groupby(["dataset", "method", "grid"]).depth.transform("nunique")


def _largest(scores: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Keep one grid of each group: that with the most rows."""
    sizes = scores.groupby([*by, "grid"], as_index=False).size().sort_values(["size", "grid"])
    return scores.merge(sizes.drop_duplicates(by, keep="last")[[*by, "grid"]])


def fold_means(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the mean over folds for every dataset, method, depth, seed and value."""
    names = [name for name in COLUMNS if name not in ("fold", "grid")]
    return scores.groupby(names, as_index=False)[["auc", "fair", "even", "one_draw_auc", "one_draw_fair"]].mean()


def correlations(scores: pd.DataFrame, prefix: str = "") -> list[Estimate]:
    """Return the correlations of one method's strength with 1 - GPA (Pearson, Spearman) and AUC (the same).

    For each seed over all values, on means over folds; then the mean over seeds. Pearson's takes the place in the grid
    of a setting other than gamma. `prefix` "one_draw_" takes the prediction from one drawn code.
    """
    seeds = [seed for _, seed in fold_means(scores).groupby("seed")]
    linear = "value" if (scores.strength == "gamma").all() else "place"
    return [
        estimate(measure(seed[x], seed[f"{prefix}{score}"]) for seed in seeds)
        for score in ("fair", "auc")
        for measure, x in ((correlation, linear), (rank_correlation, "value"))
    ]
