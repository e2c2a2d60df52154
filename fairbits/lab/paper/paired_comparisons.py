"""Methods compared by common random numbers: repeated folds, the same seeds for all, and scores between strengths."""

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t

from fairbits.lab.paper import record_frames as frames
from fairbits.lab.paper.record_frames import CONFIDENCE, MISSING, NOTES, ONE_DRAW, OURS, Estimate, Record, of_kind
from fairbits.report.page import Section
from fairbits.report.wording import Table

LIMITS = (0.02, 0.05, 0.1)  # of the AUDC of ranks
AT_PARITY, DISTANCE = "AUC at signed GPA = 0 ↑", "least L1 to (1,1) ↓"
WITHIN = tuple(f"AUC at AUDC of ranks ≤ {limit:g} ↑" for limit in LIMITS)
MEASURES = (AT_PARITY, *WITHIN, DISTANCE)
COMPARED = (AT_PARITY, WITHIN[1], DISTANCE)
CONSTANT = 0.5  # AUC of the predictor that is always fair
SCORES = ("auc", "gpa", "signed_gpa", "rank_audc")
UNIT = ["folds", "fold_seed", "fold"]  # what identifies test rows


def common_scores(records: Iterable[Record]) -> pd.DataFrame:
    """Return the scores of runs with common seeds: a row per run, strength and fold; one draw is a method."""
    rows = []
    for record in of_kind(records, "strengths"):
        run = record["run"]
        if run.get("common"):
            facts = {name: run[name] for name in ("dataset", "depth", "seed", "folds", "fold_seed")}
            rows += [{**facts, **own} for scores in record["result"]["scores"] for own in _predictions(run, scores)]
    return pd.DataFrame(rows, columns=["dataset", "depth", "method", "seed", *UNIT, "strength", *SCORES])


def _predictions(run: dict[str, Any], scores: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the scores of the expected prediction and, where there is one, of the prediction from one draw."""
    place = {"fold": scores["fold"], "strength": scores["strength"]}
    yield {**place, "method": run["name"], **{name: scores[name] for name in SCORES}}
    if "one_draw_signed_gpa" in scores:
        yield {**place, "method": run["name"] + ONE_DRAW, **{name: scores[f"one_draw_{name}"] for name in SCORES}}


def auc_at_parity(auc: np.ndarray, signed: np.ndarray) -> float:
    """Return the AUC where the signed GPA is 0, between neighbouring strengths; nan if the path never gets there.

    Of several crossings the most accurate.

    >>> round(auc_at_parity(np.array([0.8, 0.7, 0.6]), np.array([0.2, 0.1, -0.1])), 6)
    0.65
    """
    return float(max(_crossings(auc, signed), default=math.nan))


def _crossings(auc: np.ndarray, signed: np.ndarray) -> Iterator[float]:
    yield from auc[signed == 0]
    for i in range(len(auc) - 1):
        if np.sign(signed[i]) * np.sign(signed[i + 1]) < 0:
            share = signed[i] / (signed[i] - signed[i + 1])
            yield auc[i] + share * (auc[i + 1] - auc[i])


def auc_within(auc: np.ndarray, area: np.ndarray, limit: float) -> float:
    """Return the largest AUC where an area is within a limit, between neighbouring strengths; nan if it never is.

    >>> round(auc_within(np.array([0.8, 0.7, 0.6]), np.array([0.3, 0.1, 0.0]), 0.2), 6)
    0.75
    """
    return float(max([*auc[area <= limit], *_crossings(auc, area - limit)], default=math.nan))


def path_measures(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the measures of one method at one depth, a row per test rows (`UNIT`): means over seeds.

    The least distance is at the strength whose mean over everything is the least. A path that never gets where it is
    measured counts as the constant predictor there, whose AUC is 0.5; `reached` is the share that gets to parity.
    """
    rows = []
    for place, path in scores.groupby([*UNIT, "seed"]):
        path = path.sort_values("strength")
        auc, signed, area = (path[name].to_numpy() for name in ("auc", "signed_gpa", "rank_audc"))
        within = [auc_within(auc, area, limit) for limit in LIMITS]
        rows.append((*place, auc_at_parity(auc, signed), *within))
    found = pd.DataFrame(rows, columns=[*UNIT, "seed", *MEASURES[:-1]])
    distance = scores.assign(distance=1 - scores.auc + scores.gpa)
    best = distance.groupby("strength").distance.mean().idxmin()
    nearest = distance[distance.strength == best].groupby(UNIT).distance.mean()
    found["reached"] = found[AT_PARITY].notna()
    found = found.fillna(dict.fromkeys(MEASURES[:-1], CONSTANT))
    return found.groupby(UNIT)[["reached", *MEASURES[:-1]]].mean().assign(**{DISTANCE: nearest})


def corrected(values: Iterable[float], folds: int) -> Estimate:
    """Return the mean and the half-width of its 95 % t-interval for repeated folds, which share training rows.

    The variance of the mean is (1/n + 1/(folds - 1)) of that of the values (Nadeau and Bengio 2003): more repeats do
    not make it vanish.

    >>> corrected([0.0, 1.0, 2.0], folds=3).text()
    '1.000 ± 3.928'
    """
    kept = np.array([value for value in values if not math.isnan(value)])
    n = len(kept)
    if n < 2:
        return frames.estimate(kept)
    width = t.ppf((1 + CONFIDENCE) / 2, n - 1) * kept.std(ddof=1) * math.sqrt(1 / n + 1 / (folds - 1))
    return Estimate(float(kept.mean()), float(width), n)


def comparisons(records: Iterable[Record]) -> list[Section]:
    """Return a section per dataset and depth that was run with common seeds."""
    sections = []
    for (dataset, depth), scores in common_scores(records).groupby(["dataset", "depth"]):
        folds = int(scores.folds.iloc[0])
        found = {str(name): path_measures(own) for name, own in scores.groupby("method")}
        name = f"{dataset}-comparison" + f"-{depth}" * (depth != 1)
        title = f"{dataset}: methods on the same rows and seeds" + f", {depth} hidden layers" * (depth != 1)
        tables = (_measures_table(name, title, found, folds), _differences_table(name, title, found, folds))
        sections.append(Section(name, title, tuple(table for table in tables if table.rows)))
    return sections


def _measures_table(name: str, title: str, found: dict[str, pd.DataFrame], folds: int) -> Table:
    rows = []
    for method in sorted(found, key=lambda m: (-found[m][AT_PARITY].mean(), m)):
        own = found[method]
        rows.append(
            (
                method,
                str(len(own)),
                f"{100 * own.reached.mean():.0f} %",
                *(corrected(own[measure], folds).text() for measure in MEASURES),
            )
        )
    head = ("method", "test sets", "paths that reach 0", *MEASURES)
    return Table(f"{name}-measures", title, head, tuple(rows), (NOTES["comparisons"]["measures"],))


def _differences_table(name: str, title: str, found: dict[str, pd.DataFrame], folds: int) -> Table:
    rows = []
    for one, other in ((o, r) for o in OURS if o in found for r in found if _is_rival(o, r)):
        for measure in COMPARED:
            a, b = found[one][measure].align(found[other][measure], join="inner")
            difference = corrected(a - b, folds)
            if difference.n:
                apart = math.hypot(corrected(a, folds).margin, corrected(b, folds).margin)
                unpaired = MISSING if math.isnan(apart) else frames.number(apart)
                verdict = frames.verdict(_less_is_better(difference, measure))
                rows.append((one, other, measure, str(difference.n), difference.text(signed=True), unpaired, verdict))
    head = ("method", "against", "measure", "test sets", "difference", "± without pairing", "the method is")
    note = NOTES["comparisons"]["differences"]
    return Table(f"{name}-differences", f"{title}: paired differences", head, tuple(rows), (note,))


def _less_is_better(difference: Estimate, measure: str) -> Estimate:
    return difference if measure == DISTANCE else Estimate(-difference.mean, difference.margin, difference.n)


def _is_rival(one: str, other: str) -> bool:
    """Say whether a method is compared with another: with rivals, drawn with drawn where both are."""
    ours = other.removesuffix(ONE_DRAW) in OURS
    return not ours and (not other.endswith(ONE_DRAW) or one.endswith(ONE_DRAW))
