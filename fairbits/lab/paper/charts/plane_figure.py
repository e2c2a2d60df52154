"""The information plane: paths of codes while they are trained."""

from typing import Any

import altair as alt
import pandas as pd

from fairbits.lab.paper.charts.paper_style import axis, extent, finish, mark_of, method_encodings, shade

EXPLANATION = (
    "Information of one drawn code, bits, exact for the validation rows. Strong: seed {seed}; light: other seeds."
)
SIZE = {"width": 280, "height": 210}
LINES = alt.Legend(title="method", symbolSize=900, symbolStrokeWidth=2, symbolOpacity=1)
SHOWN = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
Box = dict[str, tuple[float, float]]


def plane_chart(found: pd.DataFrame) -> Any:
    """Draw I(T;Y) against I(X;T), a panel per method and gamma, and below I(T;S) against the epoch.

    Parameters
    ----------
    found : a row per method, gamma, seed and epoch of one dataset (`planes`)
    """
    seed = found.seed.min()
    found = found.assign(strong=found.seed == seed)
    box = {name: extent(found[name]) for name in ("about_x", "about_y", "about_s")} | {"epoch": (1, found.epoch.max())}
    rows = [[_path(part, box) for _, part in found[found.method == m].groupby("gamma")] for m in mark_of(found.method)]
    leakage = [_leakage(part, box, list(mark_of(found.method))) for _, part in found.groupby("gamma")]
    planes = alt.vconcat(*(alt.hconcat(*row) for row in rows))
    both = alt.vconcat(planes, alt.hconcat(*leakage)).resolve_scale(color="independent", strokeDash="independent")
    return finish(both, f"{found.dataset.iloc[0]}: the information plane", EXPLANATION.format(seed=seed))


def _path(found: pd.DataFrame, box: Box) -> Any:
    """Draw the way of one method and gamma, its pieces coloured by epoch."""
    x, y = axis(alt.X, "about_x", "I(X;T)", box["about_x"]), axis(alt.Y, "about_y", "I(T;Y)", box["about_y"])
    colour = shade("epoch", box["epoch"], title="epoch", values=[v for v in SHOWN if v <= box["epoch"][1]])
    strong, light = found[found.strong], found[~found.strong]
    steps = strong.assign(x2=strong.about_x.shift(-1), y2=strong.about_y.shift(-1)).dropna()
    return alt.layer(
        alt.Chart(light).mark_line(color="#bbbbbb", strokeWidth=1).encode(x=x, y=y, order="epoch:Q", detail="seed:N"),
        alt.Chart(steps).mark_rule(strokeWidth=2).encode(x=x, y=y, x2="x2", y2="y2", color=colour),
        alt.Chart(strong).mark_circle(size=30, opacity=1).encode(x=x, y=y, color=colour),
    ).properties(**SIZE, title=f"{found.method.iloc[0]}, gamma {found.gamma.iloc[0]:g}")


def _leakage(found: pd.DataFrame, box: Box, methods: list[str]) -> Any:
    """Draw I(T;S) of all methods at one gamma, epoch by epoch."""
    encodings = {
        "x": axis(alt.X, "epoch", "epoch", box["epoch"]),
        "y": axis(alt.Y, "about_s", "I(T;S)", box["about_s"]),
        "color": method_encodings(methods, LINES)["color"],
        "strokeDash": alt.StrokeDash("method:N", scale=alt.Scale(domain=methods), legend=LINES),
        "detail": "seed:N",
    }
    return alt.layer(
        alt.Chart(found[~found.strong]).mark_line(strokeWidth=1, opacity=0.35).encode(**encodings),
        alt.Chart(found[found.strong]).mark_line(strokeWidth=2).encode(**encodings),
    ).properties(**SIZE, title=f"gamma {found.gamma.iloc[0]:g}")
