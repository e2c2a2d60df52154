"""The picture of a trade-off path; needs altair."""

from typing import Any

import altair as alt
import pandas as pd

FOLD, MEAN = "one fold", "mean of the folds"
JOINED, EQUAL = "means, joined", "as good as the best mean"
SIZES = {FOLD: 25, MEAN: 90}
DASHES = {JOINED: [1, 0], EQUAL: [2, 4]}


def path_chart(scores: pd.DataFrame, title: str) -> alt.TopLevelMixin:
    """Draw AUC against GPA, coloured by gamma, and the leakage by gamma, if there is a code: further left is fairer.

    Marks are the folds of `TradeoffPath.scores_` and their means. The dotted line joins all trade-offs as good as the
    best mean, by the AUC less the GPA, as in the paper's figures.
    """
    draw = "one_draw_" * ("one_draw_auc" in scores)
    scores = scores.assign(auc=scores[f"{draw}auc"], gpa=scores[f"{draw}gpa"])
    shown = [name for name in ("auc", "gpa", "information") if name in scores]
    means = scores.groupby("gamma", as_index=False)[shown].mean()
    ends = pd.DataFrame({"gpa": [means.gpa.min(), means.gpa.max()], "line": EQUAL})
    ends["auc"] = (means.auc - means.gpa).max() + ends.gpa
    of = "predictions from one draw of the code" if draw else "predictions"
    gap = _axis(alt.X, "gpa", "GPA, the difference in ranking accuracy between groups (← fairer)", zero=False)
    auc = _axis(alt.Y, "auc", "AUC (more accurate →)", zero=False)
    both = alt.layer(*_marks(scores, means, gap, auc, shown), _line(ends, gap, auc))
    panels = [both.properties(width=400, height=300, title=f"Accuracy and fairness of {of}")]
    if "information" in shown:
        by = _axis(alt.X, "gamma", "gamma, the weight of the protection (more →)", zero=False)
        bits = _axis(alt.Y, "information", "leakage, bits (← less)", zero=True)
        leak = alt.layer(*_marks(scores, means, by, bits, shown)).properties(width=320, height=300)
        panels.append(leak.properties(title="Leakage of one draw of the code" if draw else "Leakage of the code"))
    return alt.hconcat(*panels).properties(title=alt.Title(title, anchor="middle", fontSize=16))


def _axis(kind: Any, name: str, title: str, *, zero: bool) -> Any:
    scale = alt.Scale(zero=zero, nice=False, padding=12)
    return kind(f"{name}:Q", title=title, scale=scale, axis=alt.Axis(labelFlush=False, labelOverlap=True))


def _marks(scores: pd.DataFrame, means: pd.DataFrame, x: Any, y: Any, shown: list[str]) -> list[alt.Chart]:
    """Return the line through the means, the folds and the means, with their legends."""
    colours, bar = alt.Scale(scheme="viridis", domain=[0, 1]), alt.Legend(title="gamma", gradientOpacity=1)
    colour = alt.Color("gamma:Q", scale=colours, legend=bar)
    sizes = alt.Scale(domain=list(SIZES), range=list(SIZES.values()))
    legend = alt.Legend(title="marks", symbolFillColor="#555", symbolStrokeWidth=0)
    size = alt.Size("what:N", scale=sizes, legend=legend)
    tips = ["gamma:Q", *(alt.Tooltip(f"{name}:Q", format=".4f") for name in shown)]
    dots = [
        alt.Chart(rows.assign(what=what)).mark_circle(opacity=opacity).encode(x, y, colour, size, tooltip=tips)
        for rows, what, opacity in ((scores, FOLD, 0.45), (means, MEAN, 1.0))
    ]
    return [_line(means.assign(line=JOINED), x, y).encode(order="gamma:Q"), *dots]


def _line(rows: pd.DataFrame, x: Any, y: Any) -> alt.Chart:
    dashes = alt.Scale(domain=list(DASHES), range=list(DASHES.values()))
    legend = alt.Legend(title="lines", symbolStrokeColor="#555", symbolSize=400)
    kind = alt.StrokeDash("line:N", scale=dashes, legend=legend)
    return alt.Chart(rows).mark_line(color="#777", clip=True).encode(x, y, kind)
