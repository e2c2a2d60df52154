"""The information plane: the information of codes about x, y and s while they are trained."""

from collections.abc import Iterable, Iterator
from typing import Any

import lazy_loader
import pandas as pd

from fairbits.lab.paper.paper_style import axis, extent, finish, mark_of, method_encodings, shade
from fairbits.lab.paper.record_frames import NOTES, Record, estimate, of_kind, one_each
from fairbits.report.page import Section
from fairbits.report.wording import Table

alt = lazy_loader.load("altair")
ABOUT = {"about_x": "I(X;T)", "about_y": "I(T;Y)", "about_s": "I(T;S)"}
SIZE = {"width": 280, "height": 210}
SHOWN = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
Box = dict[str, tuple[float, float]]


def planes(records: Iterable[Record]) -> pd.DataFrame:
    """Return the information in bits: a row per dataset, method, gamma, seed and epoch; the longest runs."""
    names = ["dataset", "gamma", "seed"]
    rows = [
        {"method": r["run"]["name"], **{name: r["run"][name] for name in names}, "epoch": number, **epoch}
        for r in one_each(of_kind(records, "plane"), names, "epochs")
        for number, epoch in enumerate(r["result"]["epochs"], 1)
    ]
    columns = ["dataset", "method", "gamma", "seed", "epoch", *ABOUT]
    return pd.DataFrame(rows, columns=columns).sort_values(columns[:5], ignore_index=True)


def plane(records: Iterable[Record]) -> list[Section]:
    """Return a section per dataset."""
    sections = []
    when = [f"{name}, {epoch}" for name in ABOUT.values() for epoch in ("first", "most", "last")]
    for dataset, found in planes(records).groupby("dataset"):
        rows = [_row(str(method), gamma, part) for (method, gamma), part in found.groupby(["method", "gamma"])]
        title = f"{dataset}: information of the code in training, bits"
        head = ("method", "gamma", "seeds", "epochs", *when)
        table = Table(f"{dataset}-plane", title, head, tuple(rows), (NOTES["plane"]["table"],))
        sections.append(Section(f"{dataset}-plane", f"{dataset}: the information plane", (table,)))
    return sections


def _row(method: str, gamma: float, part: pd.DataFrame) -> tuple[str, ...]:
    seeds = part.groupby("seed")
    cells = [
        estimate(values).text()
        for name in ABOUT
        for values in (seeds[name].first(), seeds[name].max(), seeds[name].last())
    ]
    return (method, f"{gamma:g}", str(seeds.ngroups), str(part.epoch.max()), *cells)


def plane_charts(records: list[Record]) -> Iterator[tuple[str, Any]]:
    """Draw I(T;Y) against I(X;T), a panel per method and gamma, and below I(T;S) against the epoch."""
    for dataset, found in planes(records).groupby("dataset"):
        seed, methods = found.seed.min(), list(mark_of(found.method))
        found = found.assign(strong=found.seed == seed)
        box: Box = {name: extent(found[name]) for name in ABOUT} | {"epoch": (1, found.epoch.max())}
        rows = [[_path(part, box) for _, part in found[found.method == m].groupby("gamma")] for m in methods]
        leakage = [_leakage(part, box, methods) for _, part in found.groupby("gamma")]
        paths = alt.vconcat(*(alt.hconcat(*row) for row in rows))
        both = alt.vconcat(paths, alt.hconcat(*leakage)).resolve_scale(color="independent", strokeDash="independent")
        yield (
            f"{dataset}-plane",
            finish(both, f"{dataset}: the information plane", NOTES["plane"]["figure"].format(seed=seed)),
        )


def _path(found: pd.DataFrame, box: Box) -> Any:
    """Draw the path of one method and gamma, its pieces coloured by epoch."""
    x, y = axis("X", "about_x", "I(X;T)", box["about_x"]), axis("Y", "about_y", "I(T;Y)", box["about_y"])
    colour = shade("epoch", box["epoch"], title="epoch", values=[v for v in SHOWN if v <= box["epoch"][1]])
    strong, light = found[found.strong], found[~found.strong]
    steps = strong.assign(x2=strong.about_x.shift(-1), y2=strong.about_y.shift(-1)).dropna()
    return alt.layer(
        alt.Chart(light)
        .mark_line(color="#bbbbbb", strokeWidth=1)
        .encode(x, y, alt.Order("epoch:Q"), alt.Detail("seed:N")),
        alt.Chart(steps).mark_rule(strokeWidth=2).encode(x, y, alt.X2("x2"), alt.Y2("y2"), colour),
        alt.Chart(strong).mark_circle(size=30, opacity=1).encode(x=x, y=y, color=colour),
    ).properties(**SIZE, title=f"{found.method.iloc[0]}, gamma {found.gamma.iloc[0]:g}")


def _leakage(found: pd.DataFrame, box: Box, methods: list[str]) -> Any:
    """Draw I(T;S) of all methods at one gamma, epoch by epoch."""
    colour = method_encodings(methods, symbolSize=900, symbolStrokeWidth=2)["color"]
    encodings = {
        "x": axis("X", "epoch", "epoch", box["epoch"]),
        "y": axis("Y", "about_s", "I(T;S)", box["about_s"]),
        "color": colour,
        "strokeDash": alt.StrokeDash("method:N", scale=alt.Scale(domain=methods), legend=colour["legend"]),
        "detail": "seed:N",
    }
    return alt.layer(
        alt.Chart(found[~found.strong]).mark_line(strokeWidth=1, opacity=0.35).encode(**encodings),
        alt.Chart(found[found.strong]).mark_line(strokeWidth=2).encode(**encodings),
    ).properties(**SIZE, title=f"gamma {found.gamma.iloc[0]:g}")
