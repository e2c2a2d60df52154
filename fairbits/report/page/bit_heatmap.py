"""What each bit carries, and what they carry together."""

from typing import Any

import altair as alt

from fairbits.report.page.chart_style import DARK, GREY, ON_DARK, ON_PALE, PALE, SWITCH, TEXT, specification
from fairbits.report.page.parts import Chart, Section
from fairbits.report.text_tables import Table
from fairbits.report.wording import Record

TITLE = "What each bit tells"
TOGETHER = "all together"
TOOLTIP = [
    alt.Tooltip("bit:N", title="of the code"),
    alt.Tooltip("about:N", title="tells about"),
    alt.Tooltip("information:Q", format=".6f", title="information, bits"),
]
TEXTS = (
    "Information says how much a bit helps to guess something, in bits: 0 is no help at all; the entropy in the table "
    "is full knowledge. The code should tell about the label (first column) and not about the sensitive columns.",
    "Single bits do not add up. Two bits can each tell nothing and together everything, or tell the same thing twice. "
    "The number that counts is that of the whole code, the last row.",
)
NOTES = (
    "Exact for one draw of these test rows. On few rows the information of the whole code errs upwards; the estimate "
    "from held-out halves errs downwards, and may fall below 0. In expectation the truth is between the two. Neither "
    "is a proven bound; those are under 'Attacks and what nobody can do'.",
)


def bits(record: Record) -> Section:
    """Draw a heat map of bits by columns."""
    columns = _columns(record)
    if not columns:
        return Section("bits", TITLE, missing="The record holds no code of bits.")
    cells = [
        {"bit": bit, "order": order, "about": title, "column": place, "information": value}
        for place, (title, column) in enumerate(columns)
        for order, (bit, value) in enumerate(_values(column))
    ]
    chart = Chart("bits-chart", TITLE, _spoken(columns), _heat(cells, [title for title, _ in columns]), _table(columns))
    return Section("bits", TITLE, text=TEXTS, charts=(chart,), notes=NOTES)


def _columns(record: Record) -> list[tuple[str, dict[str, Any]]]:
    """Return what the code tells about the label, every sensitive column, and their crossing if it is protected."""
    found = list(record.get("bits") or [])
    named = {column["about"] for column in found}
    for leak in (record.get("audit") or {}).get("leakage") or []:
        if leak["column"] not in named and leak["each_bit"] is not None and leak["joint"] is not None:
            found.append({**leak, "about": leak["column"], "role": "sensitive", "each": leak["each_bit"]})
    return [(f"{c['about']} (label)" if c["role"] == "label" else c["about"], c) for c in found]


def _values(column: dict[str, Any]) -> list[tuple[str, float]]:
    return [*((f"bit {i}", value) for i, value in enumerate(column["each"])), (TOGETHER, column["joint"])]


def _heat(cells: list[dict[str, Any]], titles: list[str]) -> dict[str, Any]:
    """Draw the cells; the bits are rows, so that the numbers have room on a narrow page."""
    most = max(max(cell["information"] for cell in cells), 1e-9)
    top = alt.Axis(orient="top", labelAngle=0, labelLimit=alt.ExprRef(f"width / {len(titles)}"), ticks=False)
    base = alt.Chart(alt.InlineData(cells)).encode(
        x=alt.X("about:N", sort=titles, title=None, axis=top),
        y=alt.Y("bit:N", sort=alt.EncodingSortField("order"), title=None, axis=alt.Axis(ticks=False)),
        tooltip=TOOLTIP,
    )
    colour = alt.Scale(domain=[0, most], range=[PALE, DARK], interpolate="rgb", clamp=True)
    letters = alt.when(f"datum.information > {SWITCH * most}").then(alt.value(ON_DARK)).otherwise(alt.value(ON_PALE))
    boxes = base.mark_rect(stroke=GREY, strokeWidth=0.5)
    whole = base.transform_filter(f"datum.bit == '{TOGETHER}'")
    layers = alt.layer(
        boxes.encode(color=alt.Color("information:Q", scale=colour, legend=None)),
        base.mark_text(fontSize=12).encode(text=alt.Text("information:Q", format=".4f"), color=letters),
        whole.mark_rect(filled=False, stroke=TEXT, strokeWidth=2),
    )
    return specification(layers, 26 * len({cell["bit"] for cell in cells}))


def _table(columns: list[tuple[str, dict[str, Any]]]) -> Table:
    head = ("", *(title for title, _ in columns))
    rows = [(name, *(f"{dict(_values(c))[name]:.6f}" for _, c in columns)) for name, _ in _values(columns[0][1])]
    rows += [
        ("sum over single bits (bounds nothing)", *(f"{sum(c['each']):.6f}" for _, c in columns)),
        ("all together, from held-out halves", *(f"{c['lower']:.6f}" for _, c in columns)),
        ("entropy: the most that can be told", *(f"{c['entropy']:.6f}" for _, c in columns)),
    ]
    return Table("bits", "Information of one draw on the test rows, bits", head, tuple(rows))


def _spoken(columns: list[tuple[str, dict[str, Any]]]) -> str:
    told = "; ".join(f"{c['joint']:.4f} bits about {title}" for title, c in columns)
    return f"Heat map of the information of every bit. The whole code tells {told}."
