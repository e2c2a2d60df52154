"""The information plane: what codes tell of x, y and s at the end of training."""

from collections.abc import Iterable

import pandas as pd

from fairbits.lab.paper.estimates_of_folds import estimate
from fairbits.lab.paper.record_frames import Record, planes
from fairbits.report.text_tables import Section, Table

TOLD = {"about_x": "I(X;T)", "about_y": "I(T;Y)", "about_s": "I(T;S)"}
NOTES = (
    "Bits that one drawn code tells of the validation rows, exact for these rows. First: after the first epoch; last: "
    "after the last. Most: the largest over all epochs. Mean over seeds ± half-width of the 95 % t-interval (none for "
    "one seed).",
)


def plane(records: Iterable[Record]) -> list[Section]:
    """Return a section per dataset."""
    return [_section(str(dataset), found) for dataset, found in planes(records).groupby("dataset")]


def _section(dataset: str, found: pd.DataFrame) -> Section:
    rows = [_row(str(method), gamma, part) for (method, gamma), part in found.groupby(["method", "gamma"])]
    head = [f"{name}, {when}" for name in TOLD.values() for when in ("first", "most", "last")]
    title = f"{dataset}: what the code tells in training, bits"
    table = Table(f"{dataset}-plane", title, ("method", "gamma", "seeds", "epochs", *head), tuple(rows), NOTES)
    return Section(f"{dataset}-plane", f"{dataset}: the information plane", (table,))


def _row(method: str, gamma: float, part: pd.DataFrame) -> tuple[str, ...]:
    seeds = part.groupby("seed")
    cells = [
        estimate(values).text()
        for name in TOLD
        for values in (seeds[name].first(), seeds[name].max(), seeds[name].last())
    ]
    return (method, f"{gamma:g}", str(seeds.ngroups), str(part.epoch.max()), *cells)
