"""What a random forest finds of S in the tuned models' representations."""

from collections.abc import Iterable, Iterator
from typing import Any

import lazy_loader
import pandas as pd

from fairbits.lab.paper.fold_estimates import estimate, mean_points
from fairbits.lab.paper.paper_style import ACCURATE, LETTERS, axis, extent, finish, method_encodings
from fairbits.lab.paper.record_frames import FOLD, REFERENCES, Record, method_of, tuned
from fairbits.report.text_tables import Section, Table

alt = lazy_loader.load("altair")
COLUMNS = ["dataset", "method", *FOLD, "view", "place", "hidden", "found", "auc", "one_draw_auc"]
SCORES = {
    "hidden": "1-ADRG ↑",
    "found": "AUC of S ↓",
    "auc": "AUC of the model ↑",
    "one_draw_auc": "AUC of one draw ↑",
}
NOTES = (
    "A random forest predicts S of held-out rows from the representation: 1-ADRG is 1 - |its accuracy - share of the "
    "largest group| (an accuracy below that share counts like one above), AUC of S is 0.5 where nothing is found. Mean "
    "over external folds ± half-width of the 95 % t-interval. The first view of a method is what it releases; the "
    "other views can reveal more. Logistic regression releases the columns themselves, which show what can be found.",
)
PANELS = {"hidden": "1 - ADRG of S (reveals less →)", "found": "AUC of S (reveals more →)"}
SHORT = {"16 draws": "16", "theta": "θ"}
EXPLANATION = (
    "A random forest predicts S. Filled: from what is released (one draw, or the representation).",
    "Hollow: from 16 draws, from theta (θ), from the mean. Bars: 95 % t-intervals, which may leave the picture.",
    "AUC is of the expected prediction. Dotted: as good as the best filled mark.",
)


def views(records: Iterable[Record]) -> pd.DataFrame:
    """Return what a forest finds of S: a row per dataset, method, fold and view of the representation.

    `found` is the AUC of S, `hidden` is 1 - ADRG; the first view of a method (`place` 0) is what it releases.
    """
    rows = []
    for run, result in ((r["run"], r["result"]) for r in tuned(records)):
        facts = {"dataset": run["dataset"], "method": method_of(run), **{name: run[name] for name in FOLD}}
        for place, (view, seen) in enumerate(result.get("representation", {}).items()):
            scores = {"hidden": 1 - seen["adrg"], "found": seen["auc_of_s"], "auc": result["test"]["auc"]}
            drawn = result["test"].get("one_draw_auc", float("nan"))
            rows.append({**facts, "view": view, "place": place, **scores, "one_draw_auc": drawn})
    return pd.DataFrame(rows, columns=COLUMNS)


def representation(records: Iterable[Record]) -> list[Section]:
    """Return a section per dataset."""
    sections = []
    for dataset, found in views(records).groupby("dataset"):
        rows, name = [], f"{dataset}-representation"
        groups = found.assign(rival=~found.method.isin(REFERENCES)).groupby(["rival", "method", "place", "view"])
        for (_, method, _, view), part in groups:
            rows.append((method, view, str(len(part)), *(estimate(part[score]).text() for score in SCORES)))
        title, head = f"{dataset}: what a forest finds of S in the representation", ("method", "view", "folds")
        table = Table(name, title, (*head, *SCORES.values()), tuple(rows), NOTES)
        sections.append(Section(name, f"{dataset}: representations", (table,)))
    return sections


def representation_charts(records: list[Record]) -> Iterator[tuple[str, Any]]:
    """Draw the model's AUC against 1 - ADRG and against the AUC of S of every view; a chart per dataset."""
    every = views(records)
    for dataset, found in every[every.method != "constant"].groupby("dataset"):  # the constant lies far off
        marks = method_encodings(found.method)
        panels = [_panel(_means(found, column), column, title, marks) for column, title in PANELS.items()]
        title = f"{dataset}: what a forest finds of S in representations"
        yield f"{dataset}-representation", finish(alt.hconcat(*panels, spacing=40), title, *EXPLANATION)


def _means(found: pd.DataFrame, column: str) -> pd.DataFrame:
    parts = [
        mean_points(own, "auc", column).assign(view=view, place=place, word=SHORT.get(str(view), view))
        for (place, view), own in found.groupby(["place", "view"])
    ]
    return pd.concat(parts).rename(columns=lambda name: name.replace(column, "fair"))


def _panel(means: pd.DataFrame, column: str, title: str, marks: dict[str, Any]) -> Any:
    from fairbits.report.charts import equal_tradeoffs

    domains = {name: extent(means[name], padding=0.25) for name in ("fair", "auc")}
    x, y = axis("X", "fair", title, domains["fair"]), axis("Y", "auc", ACCURATE, domains["auc"])
    filled = means.place == 0  # what is released
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
