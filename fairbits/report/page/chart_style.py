"""Colours and letters of the charts: the same on a light and on a dark page.

Text and lines take the page's own colour. Marks have a colour of middle lightness, with a contrast of at least 3 to 1
to both backgrounds; a test computes it.
"""

from typing import Any

import altair as alt

from fairbits.report.page.parts import Key

BACKGROUNDS = ("#ffffff", "#15181d")  # of style.css, light and dark
TEXT = "currentColor"
FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'  # as in style.css
BLUE, ORANGE, GREEN, PINK, PURPLE, OCHRE, TEAL, GREY = (
    "#2478c4",
    "#c8600f",
    "#0b8f6a",
    "#c0588f",
    "#8a63d2",
    "#8f6f00",
    "#3d8f8f",
    "#808080",
)
SERIES = (BLUE, ORANGE, GREEN, PINK, PURPLE, OCHRE, TEAL, GREY)
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])
PALE, DARK = "#e9f1fa", "#0b3c6f"  # ends of the heat map
ON_PALE, ON_DARK = "#000000", "#ffffff"
SWITCH = 0.67  # of the way from pale to dark, letters become white
HEIGHT = 320
CIRCLE = "M0,-1A1,1 0 1 1 0,1A1,1 0 1 1 0,-1Z"
SQUARE = "M-.9,-.9H.9V.9H-.9Z"
DIAMOND = "M0,-1.2L1,0L0,1.2L-1,0Z"
UPWARD = "M0,-1.1L1.1,.9H-1.1Z"
DOWNWARD = "M0,1.1L1.1,-.9H-1.1Z"
RIGHTWARD = "M-.9,-1.1L1.1,0L-.9,1.1Z"
LEFTWARD = "M.9,-1.1L-1.1,0L.9,1.1Z"
CROSS = "M-1,-.35H-.35V-1H.35V-.35H1V.35H.35V1H-.35V.35H-1Z"


def line_keys(names: list[str]) -> tuple[Key, ...]:
    """Return the marks of lines, one for each name, that differ in colour and dashes."""
    return tuple(
        Key(name, colour, dash=" ".join(map(str, DASHES[i % len(DASHES)])))
        for i, (name, colour) in enumerate(zip(names, SERIES, strict=False))
    )


def line_marks(field: str, names: list[str]) -> dict[str, Any]:
    """Return the encodings of colour and dashes that `line_keys` shows."""
    dashes = [DASHES[i % len(DASHES)] for i in range(len(names))]
    colours = list(SERIES[: len(names)])
    return {
        "color": alt.Color(f"{field}:N", scale=alt.Scale(domain=names, range=colours), legend=None),
        "strokeDash": alt.StrokeDash(f"{field}:N", scale=alt.Scale(domain=names, range=dashes), legend=None),
    }


def scale(low: float, high: float, padding: float = 0.05) -> alt.Scale:
    """Return a scale with a little room at both ends."""
    room = padding * (high - low) or 0.01
    return alt.Scale(domain=[low - room, high + room], nice=False, zero=False)


def specification(chart: Any, height: int = HEIGHT) -> dict[str, Any]:
    """Return a chart as Vega-Lite that fills the width of its place and takes the colours of the page."""
    return (
        chart.properties(width="container", height=height, background="transparent", padding=4)
        .properties(autosize=alt.AutoSizeParams(type="fit-x", contains="padding"))
        .configure(font=FONT)
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=TEXT,
            titleColor=TEXT,
            tickColor=TEXT,
            domainColor=TEXT,
            gridColor=TEXT,
            gridOpacity=0.13,
            labelFontSize=12,
            titleFontSize=12,
            titleFontWeight="normal",
            titlePadding=8,
            labelLimit=190,
            labelOverlap=True,
            tickCount=alt.ExprRef("width < 400 ? 4 : 7"),
        )
        .configure_text(color=TEXT, fontSize=12)
        .to_dict(format="vega-lite")
    )
