"""The arena's tables and frontiers: what each method can prove, and what it predicts at a certified limit."""

from collections.abc import Iterable, Iterator
from typing import Any

import lazy_loader
import numpy as np
import pandas as pd

from fairbits.lab.paper.paper_style import LETTERS, axis, finish
from fairbits.lab.paper.record_frames import MISSING, NOTES, Record, differences_table, estimate, of_kind
from fairbits.report.page import Section
from fairbits.report.wording import Table

alt = lazy_loader.load("altair")
LIMITS = (0.05, 0.1)
RELEASES = {"code": "FairCode", "decision": "FairCode, decisions"}  # and what we recommend for each
TITLES = {"code": "what may be shared", "decision": "decisions"}
SCORES = {"code": ("auc", "accuracy"), "decision": ("accuracy",)}
HEAD = {"auc": "AUC ↑", "accuracy": "accuracy ↑"}
SCALES = {
    "code": "AUC of what may be shared, against the disparity that is proved (at most, 95 %)",
    "decision": "Accuracy of decisions, against the disparity that is proved (at most, 95 %)",
}
MOST, HEIGHT = 0.3, {"code": 0.2, "decision": 0.08}  # ends of the axes: of the proved disparity, below the best score
FRONT, GRID = "best there is, estimated", np.linspace(0, MOST, 61)
COLOURS = {  # of Okabe and Ito
    "what we recommend": "#000000",
    "on columns": "#0072B2",
    "on log-ratios": "#E69F00",
    "on probabilities": "#009E73",
    FRONT: "#999999",
}
ABREAST = 4  # panels


def arena(records: Iterable[Record]) -> list[Section]:
    """Return a section for each table, with every method's certified release at every limit, the best first."""
    found = arena_choices(records)
    return [
        Section(f"{name}-arena", f"{name}: the arena", tuple(_tables(str(name), own)))
        for name, own in found.groupby("dataset", sort=True)
    ]


def arena_choices(records: Iterable[Record]) -> pd.DataFrame:
    """Return what is kept of each run: a row for every release and limit, with its scores on the test rows.

    The models of a run are certified in the order of what the training rows let expect, up to the first failure; of
    those that pass, the one with the smallest loss on the calibration rows is kept. Where none passes, the most
    frequent class is left: its accuracy, and an AUC of a half.
    """
    rows = []
    for record in of_kind(records, "arena"):
        run, result = record["run"], record["result"]
        if not result["points"]:  # the front
            continue
        facts = {name: run[name] for name in ("dataset", "seed", "inputs")} | {"method": run["name"]}
        for release in RELEASES:
            for limit in LIMITS:
                kept = chosen([point[release] for point in result["points"]], limit)
                nothing = {"accuracy": result["constant"], "auc": 0.5}
                rows.append({**facts, "release": release, "limit": limit, "certified": bool(kept), **(kept or nothing)})
    columns = ["dataset", "method", "inputs", "seed", "release", "limit", "certified", "accuracy", "auc"]
    return pd.DataFrame(rows, columns=[*columns, *sorted({n for row in rows for n in row} - set(columns))])


def chosen(points: list[dict[str, float]], limit: float) -> dict[str, float]:
    """Return the best of the points that pass a fixed sequence, or nothing.

    >>> points = [{"expected": 0.02, "bound": 0.04, "loss": 1.0}, {"expected": 0.03, "bound": 0.06, "loss": 0.5}]
    >>> chosen(points, 0.05)["loss"], chosen(points, 0.1)["loss"], chosen(points, 0.01)
    (1.0, 0.5, {})
    """
    passed = []
    for point in sorted(points, key=lambda point: point["expected"]):
        if point["bound"] > limit:
            break
        passed.append(point)
    return min(passed, key=lambda point: point["loss"], default={})


def _tables(dataset: str, found: pd.DataFrame) -> Iterator[Table]:
    for (release, limit), own in found.groupby(["release", "limit"], sort=True):
        first = SCORES[str(release)][0]
        groups = [(key, part.set_index("seed")) for key, part in own.groupby(["method", "inputs"])]
        groups.sort(key=lambda group: -group[1][first].mean())
        title = f"{dataset}, {TITLES[str(release)]}: certified within {limit:g}"
        head = ("method", "inputs", "certified", *(HEAD[s] for s in SCORES[str(release)]), "shown", "AUC of S")
        rows = tuple((*key, *_cells(part, SCORES[str(release)])) for key, part in groups)
        name = f"{dataset}-arena-{release}-{round(100 * float(limit))}"
        yield Table(name, title, head, rows, (NOTES["arena"][str(release)],))
        ours = {key: part for key, part in groups if key[0] == RELEASES[str(release)]}
        for own_key, best in ours.items():
            pairs = [(" ".join(own_key), " ".join(key), estimate(part[first] - best[first])) for key, part in groups]
            others = [pair for pair in pairs if pair[0] != pair[1]]
            title = f"{title}: paired differences in {first}"
            yield differences_table(f"{name}-differences", title, NOTES["arena"]["paired"], others)


def _cells(part: pd.DataFrame, scores: Iterable[str]) -> list[str]:
    certified = part[part.certified]
    cells = [f"{len(certified)} of {len(part)}", *(estimate(part[score]).text() for score in scores)]
    for name in ("disparity", "auc_of_s"):
        known = name in certified and certified[name].notna().any()
        cells.append(estimate(certified[name]).text() if known else MISSING)
    return cells


def arena_charts(records: Iterable[Record]) -> Iterator[tuple[str, Any]]:
    """Yield, for each table, what every method proves against what it predicts, over all its strengths."""
    rows = []
    for record in of_kind(records, "arena"):
        run, result = record["run"], record["result"]
        for release, (score, *_) in SCORES.items():
            name, inputs = run["name"], run["inputs"]
            points = [(point[release]["bound"], point[release][score]) for point in result["points"]]
            if not points:
                name = inputs = FRONT
                reached = [(one["disparity"], one[score]) for one in result["front"][release]]
                points = [(at, max((s for d, s in reached if d <= at), default=np.nan)) for at in GRID]
            facts = {"dataset": run["dataset"], "release": release, "method": name, "inputs": inputs}
            rows += [{**facts, "place": i, "bound": at, "score": value} for i, (at, value) in enumerate(points)]
    frame = pd.DataFrame(rows)
    for dataset, own in frame.groupby("dataset") if len(frame) else ():
        if set(own.method) - {*RELEASES.values(), FRONT}:
            yield f"{dataset}-arena", finish(_panels(own), f"{dataset}: proved and predicted")


def _panels(found: pd.DataFrame) -> Any:
    """Return a small panel for every method and release: its best score within each proved disparity, and ours."""
    rows = []
    for release, ours in RELEASES.items():
        own = _best(found[found.release == release])
        known = [*sorted(set(own.method) - {*RELEASES.values(), FRONT})]
        ends = (own.score.max() - HEIGHT[release], own.score.max() + 0.01)
        panels = [_panel(own[own.method.isin([name, ours, FRONT])], name, ours, ends) for name in known]
        title = alt.Title(SCALES[release], anchor="start", fontSize=LETTERS)
        rows.append(alt.concat(*panels, columns=ABREAST, spacing=14).properties(title=title))
    return alt.vconcat(*rows, spacing=30)


def _best(own: pd.DataFrame) -> pd.DataFrame:
    """Return the means over the splits, without points that a smaller proved disparity surpasses."""
    own = own.groupby(["method", "inputs", "place"], as_index=False)[["bound", "score"]].mean().sort_values("bound")
    best = own.groupby(["method", "inputs"]).score.cummax()
    return own[(own.score >= best) & (own.bound <= MOST)]


def _panel(own: pd.DataFrame, name: str, ours: str, ends: tuple[float, float]) -> Any:
    own = own.assign(shown=np.where(own.method == ours, "what we recommend", "on " + own.inputs))
    own.loc[own.method == FRONT, "shown"] = FRONT
    scale = alt.Scale(domain=list(COLOURS), range=list(COLOURS.values()))
    colour = alt.Color("shown:N", scale=scale, legend=alt.Legend(title=None, orient="bottom", symbolOpacity=1))
    base = alt.Chart(own).encode(x=axis("X", "bound", "", (0.0, MOST)), y=axis("Y", "score", "", ends), color=colour)
    front = base.transform_filter(alt.datum.method == FRONT).mark_line(clip=True, strokeDash=[4, 3])
    lines = base.transform_filter(alt.datum.method != FRONT).encode(detail="inputs:N")
    lines = lines.mark_line(clip=True, interpolate="step-after", point={"size": 18, "clip": True})
    title = alt.Title(name, fontSize=LETTERS - 2)
    return alt.layer(front, lines).properties(width=190, height=130, title=title)
