"""From records to tidy frames: one row per thing measured, in an order that does not depend on the records' own."""

import json
from collections.abc import Iterable
from typing import Any

import pandas as pd

from fairbits.metrics import paper_objective

REFERENCES = ("constant", "logistic regression")
ONE_DRAW = ", one draw"  # after the name of a method: how the paper predicts
TUNED_ON_ONE_DRAW = " tuned on one draw"
OURS = tuple(f"{name}{how}" for name in ("BinaryBernoulli", "BinaryMI") for how in ("", ONE_DRAW, TUNED_ON_ONE_DRAW))
FOLD = ["seed", "folds", "fold"]  # what identifies external test rows
SCORES = ["auc", "gpa", "audc", "discrimination", "one_draw_auc", "one_draw_gpa", "information"]
Record = dict[str, Any]


def in_order(records: Iterable[Record]) -> list[Record]:
    """Return the records without "made", one per hash, sorted by their settings."""
    kept: dict[str, Record] = {}
    for record in sorted(records, key=lambda r: json.dumps(r["result"], sort_keys=True)):
        kept.setdefault(record["hash"], {name: record[name] for name in ("hash", "run", "result")})
    return sorted(kept.values(), key=lambda r: json.dumps(r["run"], sort_keys=True))


def of_kind(records: Iterable[Record], *kinds: str) -> list[Record]:
    """Return the records of runs of these kinds."""
    return [record for record in records if record["run"]["kind"] in kinds]


def method_of(run: dict[str, Any]) -> str:
    """Return the name that tables give a run's method; a search for another objective is another method."""
    objective = run.get("objective", "paper")
    return run["name"] if objective == "paper" else f"{run['name']} ({objective})"


def one_each(records: list[Record], names: list[str], most: str) -> list[Record]:
    """Return one record per method and value of named settings, that with the most of another setting, sorted."""
    kept = {}
    for record in sorted(records, key=lambda r: r["run"].get(most, 0)):
        kept[method_of(record["run"]), *(record["run"][name] for name in names)] = record
    return [kept[key] for key in sorted(kept)]


def tuned(records: Iterable[Record]) -> list[Record]:
    """Return the references and searches, one per dataset, method and external fold: that of the most trials."""
    return one_each(of_kind(records, "reference", "search"), ["dataset", *FOLD], "trials")


def tuned_scores(records: Iterable[Record]) -> pd.DataFrame:
    """Return the test scores of tuned methods: a row per dataset, method and external fold.

    `fair` and `even` are 1 - GPA and 1 - AUDC; `distance` and `audc_distance` are the L1 distances of (AUC, fair) and
    (AUC, even) to (1, 1), `one_draw_distance` that of (AUC, fair) of one draw; `objective` is what the paper's search
    maximises.
    """
    rows = [
        {"dataset": run["dataset"], "method": method_of(run), **{name: run[name] for name in FOLD}, **result["test"]}
        for run, result in ((r["run"], r["result"]) for r in tuned(records))
    ]
    columns = ["dataset", "method", *FOLD, *SCORES]
    frame = pd.DataFrame(rows, columns=columns).astype(dict.fromkeys(SCORES, float))
    return frame.assign(
        fair=1 - frame.gpa,
        even=1 - frame.audc,
        distance=1 - frame.auc + frame.gpa,
        audc_distance=1 - frame.auc + frame.audc,
        one_draw_distance=1 - frame.one_draw_auc + frame.one_draw_gpa,
        objective=paper_objective(frame),
    )


def with_one_draw(scores: pd.DataFrame) -> pd.DataFrame:
    """Add the predictions from one drawn code as methods of their own, except where they are the prediction already."""
    drawn = scores[scores.one_draw_auc.notna() & ~scores.method.str.endswith(TUNED_ON_ONE_DRAW)]
    auc, gpa = drawn.one_draw_auc, drawn.one_draw_gpa
    drawn = drawn.assign(method=drawn.method + ONE_DRAW, auc=auc, gpa=gpa, fair=1 - gpa, distance=1 - auc + gpa)
    return pd.concat([scores, drawn], ignore_index=True)
