"""Charts of rows of plain values: as Vega-Lite for the page, and as files.

On the page, text and lines take its own colour. Marks have a colour of middle lightness, with a contrast of at least 3
to 1 to both backgrounds; a test computes it.
"""

import io
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd
import vl_convert

from fairbits.report.page import Key
from fairbits.storage import replace_file

Row = dict[str, Any]
Spec = dict[str, Any]
Field = tuple[str, str, str]  # of rows: its name, its title, and the format of a number, empty for text

TEXT = "currentColor"
BLUE, ORANGE, GREEN, PINK = "#2478c4", "#c8600f", "#0b8f6a", "#c0588f"
PURPLE, OCHRE, TEAL, GREY = "#8a63d2", "#8f6f00", "#3d8f8f", "#808080"
SERIES = (BLUE, ORANGE, GREEN, PINK, PURPLE, OCHRE, TEAL, GREY)
DASHES = ("1 0", "6 3", "2 2", "8 3 2 3")
PALE, DARK = "#e9f1fa", "#0b3c6f"  # ends of the heat map
ON_PALE, ON_DARK = "#000000", "#ffffff"
SWITCH = 0.67  # of the way from pale to dark, letters become white
CIRCLE = "M0,-1A1,1 0 1 1 0,1A1,1 0 1 1 0,-1Z"
SQUARE = "M-.9,-.9H.9V.9H-.9Z"
RIGHTWARD, LEFTWARD = "M-.9,-1.1L1.1,0L-.9,1.1Z", "M.9,-1.1L-1.1,0L.9,1.1Z"
CROSS = "M-1,-.35H-.35V-1H.35V-.35H1V.35H.35V1H-.35V.35H-1Z"
LOOK = json.loads((Path(__file__).parent / "look.json").read_text(encoding="utf-8"))
ROW = 28  # pixels of a row of attacks
NUMBER_ROOM = 0.25  # of the attacks' axis: the width of a number beside its mark on a narrow screen


def line_keys(names: list[str]) -> tuple[Key, ...]:
    """Return the marks of lines, one for each name, that differ in colour and dashes."""
    return tuple(Key(name, SERIES[i], dash=DASHES[i % len(DASHES)]) for i, name in enumerate(names))


def _by_key(field: str, keys: tuple[Key, ...]) -> list[Any]:
    """Return the encodings that draw the values of a field as their keys say: a colour, and a symbol or dashes."""
    marks: list[tuple[Any, list[Any]]] = [(alt.Color, [key.colour for key in keys])]
    if all(key.symbol for key in keys):
        marks.append((alt.Shape, [key.symbol for key in keys]))
    else:
        marks.append((alt.StrokeDash, [[int(length) for length in key.dash.split()] for key in keys]))
    names = [key.label for key in keys]
    return [mark(f"{field}:N", scale=alt.Scale(domain=names, range=values), legend=None) for mark, values in marks]


def _drawn(rows: list[Row]) -> alt.Chart:
    """Return a chart of rows that holds them itself."""
    return alt.Chart(alt.InlineData(rows))


def _tooltip(*fields: Field) -> list[alt.Tooltip]:
    """Return what a mark shows under the pointer."""
    return [
        alt.Tooltip(f"{name}:Q", title=title, format=form) if form else alt.Tooltip(f"{name}:N", title=title)
        for name, title, form in fields
    ]


def _specification(height: int, *layers: Any) -> Spec:
    """Return layers as Vega-Lite that fills the width of its place and takes the colours of the page.

    Checking it against the schema takes longer than all the rest; a test does it.
    """
    return alt.layer(*layers).to_dict(validate=False) | LOOK | {"height": height}


def tradeoff_marks(
    points: list[Row],
    front: list[Row],
    fields: Sequence[Field],
    keys: tuple[Key, ...],
    axis: str,
    limit: float | None,
) -> Spec:
    """Draw models by bound and accuracy, each with a line to what the rows show and one for the accuracy's interval.

    The last of the keys is that of the front, a line.
    """
    most = max([0.01, limit or 0, *(p["bound"] for p in points)])
    x = alt.X("bound:Q", title=axis, scale=alt.Scale(domain=[-0.02 * most, 1.06 * most], nice=False))
    heights = [p[end] for p in points for end in ("low", "high", "accuracy") if p[end] is not None]
    heights.append(max([*heights, *(p["accuracy"] for p in front)]))  # a front that starts far below is cut off
    within = [min(heights), max(heights)]
    y = alt.Y("accuracy:Q", title="accuracy", scale=alt.Scale(domain=within, zero=False, padding=14, nice=True))
    *kinds, line = keys
    colour, shape = _by_key("kind", tuple(kinds))
    base, tips = _drawn(points).encode(x=x, y=y, color=colour), _tooltip(*fields)
    lines = base.encode(opacity=alt.when("datum.faint").then(alt.value(0.3)).otherwise(alt.value(1)))
    proved = lines.transform_filter("isValid(datum.shown)")
    chosen = base.transform_filter("datum.chosen").encode(alt.ColorValue(TEXT))
    dashes = [int(length) for length in line.dash.split()]
    best = _drawn(front).mark_line(strokeWidth=2, color=line.colour, strokeDash=dashes, clip=True)
    layers = [
        best.encode(alt.X("bound:Q"), alt.Y("accuracy:Q"), alt.Order("bound:Q")),
        proved.mark_rule(strokeWidth=2).encode(alt.X("shown:Q"), alt.X2("bound:Q")),
        lines.transform_filter("isValid(datum.low)").mark_rule().encode(alt.Y("low:Q"), alt.Y2("high:Q")),
        base.mark_point(filled=True, size=70, opacity=1).encode(shape, tooltip=tips),
        chosen.mark_point(size=260, strokeWidth=2.5, opacity=1).encode(tooltip=tips),
        chosen.mark_text(align="right", dx=-12, dy=-16, fontWeight="bold", text="this model"),
    ]
    if limit:
        at = _drawn([{"bound": limit}]).encode(alt.X("bound:Q"))
        layers.append(at.mark_rule(strokeDash=[5, 4], strokeWidth=1.5, color=TEXT))
        words = at.mark_text(align="left", dx=5, baseline="top", fontWeight="bold", text=f"limit {limit:g}")
        layers.append(words.encode(alt.YValue(2)))
    return _specification(380, *layers)


def attack_intervals(rows: list[Row]) -> Spec:
    """Draw the intervals of attacks and the proved ends above one another, with the chance level and the bound."""
    values = [row[name] for row in rows for name in ("chance", "most", "value", "low", "high") if row.get(name)]
    low, high = min(values), max(values)
    room, number = 0.05 * (high - low) or 0.01, NUMBER_ROOM * (high - low)
    domain = alt.Scale(domain=[low - room, high + number + room], nice=False, zero=False)
    x = alt.X("value:Q", title="balanced accuracy", scale=domain)
    y = alt.Y("row:N", sort=[row["row"] for row in rows], title=None, axis=alt.Axis(labelLimit=170, grid=True))
    kinds = alt.Color("released:N", scale=alt.Scale(domain=[True, False], range=[BLUE, GREY]), legend=None)
    shapes = alt.Scale(domain=["at least", "at most"], range=[RIGHTWARD, LEFTWARD])
    value = ("value", "balanced accuracy", ".3f")
    tips = _tooltip(("row", "attack", ""), value, ("low", "interval from", ".3f"), ("high", "to", ".3f"))
    every = _drawn(rows).encode(y=y)
    probes = every.transform_filter("!datum.shown").encode(color=kinds, tooltip=tips)
    proof = _tooltip(("row", "proved", ""), ("shown", "balanced accuracy", ""))
    proved = every.transform_filter("isValid(datum.shown)").encode(x=x, tooltip=proof)
    across: dict[str, Any] = {"thickness": 2, "size": ROW}
    return _specification(
        ROW * len(rows),
        every.mark_tick(**across, color=TEXT, opacity=0.5).encode(alt.X("chance:Q")),
        every.transform_filter("isValid(datum.most)").mark_tick(**across, color=ORANGE).encode(alt.X("most:Q")),
        probes.mark_rule(strokeWidth=3).encode(alt.X("low:Q"), alt.X2("high:Q")),
        probes.mark_point(filled=True, size=70, opacity=1).encode(x=x),
        proved.mark_text(align="left", dx=12, fontWeight="bold").encode(alt.Text("shown:N")),
        proved.mark_point(filled=True, size=100, opacity=1, color=ORANGE).encode(
            shape=alt.Shape("side:N", scale=shapes, legend=None)
        ),
    )


def heat_map(frame: pd.DataFrame, framed: str) -> Spec:
    """Draw the information in parts of the code (rows) about columns; so the numbers have room on a narrow page."""
    cells = frame.reset_index(names="bit").rename_axis("order").reset_index()
    rows = cells.melt(["order", "bit"], var_name="about", value_name="information").to_dict("records")
    most = max(1e-9, float(frame.max(axis=None)))
    top = alt.Axis(orient="top", labelAngle=0, labelLimit=alt.ExprRef(f"width / {frame.shape[1]}"), ticks=False)
    base = _drawn(rows).encode(
        x=alt.X("about:N", sort=list(frame), title=None, axis=top),
        y=alt.Y("bit:N", sort=alt.EncodingSortField("order"), title=None, axis=alt.Axis(ticks=False)),
        tooltip=_tooltip(("bit", "part", ""), ("about", "about", ""), ("information", "information, bits", ".6f")),
    )
    colour = alt.Scale(domain=[0, most], range=[PALE, DARK], interpolate="rgb", clamp=True)
    dark = alt.when(f"datum.information > {SWITCH * most}")
    letters = dark.then(alt.value(ON_DARK)).otherwise(alt.value(ON_PALE))
    boxes = base.mark_rect(stroke=GREY, strokeWidth=0.5)
    return _specification(
        26 * len(frame),
        boxes.encode(color=alt.Color("information:Q", scale=colour, legend=None)),
        base.mark_text(fontSize=12).encode(text=alt.Text("information:Q", format=".4f"), color=letters),
        base.transform_filter(f"datum.bit == '{framed}'").mark_rect(filled=False, stroke=TEXT, strokeWidth=2),
    )


def score_steps(counts: pd.DataFrame, keys: tuple[Key, ...]) -> Spec:
    """Draw the groups' (columns') shares of rows in bins as steps, with an invisible point in each for its tooltip."""
    corners, middles, bins = [], [], len(counts)
    for key, (_, shares) in zip(keys, (counts / counts.sum().clip(lower=1)).items(), strict=True):
        for i, share in enumerate([*shares, shares.iloc[-1]]):
            corners.append({"group": key.label, "score": i / bins, "share": share})
        for i, share in enumerate(shares):
            ends = {"from": i / bins, "score": (i + 0.5) / bins, "to": (i + 1) / bins}
            middles.append({"group": key.label, **ends, "share": share})
    x = alt.X("score:Q", title="score", scale=alt.Scale(domain=[0, 1]))
    y = alt.Y("share:Q", title="share of the group's rows", axis=alt.Axis(format="%"))
    share = ("share", "share of its rows", ".1%")
    tips = _tooltip(("group", "group", ""), ("from", "score from", ".2f"), ("to", "to", ".2f"), share)
    lines = _drawn(corners).mark_line(interpolate="step-after", strokeWidth=2)
    lines = lines.encode(*_by_key("group", keys), x=x, y=y)
    return _specification(260, lines, _drawn(middles).mark_circle(size=260, opacity=0).encode(x=x, y=y, tooltip=tips))


def learning_lines(rows: list[Row], axis: str, keys: tuple[Key, ...], best: int | None) -> Spec:
    """Draw the columns of rows that keys name by epoch, and a line at the epoch that was kept."""
    lines = _drawn(rows).transform_fold([key.label for key in keys], as_=["rows", "value"])
    lines = lines.mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=22, filled=True)).encode(
        *_by_key("rows", keys),
        x=alt.X("epoch:Q", title="epoch", axis=alt.Axis(tickMinStep=1), scale=alt.Scale(nice=False)),
        y=alt.Y("value:Q", title=axis, scale=alt.Scale(zero=False)),
        tooltip=_tooltip(("epoch", "epoch", "d"), ("rows", "rows", ""), ("value", axis, ".4f")),
    )
    kept = [] if best is None else [_drawn([{"epoch": best + 1}]).mark_rule(color=TEXT, strokeDash=[4, 3])]
    return _specification(240, *(rule.encode(alt.X("epoch:Q")) for rule in kept), lines)


def plane_path(rows: list[Row], fields: Sequence[Field], keys: tuple[Key, ...]) -> Spec:
    """Draw epochs as paths: the information about the label against the leakage, with a ring at the kept one."""
    base = _drawn(rows).encode(
        x=alt.X("leakage:Q", title=fields[2][1]),
        y=alt.Y("about:Q", title=fields[3][1], scale=alt.Scale(zero=False)),
        tooltip=_tooltip(*fields),
    )
    paths = base.mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=22, filled=True))
    kept = base.transform_filter("datum.kept").mark_point(size=200, strokeWidth=2.5, opacity=1, color=TEXT)
    return _specification(240, paths.encode(*_by_key("rows", keys), order="epoch:Q"), kept)


def equal_tradeoffs(means: pd.DataFrame, between: tuple[float, float] | None = None) -> alt.Chart:
    """Draw the line of slope -1 through the mean closest to (1, 1) in the L1 distance, from one `fair` to another."""
    line = pd.DataFrame({"fair": between or (means.fair.min(), means.fair.max())})
    line["auc"] = (means.auc + means.fair).max() - line.fair
    return alt.Chart(line).mark_line(strokeDash=[2, 4], color="#444", clip=True).encode(alt.X("fair:Q"), alt.Y("auc:Q"))


def bounds_chart(history: pd.DataFrame, limit: float, title: str) -> alt.TopLevelMixin:
    """Draw the bounds on the disparity by the rows so far (`CertificateMonitor.history`), and the limit."""
    keys = line_keys(["at most", "at least"])
    rows = history.rename(columns={"at_most": "at most", "at_least": "at least"}).to_dict("records")
    lines = _drawn(rows).transform_fold([key.label for key in keys], as_=["bound", "value"])
    lines = lines.mark_line(interpolate="step-after", strokeWidth=2, point=alt.OverlayMarkDef(size=22, filled=True))
    rule = _drawn([{"value": limit}]).mark_rule(strokeDash=[5, 4]).encode(alt.Y("value:Q"))
    colour, dashes = _by_key("bound", keys)
    lines = lines.encode(
        colour.legend(title="disparity"),
        dashes,
        x=alt.X("rows:Q", title="rows so far"),
        y=alt.Y("value:Q", title="disparity", scale=alt.Scale(domainMin=0)),
    )
    return alt.layer(rule, lines).properties(width=480, height=280, title=title)


def save_picture(chart: alt.TopLevelMixin, *files: Path) -> list[Path]:
    """Write a chart as PNG or SVG, by the endings of the files; the same chart gives the same bytes."""
    text = io.StringIO()
    chart.save(text, format="svg")
    svg = _renumbered(text.getvalue())
    for file in files:
        replace_file(file, vl_convert.svg_to_png(svg, scale=2) if file.suffix.lower() == ".png" else svg)
    return [*files]


def save_chart(chart: alt.TopLevelMixin, folder: Path, name: str) -> list[Path]:
    """Write a chart as PNG and SVG and return the files."""
    return save_picture(chart, *(folder / f"{name}.{ending}" for ending in ("png", "svg")))


def _renumbered(svg: str) -> str:
    """Count the ids of an SVG from 0: vega goes on from those of the charts before.

    >>> _renumbered('<g clip-path="url(#clip7)"/><clipPath id="clip7"/>')
    '<g clip-path="url(#id0)"/><clipPath id="id0"/>'
    """
    names = {old: f"id{i}" for i, old in enumerate(dict.fromkeys(re.findall(r' id="([^"]+)"', svg)))}
    return re.sub(r'( id="|url\(#)([^")]+)', lambda found: found[1] + names.get(found[2], found[2]), svg)
