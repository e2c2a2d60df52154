"""The trade-off: what the chosen model was chosen from and what it is measured against."""

import math
from typing import Any

import altair as alt

from fairbits.report.page import chart_style as look
from fairbits.report.page.page_template import Chart, Key, Section, Slider, section
from fairbits.report.wording import NAMES, TEXTS, Record

OWN = "BinaryMI"
MARKS = {
    OWN: (look.BLUE, look.CIRCLE),
    "Parity": (look.GREEN, look.UPWARD),
    "HSIC": (look.ORANGE, look.DIAMOND),
    "unmitigated": (look.PINK, look.SQUARE),
    "logistic regression": (look.OCHRE, look.CROSS),
    "constant": (look.GREY, look.DOWNWARD),
}
SHOWN = ("accuracy", "AUC")
FIELDS = (
    ("model", "model", ""),
    ("weight", "gamma or weight", ""),
    ("accuracy", "accuracy", ".3f"),
    ("auc", "AUC", ".3f"),
    ("disparity", "disparity", ".3f"),
    ("leakage", "leakage, bits", ".4f"),
)


def frontier(record: Record) -> Section:
    """Draw the models of the record, with a slider over the path."""
    points = _points(record)
    if not any(point["path"] for point in points):
        return section("frontier")
    path = [point for point in points if point["method"] == OWN]
    start = next((p["place"] for p in path if p["chosen"]), 0)
    slider = Slider(tuple(_words(p, record) for p in path), start, SHOWN) if path else None
    kinds = {p["kind"]: MARKS.get(p["method"], (look.GREY, look.CROSS)) for p in points}
    keys = tuple(Key(kind, *mark) for kind, mark in kinds.items())
    spec = _chart(points, keys, start if path else None, (record.get("asked") or {}).get("max_disparity"))
    words = f"{len(points)} models by accuracy and disparity. The numbers are in the table below."
    for p in points:
        if p["chosen"]:
            words += f" The chosen model has accuracy {p['accuracy']:.3f} and disparity {p['disparity']:.3f}."
    numbers = look.table("Scores on the test rows; for fairbits, of one draw", FIELDS, points)
    chart = Chart("frontier-chart", TEXTS["frontier"]["title"], words, spec, numbers, keys)
    notes = (*_precision(record), TEXTS["frontier"]["rivals"], _training_rows(record))
    return section("frontier", slider=slider, charts=(chart,), notes=notes)


def _points(record: Record) -> list[dict[str, Any]]:
    """Return a row per model; a method that draws is scored on one draw."""
    found = []
    for model in record.get("alternatives") or []:
        scores, one_draw = model["scores"], "one_draw_" * ("one_draw_auc" in model["scores"])
        kind, chosen = NAMES.get(model["name"], model["name"]), bool(model.get("chosen"))
        found.append(
            {
                "method": model["name"],
                "kind": kind,
                "model": f"{kind} (chosen)" if chosen else kind,
                "chosen": chosen,
                "gamma": model["gamma"],
                "weight": "none" if model["gamma"] is None else f"{model['gamma']:g}",
                "path": model["gamma"] is not None,
                "accuracy": scores[f"{one_draw}accuracy"],
                "auc": scores[f"{one_draw}auc"],
                "disparity": scores[f"{one_draw}discrimination"],
                "leakage": scores.get("information"),
            }
        )
    found.sort(key=lambda p: ([*MARKS, p["method"]].index(p["method"]), p["gamma"] or 0))
    return [{**point, "place": place} for place, point in enumerate(found)]


def _chart(
    points: list[dict[str, Any]], keys: tuple[Key, ...], start: int | None, limit: float | None
) -> dict[str, Any]:
    """Draw the models by disparity and by the score that was picked, and ring the one that the slider points to.

    Parameters
    ----------
    start : where the slider starts; None without a slider, as the page has no controls to bind to then
    """
    place, shown = (
        alt.param(
            name=name,
            value=value,
            bind=alt.Undefined if start is None else alt.BindDirect(element=f"#{name}", event="input"),
        )
        for name, value in (("place", start or 0), ("shown", SHOWN[0]))
    )
    most = max([0.01, limit or 0, *(p["disparity"] for p in points)])
    across = alt.Scale(domain=[-0.03 * most, 1.05 * most], nice=False)
    base = look.drawn(points).transform_calculate(score="shown == 'AUC' ? datum.auc : datum.accuracy")
    base = base.encode(
        x=alt.X("disparity:Q", title="disparity (← smaller is fairer)", scale=across),
        y=alt.Y("score:Q", title=None, scale=alt.Scale(zero=False, padding=14)),
    )
    tips = look.tooltip(*FIELDS)
    marks = look.by_key("kind", keys)
    lines = base.transform_filter("datum.path").mark_line(strokeWidth=1.5, opacity=0.55)
    layers = [
        lines.encode(color=marks["color"], order="gamma:Q"),
        base.mark_point(filled=True, size=80, opacity=1).encode(**marks, tooltip=tips),
        base.transform_filter("datum.chosen").mark_text(dy=-20, fontWeight="bold", text="chosen"),
    ]
    if start is not None:
        ring = base.transform_filter("datum.place == place").mark_point(size=340, strokeWidth=2.5, opacity=1)
        layers.append(ring.encode(color=alt.value(look.TEXT), tooltip=tips))
    if limit:
        at = look.drawn([{"disparity": limit}]).encode(x="disparity:Q")
        layers.append(at.mark_rule(strokeDash=[5, 4], color=look.TEXT, opacity=0.7))
        words = at.mark_text(align="left", dx=5, baseline="top", text=f"limit {limit:g}")
        layers.append(words.encode(y=alt.value(2)))
    return look.specification(alt.layer(*layers).add_params(place, shown), 380)


def _words(point: dict[str, Any], record: Record) -> str:
    """Say all numbers of a model of the path in a line."""
    tested = {t["gamma"]: t["passed"] for t in record.get("tested") or []}
    outcome = {
        True: " It passed the test of the limit.",
        False: " It failed the test of the limit, and testing stopped here.",
        None: " It was not tested against the limit: testing stops at the first failure." if tested else "",
    }
    return (
        f"gamma {point['gamma']:g}{' (the chosen model)' if point['chosen'] else ''}: accuracy "
        f"{point['accuracy']:.3f}, AUC {point['auc']:.3f}, disparity {point['disparity']:.3f}, leakage "
        f"{point['leakage']:.4f} bits.{outcome[tested.get(point['gamma'])]}"
    )


def _precision(record: Record) -> tuple[str, ...]:
    """Say how far chance moves the marks: 95 % half-widths at most, from the test rows alone."""
    leakage = (record.get("audit") or {}).get("leakage") or []
    if not leakage:
        return ()
    rows, text = record["audit"]["rows"], TEXTS["frontier"]["precision"]
    widest = max(sum(1 / n for n in sorted(found["rows"].values())[:2]) for found in leakage)
    return (text.format(rows=rows, accuracy=0.98 / math.sqrt(rows), disparity=0.98 * math.sqrt(widest)),)


def _training_rows(record: Record) -> str:
    """Name the models that were trained on fewer rows than the others."""
    models = record["alternatives"]
    most = max(model["rows"] for model in models)
    fewer = {NAMES.get(m["name"], m["name"]): m["rows"] for m in models if m["rows"] < most}
    if not fewer:
        return f"All models were trained on the same {most:,} rows."
    return f"To save time, these were trained on {min(fewer.values()):,} of {most:,} training rows: {'; '.join(fewer)}."
