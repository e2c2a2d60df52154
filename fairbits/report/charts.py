"""The trade-off as a picture, and charts as files."""

import io
import re
from pathlib import Path

import altair as alt
import pandas as pd

from fairbits.storage import replace_file

FAIRER = "1 - GPA (fairer →)"


def frontier_chart(scores: pd.DataFrame, title: str) -> alt.HConcatChart:
    """Draw AUC against 1 - GPA, coloured by gamma, and the leakage against gamma.

    Points are folds, lines join their means; the dotted line holds all trade-offs as good as the best mean, in the L1
    distance to (1, 1), as in the paper's figures.

    Parameters
    ----------
    scores : one row per gamma and fold with columns gamma, one_draw_auc, one_draw_gpa and information
        (`TradeoffPath.scores_`): prediction and information are of the same drawn code
    """
    scores = scores.assign(auc=scores.one_draw_auc, gpa=scores.one_draw_gpa, fair=1 - scores.one_draw_gpa)
    means = scores.groupby("gamma", as_index=False)[["auc", "fair", "information"]].mean()
    gamma = alt.Color("gamma:Q", scale=alt.Scale(scheme="viridis", domain=[0, 1]), legend=alt.Legend(title="gamma"))
    low, high = scores.fair.min(), scores.fair.max()
    fairness = alt.X("fair:Q", title=FAIRER, scale=alt.Scale(domain=[low, high], padding=8))
    accuracy = alt.Y("auc:Q", title="AUC (more accurate →)", scale=alt.Scale(zero=False))
    weight = alt.X(
        "gamma:Q", title="gamma", scale=alt.Scale(domain=[scores.gamma.min(), scores.gamma.max()], padding=8)
    )
    leakage = alt.Y("information:Q", title="I(T;S), bits", scale=alt.Scale(zero=True))
    folds = alt.Chart(scores).mark_circle(size=25, opacity=0.45)
    folds = folds.encode(color=gamma, tooltip=["gamma", "fold", "auc", "gpa", "information"])
    joined = alt.Chart(means).mark_line(color="#888").encode(order="gamma:Q")
    plane = alt.layer(
        folds.encode(x=fairness, y=accuracy),
        joined.encode(x="fair:Q", y="auc:Q"),
        alt.Chart(means).mark_circle(size=90, opacity=1).encode(x="fair:Q", y="auc:Q", color=gamma),
        equal_tradeoffs(means),
    )
    right = alt.layer(folds.encode(x=weight, y=leakage), joined.encode(x="gamma:Q", y="information:Q"))
    plane = plane.properties(width=380, height=300, title="Predictions from one draw of the code")
    right = right.properties(width=300, height=300, title="Leakage of one draw of the code")
    return alt.hconcat(plane, right).properties(title=alt.Title(title, anchor="middle", fontSize=16))


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
    png, svg, image = folder / f"{name}.png", folder / f"{name}.svg", io.BytesIO()
    chart.save(image, format="png", scale_factor=2)
    replace_file(png, image.getvalue())
    replace_file(svg, svg_of(chart))
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
