"""The trade-off: what the kept model was chosen from and what it is measured against."""

import math
from typing import Any

import altair as alt

from fairbits.report.page.chart_style import (
    BLUE,
    CIRCLE,
    CROSS,
    DIAMOND,
    DOWNWARD,
    GREEN,
    GREY,
    OCHRE,
    ORANGE,
    PINK,
    SQUARE,
    TEXT,
    UPWARD,
    specification,
)
from fairbits.report.page.parts import Chart, Key, Section, Slider
from fairbits.report.text_tables import Table
from fairbits.report.wording import Record

TITLE = "What protection costs"
OWN = "BinaryMI"
MARKS = {  # colour and shape of a method, and what it is
    OWN: (BLUE, CIRCLE, "fairbits, along gamma"),
    "Parity": (GREEN, UPWARD, "parity penalty, along its weight"),
    "HSIC": (ORANGE, DIAMOND, "HSIC penalty, along its weight"),
    "unmitigated": (PINK, SQUARE, "unprotected network"),
    "logistic regression": (OCHRE, CROSS, "logistic regression"),
    "constant": (GREY, DOWNWARD, "always the most frequent class"),
}
SHOWN = ("accuracy", "AUC")
TOOLTIP = [
    alt.Tooltip("kind:N", title="model"),
    alt.Tooltip("weight:N", title="gamma or weight"),
    alt.Tooltip("accuracy:Q", format=".3f", title="accuracy"),
    alt.Tooltip("auc:Q", format=".3f", title="AUC"),
    alt.Tooltip("gap:Q", format=".3f", title="gap between groups"),
    alt.Tooltip("information:Q", format=".4f", title="information about groups, bits"),
]
TEXTS = (
    "Every mark is a model, measured on test rows that no model has seen. Up is more accurate. Left is fairer: the gap "
    "is the difference between two groups in how often each class is predicted (the largest over pairs of groups). A "
    "good model is up and to the left.",
    "The dots joined by a line are one method, fairbits, with growing weight gamma on forgetting. They are scored as "
    "they are used: on one random draw of the code per person. Move the slider to see each of them.",
)
RIVALS = (
    "The parity and HSIC penalties are rivals that make a network's predictions, or its last layer, similar between "
    "groups. They look good on this picture where they do, but for them nothing bounds what somebody else could read "
    "from the layer they hand on."
)


def frontier(record: Record) -> Section:
    """Draw the models of the record, with a slider over the path."""
    points = _points(record)
    if not any(point["path"] for point in points):
        return Section("frontier", TITLE, missing="The record holds no models to compare with.")
    path = [point for point in points if point["method"] == OWN]
    start = next((p["place"] for p in path if p["chosen"]), 0)
    slider = Slider("gamma", tuple(_words(p, record) for p in path), start, SHOWN) if path else None
    notes = (_precision(record), RIVALS, *_rows(record))
    drawn = _chart(points, start, (record.get("asked") or {}).get("max_disparity"))
    chart = Chart("frontier-chart", TITLE, _spoken(points), drawn, _numbers(points), _keys(points))
    return Section("frontier", TITLE, text=TEXTS, slider=slider, charts=(chart,), notes=tuple(filter(None, notes)))


def _points(record: Record) -> list[dict[str, Any]]:
    """Return a row per model; a method that draws is scored on one draw."""
    found = []
    for model in record.get("alternatives") or []:
        scores, drawn = model["scores"], "one_draw_" * ("one_draw_auc" in model["scores"])
        found.append(
            {
                "method": model["name"],
                "kind": _kind(model["name"]),
                "gamma": model["gamma"],
                "chosen": bool(model.get("chosen")),
                "path": model["gamma"] is not None,
                "accuracy": scores[f"{drawn}accuracy"],
                "auc": scores[f"{drawn}auc"],
                "gap": scores[f"{drawn}discrimination"],
                "information": scores.get("information"),
            }
        )
    found.sort(key=lambda p: (list(MARKS).index(p["method"]) if p["method"] in MARKS else 9, p["gamma"] or 0))
    return [{**point, "place": place} for place, point in enumerate(found)]


def _keys(points: list[dict[str, Any]]) -> tuple[Key, ...]:
    marks = {kind: (colour, symbol) for colour, symbol, kind in MARKS.values()}
    kinds = dict.fromkeys(point["kind"] for point in points)
    return tuple(Key(kind, *marks.get(kind, (GREY, CROSS))) for kind in kinds)


def _kind(name: str) -> str:
    return MARKS[name][2] if name in MARKS else name


def _chart(points: list[dict[str, Any]], start: int, limit: float | None) -> dict[str, Any]:
    sliding = any(point["method"] == OWN for point in points)  # else the page has no controls to bind to
    place, shown = (
        alt.param(name=name, value=value, bind=alt.BindDirect(element=f"#{name}", event="input"))
        if sliding
        else alt.param(name=name, value=value)
        for name, value in (("place", start), ("shown", SHOWN[0]))
    )
    base, keys = _placed(points, limit), _keys(points)
    names = [key.label for key in keys]
    colour = alt.Color("kind:N", scale=alt.Scale(domain=names, range=[key.colour for key in keys]), legend=None)
    shape = alt.Shape("kind:N", scale=alt.Scale(domain=names, range=[key.symbol for key in keys]), legend=None)
    lines = base.transform_filter("datum.path").mark_line(strokeWidth=1.5, opacity=0.7)
    picked = base.transform_filter("datum.place == place").encode(color=alt.value(TEXT))
    kept = base.transform_filter("datum.chosen")
    layers = [
        lines.encode(color=colour, order="gamma:Q"),
        base.mark_point(filled=True, size=80, opacity=1).encode(color=colour, shape=shape, tooltip=TOOLTIP),
        *([picked.mark_point(size=340, strokeWidth=2.5, opacity=1).encode(tooltip=TOOLTIP)] if sliding else []),
        kept.mark_text(align="left", dx=15, fontWeight="bold", text="kept"),
        *(_limit_line(limit) if limit else ()),
    ]
    return specification(alt.layer(*layers).add_params(place, shown), 380)


def _placed(points: list[dict[str, Any]], limit: float | None) -> alt.Chart:
    """Put the points where their gap and the score that was picked belong."""
    most = max([0.01, *(p["gap"] for p in points), *([limit] if limit else [])])
    across = alt.Scale(domain=[-0.03 * most, 1.05 * most], nice=False)
    base = alt.Chart(alt.InlineData(points)).transform_calculate(
        score="shown == 'AUC' ? datum.auc : datum.accuracy",
        weight="isValid(datum.gamma) ? format(datum.gamma, '.2~f') : 'none'",
    )
    return base.encode(
        x=alt.X("gap:Q", title="gap between groups (← smaller is fairer)", scale=across),
        y=alt.Y("score:Q", title=None, scale=alt.Scale(zero=False, padding=14)),
    )


def _limit_line(limit: float) -> tuple[Any, Any]:
    """Mark the limit that was asked for."""
    at = alt.Chart(alt.InlineData([{"gap": limit}])).encode(x="gap:Q")
    words = at.mark_text(align="left", dx=5, baseline="top", text=f"limit {limit:g}").encode(y=alt.value(2))
    return at.mark_rule(strokeDash=[5, 4], color=TEXT, opacity=0.7), words


def _words(point: dict[str, Any], record: Record) -> str:
    """Say all numbers of a model of the path in a line."""
    tested = {t["gamma"]: t for t in record.get("tested") or []}
    proof = tested.get(point["gamma"])
    kept = " (the kept model)" if point["chosen"] else ""
    text = (
        f"gamma {point['gamma']:g}{kept}: accuracy {point['accuracy']:.3f}, AUC {point['auc']:.3f}, gap between groups "
        f"{point['gap']:.3f}, information about the groups {point['information']:.4f} bits"
    )
    if not tested:
        return f"{text}."
    if proof is None:
        return f"{text}. Not tested against the limit: the test stops at the first failure."
    return f"{text}. The proof of the limit {'succeeded' if proof['passed'] else 'failed: here the test stopped'}."


def _precision(record: Record) -> str:
    """Say how far chance moves the marks: 95 % half-widths at most, from the test rows alone."""
    leakage = (record.get("audit") or {}).get("leakage") or []
    if not leakage:
        return ""
    n = record["audit"]["rows"]
    smallest = max((sorted(found["rows"].values())[:2] for found in leakage), key=lambda two: sum(1 / r for r in two))
    accuracy, gap = 0.98 / math.sqrt(n), 0.98 * math.sqrt(sum(1 / r for r in smallest))
    return (
        f"Chance moves the marks: {n:,} test rows leave an accuracy uncertain by up to ±{accuracy:.3f} and a gap by up "
        f"to ±{gap:.3f} (95%, each on its own). Even without a gap one shows, the larger the more groups there are. Do "
        "not read much into smaller differences, nor pick the best-looking mark: its numbers would flatter it. The "
        "certificate in this report does not rest on this picture."
    )


def _rows(record: Record) -> tuple[str, ...]:
    """Say which models had fewer training rows than the kept one."""
    models = record["alternatives"]
    most = max(model["rows"] for model in models)
    fewer = {_kind(m["name"]): m["rows"] for m in models if m["rows"] < most}
    if not fewer:
        return (f"All models were trained on the same {most:,} rows.",)
    names = "; ".join(fewer)
    return (f"To save time these were trained on {min(fewer.values()):,} of the {most:,} training rows: {names}.",)


def _spoken(points: list[dict[str, Any]]) -> str:
    chosen = next((p for p in points if p["chosen"]), None)
    said = f"{len(points)} models by accuracy and by the gap between groups."
    if chosen is not None:
        said += f" The kept model has accuracy {chosen['accuracy']:.3f} and gap {chosen['gap']:.3f}."
    return said + " The numbers are in the table below."


def _numbers(points: list[dict[str, Any]]) -> Table:
    head = ("model", "gamma or weight", "accuracy", "AUC", "gap", "information, bits")
    rows = tuple(
        (
            p["kind"] + " (kept)" * p["chosen"],
            "" if p["gamma"] is None else f"{p['gamma']:g}",
            *(f"{p[name]:.3f}" for name in ("accuracy", "auc", "gap")),
            "" if p["information"] is None else f"{p['information']:.4f}",
        )
        for p in points
    )
    return Table("frontier", "Scores on the test rows; of fairbits, of one draw", head, rows)
