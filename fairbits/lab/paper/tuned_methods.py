"""Tuned methods on held-out folds: accuracy against fairness, chosen settings, and what a forest finds of S."""

from collections.abc import Iterable, Iterator
from typing import Any

import lazy_loader
import pandas as pd

from fairbits.lab.paper import record_frames as frames
from fairbits.lab.paper.method_pictures import dots, panels
from fairbits.lab.paper.paper_style import ACCURATE, FAIRER, finish
from fairbits.lab.paper.record_frames import FOLD, MISSING, NOTES, REFERENCES, Record, estimate, method_of
from fairbits.lab.paper.strength_paths import fold_means, frontiers
from fairbits.report.page import Section
from fairbits.report.wording import Table

alt = lazy_loader.load("altair")
RIVALS = ("AdvCls", "VFAE", "HSIC", "Parity", "Vanilla", *REFERENCES)
SCORES, FOUND = NOTES["tradeoff"]["heads"], NOTES["representation"]["heads"]
FIRST = ("gamma", "alpha", "beta", "depth", "width", "batch_size", "learning_rate", "weight_decay")
WORDS = {"depth": "hidden layers", "width": "layer size"}
STATES = ("complete", "pruned", "failed")
PANELS = {"fair": FAIRER, "even": "1 - AUDC (fairer →)"}
COLUMNS = {"distance": "distance ↓", "auc": "AUC ↑", "fair": "1 - GPA ↑", "even": "1 - AUDC ↑"}
VIEW = ["dataset", "method", *FOLD, "view", "place", "hidden", "found", "auc", "one_draw_auc"]
VIEW_COLUMNS = {"hidden": "1 - ADRG of S ↑", "found": "AUC of S ↓", "auc": "AUC of the model ↑"}


def tradeoff(records: Iterable[Record]) -> list[Section]:
    """Return two sections per dataset: the scores, and differences with the settings that the searches chose."""
    records = frames.tuned(records)
    sections = []
    for dataset, scores in frames.tuned_scores(records).groupby("dataset"):
        own = [record for record in records if record["run"]["dataset"] == dataset]
        title, score = f"{dataset}: tuned methods on held-out rows", _scores_table(dataset, scores)
        sections.append(Section(f"{dataset}-tuned", title, (score,)))
        more = (_paired_table(dataset, scores), _settings_table(dataset, own))
        title = f"{dataset}: accuracy against fairness"
        sections.append(Section(f"{dataset}-tradeoff", title, tuple(table for table in more if table.rows)))
    return sections


def in_rank(scores: pd.DataFrame) -> list[str]:
    """Return the methods: references first, the others by their mean distance."""
    means = scores.groupby("method").distance.mean()
    others = sorted(set(means.index) - set(REFERENCES), key=lambda method: (means[method], method))
    return [*(method for method in REFERENCES if method in means), *others]


def _scores_table(dataset: str, scores: pd.DataFrame) -> Table:
    rows = []
    for method in in_rank(scores):
        own = scores[scores.method == method]
        cells = [estimate(own[name]).text(4 if name == "information" else 3) for name in SCORES]
        rows.append((method, str(len(own)), *cells))
    head = ("method", "folds", *SCORES.values())
    return Table(
        f"{dataset}-scores", f"{dataset}: accuracy and fairness", head, tuple(rows), (NOTES["tradeoff"]["scores"],)
    )


def paired_difference(scores: pd.DataFrame, one: str, other: str) -> frames.Estimate:
    """Return the difference of the distances of two methods over the folds that both have."""
    by_fold = scores.set_index(["method", *FOLD]).distance
    return estimate(by_fold[one] - by_fold[other])  # nan where a fold has one of the two


def _paired_table(dataset: str, scores: pd.DataFrame) -> Table:
    scores = frames.with_one_draw(scores)
    present = set(scores.method)
    pairs = [(one, other) for one in frames.OURS for other in RIVALS if {one, other} <= present]
    found = [(*pair, paired_difference(scores, *pair)) for pair in pairs]
    title = f"{dataset}: paired differences of the L1 distance to (1,1)"
    return frames.differences_table(f"{dataset}-differences", title, NOTES["tradeoff"]["paired"], found)


def _settings_table(dataset: str, records: list[Record]) -> Table:
    """Return the chosen settings of every method, one value per fold, beside the paper's."""
    searches = sorted(frames.of_kind(records, "search"), key=lambda r: [r["run"][name] for name in FOLD])
    searched = {name for record in searches for name in record["result"]["best"]}
    names = [*(name for name in FIRST if name in searched), *sorted(searched - set(FIRST))]
    rows = []
    for method in sorted({method_of(record["run"]) for record in searches}):
        own = [record["result"] for record in searches if method_of(record["run"]) == method]
        trials = " / ".join(str(sum(result["trials"][state] for result in own)) for state in STATES)
        rows.append((method, *(_each([r["best"].get(name) for r in own]) for name in names), trials))
        if paper := frames.PUBLISHED["best_settings"].get(dataset, {}).get(method):
            rows.append((f"{method} (paper)", *(_each([paper.get(name)]) for name in names), MISSING))
    head = ("method", *(WORDS.get(name, name.replace("_", " ")) for name in names), f"trials {' / '.join(STATES)}")
    title = f"{dataset}: settings chosen by the search"
    return Table(f"{dataset}-settings", title, head, tuple(rows), (NOTES["tradeoff"]["settings"],))


def _each(values: list[Any]) -> str:
    """Return the values of all folds.

    >>> _each([0.16049, 1416.13, 300, None]), _each([None, None])
    ('0.16 / 1416 / 300 / –', '–')
    """
    texts = [_value(value) for value in values]
    return MISSING if set(texts) == {MISSING} else " / ".join(texts)


def _value(value: Any) -> str:
    if value is None:
        return MISSING
    if not isinstance(value, float):
        return str(value)
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def tuned_charts(records: list[Record]) -> Iterator[tuple[str, Any]]:
    """Draw a row of dots for every tuned method, the closest to (1, 1) first; a chart per dataset."""
    for dataset, scores in frames.tuned_scores(records).groupby("dataset"):
        shown = without_far_constant(scores)
        chart = dots(shown.assign(row=shown.method), by_distance(shown), COLUMNS)
        lines = ("dots", "outside") if len(shown) < len(scores) else ("dots",)
        title = f"{dataset}: tuned methods on held-out rows"
        yield f"{dataset}-tuned", finish(chart, title, *(NOTES["tradeoff"][line] for line in lines))


def by_distance(scores: pd.DataFrame) -> list[str]:
    """Return the methods by their mean distance, the closest first."""
    return list(scores.groupby("method").distance.mean().sort_values(kind="stable").index)


def tradeoff_charts(records: list[Record]) -> Iterator[tuple[str, Any]]:
    """Draw AUC against 1 - GPA and against 1 - AUDC, a small panel per method; a chart per dataset."""
    every = fold_means(frontiers(records))
    for dataset, scores in frames.tuned_scores(records).groupby("dataset"):
        paths = every[(every.dataset == dataset) & (every.depth == 1)]
        paths = paths[paths.seed == paths.seed.min()] if paths.method.nunique() > 1 else paths.head(0)
        shown, rows = without_far_constant(scores), []
        for column, title in PANELS.items():
            found, lines = (frame.assign(fair=frame[column]) for frame in (shown, paths))
            rows.append(panels(found, lines, by_distance(shown), (title, ACCURATE)))
        said = {"figure": True, "paths": len(paths) > 0, "known": "fairlearn TO" in set(paths.method)}
        said["outside"] = len(shown) < len(scores)
        words = [NOTES["tradeoff"][line] for line, holds in said.items() if holds]
        yield (
            f"{dataset}-tradeoff",
            finish(alt.vconcat(*rows, spacing=30), f"{dataset}: accuracy against fairness", *words),
        )


def without_far_constant(scores: pd.DataFrame) -> pd.DataFrame:
    """Leave the constant predictor out if it would take more than a third of the picture's height for itself."""
    others = scores[scores.method != "constant"]
    if len(others) in (0, len(scores)):
        return scores
    low, high = others.auc.min(), others.auc.max()
    return scores if low - 0.5 <= (high - low) / 2 else others


def views(records: Iterable[Record]) -> pd.DataFrame:
    """Return what a forest finds of S: a row per dataset, method, fold and view of the representation.

    `found` is the AUC of S, `hidden` is 1 - ADRG; the first view of a method (`place` 0) is what it releases.
    """
    rows = []
    for run, result in ((r["run"], r["result"]) for r in frames.tuned(records)):
        facts = {"dataset": run["dataset"], "method": method_of(run), **{name: run[name] for name in FOLD}}
        facts |= {name: result["test"].get(name, float("nan")) for name in ("auc", "one_draw_auc")}
        for place, (view, seen) in enumerate(result.get("representation", {}).items()):
            rows.append({**facts, "view": view, "place": place, "hidden": 1 - seen["adrg"], "found": seen["auc_of_s"]})
    return pd.DataFrame(rows, columns=VIEW)


def representation(records: Iterable[Record]) -> list[Section]:
    """Return a section per dataset."""
    sections = []
    for dataset, found in views(records).groupby("dataset"):
        rows, name = [], f"{dataset}-representation"
        groups = found.assign(rival=~found.method.isin(REFERENCES)).groupby(["rival", "method", "place", "view"])
        for (_, method, _, view), part in groups:
            rows.append((method, view, str(len(part)), *(estimate(part[score]).text() for score in FOUND)))
        title, head = f"{dataset}: what a forest finds of S in the representation", ("method", "view", "folds")
        table = Table(name, title, (*head, *FOUND.values()), tuple(rows), (NOTES["representation"]["table"],))
        sections.append(Section(name, f"{dataset}: representations", (table,)))
    return sections


def representation_charts(records: list[Record]) -> Iterator[tuple[str, Any]]:
    """Draw a row of dots for every view of every method, by what a forest finds of S; a chart per dataset."""
    every = views(records)
    for dataset, found in every[every.method != "constant"].groupby("dataset"):  # it has nothing to find
        found = found.assign(row=found.method.where(found.place == 0, found.method + ", " + found["view"].astype(str)))
        released = found[found.place == 0].groupby("method").found.mean().rank(method="first")
        means = found.assign(rank=found.method.map(released)).groupby("row")[["rank", "place"]].mean()
        order = means.sort_values(["rank", "place"]).index
        title = f"{dataset}: what a forest finds of S in representations"
        chart = dots(found, order, VIEW_COLUMNS, hollow=found.row[found.place > 0])
        yield f"{dataset}-representation", finish(chart, title, *NOTES["representation"]["figure"])
