"""All datasets side by side: how close every method comes to perfect."""

from collections.abc import Iterable

import pandas as pd

from fairbits.lab.paper.estimates_of_folds import MISSING, estimate
from fairbits.lab.paper.limit_tables import frontier_folds, nearest
from fairbits.lab.paper.record_frames import REFERENCES, Record, tuned_scores, with_one_draw
from fairbits.lab.paper.tradeoff_tables import OURS
from fairbits.report.text_tables import Section, Table

NOTES = (
    "L1 distance to (1,1) in (AUC, 1-GPA): mean over folds ± half-width of the 95 % t-interval. Tuned: by the paper's "
    "protocol. Over strengths: the least mean over all strengths, chosen on the test rows for all alike, other "
    "settings fixed. Expected predictions but where it says one draw. Paired differences stand with each dataset.",
)


def overview(records: Iterable[Record]) -> list[Section]:
    """Return one section, if two datasets or more were run."""
    records = list(records)
    tuned = with_one_draw(tuned_scores(records))
    columns = {f"{name}, tuned": _tuned(own) for name, own in tuned.groupby("dataset")}
    for name, found in frontier_folds(records).items():
        columns[f"{name}, over strengths"] = {method: estimate(nearest(own)).text() for method, own in found.items()}
    if tuned.dataset.nunique() < 2:
        return []
    head = sorted(columns, key=lambda name: (name.partition(",")[0], name.endswith("strengths")))
    rows = tuple((method, *(columns[c].get(method, MISSING) for c in head)) for method in _order(columns.values()))
    table = Table("overview", "How close every method comes to (1,1) ↓", ("method", *head), rows, NOTES)
    return [Section("overview", "All datasets", (table,))]


def _tuned(scores: pd.DataFrame) -> dict[str, str]:
    return {str(method): estimate(own.distance).text() for method, own in scores.groupby("method")}


def _order(columns: Iterable[dict[str, str]]) -> list[str]:
    """Return the methods: references, ours, the others by name."""
    present = {method for column in columns for method in column}
    first = [method for method in (*REFERENCES, *OURS) if method in present]
    return [*first, *sorted(present - set(first))]
