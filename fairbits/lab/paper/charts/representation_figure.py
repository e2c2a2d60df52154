"""What a forest finds of S in representations, against the model's accuracy."""

from typing import Any

import altair as alt
import pandas as pd

from fairbits.lab.paper.charts.paper_style import ACCURATE, LETTERS, axis, extent, finish, method_encodings
from fairbits.lab.paper.charts.tradeoff_figure import mean_points
from fairbits.report.charts import equal_tradeoffs

PANELS = {"hidden": "1 - ADRG of S (tells less →)", "told": "AUC of S (tells more →)"}
SHORT = {"16 draws": "16", "theta": "θ"}
EXPLANATION = (
    "A random forest predicts S. Filled: from what is handed on (one draw, or the representation).",
    "Hollow: from 16 draws, from theta (θ), from the mean. Bars, which may leave the picture: 95 % t-intervals.",
    "AUC is of the expected prediction. Dotted: as good as the best filled mark.",
)


def representation_chart(found: pd.DataFrame) -> alt.HConcatChart:
    """Draw the model's AUC against 1 - ADRG and against the AUC of S of every view.

    Parameters
    ----------
    found : a row per method, fold and view of one dataset (`views`)
    """
    found = found[found.method != "constant"]  # far off: it tells nothing of anything
    marks = method_encodings(found.method)
    panels = [_panel(_means(found, column), column, title, marks) for column, title in PANELS.items()]
    title = f"{found.dataset.iloc[0]}: what a forest finds of S in representations"
    return finish(alt.hconcat(*panels, spacing=40), title, *EXPLANATION)


def _means(found: pd.DataFrame, column: str) -> pd.DataFrame:
    parts = [
        mean_points(own, "auc", column).assign(view=view, place=place, word=SHORT.get(str(view), view))
        for (place, view), own in found.groupby(["place", "view"])
    ]
    return pd.concat(parts).rename(columns=lambda name: name.replace(column, "fair"))


def _panel(means: pd.DataFrame, column: str, title: str, marks: dict[str, Any]) -> Any:
    domains = {name: extent(means[name], padding=0.25) for name in ("fair", "auc")}
    x, y = axis(alt.X, "fair", title, domains["fair"]), axis(alt.Y, "auc", ACCURATE, domains["auc"])
    filled = means.place == 0  # what is handed on
    hollow, colour = means[~filled], marks["color"]
    layers = [
        alt.Chart(means).mark_rule(clip=True).encode(x="fair_low:Q", x2="fair_high:Q", y="auc:Q", color=colour),
        alt.Chart(means[filled]).mark_rule(clip=True).encode(x="fair:Q", y="auc_low:Q", y2="auc_high:Q", color=colour),
        alt.Chart(means[filled]).mark_point(filled=True, size=170, opacity=1).encode(x=x, y=y, **marks),
        alt.Chart(hollow).mark_point(size=130, strokeWidth=2, fill="white", opacity=1).encode(x=x, y=y, **marks),
        alt.Chart(hollow).mark_text(dy=-16, fontSize=LETTERS).encode(x=x, y=y, text="word:N", color=colour),
    ]
    if column == "hidden":
        layers.insert(0, equal_tradeoffs(means[filled], domains["fair"]))
    return alt.layer(*layers).properties(width=420, height=380)
