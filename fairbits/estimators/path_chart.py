"""The picture of a trade-off path; needs altair."""

from typing import Any

import altair as alt
import pandas as pd

FOLD, MEAN = "one fold", "mean of the folds"
JOINED, EQUAL, KEPT, BEST = "means, joined", "as good as the best mean", "the limit itself", "optimal front, estimated"
SIZES = {FOLD: 25, MEAN: 90}
DASHES = {JOINED: [1, 0], EQUAL: [2, 4], KEPT: [2, 4], BEST: [8, 4]}
Lines = tuple[str, ...]  # that a chart has
MEANINGS = {"gamma": "gamma, the weight of the protection (more →)", "limit": "limit that the code was trained to"}


def path_chart(scores: pd.DataFrame, title: str, front: pd.DataFrame | None = None) -> alt.TopLevelMixin:
    """Draw accuracy against unfairness, coloured by gamma or limit, and how much is left of what the method lowers.

    Marks are the folds of `TradeoffPath.scores_` and their means; further left is fairer. With gammas this is AUC
    against GPA, and the leakage if there is a code. The dotted line joins all trade-offs as good as the best mean, by
    the AUC less the GPA, as in the paper's figures. With limits it is accuracy against disparity, before the estimated
    optimal front, and the disparity.
    """
    panels = _limit_panels(scores, front) if "limit" in scores else _gamma_panels(scores)
    return alt.hconcat(*panels).properties(title=alt.Title(title, anchor="middle", fontSize=16))


def _gamma_panels(scores: pd.DataFrame) -> list[Any]:
    draw = "one_draw_" * ("one_draw_auc" in scores)
    scores = scores.assign(auc=scores[f"{draw}auc"], gpa=scores[f"{draw}gpa"])
    shown = [name for name in ("auc", "gpa", "information") if name in scores]
    means = scores.groupby("gamma", as_index=False)[shown].mean()
    best = (means.auc - means.gpa).max()
    last = min(means.gpa.max(), scores.auc.max() - best)  # no higher than the marks
    ends = pd.DataFrame({"gpa": [means.gpa.min(), last], "line": EQUAL})
    ends["auc"] = best + ends.gpa
    lines = (JOINED, EQUAL)
    of = "predictions from one draw of the code" if draw else "predictions"
    gap = _axis(alt.X, "gpa", "GPA, the difference in ranking accuracy between groups (← fairer)", zero=False)
    auc = _axis(alt.Y, "auc", "AUC (more accurate →)", zero=False)
    both = alt.layer(*_marks(scores, gap, auc, shown, lines), _line(ends, gap, auc, lines))
    panels = [both.properties(width=400, height=300, title=f"Accuracy and fairness of {of}")]
    if "information" in shown:
        by = _axis(alt.X, "gamma", MEANINGS["gamma"], zero=False)
        bits = _axis(alt.Y, "information", "leakage, bits (← less)", zero=True)
        leak = alt.layer(*_marks(scores, by, bits, shown, lines)).properties(width=320, height=300)
        panels.append(leak.properties(title="Leakage of one draw of the code" if draw else "Leakage of the code"))
    return panels


def _limit_panels(scores: pd.DataFrame, front: pd.DataFrame | None) -> list[Any]:
    shown, lines = ["accuracy", "disparity"], (JOINED, KEPT) if front is None else (JOINED, BEST, KEPT)
    apart = _axis(alt.X, "disparity", "disparity of any decision made from the code (← fairer)", zero=True)
    right = _axis(alt.Y, "accuracy", "accuracy (more accurate →)", zero=False)
    both = alt.layer(*_marks(scores, apart, right, shown, lines))
    if front is not None:
        both = _line(front.assign(line=BEST), apart, right, lines).encode(order="disparity:Q") + both
    by = _axis(alt.X, "limit", MEANINGS["limit"], zero=True)
    found = _axis(alt.Y, "disparity", "disparity (← less)", zero=True)
    ends = pd.DataFrame({"limit": [0, scores.disparity.max()], "disparity": [0, scores.disparity.max()], "line": KEPT})
    kept = alt.layer(_line(ends, by, found, lines), *_marks(scores, by, found, shown, lines))
    return [
        both.properties(width=400, height=300, title="Accuracy and disparity on rows left out"),
        kept.properties(width=320, height=300, title="Disparity by limit, on rows left out"),
    ]


def _axis(kind: Any, name: str, title: str, *, zero: bool) -> Any:
    scale = alt.Scale(zero=zero, nice=False, padding=12)
    return kind(f"{name}:Q", title=title, scale=scale, axis=alt.Axis(labelFlush=False, labelOverlap=True))


def _marks(scores: pd.DataFrame, x: Any, y: Any, shown: list[str], lines: Lines) -> list[alt.Chart]:
    """Return the line through the means, the folds and the means, with their legends."""
    name = "limit" if "limit" in scores else "gamma"
    means = scores.groupby(name, as_index=False)[shown].mean()
    colours = alt.Scale(scheme="viridis", domain=[0, 1], type="linear" if name == "gamma" else "sqrt")
    colour = alt.Color(f"{name}:Q", scale=colours, legend=alt.Legend(title=name, gradientOpacity=1))
    sizes = alt.Scale(domain=list(SIZES), range=list(SIZES.values()))
    legend = alt.Legend(title="marks", symbolFillColor="#555", symbolStrokeWidth=0)
    size = alt.Size("what:N", scale=sizes, legend=legend)
    tips = [f"{name}:Q", *(alt.Tooltip(f"{score}:Q", format=".4f") for score in shown)]
    dots = [
        alt.Chart(rows.assign(what=what)).mark_circle(opacity=opacity).encode(x, y, colour, size, tooltip=tips)
        for rows, what, opacity in ((scores, FOLD, 0.45), (means, MEAN, 1.0))
    ]
    return [_line(means.assign(line=JOINED), x, y, lines).encode(order=f"{name}:Q"), *dots]


def _line(rows: pd.DataFrame, x: Any, y: Any, lines: Lines) -> alt.Chart:
    scale = alt.Scale(domain=lines, range=[DASHES[line] for line in lines])
    legend = alt.Legend(title="lines", symbolStrokeColor="#555", symbolSize=400)
    kind = alt.StrokeDash("line:N", scale=scale, legend=legend)
    return alt.Chart(rows).mark_line(color="#777", clip=True).encode(x, y, kind)
