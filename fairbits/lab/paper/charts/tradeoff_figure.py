"""Accuracy against fairness of tuned methods."""

from typing import Any

import altair as alt
import pandas as pd

from fairbits.lab.paper.charts.paper_style import ACCURATE, axis, extent, finish, method_encodings
from fairbits.lab.paper.estimates_of_folds import estimate
from fairbits.report.charts import FAIRER, equal_tradeoffs

PANELS = {"fair": FAIRER, "even": "1 - AUDC (fairer →)"}
EXPLANATION = (
    "Large marks: means over folds; bars, which may leave the picture: 95 % t-intervals. Small marks: folds. "
    "Dotted: as good as the best mean."
)
PATHS = "Thin lines: one seed over all strengths, other settings fixed."
TOLD = "fairlearn TO is told the group of every test row."
OUTSIDE = "The constant predictor (AUC 0.5, GPA and AUDC 0) lies outside the picture."


def tradeoff_chart(scores: pd.DataFrame, paths: pd.DataFrame) -> alt.HConcatChart:
    """Draw AUC against 1 - GPA and against 1 - AUDC.

    Parameters
    ----------
    scores : test scores of one dataset, a row per method and fold (`tuned_scores`)
    paths : means over folds of methods over strengths (`fold_means`), may be empty; if of several methods, the first
        seed's are drawn beneath
    """
    shown, paths = _without_far_constant(scores), _first_seed(paths)
    encodings = method_encodings([*shown.method, *paths.method])
    panels = []
    for column, title in PANELS.items():
        three = [frame.assign(fair=frame[column]) for frame in (shown, scores, paths)]
        panels.append(_panel(three[0], three[1], three[2], title, encodings))
    told = "fairlearn TO" in set(paths.method)
    said = {PATHS: len(paths) > 0, TOLD: told, OUTSIDE: len(shown) < len(scores)}
    lines = [EXPLANATION, *(line for line, true in said.items() if true)]
    return finish(alt.hconcat(*panels, spacing=40), f"{scores.dataset.iloc[0]}: tuned methods on held-out rows", *lines)


def mean_points(scores: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """Return the mean of columns per method, and the ends of their intervals within 0 and 1 as ..._low, ..._high."""
    rows = []
    for method, own in scores.groupby("method"):
        row: dict[str, Any] = {"method": method}
        for column in columns:
            found = estimate(own[column])
            margin = found.margin if found.n > 1 else 0.0
            ends = {f"{column}_low": max(found.mean - margin, 0.0), f"{column}_high": min(found.mean + margin, 1.0)}
            row |= {column: found.mean, **ends}
        rows.append(row)
    return pd.DataFrame(rows)


def _without_far_constant(scores: pd.DataFrame) -> pd.DataFrame:
    """Leave the constant predictor out if it would take more than a third of the picture's height for itself."""
    others = scores[scores.method != "constant"]
    if len(others) in (0, len(scores)):
        return scores
    low, high = others.auc.min(), others.auc.max()
    return scores if low - 0.5 <= (high - low) / 2 else others


def _first_seed(paths: pd.DataFrame) -> pd.DataFrame:
    return paths[paths.seed == paths.seed.min()] if paths.method.nunique() > 1 else paths.head(0)


def _panel(shown: pd.DataFrame, scores: pd.DataFrame, paths: pd.DataFrame, title: str, marks: dict[str, Any]) -> Any:
    means = mean_points(shown, "auc", "fair")
    box = {name: extent(shown[name], padding=0.15) for name in ("fair", "auc")}  # intervals of few folds are far wider
    x, y = axis(alt.X, "fair", title, box["fair"]), axis(alt.Y, "auc", ACCURATE, box["auc"])
    colour, bars = marks["color"], alt.Chart(means).mark_rule(strokeWidth=1.5, clip=True)
    return alt.layer(
        alt.Chart(paths)
        .mark_line(strokeWidth=1, opacity=0.6, clip=True)
        .encode(x=x, y=y, color=colour, order="place:Q"),
        equal_tradeoffs(mean_points(scores, "auc", "fair"), box["fair"]),
        bars.encode(x="fair_low:Q", x2="fair_high:Q", y="auc:Q", color=colour),
        bars.encode(x="fair:Q", y="auc_low:Q", y2="auc_high:Q", color=colour),
        alt.Chart(shown).mark_point(filled=True, size=35, opacity=0.5).encode(x=x, y=y, **marks),
        alt.Chart(means).mark_point(filled=True, size=170, opacity=1).encode(x=x, y=y, **marks),
    ).properties(width=420, height=380)
