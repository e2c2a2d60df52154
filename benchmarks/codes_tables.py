"""The tables of ``python -m benchmarks.codes``, made from its records alone."""

from typing import Any

import pandas as pd

KINDS = {
    ("exact", False): "hard code, exact training",
    ("exact", True): "the same, encoder sees S",
    ("straight-through", False): "straight-through training",
    ("columns", False): "of the columns alone",
    ("binary-mi", False): "BinaryMI, random code of 8 bits, one draw",
    ("Adversarial", True): "Adversarial, encoder sees S, score in 16 levels",
    ("VFAE", True): "VFAE, encoder sees S, score in 16 levels",
    ("ThresholdOptimizer", True): "ThresholdOptimizer, sees S, drawn decision",
}
ABOUT = (
    "Certified at 95 % by a fixed sequence over a path of {limits} limits, ordered by the training rows; of the models "
    "that pass, the one with the smallest log-loss on the calibration rows. Means and standard deviations over splits "
    "and seeds. Protocols: whole, all test rows calibrate and score; halves, one half of adult.test calibrates and the "
    "other scores."
)


def tables(records: list[dict[str, Any]]) -> list[str]:
    """Return the lines of the page: what each kind of code reaches at each promise."""
    rows = [
        {"dataset": r["dataset"], "kind": KINDS[r["method"], r["told"]], **kept}
        for r in records
        for kept in r["result"]["kept"]
    ]
    lines = [ABOUT.format(limits=len(records[0]["result"]["points"])), ""]
    lines += [
        "| | code | promise | protocol | certified | bound | accuracy | AUC |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for names, found in pd.DataFrame(rows).groupby(["dataset", "kind", "promise", "protocol"], sort=False):
        passed = found[found.setting.notna()]
        scores = [f"{passed[n].mean():.4f} ± {passed[n].std():.4f}" for n in ("bound", "accuracy", "auc")]
        shown = scores if len(passed) > 1 else ["", "", ""]
        cells = [names[0], names[1], f"{names[2]:g}", names[3], f"{len(passed)} of {len(found)}", *shown]
        lines.append(f"| {' | '.join(cells)} |")
    return lines
