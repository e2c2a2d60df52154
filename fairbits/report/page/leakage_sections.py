"""What the code reveals: bit by bit, and to attacks."""

from typing import Any

import altair as alt

from fairbits.report.page import chart_style as look
from fairbits.report.page.page_template import Chart, Key, Section, section
from fairbits.report.text_tables import Table
from fairbits.report.wording import NAMES, TEXTS, Record, at_least, at_most, bound_table, interval

WHOLE = "whole code"
SHORT = {"boosting": "trees", "mlp": "network", "theta": "probabilities"}
REACHED, CERTIFIED = "best attack, at least", "any attack, at most"
KEYS = (
    Key("attack on what is released", look.BLUE, look.CIRCLE),
    Key("attack on more than is certified", look.GREY, look.CIRCLE),
    Key("proved bound", look.ORANGE, look.RIGHTWARD),
    Key("guessing", look.TEXT, dash="3 3"),
)
NUMBER_ROOM = 0.25  # of the axis: the width of a number beside its mark on a narrow screen


def bits(record: Record) -> Section:
    """Draw a heat map of bits by columns."""
    found = list(record.get("bits") or [])
    named = {column["about"] for column in found}
    for leak in (record.get("audit") or {}).get("leakage") or []:
        if leak["column"] not in named and leak["each_bit"] is not None and leak["joint"] is not None:
            found.append({**leak, "about": leak["column"], "role": "sensitive", "each": leak["each_bit"]})
    if not found:
        return section("bits")
    columns = {f"{c['about']} (label)" if c["role"] == "label" else c["about"]: c for c in found}
    said = "; ".join(f"{c['joint']:.4f} bits about {name}" for name, c in columns.items())
    words = f"Heat map of the information in every bit. The whole code holds {said}."
    chart = Chart("bits-chart", TEXTS["bits"]["title"], words, _heat_map(columns), _bit_table(columns))
    return section("bits", charts=(chart,))


def _bit_rows(column: dict[str, Any]) -> dict[str, float]:
    return {**{f"bit {i}": value for i, value in enumerate(column["each"])}, WHOLE: column["joint"]}


def _heat_map(columns: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Draw the cells; the bits are rows, so that the numbers have room on a narrow page."""
    cells: list[dict[str, Any]] = [
        {"bit": bit, "order": order, "about": name, "information": value}
        for name, column in columns.items()
        for order, (bit, value) in enumerate(_bit_rows(column).items())
    ]
    most = max([1e-9, *(cell["information"] for cell in cells)])
    top = alt.Axis(orient="top", labelAngle=0, labelLimit=alt.ExprRef(f"width / {len(columns)}"), ticks=False)
    base = look.drawn(cells).encode(
        x=alt.X("about:N", sort=list(columns), title=None, axis=top),
        y=alt.Y("bit:N", sort=alt.EncodingSortField("order"), title=None, axis=alt.Axis(ticks=False)),
        tooltip=look.tooltip(("bit", "part", ""), ("about", "about", ""), ("information", "information, bits", ".6f")),
    )
    colour = alt.Scale(domain=[0, most], range=[look.PALE, look.DARK], interpolate="rgb", clamp=True)
    dark = alt.when(f"datum.information > {look.SWITCH * most}")
    letters = dark.then(alt.value(look.ON_DARK)).otherwise(alt.value(look.ON_PALE))
    boxes = base.mark_rect(stroke=look.GREY, strokeWidth=0.5)
    layers = alt.layer(
        boxes.encode(color=alt.Color("information:Q", scale=colour, legend=None)),
        base.mark_text(fontSize=12).encode(text=alt.Text("information:Q", format=".4f"), color=letters),
        base.transform_filter(f"datum.bit == '{WHOLE}'").mark_rect(filled=False, stroke=look.TEXT, strokeWidth=2),
    )
    return look.specification(layers, 26 * len({cell["bit"] for cell in cells}))


def _bit_table(columns: dict[str, dict[str, Any]]) -> Table:
    rows = {name: [_bit_rows(c)[name] for c in columns.values()] for name in _bit_rows(next(iter(columns.values())))}
    rows["sum of the single bits (bounds nothing)"] = [sum(c["each"]) for c in columns.values()]
    rows[f"{WHOLE}, from held-out halves"] = [c["lower"] for c in columns.values()]
    rows["maximum (entropy)"] = [c["entropy"] for c in columns.values()]
    cells = tuple((name, *(f"{value:.6f}" for value in values)) for name, values in rows.items())
    return Table("", "Information in one draw on the test rows, bits", ("", *columns), cells)


def attacks(record: Record) -> Section:
    """Draw a chart for every protected column: what our attacks reach, and what no attack exceeds."""
    audit = record.get("audit") or {}
    if not audit.get("probes"):
        return section("attacks")
    texts = TEXTS["attacks"]
    charts = tuple(_attack_chart(i, found, audit["probes"]) for i, found in enumerate(audit["adversaries"]))
    tables = []
    if record.get("certificate"):
        tables.append(bound_table("Upper bounds from the calibration rows", record["certificate"]))
    if audit.get("certificate"):
        again = (texts["again"],) if "certificate" in record else ()
        tables.append(bound_table("Upper bounds from the test rows", audit["certificate"], *again))
    covered = (texts["covered"],) if len({probe["view"] for probe in audit["probes"]}) > 1 else ()
    absent = (f"Not available, {name}: {reason}" for name, reason in (audit.get("unavailable") or {}).items())
    notes = (*covered, texts["statistics"].format(**audit), *absent)
    return section("attacks", charts=charts, tables=tuple(tables), notes=notes)


def _attack_chart(number: int, adversary: dict[str, Any], probes: list[dict[str, Any]]) -> Chart:
    name, guessing = adversary["column"], adversary["chance"]
    probes = [probe for probe in probes if probe["column"] == name]
    released = probes[0]["view"]
    rows = [
        {
            "row": f"{SHORT.get(p['view'], p['view'])}: {SHORT.get(p['model'], p['model'])}",
            "released": p["view"] == released,
            "value": p["balanced_accuracy"],
            "low": p["balanced_accuracy_low"],
            "high": p["balanced_accuracy_high"],
        }
        for p in probes
    ]
    ends = [{"row": REACHED, "value": adversary["reached"], "shown": at_least(adversary["reached"])}]
    if adversary["at_most"] is not None:
        ends.append({"row": CERTIFIED, "value": adversary["at_most"], "shown": at_most(adversary["at_most"])})
    title = f"How well can {name} be guessed from {'one draw' if released == 'one draw' else 'what is released'}?"
    said = [f"{end['row'].capitalize()}: {end['shown']}." for end in ends]
    words = " ".join([title, *said, f"Guessing: {guessing:.3f}."])
    spec, numbers = _axis(rows, ends, guessing), _attack_table(name, probes, said)
    return Chart(f"attacks-chart-{number}", title, words, spec, numbers, KEYS)


def _axis(rows: list[dict[str, Any]], ends: list[dict[str, Any]], guessing: float) -> dict[str, Any]:
    """Draw the attacks' intervals above one another, with guessing and the certificate as vertical lines."""
    order = [*(end["row"] for end in ends[::-1]), *(row["row"] for row in rows)]
    values = [guessing, *(end["value"] for end in ends), *(row[end] for row in rows for end in ("low", "high"))]
    low, high = min(values), max(values)
    high = max(high, max(end["value"] for end in ends) + NUMBER_ROOM * (high - low))
    room = 0.05 * (high - low) or 0.01
    domain = alt.Scale(domain=[low - room, high + room], nice=False, zero=False)
    x = alt.X("value:Q", title="balanced accuracy", scale=domain)
    y = alt.Y("row:N", sort=order, title=None, axis=alt.Axis(labelLimit=170, grid=True))
    kinds = alt.Scale(domain=[True, False], range=[look.BLUE, look.GREY])
    tips = look.tooltip(
        ("row", "attack", ""),
        ("value", "balanced accuracy", ".3f"),
        ("low", "interval from", ".3f"),
        ("high", "to", ".3f"),
    )
    probes = look.drawn(rows).encode(y=y, color=alt.Color("released:N", scale=kinds, legend=None), tooltip=tips)
    shapes = alt.Scale(domain=[end["row"] for end in ends], range=[look.RIGHTWARD, look.LEFTWARD])
    proof = look.tooltip(("row", "proved", ""), ("shown", "balanced accuracy", ""))
    proved = look.drawn(ends).encode(x=x, y=y, tooltip=proof)
    layers = alt.layer(
        look.drawn([{"value": guessing}]).mark_rule(strokeDash=[3, 3], color=look.TEXT, opacity=0.6).encode(x=x),
        look.drawn(ends[1:]).mark_rule(color=look.ORANGE, strokeWidth=2).encode(x=x),
        probes.mark_rule(strokeWidth=3).encode(x="low:Q", x2="high:Q"),
        probes.mark_point(filled=True, size=70, opacity=1).encode(x=x),
        proved.mark_text(align="left", dx=12, fontWeight="bold").encode(text="shown:N"),
        proved.mark_point(filled=True, size=100, opacity=1, color=look.ORANGE).encode(
            shape=alt.Shape("row:N", scale=shapes, legend=None)
        ),
    )
    return look.specification(layers, 28 * len(order))


def _attack_table(name: str, probes: list[dict[str, Any]], said: list[str]) -> Table:
    head = ("attack on", "by", "balanced accuracy", "interval", "AUC", "interval", "p-value")
    rows = tuple(
        (
            NAMES.get(p["view"], p["view"]),
            NAMES.get(p["model"], p["model"]),
            f"{p['balanced_accuracy']:.3f}",
            interval(p["balanced_accuracy_low"], p["balanced_accuracy_high"]),
            f"{p['auc']:.3f}",
            interval(p["auc_low"], p["auc_high"]),
            f"{p['p_value']:.3f}",
        )
        for p in probes
    )
    return Table("", f"Attacks on {name}", head, rows, (*said, TEXTS["attacks"]["p_value"]))
