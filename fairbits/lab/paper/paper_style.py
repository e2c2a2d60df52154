"""What all figures share: marks of methods, scales, sizes of letters."""

from collections.abc import Iterable
from typing import Any

import lazy_loader
import pandas as pd

alt = lazy_loader.load("altair")  # tables do not need it
LETTERS = 16  # pixels, 12 points
ACCURATE, FAIRER = "AUC (more accurate →)", "1 - GPA (fairer →)"
STAR = "M0,-1L.24,-.33L.95,-.31L.38,.13L.59,.81L0,.4L-.59,.81L-.38,.13L-.95,-.31L-.24,-.33Z"
MARKS = {  # colours of Okabe and Ito, then of Tol, which colour-blind readers can distinguish, and greys
    "constant": ("#999999", STAR),
    "logistic regression": ("#666666", "cross"),
    "BinaryBernoulli": ("#D55E00", "circle"),
    "BinaryMI": ("#0072B2", "square"),
    "BinaryBernoulli tuned on one draw": ("#AA4499", "circle"),
    "BinaryMI tuned on one draw": ("#332288", "square"),
    "FairCode": ("#117733", "circle"),
    "FairCode, random": ("#117733", "diamond"),
    "AdvCls": ("#009E73", "triangle-up"),
    "VFAE": ("#CC79A7", "triangle-down"),
    "HSIC": ("#E69F00", "diamond"),
    "Parity": ("#56B4E9", "triangle-right"),
    "Vanilla": ("#000000", "triangle-left"),
    "fairlearn EG": ("#882255", "wedge"),
    "fairlearn TO": ("#999933", "arrow"),
}
SPARE = [(colour, shape) for shape in ("wedge", "arrow") for colour in ("#117733", "#661100", "#44AA99", "#AA4466")]


def mark_of(methods: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return the colour and the shape of methods, in a fixed order; a method not in the list takes a spare pair."""
    methods = set(methods)
    others = sorted(methods - set(MARKS))
    spare = {name: SPARE[i % len(SPARE)] for i, name in enumerate(others)}
    return {name: mark for name, mark in MARKS.items() if name in methods} | spare


def method_encodings(methods: Iterable[str], **legend: Any) -> dict[str, Any]:
    """Return colour and shape by method, which share one legend."""
    marks = mark_of(methods)
    colours, shapes = (alt.Scale(domain=list(marks), range=[mark[i] for mark in marks.values()]) for i in (0, 1))
    shared = alt.Legend(title="method", symbolOpacity=1, **(legend or {"symbolSize": 140}))
    return {
        "color": alt.Color("method:N", scale=colours, legend=shared),
        "shape": alt.Shape("method:N", scale=shapes, legend=shared),
    }


def shade(field: str, domain: tuple[float, float], **legend: Any) -> Any:
    """Return a colour that runs from dark to light, so that it can be read without colour."""
    scale = alt.Scale(scheme="viridis", domain=list(domain), type="log" if domain[0] else "linear")
    return alt.Color(f"{field}:Q", scale=scale, legend=alt.Legend(**legend))


def extent(values: pd.Series, padding: float = 0.05) -> tuple[float, float]:
    """Return the range of values with a little room at both ends; around 0.5 if there are none."""
    low, high = (float(values.min()), float(values.max())) if values.notna().any() else (0.4, 0.6)
    room = padding * (high - low) or 0.01
    return low - room, high + room


def axis(channel: str, field: str, title: str, domain: tuple[float, float], **more: Any) -> Any:
    """Return the x or the y of an encoding on a fixed domain; the channel is "X" or "Y"."""
    scale = alt.Scale(domain=list(domain), nice=False, zero=False)
    return getattr(alt, channel)(f"{field}:Q", title=title, scale=scale, **more)


def finish(chart: Any, title: str, *lines: str) -> Any:
    """Give a chart its title, lines below it, and letters that can be read."""
    headline = alt.Title(title, subtitle=list(lines), anchor="start", fontSize=LETTERS + 3, subtitleFontSize=LETTERS)
    sizes = {"labelFontSize": LETTERS, "titleFontSize": LETTERS}
    config = alt.Config(
        axis=alt.AxisConfig(**sizes, titleFontWeight="normal", titlePadding=8, labelLimit=0, tickCount=5),
        legend=alt.LegendConfig(**sizes, labelLimit=0, titleLimit=0),
        header=alt.HeaderConfig(**sizes, labelLimit=0),
        title=alt.TitleConfig(fontSize=LETTERS, anchor="start"),
    )
    return chart.properties(title=headline, background="white", padding=12, config=config)  # it copies the chart
