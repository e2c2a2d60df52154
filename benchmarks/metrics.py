"""Time of GPA and AUDC together, in units of scikit-learn's roc_auc_score on the same rows.

Run with ``python -m benchmarks.metrics``. numpy sorts on one thread; the timings of the two sides alternate.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy is imported
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from statistics import median
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from benchmarks.outcomes import seconds, show
from fairbits.metrics import discrimination_curve_area, group_pairwise_accuracy_gap

LIMIT = 1.0


def run(n_rows: int = 1_000_000, repeats: int = 7) -> list[dict[str, Any]]:
    """Return one record per kind of scores and groups; `ratio` is fairbits' time over scikit-learn's."""
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 2, n_rows)
    y_true = (rng.random(n_rows) < 0.3 + 0.2 * groups).astype(int)
    scores = 1 / (1 + np.exp(-rng.normal(y_true + 0.3 * groups)))
    names = np.array(["female", "male"])[groups]
    cases = {
        "float64": (scores, groups),
        "float32": (scores.astype(np.float32), groups),
        "188 distinct": (np.round(scores * 187) / 187, groups),
        "text groups": (scores, names),
        "categorical": (scores, pd.Series(names, dtype="category")),
        "object groups": (scores, names.astype(object)),
    }
    return [_record(case, y_true, *cases[case], repeats) for case in cases]


def _record(case: str, y_true: np.ndarray, scores: np.ndarray, groups: Any, repeats: int) -> dict[str, Any]:
    def ours() -> None:
        group_pairwise_accuracy_gap(y_true, scores, sensitive_features=groups)
        discrimination_curve_area(scores, sensitive_features=groups)

    def sklearn() -> None:
        roc_auc_score(y_true, scores)

    times = [(seconds(ours), seconds(sklearn)) for _ in range(repeats + 1)][1:]  # the first warms up
    mine, theirs = (median(column) for column in zip(*times, strict=True))
    return {"name": f"GPA + AUDC : roc_auc_score, {case}", "value": mine / theirs, "at_most": LIMIT}


if __name__ == "__main__":
    show(run())
