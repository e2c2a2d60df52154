"""Sections about the training and the inside of a model, folded away: learning curves, bits and scores."""

import pandas as pd

from fairbits.report import charts as draw
from fairbits.report.page import Chart, Section, number_table, section
from fairbits.report.wording import TEXTS, Record, Table, kind

WHOLE = "whole code"


def bits(record: Record) -> Section:
    """Draw a heat map of bits by columns."""
    found = list(record.get("bits") or [])
    named = {column["about"] for column in found}
    for leak in record["audit"].get("leakage") or []:
        if leak["column"] not in named and leak["each_bit"] is not None and leak["joint"] is not None:
            found.append({**leak, "about": leak["column"], "role": "sensitive", "each": leak["each_bit"]})
    if not found:
        return section("bits")
    shown = pd.DataFrame(  # a row for each bit and one for all
        {c["about"] + " (label)" * (c["role"] == "label"): [*c["each"], c["joint"]] for c in found},
        index=[*(f"bit {i}" for i in range(len(found[0]["each"]))), WHOLE],
    )
    numbers = shown.copy()
    numbers.loc["sum of the single bits (bounds nothing)"] = [sum(c["each"]) for c in found]
    numbers.loc[f"{WHOLE}, from held-out halves"] = [c["lower"] for c in found]
    numbers.loc["maximum (entropy)"] = [c["entropy"] for c in found]
    cells = tuple((str(part), *(f"{value:.6f}" for value in values)) for part, *values in numbers.itertuples())
    release = TEXTS["release"][kind(record)]
    table = Table("", f"Information in {release} on the test rows, bits", ("", *shown), cells)
    said = "; ".join(f"{value:.4f} bits about {name}" for name, value in shown.loc[WHOLE].items())
    words = f"Heat map of the information in every bit. The whole code holds {said}."
    chart = Chart("bits-chart", TEXTS["bits"]["title"], words, draw.heat_map(shown, WHOLE), table)
    return section("bits", {"release": release}, charts=(chart,))


def scores(record: Record) -> Section:
    """Draw how the predicted probabilities are distributed in the groups of every sensitive column."""
    columns: dict[str, dict[str, list[int]]] = {}
    for found in record.get("scores_by_group") or []:
        columns.setdefault(found["column"], {})[found["group"]] = found["counts"]
    task = record.get("task") or {}
    words = {"label": task.get("label", "the label"), "positive": (task.get("classes") or ["the last class"])[-1]}
    words |= TEXTS["scores"][kind(record)]
    return section("scores", words, charts=tuple(_score_chart(i, *column) for i, column in enumerate(columns.items())))


def _score_chart(number: int, name: str, counts: dict[str, list[int]]) -> Chart:
    frame = pd.DataFrame(dict(sorted(counts.items(), key=lambda group: -sum(group[1]))))  # a row for each bin
    bins, sizes = len(frame), frame.sum()
    means = frame.mul((frame.index + 0.5) / bins, axis=0).sum() / sizes.clip(lower=1)
    shown = frame.iloc[:, : len(draw.SERIES)]
    keys = draw.line_keys([f"{group} ({sizes[group]:,} rows)" for group in shown])
    spec = draw.score_steps(shown, keys)
    most = f" (the {shown.shape[1]} largest groups)" if frame.shape[1] > shown.shape[1] else ""
    words = f"Share of rows by score for {'; '.join(f'{group}, mean {means[group]:.3f}' for group in shown)}."
    rows = [
        (f"{i / bins:.2f} to {(i + 1) / bins:.2f}", *(f"{count:,}" for count in row))
        for i, *row in frame[frame.any(axis=1)].itertuples()
    ]
    rows += [("all rows", *(f"{size:,}" for size in sizes)), ("mean score", *(f"{mean:.3f}" for mean in means))]
    note = "Mean scores use the middle of each bin."
    table = Table("", f"Test rows by score and {name}", ("score", *frame), tuple(rows), (note,))
    return Chart(f"scores-chart-{number}", f"Scores by {name}{most}", words, spec, table, keys)


def learning_curves(record: Record) -> Section:
    """Draw error and leakage by epoch."""
    history, keys, charts = record.get("history") or [], draw.line_keys(["training", "validation"]), []
    fields = (("epoch", "epoch", "d"), *((key.label, key.label, ".4f") for key in keys))
    for name, (title, axis) in TEXTS["learning"]["curves"].items():
        if len(history) > 1 and name in history[0]:  # a code that is trained in one go has no curve
            columns = {"training": name, "validation": f"validation_{name}"}
            rows = [{"epoch": e["epoch"] + 1, **{k: e.get(v) for k, v in columns.items()}} for e in history]
            words = f"{title} by epoch, on training and validation rows; {len(history)} epochs."
            spec = draw.learning_lines(rows, axis, keys, record.get("best_epoch"))
            numbers = number_table(f"{title}: {axis}", fields, rows)
            charts.append(Chart(f"learning-chart-{name}", title, words, spec, numbers, keys))
    return section("learning", TEXTS["learning"][kind(record)], charts=tuple(charts))
