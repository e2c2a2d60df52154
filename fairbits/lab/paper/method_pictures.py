"""Pictures of many methods without one upon the other: a row of dots per method, or a small panel per method."""

from collections.abc import Iterable
from typing import Any

import lazy_loader
import numpy as np
import pandas as pd

from fairbits.lab.paper.paper_style import LETTERS, axis, extent, mark_of
from fairbits.lab.paper.record_frames import mean_points

alt = lazy_loader.load("altair")
ABREAST, PANEL, GREY = 4, {"width": 200, "height": 150}, "#bbbbbb"
TURN = np.linspace(0, 2 * np.pi, 41)


def dots(found: pd.DataFrame, order: Iterable[str], columns: dict[str, str], hollow: Iterable[str] = ()) -> Any:
    """Draw a row for every `row` of the frame and a panel for every column: mean, 95 % interval, and folds as ticks.

    Rows have the colour of their `method`; those in `hollow` have hollow marks.
    """
    rows, hollow = list(order), set(hollow)
    return alt.hconcat(
        *(_column(found, rows, hollow, name, title, place == 0) for place, (name, title) in enumerate(columns.items())),
        spacing=12,
    )


def _column(found: pd.DataFrame, rows: list[str], hollow: set[str], name: str, title: str, first: bool) -> Any:
    means = mean_points(found.assign(method=found.row), name).rename(columns={"method": "row", name: "value"})
    means = means.merge(found[["row", "method"]].drop_duplicates())
    marks = mark_of(found.method)
    colour, shape = (
        channel("method:N", legend=None, scale=alt.Scale(domain=list(marks), range=[m[part] for m in marks.values()]))
        for part, channel in enumerate((alt.Color, alt.Shape))
    )
    labels = alt.Axis() if first else alt.Axis(labels=False, ticks=False)
    x = axis("X", "value", title, extent(found[name], padding=0.1), axis=alt.Axis(tickCount=4))
    y = alt.Y("row:N", sort=rows, title=None, axis=labels, scale=alt.Scale(domain=rows))
    ticks = alt.Chart(found[["row", "method"]].assign(value=found[name])).mark_tick(size=9, opacity=0.6)
    bars = alt.Chart(means).mark_rule(strokeWidth=2, clip=True).encode(alt.X(f"{name}_low:Q"), alt.X2(f"{name}_high:Q"))
    points = alt.Chart(means).mark_point(size=110, opacity=1, strokeWidth=2)
    fill = alt.condition(alt.FieldOneOfPredicate("row", sorted(hollow)), alt.value("white"), colour)
    return alt.layer(
        ticks.encode(x=x, y=y, color=colour),
        bars.encode(y=y, color=colour),
        points.encode(x=x, y=y, shape=shape, fill=fill, stroke=colour),
    ).properties(width=150, height=24 * len(rows))


def panels(found: pd.DataFrame, paths: pd.DataFrame, order: Iterable[str], titles: tuple[str, str]) -> Any:
    """Draw a small panel per method of AUC against `fair`: its folds, mean and path in colour, all others in grey.

    The ellipse is one standard error around the mean; the dotted line is as good as the best mean.
    """
    means = found.groupby("method", as_index=False)[["fair", "auc"]].mean()
    box = {name: extent(found[name], padding=0.15) for name in ("fair", "auc")}
    drawn = [_panel(found, means, paths, method, box) for method in order if method in set(means.method)]
    title = alt.Title(f"{titles[1]}, against {titles[0]}", anchor="start", fontSize=LETTERS, fontWeight="normal")
    return alt.concat(*drawn, columns=ABREAST, spacing=14).properties(title=title)


def _panel(found: pd.DataFrame, means: pd.DataFrame, paths: pd.DataFrame, method: str, box: dict[str, Any]) -> Any:
    from fairbits.report.charts import equal_tradeoffs

    colour, shape = mark_of(found.method)[method]
    at = {"x": axis("X", "fair", "", box["fair"]), "y": axis("Y", "auc", "", box["auc"])}
    own, other = found[found.method == method], means[means.method != method]
    line = {"strokeWidth": 1, "clip": True}
    others = alt.Chart(paths[paths.method != method]).mark_line(color=GREY, opacity=0.5, **line)
    mine = alt.Chart(paths[paths.method == method]).mark_line(color=colour, **line)
    around = alt.Chart(standard_error(own)).mark_line(color=colour, strokeWidth=1.5, clip=True)
    marks = {"filled": True, "clip": True, "opacity": 1}
    return alt.layer(
        others.encode(order="place:Q", detail="method:N", **at),
        equal_tradeoffs(means, box["fair"]),
        alt.Chart(other).mark_point(color=GREY, size=45, **marks).encode(**at),
        mine.encode(order="place:Q", **at),
        alt.Chart(own[["fair", "auc"]]).mark_point(color=colour, shape=shape, size=14, **marks).encode(**at),
        around.encode(order="place:Q", **at),
        alt.Chart(means[means.method == method]).mark_point(color=colour, shape=shape, size=110, **marks).encode(**at),
    ).properties(**PANEL, title=alt.Title(method, fontSize=LETTERS - 2))


def standard_error(own: pd.DataFrame) -> pd.DataFrame:
    """Return the ellipse of one standard error around the mean of `fair` and `auc`; without two rows it is empty."""
    points = own[["fair", "auc"]].dropna().to_numpy()
    if len(points) < 2:
        return pd.DataFrame(columns=["fair", "auc", "place"], dtype=float)
    values, axes = np.linalg.eigh(np.cov(points, rowvar=False) / len(points))
    circle = np.stack([np.cos(TURN), np.sin(TURN)]) * np.sqrt(np.clip(values, 0, None))[:, None]
    around = points.mean(0) + (axes @ circle).T
    return pd.DataFrame({"fair": around[:, 0], "auc": around[:, 1], "place": np.arange(len(TURN))})
