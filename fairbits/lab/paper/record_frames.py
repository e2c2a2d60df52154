"""From records to tidy frames, in an order that does not depend on the records' own, and to means with intervals."""

import json
import math
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata, t

from fairbits.metrics import paper_objective
from fairbits.report.wording import Table

HERE = Path(__file__).parent
NOTES = tomllib.loads((HERE / "notes.toml").read_text(encoding="utf-8"))
PUBLISHED = tomllib.loads((HERE / "published.toml").read_text(encoding="utf-8"))
REFERENCES = ("constant", "logistic regression")
ONE_DRAW = ", one draw"  # after the name of a method: how the paper predicts
TUNED_ON_ONE_DRAW = " tuned on one draw"
RECOMMENDED = ("FairCode", "FairCode, random", f"FairCode, random{ONE_DRAW}")
OURS = (
    *(f"{name}{how}" for name in ("BinaryBernoulli", "BinaryMI") for how in ("", ONE_DRAW, TUNED_ON_ONE_DRAW)),
    *RECOMMENDED,
)
FOLD = ["seed", "folds", "fold"]  # what identifies external test rows
SCORES = ["auc", "gpa", "audc", "discrimination", "one_draw_auc", "one_draw_gpa", "information"]
CONFIDENCE = 0.95
MISSING = "–"
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
    """Return one record per method and value of named settings, sorted.

    It is that with the most of another setting and, of equals, that whose seed all methods share.
    """
    kept = {}
    for record in sorted(records, key=lambda r: (r["run"].get(most, 0), r["run"].get("common", False))):
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


@dataclass(frozen=True)
class Estimate:
    """A mean, the half-width of its t-interval (nan without two values) and the number of values."""

    mean: float
    margin: float
    n: int

    def text(self, digits: int = 3, *, signed: bool = False) -> str:
        """Return "mean ± margin", without the margin where there is none.

        >>> Estimate(-0.0001, 0.0125, 3).text(), Estimate(0.5, math.nan, 1).text(signed=True)
        ('0.000 ± 0.013', '+0.500')
        """
        if math.isnan(self.mean):
            return MISSING
        mean = number(self.mean, digits, signed=signed)
        return mean if math.isnan(self.margin) else f"{mean} ± {number(self.margin, digits)}"


def number(value: float, digits: int = 3, *, signed: bool = False) -> str:
    """Return a number with so many decimals; never a negative zero."""
    value = round(value, digits) + 0.0
    return f"{value:+.{digits}f}" if signed else f"{value:.{digits}f}"


def estimate(values: Iterable[float]) -> Estimate:
    """Return the mean of values and the half-width of its 95 % t-interval; values that are nan are left out.

    >>> estimate([1.0, 2.0, 3.0]).text()
    '2.000 ± 2.484'
    """
    kept = np.asarray([value for value in values if not math.isnan(value)], dtype=float)
    n = len(kept)
    mean = float(kept.mean()) if n else math.nan
    if n < 2:
        return Estimate(mean, math.nan, n)
    return Estimate(mean, float(t.ppf((1 + CONFIDENCE) / 2, n - 1) * kept.std(ddof=1) / math.sqrt(n)), n)


def verdict(difference: Estimate) -> str:
    """Return what a difference of distances (less is better) says about the first of the two methods."""
    if math.isnan(difference.margin):
        return "no interval"
    if abs(difference.mean) <= difference.margin:
        return "not distinguishable"
    return "ahead" if difference.mean < 0 else "behind"


def differences_table(name: str, title: str, note: str, found: Iterable[tuple[str, str, Estimate]]) -> Table:
    """Return the table of paired differences between methods; pairs without a common fold are left out."""
    rows = tuple((*pair, str(d.n), d.text(signed=True), verdict(d)) for *pair, d in found if d.n)
    return Table(name, title, ("method", "against", "folds", "difference ↓", "the method is"), rows, (note,))


def mean_points(scores: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """Return the mean of columns per method, and the ends of their intervals within 0 and 1 as ..._low, ..._high."""
    rows = []
    for method, own in scores.groupby("method"):
        row: list[Any] = [method]
        for found in (estimate(own[column]) for column in columns):
            margin = found.margin if found.n > 1 else 0.0
            row += [found.mean, max(found.mean - margin, 0.0), min(found.mean + margin, 1.0)]
        rows.append(row)
    names = [f"{column}{end}" for column in columns for end in ("", "_low", "_high")]
    return pd.DataFrame(rows, columns=["method", *names])


def correlation(x: Iterable[float], y: Iterable[float]) -> float:
    """Return Pearson's correlation, nan where one of the two does not vary."""
    a, b = (np.asarray(list(values), dtype=float) for values in (x, y))
    if len(a) < 2 or not np.ptp(a) or not np.ptp(b):
        return math.nan
    return float(np.corrcoef(a, b)[0, 1])


def rank_correlation(x: Iterable[float], y: Iterable[float]) -> float:
    """Return Spearman's correlation, nan where one of the two does not vary."""
    return correlation(rankdata(list(x)), rankdata(list(y)))
