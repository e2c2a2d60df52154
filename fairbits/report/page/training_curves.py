"""How the training went: learning curves and the information plane."""

from typing import Any

import altair as alt

from fairbits.report.page.chart_style import BLUE, GREY, ORANGE, TEXT, line_keys, line_marks, specification
from fairbits.report.page.parts import Chart, Section
from fairbits.report.text_tables import Table
from fairbits.report.wording import Record

CURVES = "Learning curves"
NAMES = ["training", "validation"]
TERMS = {
    "cross_entropy": ("Error in predicting the label", "cross-entropy, bits"),
    "information": ("Information about the groups", "information, bits"),
}
CURVE_TEXTS = (
    "An epoch is one pass over the training rows. The training lowers both: the error in predicting the label and the "
    "information about the groups, weighted 1 - gamma and gamma. The epoch with the smallest sum on the validation "
    "rows was kept, the dashed line.",
)
CURVE_NOTES = (
    "Validation rows are a tenth of the training rows, held out to choose the epoch. Training values are means over "
    "batches with one draw of the code. Validation values are averages over the draws; their information is freed of "
    "the upward error of few rows, and may so fall below 0.",
)
PLANE = "The information plane"
PLANE_TEXTS = (
    "Training as a path, epoch by epoch. To the right the code tells more about the rows it was made from, I(X;T). "
    "Upward, in the first chart it tells more about the label, I(T;Y), which is wanted; in the second about the "
    "groups, I(T;S), which is not.",
)
PLANE_NOTES = (
    "From a second training with the settings of the kept model, on {rows:,} rows, because measuring this slows "
    "training down; it is another run with another random start. Exact for one draw of these validation rows; they are "
    "few, so that I(T;Y) and I(T;S) err upwards as statements about everybody.",
)
UP = {"about_y": "told about the label, I(T;Y), bits", "about_s": "told about the groups, I(T;S), bits"}
COLOURS = {"about_y": BLUE, "about_s": ORANGE}
ACROSS = "told about the row, I(X;T), bits"


def learning_curves(record: Record) -> Section:
    """Draw error and information by epoch."""
    history = record.get("history") or []
    terms = [name for name in TERMS if history and name in history[0]]
    if not terms:
        return Section("learning", CURVES, missing="The record holds no training: nothing was trained here.")
    charts = tuple(_curve(name, history, record.get("best_epoch")) for name in terms)
    return Section("learning", CURVES, text=CURVE_TEXTS, charts=charts, notes=CURVE_NOTES)


def _curve(name: str, history: list[dict[str, Any]], best: int | None) -> Chart:
    title, axis = TERMS[name]
    rows = [
        {"epoch": epoch["epoch"] + 1, "rows": rows, "value": epoch[field]}
        for epoch in history
        for rows, field in zip(NAMES, (name, f"validation_{name}"), strict=True)
        if epoch.get(field) is not None
    ]
    words = f"{title} by epoch, on training and validation rows; {len(history)} epochs."
    drawn, numbers = _lines(rows, axis, best), _curve_table(title, name, history)
    return Chart(f"learning-chart-{name}", title, words, drawn, numbers, line_keys(NAMES))


def _lines(rows: list[dict[str, Any]], axis: str, best: int | None) -> dict[str, Any]:
    lines = alt.Chart(alt.InlineData(rows)).mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=22, filled=True))
    lines = lines.encode(
        x=alt.X("epoch:Q", title="epoch", axis=alt.Axis(tickMinStep=1), scale=alt.Scale(nice=False)),
        y=alt.Y("value:Q", title=axis, scale=alt.Scale(zero=False)),
        **line_marks("rows", NAMES),
        tooltip=[
            alt.Tooltip("epoch:Q"),
            alt.Tooltip("rows:N", title="rows"),
            alt.Tooltip("value:Q", format=".4f", title=axis),
        ],
    )
    if best is None:
        return specification(lines, 240)
    kept = alt.Chart(alt.InlineData([{"epoch": best + 1}])).mark_rule(color=TEXT, strokeDash=[4, 3]).encode(x="epoch:Q")
    return specification(alt.layer(kept, lines), 240)


def _curve_table(title: str, name: str, history: list[dict[str, Any]]) -> Table:
    fields = (name, f"validation_{name}")
    rows = tuple((str(e["epoch"] + 1), *(_number(e.get(field)) for field in fields)) for e in history)
    return Table("learning", f"{title}, bits", ("epoch", *NAMES), rows)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def information_plane(record: Record) -> Section:
    """Draw the path of the training through what the code tells."""
    plane = record.get("plane") or {}
    epochs = plane.get("epochs") or []
    if not epochs:
        return Section("plane", PLANE, missing="The record holds no information plane: nothing was trained here.")
    charts = tuple(_path(field, title, epochs) for field, title in UP.items())
    notes = tuple(note.format(**plane) for note in PLANE_NOTES)
    return Section("plane", PLANE, text=PLANE_TEXTS, charts=charts, notes=notes)


def _path(field: str, title: str, epochs: list[dict[str, Any]]) -> Chart:
    rows = [{"epoch": e["epoch"] + 1, "across": e["about_x"], "up": e[field], "mark": ""} for e in epochs]
    rows[0]["mark"], rows[-1]["mark"] = f"epoch {rows[0]['epoch']}", f"epoch {rows[-1]['epoch']}"
    caption = title.split(",")[0].capitalize()
    words = f"{caption}: from {rows[0]['up']:.4f} to {rows[-1]['up']:.4f} bits in {len(rows)} epochs."
    cells = tuple((str(r["epoch"]), f"{r['across']:.4f}", f"{r['up']:.4f}") for r in rows)
    numbers = Table("plane", caption, ("epoch", ACROSS, title), cells)
    return Chart(f"plane-chart-{field}", caption, words, _way(rows, title, COLOURS[field]), numbers)


def _way(rows: list[dict[str, Any]], title: str, colour: str) -> dict[str, Any]:
    """Join the epochs by a line and let their colour grow."""
    base = alt.Chart(alt.InlineData(rows)).encode(
        x=alt.X("across:Q", title=ACROSS, scale=alt.Scale(zero=False, padding=24)),
        y=alt.Y("up:Q", title=title, scale=alt.Scale(zero=False, padding=14)),
    )
    later = alt.Color("epoch:Q", scale=alt.Scale(range=[GREY, colour]), legend=None)
    tooltip = [
        alt.Tooltip("epoch:Q"),
        alt.Tooltip("across:Q", format=".4f", title=ACROSS),
        alt.Tooltip("up:Q", format=".4f", title=title),
    ]
    layers = alt.layer(
        base.mark_line(strokeWidth=1.5, color=GREY, opacity=0.7).encode(order="epoch:Q"),
        base.mark_circle(size=60, opacity=1).encode(color=later, tooltip=tooltip),
        base.transform_filter("datum.mark != ''").mark_text(dy=-11).encode(text="mark:N"),
    )
    return specification(layers, 260)
