"""Methods over many strengths: the stability and the complexity analysis."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

import lazy_loader
import numpy as np
import pandas as pd
from scipy.interpolate import PchipInterpolator

from fairbits.lab.paper import record_frames as frames
from fairbits.lab.paper.paper_style import ACCURATE, FAIRER, axis, extent, finish, mark_of, shade
from fairbits.lab.paper.record_frames import NOTES, PUBLISHED, Estimate, Record, estimate, of_kind
from fairbits.report.page import Section
from fairbits.report.wording import Table

alt = lazy_loader.load("altair")
BOUNDS = ("difference_bound", "tol", "limit")  # less is stronger: they have a frontier, but no stability
COLUMNS = ["dataset", "method", "depth", "grid", "seed", "place", "fold", "strength", "value", "tint"]
ALIKE = ("values", "folds", "fold_seed", "selection", "threads", "method")  # what runs of one grid share
SCORES = ["auc", "gpa", "audc", "one_draw_auc", "one_draw_gpa"]
FACTS = ("method", "strength", "hidden layers", "prediction", "seeds")
HEAD = (*FACTS, "1-GPA, Pearson", "1-GPA, Spearman", "AUC, Pearson", "AUC, Spearman")
PAPER = ("paper: 1-GPA", "paper: AUC")
PREDICTIONS = {"expected": "", "one draw": "one_draw_"}
BETWEEN = 8  # pieces of spline from one strength to the next
ABREAST = 3  # panels, where a row is not all depths of a method
LARGE = {"width": 300, "height": 260, "x": FAIRER, "y": ACCURATE, "ticks": 5}
SMALL = {"width": 180, "height": 170, "x": "1 - GPA →", "y": "AUC →", "ticks": 3}


def strength_scores(records: Iterable[Record]) -> pd.DataFrame:
    """Return the scores of methods over strengths: a row per run, strength and fold.

    `strength` is the name of the setting and `value` its value, `place` counts the values of a grid from 0, and `tint`
    runs from 0 to 1: gamma itself, or the place of another setting's value. Runs that can be compared share `grid`;
    `split` identifies the test rows: the seed and the number of folds, and the fold. Runs with common seeds are left
    out: they have tables of their own.
    """
    rows = [row for r in of_kind(records, "strengths") if not r["run"].get("common") for row in _rows_of(r)]
    frame = pd.DataFrame(rows, columns=[*COLUMNS, "split", *SCORES]).astype(dict.fromkeys(SCORES, float))
    frame = frame.assign(fair=1 - frame.gpa, even=1 - frame.audc, one_draw_fair=1 - frame.one_draw_gpa)
    frame = frame.assign(distance=1 - frame.auc + frame.gpa)
    return frame.sort_values(COLUMNS[:7], ignore_index=True)


def _rows_of(record: Record) -> Iterable[dict[str, Any]]:
    run, values = record["run"], record["run"]["values"]
    facts = {name: run[name] for name in ("dataset", "depth", "seed")}
    grid = json.dumps({name: run[name] for name in ALIKE}, sort_keys=True)
    facts |= {"method": run["name"], "strength": run["method"]["strength"], "grid": grid}
    for scores in record["result"]["scores"]:
        value, place = scores["strength"], values.index(scores["strength"])
        tint = value if facts["strength"] == "gamma" else place / max(len(values) - 1, 1)
        split = (run["fold_seed"], run["folds"], scores["fold"])
        yield {**scores, **facts, "value": value, "place": place, "tint": tint, "split": split}


def frontiers(records: Iterable[Record]) -> pd.DataFrame:
    """Return every method's largest grid that was run at one depth only, of every dataset and depth."""
    return _largest_grids(records, ["dataset", "method", "depth"], several=False)


def one_depth_each(records: Iterable[Record]) -> dict[str, pd.DataFrame]:
    """Return the stability analyses by name: the frontiers of a dataset and depth."""
    found = frontiers(records)
    groups = found[~found.strength.isin(BOUNDS)].groupby(["dataset", "depth"])
    return {f"{dataset}-stability" + f"-{depth}" * (depth != 1): scores for (dataset, depth), scores in groups}


def several_depths_each(records: Iterable[Record]) -> dict[str, pd.DataFrame]:
    """Return the complexity analyses by name: of a dataset, every method's largest grid run at several depths."""
    groups = _largest_grids(records, ["dataset", "method"], several=True).groupby("dataset")
    return {f"{dataset}-complexity": found for dataset, found in groups}


def _largest_grids(records: Iterable[Record], by: list[str], *, several: bool) -> pd.DataFrame:
    """Return the scores of one grid of each group, that with the most rows, run at one or at several depths."""
    scores = strength_scores(records)
    depths = scores.groupby(["dataset", "method", "grid"]).depth.transform("nunique")
    scores = scores[(depths > 1) == several]
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
        for measure, x in ((frames.correlation, linear), (frames.rank_correlation, "value"))
    ]


def stability(records: Iterable[Record]) -> list[Section]:
    """Return a section per dataset and depth of runs at one depth; for COMPAS with the paper's correlations."""
    found = one_depth_each(records).items()
    return [_section(name, scores, "stability", scores.dataset.iloc[0] == "compas") for name, scores in found]


def complexity(records: Iterable[Record]) -> list[Section]:
    """Return a section per dataset of runs at several depths; the paper has no numbers for them."""
    return [_section(name, scores, "complexity", False) for name, scores in several_depths_each(records).items()]


def _section(name: str, scores: pd.DataFrame, analysis: str, with_paper: bool) -> Section:
    dataset, rows = scores.dataset.iloc[0], []
    for (method, depth), own in scores.groupby(["method", "depth"]):
        paper = PUBLISHED["correlations"].get(method, (frames.MISSING, frames.MISSING)) if with_paper else ()
        for prediction, prefix in PREDICTIONS.items():
            if own[f"{prefix}auc"].notna().all():
                facts = (method, own.strength.iloc[0], str(depth), prediction, str(own.seed.nunique()))
                rows.append((*facts, *(c.text(signed=True) for c in correlations(own, prefix)), *paper))
    title = f"{dataset}: correlation of the strength with fairness and accuracy"
    table = Table(name, title, (*HEAD, *PAPER) if with_paper else HEAD, tuple(rows), _notes(scores))
    deeper = (_depths_table(name, scores), _depth_differences(name, scores)) if scores.depth.nunique() > 1 else ()
    tables = (table, *(found for found in deeper if found.rows))
    return Section(name, f"{dataset}: {analysis}", tables)


def _depths_table(name: str, scores: pd.DataFrame) -> Table:
    """Return how close every method comes to (1, 1) at every depth, with the strength that comes closest."""
    scores, rows = frames.with_one_draw(scores), []
    depths = sorted(set(scores.depth))
    for method, own in scores.groupby("method"):
        cells = [_nearest(own[own.depth == depth]) for depth in depths]
        rows.append((str(method), str(own.seed.nunique()), *cells))
    head = ("method", "seeds", *(f"{depth} hidden layer{'s' * (depth > 1)}" for depth in depths))
    title = f"{scores.dataset.iloc[0]}: least L1 distance to (1,1) by depth ↓"
    return Table(f"{name}-distance", title, head, tuple(rows), (NOTES["strengths"]["depths"],))


def _depth_differences(name: str, scores: pd.DataFrame) -> Table:
    """Compare ours with every other method at every depth, each at the strength that comes closest there."""
    scores, found = frames.with_one_draw(scores), []
    for depth, there in scores.groupby("depth"):
        nearest = {str(method): _nearest_folds(own)[1] for method, own in there.groupby("method")}
        ours = [method for method in nearest if method.removesuffix(frames.ONE_DRAW) in frames.OURS]
        layers = f", {depth} hidden layer{'s' * (depth > 1)}"
        for one in ours:
            others = [method for method in nearest if method.removesuffix(frames.ONE_DRAW) not in frames.OURS]
            found += [(one + layers, other, estimate(nearest[one] - nearest[other])) for other in others]
    title = f"{scores.dataset.iloc[0]}: paired differences of the least L1 distance, by depth"
    return frames.differences_table(f"{name}-paired", title, NOTES["strengths"]["depths_paired"], found)


def _nearest(scores: pd.DataFrame) -> str:
    """Return the least mean distance over strengths, with its interval over folds and the strength."""
    if scores.empty:
        return frames.MISSING
    value, folds = _nearest_folds(scores)
    return f"{estimate(folds).text()} at {value:g}"


def _nearest_folds(scores: pd.DataFrame) -> tuple[float, pd.Series]:
    """Return the strength whose mean distance is the least, and its distances by test rows, means over seeds."""
    folds = scores.groupby(["value", "split"]).distance.mean()
    value = folds.groupby("value").mean().idxmin()
    return value, folds[value]


def _notes(scores: pd.DataFrame) -> tuple[str, ...]:
    counts = scores.groupby("method")[["value", "fold"]].nunique()
    ranges = [" to ".join(map(str, sorted({counts[name].min(), counts[name].max()}))) for name in counts]
    note = NOTES["strengths"]["table"].format(values=ranges[0], folds=ranges[1])
    others = scores[scores.strength != "gamma"][["method", "strength"]].drop_duplicates()
    names = ", ".join(f"{row.method} ({row.strength})" for row in others.itertuples())
    return (note, NOTES["strengths"]["places"].format(names=names)) if names else (note,)


def strength_charts(records: list[Record]) -> Iterator[tuple[str, Any]]:
    """Draw AUC against 1 - GPA, a panel per method, or for the complexity analysis a row of panels."""
    for name, scores in one_depth_each(records).items():
        yield name, _chart(scores, f"{scores.dataset.iloc[0]}: stability of the trade-off", LARGE)
    for name, scores in several_depths_each(records).items():
        yield name, _chart(scores, f"{scores.dataset.iloc[0]}: the trade-off with more hidden layers", SMALL)


def _chart(scores: pd.DataFrame, title: str, look: dict[str, Any]) -> Any:
    seeds = fold_means(frames.with_one_draw(scores))
    box = {"fair": extent(seeds.fair), "auc": extent(seeds.auc)}
    methods, depths = list(mark_of(seeds.method)), sorted(set(seeds.depth))
    panels = [_panel(seeds[seeds.method == method], depth, box, look) for method in methods for depth in depths]
    abreast = len(depths) if look is SMALL else ABREAST
    rows = [alt.hconcat(*panels[i : i + abreast]) for i in range(0, len(panels), abreast)]
    return finish(alt.vconcat(*rows), title, *NOTES["strengths"]["figure"])


def _panel(seeds: pd.DataFrame, depth: int, box: dict[str, tuple[float, float]], look: dict[str, Any]) -> Any:
    """Draw one method at one depth."""
    own = seeds[seeds.depth == depth]
    means = own.groupby(["place", "tint"], as_index=False)[["auc", "fair"]].mean()
    ticks = alt.Axis(tickCount=look["ticks"])
    x = axis("X", "fair", look["x"], box["fair"], axis=ticks)
    y = axis("Y", "auc", look["y"], box["auc"], axis=ticks)
    at = {"x": x, "y": y, "color": shade("tint", (0, 1), title="strength")}
    layers = (
        alt.Chart(spline(means))
        .mark_rule(strokeWidth=2.5, strokeCap="round")
        .encode(alt.X2("fair2"), alt.Y2("auc2"), **at),
        alt.Chart(own).mark_circle(size=18, opacity=0.5).encode(**at),
        alt.Chart(means).mark_circle(size=70, opacity=1, stroke="white", strokeWidth=0.5).encode(**at),
    )
    title = [seeds.method.iloc[0], f"{depth} hidden layer{'s' * (depth > 1)}"]
    return alt.layer(*layers).properties(width=look["width"], height=look["height"], title=title)


def spline(points: pd.DataFrame) -> pd.DataFrame:
    """Return the pieces of the curve through points in their order, as x, y to x2, y2 with a tint.

    Both coordinates are monotone cubic in the place: between two points the curve never leaves their rectangle.
    """
    points = points.sort_values("place")
    if len(points) < 2:
        return pd.DataFrame(columns=["fair", "auc", "fair2", "auc2", "tint"], dtype=float)
    at = np.arange(len(points))
    fine = np.linspace(0, at[-1], BETWEEN * at[-1] + 1)
    curve = {name: PchipInterpolator(at, points[name].to_numpy())(fine) for name in ("fair", "auc", "tint")}
    ends = {f"{name}2": curve[name][1:] for name in ("fair", "auc")}
    return pd.DataFrame({name: values[:-1] for name, values in curve.items()} | ends)
