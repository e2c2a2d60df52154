"""The tables of ``python -m benchmarks.codes``, made from its records alone."""

from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from benchmarks.outcomes import table_lines

OURS, TOLD = "hard code, linear scores", "hard code of a network, encoder sees S"
NETWORK, STRAIGHT = "hard code of a network", "straight-through training"
KINDS = {
    ("linear", False): OURS,
    ("exact", False): NETWORK,
    ("exact", True): TOLD,
    ("straight-through", False): STRAIGHT,
    ("columns", False): "of the columns alone",
    ("binary-mi", False): "BinaryMI, random code of 8 bits, one draw",
    ("Adversarial", True): "Adversarial, encoder sees S, score in 16 levels",
    ("VFAE", True): "VFAE, encoder sees S, score in 16 levels",
    ("ThresholdOptimizer", True): "ThresholdOptimizer, sees S, drawn decision",
}
ABOUT = """\
# What our best codes reach

`python -m benchmarks.codes`. Every model of a path is trained, then certified at 95 % in a fixed sequence, in the order
of what the training rows let expect. Linear scores have a path for every limit, as in `CertifiedClassifier`: 16 shares
of it from both starts, and the 4 smallest with 4 words; a code that is no better on the training rows than a safer one
is left out. Networks have one path of 20 limits. Of the models that pass, the one with the smallest loss on the
calibration rows is kept: log-loss plus half the error rate, what codes are trained for (other methods: log-loss
alone). Adult: adult.data trains, and adult.test calibrates and scores ("whole"), or one
half of it calibrates and the other scores ("halves", 5 random ones); 5 seeds. Bank: 5, COMPAS: 8 random splits, two
thirds train and the others calibrate and score. Means and standard deviations. "Shortest" is the bound of fairbits: the
exact binomial one for hard codes and decisions, Berry-Esseen and Bernstein for random codes; "Hoeffding" is the bound
of version 0.1. Settings of the method were compared on parts of adult.data and on other splits of Bank and COMPAS;
results of earlier settings on adult.test were seen, too."""
PAIRED = """\
The same certified limit, split by split: AUC of our code less that of the other, mean and 95 % interval (Student's t)
over the splits where both have a model. A method that certifies nothing has no AUC to compare."""
FRONT = """\
The share of the information about the label, on the test rows, that the released code keeps of what the estimated front
allows any representation at the same disparity, that of the code on the test rows. The front is a linear programme on
the cross-fitted posteriors of the training rows; their errors make it an estimate, not a bound."""
SOFT = """\
Hard codes against random codes, both of networks: the released word `1[theta > 1/2]` against one draw, each with a
decoder of its own, at the total variation that the test rows show. The difference is hard less random, over all models
of the paths with a total variation below 0.1; equal disparity by linear interpolation along each path."""


def tables(records: list[dict[str, Any]]) -> list[str]:
    """Return the lines of the page."""
    rows = [
        {"dataset": r["dataset"], "kind": KINDS[r["method"], r["told"]], "split": r["split"], **kept}
        for r in records
        for kept in r["result"]["kept"]
    ]
    found = pd.DataFrame(rows)
    return [
        *ABOUT.splitlines(),
        "",
        *_certified(found),
        "",
        *PAIRED.splitlines(),
        "",
        *_paired(found),
        "",
        *FRONT.splitlines(),
        "",
        *_front(records),
        "",
        *SOFT.splitlines(),
        "",
        *_hardening(records),
    ]


def _certified(found: pd.DataFrame) -> list[str]:
    rows = []
    for names, own in found.groupby(["dataset", "kind", "promise", "protocol", "theorem"], sort=False):
        passed = own[own.setting.notna()]
        several = len(passed) > 1
        scores = [f"{passed[n].mean():.4f} ± {passed[n].std():.4f}" for n in ("bound", "accuracy", "auc")]
        count = f"{len(passed)} of {len(own)}"
        rows.append([*names[:2], f"{names[2]:g}", *names[3:], count, *(scores if several else ["", "", ""])])
    return table_lines(["", "code", "limit", "protocol", "theorem", "certified", "bound", "accuracy", "AUC"], rows)


def _paired(found: pd.DataFrame) -> list[str]:
    rows = []
    keys = ["dataset", "promise", "protocol", "theorem"]
    own = found.groupby([*keys, "kind", "split"], sort=False).auc.mean().unstack("kind")
    for names, aucs in own.groupby(level=keys, sort=False):
        pairs = [(ours, other) for ours, seeing in ((OURS, False), (TOLD, True)) for other in _others(ours, seeing)]
        for ours, other in [*pairs, (NETWORK, STRAIGHT)]:  # the last two differ in the gradient alone
            if ours in aucs and other in aucs and aucs[other].notna().any():
                apart = (aucs[ours] - aucs[other]).dropna()
                cells = [ours, other, _interval(apart), str(len(apart))]
                rows.append([names[0], f"{names[1]:g}", *names[2:], *cells])
    return table_lines(["", "limit", "protocol", "theorem", "code", "other", "difference in AUC", "splits"], rows)


def _others(ours: str, told: bool) -> list[str]:
    return [kind for (_, seeing), kind in KINDS.items() if seeing == told and kind != ours]


def _interval(values: Any) -> str:
    if len(values) < 2:
        return ""
    half = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{np.mean(values):+.4f} ({np.mean(values) - half:+.4f} to {np.mean(values) + half:+.4f})"


def _front(records: list[dict[str, Any]]) -> list[str]:
    shares: dict[tuple[str, float], list[float]] = {}
    for record in records:
        front = record["result"]["front"]
        if not front or record["method"] != "linear":
            continue
        points = sorted(record["result"]["points"], key=lambda p: p["total_variation"])
        shown, kept = ([p[name] for p in points] for name in ("total_variation", "information"))
        for best in front:
            own = np.interp(best["total_variation"], shown, kept)
            shares.setdefault((record["dataset"], best["limit"]), []).append(own / best["information"])
    rows = [[name, f"{limit:g}", f"{np.mean(v):.3f} ± {np.std(v):.3f}"] for (name, limit), v in shares.items()]
    return table_lines(["", "disparity", "share of the front's I(T;Y)"], rows)


def _hardening(records: list[dict[str, Any]]) -> list[str]:
    rows = []
    ours = [r for r in records if (r["method"], r["told"]) == ("exact", False)]
    for dataset in dict.fromkeys(r["dataset"] for r in ours):
        gains: dict[str, list[float]] = {"accuracy": [], "auc": []}
        for record in (r for r in ours if r["dataset"] == dataset):
            points = [p for p in record["result"]["points"] if p["total_variation"] < 0.1]
            soft = sorted((p["soft"] for p in points), key=lambda p: p["total_variation"])
            for name, found in gains.items():
                at = [p["total_variation"] for p in soft], [p[name] for p in soft]
                apart = [p[name] - np.interp(p["total_variation"], *at) for p in points]
                if apart:
                    found.append(float(np.mean(apart)))
        rows.append([dataset, _interval(gains["accuracy"]), _interval(gains["auc"]), str(len(gains["auc"]))])
    return table_lines(["", "difference in accuracy", "difference in AUC", "splits"], rows)
