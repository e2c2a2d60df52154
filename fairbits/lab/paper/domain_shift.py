"""Domain adaptation: scores on a target whose labels were not shown."""

from collections.abc import Iterable

import pandas as pd

from fairbits.lab.paper.record_frames import MISSING, NOTES, Record, estimate, of_kind
from fairbits.report.page import Section
from fairbits.report.wording import Table

PLAIN = "plain network"
SCORES = NOTES["domains"]["heads"]
HEAD = ("method", "strength", "seeds", *SCORES.values(), "AUC above that of the plain network")


def adapted_scores(records: Iterable[Record]) -> pd.DataFrame:
    """Return the scores of domain adaptation: a row per experiment, method, strength and seed."""
    rows = []
    for run, result in ((r["run"], r["result"]) for r in of_kind(records, "domain")):
        method = run["name"] + ", with the target's labels" * (run["labels"] == "target")
        rows += [{**scores, **run, "method": method} for scores in result["scores"]]
    return pd.DataFrame(rows, columns=["experiment", "method", "strength", "seed", *SCORES])


def domains(records: Iterable[Record]) -> list[Section]:
    """Return a section per experiment; differences are paired by seed."""
    sections = []
    for experiment, scores in adapted_scores(records).groupby("experiment"):
        plain = scores[scores.method == PLAIN].set_index("seed").target_auc
        rows = []
        for (method, strength), own in scores.groupby(["method", "strength"], dropna=False):
            lead = estimate(own.set_index("seed").target_auc - plain)
            shown = "–" if method == PLAIN or not lead.n else lead.text(signed=True)
            cells = (estimate(own[name]).text() for name in SCORES)
            rows.append((method, MISSING if pd.isna(strength) else f"{strength:g}", str(len(own)), *cells, shown))
        name, title = f"{experiment}-domains", f"{experiment}: a target without labels"
        sections.append(Section(name, title, (Table(name, title, HEAD, tuple(rows), (NOTES["domains"]["table"],)),)))
    return sections
