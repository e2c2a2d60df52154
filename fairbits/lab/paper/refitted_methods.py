"""Known settings fitted several times: scores, paired differences, and what forests find of S and of the label."""

from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd

from fairbits.lab.paper import record_frames as frames
from fairbits.lab.paper.method_pictures import dots
from fairbits.lab.paper.paper_style import finish
from fairbits.lab.paper.record_frames import MISSING, NOTES, REFERENCES, Record, estimate, method_of
from fairbits.lab.paper.tuned_methods import RIVALS, paired_difference
from fairbits.report.page import Section
from fairbits.report.wording import Table

SCORES = NOTES["refits"]["heads"]
FOUND = NOTES["informativeness"]["heads"]
PLACE = ["dataset", "origin", "method", "folds", "fold_seed", "fold"]  # of the rows that refits are averaged over
PAPER = "the paper"


def refit_scores(records: Iterable[Record]) -> pd.DataFrame:
    """Return the test scores of refits: a row per dataset, origin, method, fold and seed; `distance` as elsewhere."""
    rows = [
        {**{name: run[name] for name in ("dataset", "origin", "folds", "fold_seed", "fold", "seed")}, **result["test"]}
        | {"method": method_of(run)}
        for run, result in ((r["run"], r["result"]) for r in frames.of_kind(records, "refit"))
    ]
    named = ["auc", "gpa", "signed_gpa", "rank_audc", "one_draw_auc", "one_draw_gpa", "information"]
    frame = pd.DataFrame(rows, columns=[*PLACE, "seed", *named]).astype(dict.fromkeys(named, float))
    distances = {
        "distance": 1 - frame.auc + frame.gpa,
        "one_draw_distance": 1 - frame.one_draw_auc + frame.one_draw_gpa,
    }
    return frame.assign(**distances)


def refits(records: Iterable[Record]) -> list[Section]:
    """Return a section per dataset: the scores, and the paired differences beside those of one fit per fold."""
    records = list(records)
    found, once = refit_scores(records), frames.with_one_draw(frames.tuned_scores(records))
    sections = []
    for dataset, own in found.groupby("dataset"):
        tables = (_scores_table(str(dataset), own), _paired_table(str(dataset), own, once[once.dataset == dataset]))
        title = f"{dataset}: refits of known settings"
        sections.append(Section(f"{dataset}-refits", title, tuple(table for table in tables if table.rows)))
    return sections


def _scores_table(dataset: str, scores: pd.DataFrame) -> Table:
    means = scores.groupby([*PLACE], as_index=False)[list(SCORES)].mean()  # over seeds
    rows = []
    for (origin, method), own in means.groupby(["origin", "method"]):
        mine = scores[(scores.origin == origin) & (scores.method == method)]
        spread = mine.groupby("fold").distance.std().mean()
        cells = [estimate(own[name]).text(4 if name == "information" else 3) for name in SCORES]
        counts = (str(len(own)), str(mine.seed.nunique()))
        rows.append((method, origin, *counts, *cells, MISSING if pd.isna(spread) else frames.number(spread)))
    head = ("method", "settings", "folds", "refits", *SCORES.values(), "spread of the L1 over refits")
    return Table(f"{dataset}-refits", f"{dataset}: refits", head, tuple(rows), (NOTES["refits"]["scores"],))


def _paired_table(dataset: str, scores: pd.DataFrame, once: pd.DataFrame) -> Table:
    """Compare the searched settings: means over refits beside the one fit per fold that a search leaves."""
    own = frames.with_one_draw(scores[scores.origin == "searched"].assign(fair=1 - scores.gpa))
    means = own.groupby(["method", *PLACE[3:]], as_index=False).distance.mean()
    means = means.rename(columns={"fold_seed": "seed"})  # as a search calls it
    present, rows = set(means.method), []
    for one, other in ((o, r) for o in frames.OURS for r in RIVALS if {o, r} <= present):
        now, before = paired_difference(means, one, other), _before(once, one, other)
        rows.append((one, other, str(now.n), now.text(signed=True), frames.verdict(now), before.text(signed=True)))
    head = ("method", "against", "folds", "difference of means ↓", "the method is", "of one fit per fold ↓")
    title, note = f"{dataset}: paired differences of refits", NOTES["refits"]["paired"]
    return Table(f"{dataset}-refit-differences", title, head, tuple(rows), (note,))


def _before(once: pd.DataFrame, one: str, other: str) -> frames.Estimate:
    both = {one, other} <= set(once.method)
    return paired_difference(once, one, other) if both else estimate([])


def informativeness_views(records: Iterable[Record]) -> pd.DataFrame:
    """Return what forests find, a row per dataset, method, fold and view; refits count before their searches."""
    kept: dict[tuple[Any, ...], dict[str, Any]] = {}
    kinds = frames.of_kind(records, "reference", "search", "refit")
    for record in sorted(kinds, key=lambda r: (r["run"]["kind"] == "refit", -r["run"]["seed"])):
        run, result = record["run"], record["result"]
        method = method_of(run)
        if run.get("origin") == "paper" and PAPER not in method:
            method = f"{method} ({PAPER})"
        place = {"dataset": run["dataset"], "method": method, "fold": run["fold"], "folds": run["folds"]}
        for number, (view, seen) in enumerate(result.get("representation", {}).items()):
            if "auc_of_y" in seen:
                row = {**place, "view": view, "place": number, **seen, "hidden": 1 - seen["adrg"]}
                kept[*place.values(), view] = row
    return pd.DataFrame(kept.values(), columns=["dataset", "method", "fold", "folds", "view", "place", *FOUND])


def informativeness(records: Iterable[Record]) -> list[Section]:
    """Return a section per dataset whose records have forests of the label."""
    sections = []
    for dataset, found in informativeness_views(records).groupby("dataset"):
        groups = found.assign(rival=~found.method.isin(REFERENCES)).groupby(["rival", "method", "place", "view"])
        rows = [
            (method, view, str(len(part)), *(estimate(part[score]).text() for score in FOUND))
            for (_, method, _, view), part in groups
        ]
        name, head = f"{dataset}-informativeness", ("method", "view", "folds", *FOUND.values())
        title = f"{dataset}: what forests find of the label and of S"
        table = Table(name, title, head, tuple(rows), (NOTES["informativeness"]["table"],))
        sections.append(Section(name, title, (table,)))
    return sections


def informativeness_charts(records: list[Record]) -> Iterator[tuple[str, Any]]:
    """Draw what forests find of the label and of S in what is released, a row of dots per method."""
    every = informativeness_views(records)
    released = every[(every.place == 0) & (every.method != "constant")]
    for dataset, found in released.groupby("dataset"):
        order = found.groupby("method").auc_of_y.mean().sort_values(ascending=False, kind="stable").index
        chart = dots(found.assign(row=found.method), order, FOUND)
        title = f"{dataset}: forests on the representations"
        yield f"{dataset}-informativeness", finish(chart, title, *NOTES["informativeness"]["figure"])
