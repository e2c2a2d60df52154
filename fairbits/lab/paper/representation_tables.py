"""What a random forest finds of S in the tuned models' representations."""

from collections.abc import Iterable

import pandas as pd

from fairbits.lab.paper.estimates_of_folds import estimate
from fairbits.lab.paper.record_frames import REFERENCES, Record, views
from fairbits.report.text_tables import Section, Table

SCORES = {
    "hidden": "1-ADRG ↑",
    "told": "AUC of S ↓",
    "auc": "AUC of the model ↑",
    "one_draw_auc": "AUC of one draw ↑",
}
NOTES = (
    "A random forest predicts S of held-out rows from the representation: 1-ADRG is 1 - |its accuracy - share of the "
    "largest group| (an accuracy below that share counts like one above), AUC of S is 0.5 where nothing is found. Mean "
    "over external folds ± half-width of the 95 % t-interval. Of a method's views the first is what is handed on; the "
    "others can tell more. Logistic regression hands on the columns themselves: what there is to be found.",
)


def representation(records: Iterable[Record]) -> list[Section]:
    """Return a section per dataset."""
    return [_section(str(dataset), found) for dataset, found in views(records).groupby("dataset")]


def _section(dataset: str, found: pd.DataFrame) -> Section:
    rows, found = [], found.assign(rival=~found.method.isin(REFERENCES))
    for (_, method, _, view), part in found.groupby(["rival", "method", "place", "view"]):
        rows.append((method, view, str(len(part)), *(estimate(part[name]).text() for name in SCORES)))
    title = f"{dataset}: what a forest finds of S in the representation"
    table = Table(f"{dataset}-representation", title, ("method", "view", "folds", *SCORES.values()), tuple(rows), NOTES)
    return Section(f"{dataset}-representation", f"{dataset}: representations", (table,))
