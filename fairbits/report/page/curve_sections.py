"""Curves: the scores of each group, the learning curves, and the information plane."""

from typing import Any

import altair as alt

from fairbits.report.page import chart_style as look
from fairbits.report.page.page_template import Chart, Section, section
from fairbits.report.text_tables import Table
from fairbits.report.wording import Record

TERMS = {
    "cross_entropy": ("Error in predicting the label", "cross-entropy, bits"),
    "information": ("Leakage", "leakage, bits"),
}
ACROSS = "about the row, I(X;T), bits"
UP = {
    "about_y": ("Information about the label", "about the label, I(T;Y), bits", look.BLUE),
    "about_s": ("Leakage", "about the groups, I(T;S), bits", look.ORANGE),
}


def scores(record: Record) -> Section:
    """Draw how the predicted probabilities are distributed in the groups of every sensitive column."""
    found = record.get("scores_by_group") or []
    if not found:
        return section("scores")
    columns = list(dict.fromkeys(part["column"] for part in found))
    charts = tuple(_score_chart(i, name, [p for p in found if p["column"] == name]) for i, name in enumerate(columns))
    task = record.get("task") or {}
    words = {"label": task.get("label", "the label"), "positive": (task.get("classes") or ["the last class"])[-1]}
    return section("scores", words, charts=charts)


def _score_chart(number: int, name: str, groups: list[dict[str, Any]]) -> Chart:
    """Draw the share of each group's rows in every bin as steps, with an invisible point in each for its tooltip."""
    groups = sorted(groups, key=lambda g: -sum(g["counts"]))
    shown, most = groups[: len(look.SERIES)], f" (the {len(look.SERIES)} largest groups)"
    keys = look.line_keys([f"{g['group']} ({sum(g['counts']):,} rows)" for g in shown])
    corners, middles = [], []
    for key, group in zip(keys, shown, strict=True):
        bins = len(group["counts"])
        shares = [count / max(sum(group["counts"]), 1) for count in group["counts"]]
        for i, share in enumerate([*shares, shares[-1]]):
            corners.append({"group": key.label, "score": i / bins, "share": share})
        for i, share in enumerate(shares):
            ends = {"from": i / bins, "score": (i + 0.5) / bins, "to": (i + 1) / bins}
            middles.append({"group": key.label, **ends, "share": share})
    x = alt.X("score:Q", title="score", scale=alt.Scale(domain=[0, 1]))
    y = alt.Y("share:Q", title="share of the group's rows", axis=alt.Axis(format="%"))
    tips = look.tooltip(
        ("group", "group", ""),
        ("from", "score from", ".2f"),
        ("to", "to", ".2f"),
        ("share", "share of its rows", ".1%"),
    )
    lines = look.drawn(corners).mark_line(interpolate="step-after", strokeWidth=2)
    lines = lines.encode(x=x, y=y, **look.by_key("group", keys))
    points = look.drawn(middles).mark_circle(size=260, opacity=0).encode(x=x, y=y, tooltip=tips)
    spec = look.specification(alt.layer(lines, points), 260)
    title = f"Scores by {name}{most if len(groups) > len(shown) else ''}"
    means = "; ".join(f"{group['group']}, mean {_mean(group['counts']):.3f}" for group in shown)
    words = f"Share of rows by score for {means}."
    return Chart(f"scores-chart-{number}", title, words, spec, _score_table(name, groups), keys)


def _score_table(name: str, groups: list[dict[str, Any]]) -> Table:
    counts = [group["counts"] for group in groups]
    bins = len(counts[0])
    rows = [
        (f"{i / bins:.2f} to {(i + 1) / bins:.2f}", *(f"{count[i]:,}" for count in counts))
        for i in range(bins)
        if any(count[i] for count in counts)
    ]
    rows.append(("all rows", *(f"{sum(count):,}" for count in counts)))
    rows.append(("mean score", *(f"{_mean(count):.3f}" for count in counts)))
    head, note = ("score", *(group["group"] for group in groups)), "Mean scores use the middle of each bin."
    return Table("", f"Test rows by score and {name}", head, tuple(rows), (note,))


def _mean(counts: list[int]) -> float:
    return sum(c * (i + 0.5) / len(counts) for i, c in enumerate(counts)) / max(sum(counts), 1)


def learning_curves(record: Record) -> Section:
    """Draw error and leakage by epoch."""
    history = record.get("history") or []
    terms = [name for name in TERMS if history and name in history[0]]
    if not terms:
        return section("learning")
    return section("learning", charts=tuple(_curve(name, history, record.get("best_epoch")) for name in terms))


def _curve(name: str, history: list[dict[str, Any]], best: int | None) -> Chart:
    title, axis = TERMS[name]
    rows = [
        {"epoch": e["epoch"] + 1, "training": e.get(name), "validation": e.get(f"validation_{name}")} for e in history
    ]
    keys = look.line_keys(["training", "validation"])
    lines = look.drawn(rows).transform_fold(["training", "validation"], as_=["rows", "value"])
    lines = lines.mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=22, filled=True)).encode(
        x=alt.X("epoch:Q", title="epoch", axis=alt.Axis(tickMinStep=1), scale=alt.Scale(nice=False)),
        y=alt.Y("value:Q", title=axis, scale=alt.Scale(zero=False)),
        **look.by_key("rows", keys),
        tooltip=look.tooltip(("epoch", "epoch", "d"), ("rows", "rows", ""), ("value", axis, ".4f")),
    )
    layers = [lines]
    if best is not None:
        kept = look.drawn([{"epoch": best + 1}]).mark_rule(color=look.TEXT, strokeDash=[4, 3])
        layers.insert(0, kept.encode(x="epoch:Q"))
    words = f"{title} by epoch, on training and validation rows; {len(history)} epochs."
    fields = (("epoch", "epoch", "d"), ("training", "training", ".4f"), ("validation", "validation", ".4f"))
    numbers = look.table(f"{title}, bits", fields, rows)
    return Chart(f"learning-chart-{name}", title, words, look.specification(alt.layer(*layers), 240), numbers, keys)


def information_plane(record: Record) -> Section:
    """Draw the path of the training through what the code holds about rows, labels and groups."""
    plane = record.get("plane") or {}
    if not plane.get("epochs"):
        return section("plane")
    return section("plane", plane, charts=tuple(_path(field, plane["epochs"]) for field in UP))


def _path(field: str, epochs: list[dict[str, Any]]) -> Chart:
    """Join the epochs by a line; their colour grows stronger."""
    caption, axis, colour = UP[field]
    rows = [{"epoch": e["epoch"] + 1, "across": e["about_x"], "up": e[field]} for e in epochs]
    x = alt.X("across:Q", title=ACROSS, scale=alt.Scale(zero=False, padding=24))
    y = alt.Y("up:Q", title=axis, scale=alt.Scale(zero=False, padding=18))
    base = look.drawn(rows).encode(x=x, y=y)
    later = alt.Color("epoch:Q", scale=alt.Scale(range=[look.GREY, colour]), legend=None)
    fields = (("epoch", "epoch", "d"), ("across", ACROSS, ".4f"), ("up", axis, ".4f"))
    layers = alt.layer(
        base.mark_line(strokeWidth=1.5, color=look.GREY, opacity=0.7).encode(order="epoch:Q"),
        base.mark_circle(size=60, opacity=1).encode(color=later, tooltip=look.tooltip(*fields)),
        *(
            look.drawn([row]).mark_text(dy=dy, text=f"epoch {row['epoch']}").encode(x=x, y=y)
            for row, dy in ((rows[0], 14), (rows[-1], -11))
        ),
    )
    words = f"{caption}: from {rows[0]['up']:.4f} to {rows[-1]['up']:.4f} bits in {len(rows)} epochs."
    spec = look.specification(layers, 260)
    return Chart(f"plane-chart-{field}", caption, words, spec, look.table(caption, fields, rows))
