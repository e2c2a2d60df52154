"""How the predicted probabilities are distributed in every group."""

from typing import Any

import altair as alt

from fairbits.report.page.chart_style import SERIES, line_keys, line_marks, specification
from fairbits.report.page.parts import Chart, Section
from fairbits.report.text_tables import Table
from fairbits.report.wording import Record

TITLE = "Scores by group"
TEXTS = (
    "For each group, how its members' scores are spread: a score is the predicted probability of {what}, averaged over "
    "the randomness of the code. Where the lines lie on top of each other, any cut-off treats the groups alike.",
)
NOTES = (
    "The averaged score is shown because it does not depend on the draw. It is a function of the person's row itself: "
    "the certificate covers one draw of the code, not this score.",
    "Groups with fewer than ten test rows are left out: their lines would show single persons.",
)
SHOWN = len(SERIES)
TOOLTIP = [
    alt.Tooltip("group:N", title="group"),
    alt.Tooltip("from:Q", format=".2f", title="score from"),
    alt.Tooltip("to:Q", format=".2f", title="to"),
    alt.Tooltip("share:Q", format=".1%", title="share of its rows"),
]


def scores(record: Record) -> Section:
    """Draw a chart for every sensitive column."""
    found = record.get("scores_by_group") or []
    if not found:
        return Section("scores", TITLE, missing="The record holds no scores: what was audited predicts nothing.")
    columns = list(dict.fromkeys(part["column"] for part in found))
    charts = tuple(_column(i, name, [p for p in found if p["column"] == name]) for i, name in enumerate(columns))
    classes = (record.get("task") or {}).get("classes") or ["the last class"]
    label = (record.get("task") or {}).get("label", "the label")
    text = tuple(t.format(what=f"{label} = {classes[-1]}") for t in TEXTS)
    return Section("scores", TITLE, text=text, charts=charts, notes=NOTES)


def _column(number: int, name: str, groups: list[dict[str, Any]]) -> Chart:
    groups = sorted(groups, key=lambda g: -sum(g["counts"]))
    shown, left = groups[:SHOWN], groups[SHOWN:]
    title = f"Scores by {name}" + (f" (the {SHOWN} largest groups)" if left else "")
    means = "; ".join(f"{group['group']}, mean {_mean(group):.3f}" for group in shown)
    words = f"Share of rows by score for {means}."
    keys = line_keys([_title(group) for group in shown])
    return Chart(f"scores-chart-{number}", title, words, _lines(shown), _table(name, groups), keys)


def _title(group: dict[str, Any]) -> str:
    return f"{group['group']} ({sum(group['counts']):,} rows)"


def _lines(groups: list[dict[str, Any]]) -> dict[str, Any]:
    """Draw the share of each group's rows in every bin as steps, with a handle in each for its tooltip."""
    shares = {_title(g): [count / max(sum(g["counts"]), 1) for count in g["counts"]] for g in groups}
    corners = [
        {"group": name, "score": i / len(values), "share": share}
        for name, values in shares.items()
        for i, share in enumerate([*values, values[-1]])
    ]
    handles = [
        {
            "group": name,
            "from": i / len(values),
            "score": (i + 0.5) / len(values),
            "to": (i + 1) / len(values),
            "share": v,
        }
        for name, values in shares.items()
        for i, v in enumerate(values)
    ]
    x = alt.X("score:Q", title="score", scale=alt.Scale(domain=[0, 1]))
    y = alt.Y("share:Q", title="share of the group's rows", axis=alt.Axis(format="%"))
    steps = alt.Chart(alt.InlineData(corners)).mark_line(interpolate="step-after", strokeWidth=2)
    points = alt.Chart(alt.InlineData(handles)).mark_circle(size=260, opacity=0)
    layers = [steps.encode(x=x, y=y, **line_marks("group", list(shares))), points.encode(x=x, y=y, tooltip=TOOLTIP)]
    return specification(alt.layer(*layers), 260)


def _table(name: str, groups: list[dict[str, Any]]) -> Table:
    bins = len(groups[0]["counts"])
    head = ("score", *(g["group"] for g in groups))
    rows = [
        (f"{i / bins:.2f} to {(i + 1) / bins:.2f}", *(f"{g['counts'][i]:,}" for g in groups))
        for i in range(bins)
        if any(g["counts"][i] for g in groups)
    ]
    rows.append(("all rows", *(f"{sum(g['counts']):,}" for g in groups)))
    rows.append(("mean score", *(f"{_mean(g):.3f}" for g in groups)))
    notes = ("The means are of the bins' middles.",)
    return Table("scores", f"Test rows by score and {name}", head, tuple(rows), notes)


def _mean(group: dict[str, Any]) -> float:
    counts = group["counts"]
    return sum(c * (i + 0.5) / len(counts) for i, c in enumerate(counts)) / max(sum(counts), 1)
