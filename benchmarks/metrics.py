"""Time of GPA and AUDC together, against scikit-learn's roc_auc_score on the same rows."""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from benchmarks.ratios import Line, Size, in_turns, line
from fairbits.metrics import discrimination_curve_area, group_pairwise_accuracy_gap


def run(size: Size) -> list[Line]:
    """Return one line per kind of scores and groups."""
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 2, size.rows)
    y_true = (rng.random(size.rows) < 0.3 + 0.2 * groups).astype(int)
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
    return [_compared(case, y_true, *cases[case], size.repeats) for case in cases]


def _compared(case: str, y_true: np.ndarray, scores: np.ndarray, groups: Any, repeats: int) -> Line:
    def ours() -> None:
        group_pairwise_accuracy_gap(y_true, scores, sensitive_features=groups)
        discrimination_curve_area(scores, sensitive_features=groups)

    took = in_turns({"ours": ours, "theirs": lambda: roc_auc_score(y_true, scores)}, repeats)
    name = f"GPA and AUDC of {len(scores):,} rows, {case} : scikit-learn's roc_auc_score"
    return line(name, took["theirs"] / took["ours"], at_least=1.0)
