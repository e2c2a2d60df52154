"""Tuned methods on held-out folds: accuracy against fairness, chosen settings, and what a forest finds of S."""

from collections.abc import Iterable, Iterator
from typing import Any

import lazy_loader
import pandas as pd

from fairbits.lab.paper import record_frames as frames
from fairbits.lab.paper.paper_style import ACCURATE, FAIRER, LETTERS, axis, extent, finish, method_encodings
from fairbits.lab.paper.record_frames import FOLD, MISSING, NOTES, REFERENCES, Record, estimate, mean_points, method_of
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
VIEW = ["dataset", "method", *FOLD, "view", "place", "hidden", "found", "auc", "one_draw_auc"]
VIEW_PANELS = {"hidden": "1 - ADRG of S (reveals less →)", "found": "AUC of S (reveals more →)"}
SHORT = {"16 draws": "16", "theta": "θ"}


def tradeoff(records: Iterable[Record]) -> list[Section]:
    """Return a section per dataset with scores, differences and the settings that the searches chose."""
    records = frames.tuned(records)
    sections = []
    for dataset, scores in frames.tuned_scores(records).groupby("dataset"):
        own = [record for record in records if record["run"]["dataset"] == dataset]
        tables = (_scores_table(dataset, scores), _paired_table(dataset, scores), _settings_table(dataset, own))
        title = f"{dataset}: tuned methods on held-out rows"
        sections.append(Section(f"{dataset}-tradeoff", title, tuple(table for table in tables if table.rows)))
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


def tradeoff_charts(records: list[Record]) -> Iterator[tuple[str, Any]]:
    """Draw AUC against 1 - GPA and against 1 - AUDC; a chart per dataset, under the name of its section."""
    every = fold_means(frontiers(records))
    for dataset, scores in frames.tuned_scores(records).groupby("dataset"):
        paths = every[(every.dataset == dataset) & (every.depth == 1)]
        paths = paths[paths.seed == paths.seed.min()] if paths.method.nunique() > 1 else paths.head(0)
        shown = without_far_constant(scores)
        marks = method_encodings([*shown.method, *paths.method])
        panels = []
        for column, title in PANELS.items():
            three = [frame.assign(fair=frame[column]) for frame in (shown, scores, paths)]
            panels.append(_panel(three[0], three[1], three[2], title, marks))
        said = {"figure": True, "paths": len(paths) > 0, "known": "fairlearn TO" in set(paths.method)}
        said["outside"] = len(shown) < len(scores)
        lines = [NOTES["tradeoff"][line] for line, holds in said.items() if holds]
        headline = f"{dataset}: tuned methods on held-out rows"
        yield f"{dataset}-tradeoff", finish(alt.hconcat(*panels, spacing=40), headline, *lines)


def without_far_constant(scores: pd.DataFrame) -> pd.DataFrame:
    """Leave the constant predictor out if it would take more than a third of the picture's height for itself."""
    others = scores[scores.method != "constant"]
    if len(others) in (0, len(scores)):
        return scores
    low, high = others.auc.min(), others.auc.max()
    return scores if low - 0.5 <= (high - low) / 2 else others


def _panel(shown: pd.DataFrame, scores: pd.DataFrame, paths: pd.DataFrame, title: str, marks: dict[str, Any]) -> Any:
    from fairbits.report.charts import equal_tradeoffs

    means = mean_points(shown, "auc", "fair")
    box = {name: extent(shown[name], padding=0.15) for name in ("fair", "auc")}  # intervals of few folds are far wider
    x, y = axis("X", "fair", title, box["fair"]), axis("Y", "auc", ACCURATE, box["auc"])
    colour, bars = marks["color"], alt.Chart(means).mark_rule(strokeWidth=1.5, clip=True)
    lines = alt.Chart(paths).mark_line(strokeWidth=1, opacity=0.6, clip=True)
    return alt.layer(
        lines.encode(x, y, colour, alt.Order("place:Q")),
        equal_tradeoffs(mean_points(scores, "auc", "fair"), box["fair"]),
        bars.encode(alt.X("fair_low:Q"), alt.X2("fair_high:Q"), alt.Y("auc:Q"), colour),
        bars.encode(alt.X("fair:Q"), alt.Y("auc_low:Q"), alt.Y2("auc_high:Q"), colour),
        alt.Chart(shown).mark_point(filled=True, size=35, opacity=0.5).encode(x=x, y=y, **marks),
        alt.Chart(means).mark_point(filled=True, size=170, opacity=1).encode(x=x, y=y, **marks),
    ).properties(width=420, height=380)


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
    """Draw the model's AUC against 1 - ADRG and against the AUC of S of every view; a chart per dataset."""
    every = views(records)
    for dataset, found in every[every.method != "constant"].groupby("dataset"):  # the constant lies far off
        marks = method_encodings(found.method)
        panels = [_view_panel(found, column, title, marks) for column, title in VIEW_PANELS.items()]
        title = f"{dataset}: what a forest finds of S in representations"
        chart = finish(alt.hconcat(*panels, spacing=40), title, *NOTES["representation"]["figure"])
        yield f"{dataset}-representation", chart


def _view_panel(found: pd.DataFrame, column: str, title: str, marks: dict[str, Any]) -> Any:
    from fairbits.report.charts import equal_tradeoffs

    means = pd.concat(
        mean_points(own.assign(fair=own[column]), "auc", "fair").assign(place=place, word=SHORT.get(str(view), view))
        for (place, view), own in found.groupby(["place", "view"])
    )
    domains = {name: extent(means[name], padding=0.25) for name in ("fair", "auc")}
    at = {"x": axis("X", "fair", title, domains["fair"]), "y": axis("Y", "auc", ACCURATE, domains["auc"])}
    filled, hollow, colour = means[means.place == 0], means[means.place != 0], marks["color"]  # filled: released
    layers = [
        alt.Chart(means)
        .mark_rule(clip=True)
        .encode(alt.X("fair_low:Q"), alt.X2("fair_high:Q"), alt.Y("auc:Q"), colour),
        alt.Chart(filled)
        .mark_rule(clip=True)
        .encode(alt.X("fair:Q"), alt.Y("auc_low:Q"), alt.Y2("auc_high:Q"), colour),
        alt.Chart(filled).mark_point(filled=True, size=170, opacity=1).encode(**at, **marks),
        alt.Chart(hollow).mark_point(size=130, strokeWidth=2, fill="white", opacity=1).encode(**at, **marks),
        alt.Chart(hollow).mark_text(dy=-16, fontSize=LETTERS).encode(alt.Text("word:N"), colour, **at),
    ]
    if column == "hidden":
        layers.insert(0, equal_tradeoffs(filled, domains["fair"]))
    return alt.layer(*layers).properties(width=420, height=380)
