"""Paths of methods over their strength: stability and complexity."""

from typing import Any

import altair as alt
import numpy as np
import pandas as pd
from scipy.interpolate import PchipInterpolator

from fairbits.lab.paper.charts.paper_style import ACCURATE, axis, extent, finish, mark_of, shade
from fairbits.lab.paper.record_frames import with_one_draw
from fairbits.lab.paper.strength_tables import fold_means
from fairbits.report.charts import FAIRER

BETWEEN = 8  # pieces of spline from one strength to the next
ABREAST = 3  # panels, where a row is not all depths of a method
LARGE = {"width": 300, "height": 260, "x": FAIRER, "y": ACCURATE, "ticks": 5}
SMALL = {"width": 180, "height": 170, "x": "1 - GPA →", "y": "AUC →", "ticks": 3}
EXPLANATION = (
    "AUC against 1 - GPA of expected predictions or, where it says so, of one draw, which is how the paper predicts.",
    "Means over folds. Small points: seeds.",
    "Large points, joined in the order of the strength by splines: means over seeds.",
    "Colour: gamma or, for a strength of another name, its place in the grid.",
)


def strengths_chart(scores: pd.DataFrame, title: str, *, by_depth: bool = False) -> Any:
    """Draw AUC against 1 - GPA, one panel per method; with `by_depth` one row of panels per method.

    Parameters
    ----------
    scores : a row per method, depth, seed, strength and fold (`strength_scores`)
    """
    seeds = fold_means(with_one_draw(scores))
    box = {"fair": extent(seeds.fair), "auc": extent(seeds.auc)}
    look, methods = SMALL if by_depth else LARGE, list(mark_of(seeds.method))
    panels = [_panel(seeds[seeds.method == m], depth, box, look) for m in methods for depth in sorted(set(seeds.depth))]
    abreast = len(panels) // len(methods) if by_depth else ABREAST
    rows = [alt.hconcat(*panels[i : i + abreast]) for i in range(0, len(panels), abreast)]
    return finish(alt.vconcat(*rows), title, *EXPLANATION)


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


def _panel(seeds: pd.DataFrame, depth: int, box: dict[str, tuple[float, float]], look: dict[str, Any]) -> Any:
    """Draw one method at one depth."""
    own = seeds[seeds.depth == depth]
    means = own.groupby(["place", "tint"], as_index=False)[["auc", "fair"]].mean()
    ticks = alt.Axis(tickCount=look["ticks"])
    x = axis(alt.X, "fair", look["x"], box["fair"], axis=ticks)
    y = axis(alt.Y, "auc", look["y"], box["auc"], axis=ticks)
    at = {"x": x, "y": y, "color": shade("tint", (0, 1), title="strength")}
    layers = (
        alt.Chart(spline(means)).mark_rule(strokeWidth=2.5, strokeCap="round").encode(**at, x2="fair2", y2="auc2"),
        alt.Chart(own).mark_circle(size=18, opacity=0.5).encode(**at),
        alt.Chart(means).mark_circle(size=70, opacity=1, stroke="white", strokeWidth=0.5).encode(**at),
    )
    layout = {"width": look["width"], "height": look["height"], "title": _title(seeds.method.iloc[0], depth)}
    return alt.layer(*layers).properties(**layout)


def _title(method: str, depth: int) -> list[str]:
    return [method, f"{depth} hidden layer{'s' * (depth > 1)}"]
