"""The trade-off as a picture."""

import io
import re
from pathlib import Path

import altair as alt
import pandas as pd

FAIRER = "1 - GPA (fairer →)"


def frontier_chart(scores: pd.DataFrame, title: str) -> alt.HConcatChart:
    """Draw AUC against 1 - GPA, coloured by gamma, and the information against gamma.

    Points are folds, lines join their means; the dotted line holds all trade-offs as good as the best mean, in the L1
    distance to (1, 1), as in the paper's figures.

    Parameters
    ----------
    scores : one row per gamma and fold with columns gamma, one_draw_auc, one_draw_gpa and information
        (`TradeoffPath.scores_`): prediction and information are of the same drawn code
    """
    scores = scores.assign(auc=scores.one_draw_auc, gpa=scores.one_draw_gpa, fair=1 - scores.one_draw_gpa)
    means = scores.groupby("gamma", as_index=False)[["auc", "fair", "information"]].mean()
    colour = alt.Color("gamma:Q", scale=alt.Scale(scheme="viridis", domain=[0, 1]), legend=alt.Legend(title="gamma"))
    plane = alt.layer(
        _points(scores, "fair", "auc", colour),
        alt.Chart(means).mark_line(color="#888").encode(x="fair:Q", y="auc:Q", order="gamma:Q"),
        alt.Chart(means).mark_circle(size=90, opacity=1).encode(x="fair:Q", y="auc:Q", color=colour),
        equal_tradeoffs(means),
    ).properties(width=380, height=300, title="Predictions from one drawn code")
    leakage = alt.layer(
        _points(scores, "gamma", "information", colour),
        alt.Chart(means).mark_line(color="#888").encode(x="gamma:Q", y="information:Q"),
    ).properties(width=300, height=300, title="What one drawn code tells about the group")
    return alt.hconcat(plane, leakage).properties(title=alt.Title(title, anchor="middle", fontSize=16))


def _points(scores: pd.DataFrame, x: str, y: str, colour: alt.Color) -> alt.Chart:
    names = {"fair": FAIRER, "auc": "AUC (more accurate →)", "gamma": "gamma", "information": "I(T;S), bits"}
    low, high = scores[x].min(), scores[x].max()
    return (
        alt.Chart(scores)
        .mark_circle(size=25, opacity=0.45)
        .encode(
            x=alt.X(f"{x}:Q", title=names[x], scale=alt.Scale(domain=[low, high], padding=8)),
            y=alt.Y(f"{y}:Q", title=names[y], scale=alt.Scale(zero=y == "information")),
            color=colour,
            tooltip=["gamma", "fold", "auc", "gpa", "information"],
        )
    )


def equal_tradeoffs(means: pd.DataFrame, between: tuple[float, float] | None = None) -> alt.Chart:
    """Draw the line of slope -1 through the mean closest to (1, 1) in the L1 distance.

    Parameters
    ----------
    means : columns fair and auc
    between : where the line starts and ends, by default at the least and the most fair of the means
    """
    best = (means.auc + means.fair).max()
    ends = between or (means.fair.min(), means.fair.max())
    line = pd.DataFrame({"fair": ends}).assign(auc=lambda f: best - f.fair)
    return alt.Chart(line).mark_line(strokeDash=[2, 4], color="#444", clip=True).encode(x="fair:Q", y="auc:Q")


def save_chart(chart: alt.TopLevelMixin, folder: Path, name: str) -> list[Path]:
    """Write a chart as PNG and SVG and return the files; the same chart gives the same bytes."""
    png, svg = (folder / f"{name}.{ending}" for ending in ("png", "svg"))
    for file, scale in ((png, 2), (svg, 1)):
        part = file.with_name(f"part.{file.name}")  # the format follows the ending
        chart.save(str(part), scale_factor=scale)
        if file is svg:
            part.write_text(_renumbered(part.read_text(encoding="utf-8")), encoding="utf-8")
        part.replace(file)
    return [png, svg]


def svg_of(chart: alt.TopLevelMixin) -> str:
    """Return a chart as the text of an SVG; the same chart gives the same text."""
    text = io.StringIO()
    chart.save(text, format="svg")
    return _renumbered(text.getvalue())


def _renumbered(svg: str) -> str:
    """Count the ids of an SVG from 0: vega goes on from those of the charts before.

    >>> _renumbered('<g clip-path="url(#clip7)"/><clipPath id="clip7"/>')
    '<g clip-path="url(#id0)"/><clipPath id="id0"/>'
    """
    names = {old: f"id{i}" for i, old in enumerate(dict.fromkeys(re.findall(r' id="([^"]+)"', svg)))}
    return re.sub(r'( id="|url\(#)([^")]+)', lambda found: found[1] + names.get(found[2], found[2]), svg)
