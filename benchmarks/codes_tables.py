"""The tables of ``python -m benchmarks.codes``, made from its records alone."""

from typing import Any

import pandas as pd


def tables(records: list[dict[str, Any]]) -> list[str]:
    """Return the lines of the page."""
    rows = [
        {"dataset": r["dataset"], "method": r["method"], "told": r["told"], "split": r["split"], **kept}
        for r in records
        for kept in r["result"]["kept"]
        if kept["setting"] is not None
    ]
    frame = pd.DataFrame(rows)
    grouped = frame.groupby(["dataset", "method", "told", "protocol", "promise"])
    mean = grouped[["bound", "accuracy", "auc", "information"]].agg(["mean", "std"])
    return [mean.round(4).to_string()]
