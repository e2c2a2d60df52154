"""Colours, letters and shared parts of the charts: the same on a light and on a dark page.

Text and lines take the page's own colour. Marks have a colour of middle lightness, with a contrast of at least 3 to 1
to both backgrounds; a test computes it.
"""

from typing import Any

import altair as alt

from fairbits.report.page.page_template import Key
from fairbits.report.text_tables import Table

Field = tuple[str, str, str]  # of a chart's rows: its name, its title, and the format of a number, empty for text

BACKGROUNDS = ("#ffffff", "#15181d")  # of style.css, light and dark
TEXT = "currentColor"
FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'  # as in style.css
BLUE, ORANGE, GREEN, PINK = "#2478c4", "#c8600f", "#0b8f6a", "#c0588f"
PURPLE, OCHRE, TEAL, GREY = "#8a63d2", "#8f6f00", "#3d8f8f", "#808080"
SERIES = (BLUE, ORANGE, GREEN, PINK, PURPLE, OCHRE, TEAL, GREY)
DASHES = ("1 0", "6 3", "2 2", "8 3 2 3")
PALE, DARK = "#e9f1fa", "#0b3c6f"  # ends of the heat map
ON_PALE, ON_DARK = "#000000", "#ffffff"
SWITCH = 0.67  # of the way from pale to dark, letters become white
CIRCLE = "M0,-1A1,1 0 1 1 0,1A1,1 0 1 1 0,-1Z"
SQUARE = "M-.9,-.9H.9V.9H-.9Z"
DIAMOND = "M0,-1.2L1,0L0,1.2L-1,0Z"
UPWARD = "M0,-1.1L1.1,.9H-1.1Z"
DOWNWARD = "M0,1.1L1.1,-.9H-1.1Z"
RIGHTWARD = "M-.9,-1.1L1.1,0L-.9,1.1Z"
LEFTWARD = "M.9,-1.1L-1.1,0L.9,1.1Z"
CROSS = "M-1,-.35H-.35V-1H.35V-.35H1V.35H.35V1H-.35V.35H-1Z"


def drawn(rows: list[dict[str, Any]]) -> alt.Chart:
    """Return a chart of rows that holds them itself."""
    return alt.Chart(alt.InlineData(rows))


def tooltip(*fields: Field) -> list[alt.Tooltip]:
    """Return what a mark shows under the pointer."""
    return [
        alt.Tooltip(f"{name}:Q", title=title, format=form) if form else alt.Tooltip(f"{name}:N", title=title)
        for name, title, form in fields
    ]


def table(title: str, fields: tuple[Field, ...], rows: list[dict[str, Any]]) -> Table:
    """Return the rows of a chart in numbers."""
    cells = (("" if row[name] is None else format(row[name], form) for name, _, form in fields) for row in rows)
    return Table("", title, tuple(head for _, head, _ in fields), tuple(map(tuple, cells)))


def line_keys(names: list[str]) -> tuple[Key, ...]:
    """Return the marks of lines, one for each name, that differ in colour and dashes."""
    return tuple(Key(name, SERIES[i], dash=DASHES[i % len(DASHES)]) for i, name in enumerate(names))


def by_key(field: str, keys: tuple[Key, ...]) -> dict[str, Any]:
    """Return the encodings that draw the values of a field as their keys say: a colour, and a symbol or dashes."""
    names, symbols = [key.label for key in keys], [key.symbol for key in keys]
    colours = alt.Scale(domain=names, range=[key.colour for key in keys])
    marks: dict[str, Any] = {"color": alt.Color(f"{field}:N", scale=colours, legend=None)}
    if all(symbols):
        shapes = alt.Scale(domain=names, range=symbols)
        return {**marks, "shape": alt.Shape(f"{field}:N", scale=shapes, legend=None)}
    dashes = alt.Scale(domain=names, range=[[int(length) for length in key.dash.split()] for key in keys])
    return {**marks, "strokeDash": alt.StrokeDash(f"{field}:N", scale=dashes, legend=None)}


def specification(chart: Any, height: int) -> dict[str, Any]:
    """Return a chart as Vega-Lite that fills the width of its place and takes the colours of the page."""
    colours: dict[str, Any] = {f"{part}Color": TEXT for part in ("label", "title", "tick", "domain", "grid")}
    letters: dict[str, Any] = {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "titlePadding": 8}
    ticks = alt.ExprRef("width < 400 ? 4 : 7")
    return (
        chart.properties(width="container", height=height, background="transparent", padding=4)
        .properties(autosize=alt.AutoSizeParams(type="fit-x", contains="padding"))
        .configure(font=FONT)
        .configure_view(stroke=None)
        .configure_axis(gridOpacity=0.13, labelLimit=190, labelOverlap=True, tickCount=ticks, **colours, **letters)
        .configure_text(color=TEXT, fontSize=12)
        .to_dict(format="vega-lite")
    )
