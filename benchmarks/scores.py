"""Scores that are to be fair, on the same rows: ``python -m benchmarks.scores [NAME ...] [--workers N]`` (an hour).

Trained on adult.data, scored on adult.test, S = sex. Every method trains a path of strengths, once on the encoded
columns and once on the posterior features that our codes are made from, so that methods and not features are compared.
Every method has one line in results/scores/records.jsonl and is not run again. Methods of other libraries need
``pip install 'fairbits[compare]'``.
"""

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

import fairbits
import fairbits.rivals
from benchmarks.outcomes import RESULTS, Job, run_and_publish
from fairbits.datasets import load_adult
from fairbits.estimators import fit_stack
from fairbits.estimators.codes import held_out_scores
from fairbits.metrics import auc

FOLDER = RESULTS / "scores"
GAMMAS = [0.3, 0.5, 0.7, 0.8, 0.83, 0.86, 0.88, 0.9, 0.92, 0.95, 0.97, 0.99]
LIMITS = [0.005, 0.01, 0.015, 0.02, 0.023, 0.026, 0.03, 0.033, 0.036, 0.04, 0.06, 0.1]
# name -> class, the setting that is its strength and its values, what else is set
METHODS: dict[str, tuple[str, str, list[float], dict[str, Any]]] = {
    "recommended hard code": ("LinearCodeClassifier", "limit", LIMITS, {}),
    "recommended hard code, 6 bits": ("LinearCodeClassifier", "limit", LIMITS, {"code_size": 6, "max_words": 64}),
    "random code, averaged": ("ExactCodeClassifier", "limit", LIMITS, {"release": "random"}),
    "hard code": ("ExactCodeClassifier", "limit", LIMITS, {}),
    "BinaryMI, averaged": ("BinaryMIClassifier", "gamma", GAMMAS, {"code_size": 8}),
    "Parity": ("ParityClassifier", "gamma", GAMMAS, {}),
    "HSIC": ("HSICClassifier", "gamma", GAMMAS, {}),
    "Adversarial": ("AdversarialClassifier", "gamma", GAMMAS, {}),
    "VFAE": ("VFAEClassifier", "beta", [1e2, 1e3, 3e3, 6e3, 1e4, 2e4, 3e4, 6e4, 1e5, 2e5, 3e5, 1e6], {}),
    "VIB": ("VIBClassifier", "gamma", [0.03, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0], {}),
}
OTHERS: dict[str, tuple[str, str, list[float], dict[str, Any]]] = {
    "fairlearn ExponentiatedGradient": (
        "ExponentiatedGradientClassifier",
        "difference_bound",
        [0.003, 0.01, 0.03],
        {"mixture": "probabilities"},
    ),
    "fairlearn adversarial, linear": (
        "FairlearnAdversarialClassifier",
        "alpha",
        [0.3, 1.0, 3.0],
        {"hidden_sizes": (), "epochs": 30},
    ),
    "fairlearn ThresholdOptimizer (sees S)": ("ThresholdOptimizerClassifier", "tol", [0.0, 0.01, 0.02], {}),
}
RULES = {
    "one-bit Bayes rule": ("BayesRuleClassifier", "limit", [0.005, 0.01, 0.015, 0.02, 0.03, 0.05]),
    "linear programme's code": ("LinearProgrammeCode", "limit", LIMITS),
}
OURS = ("LinearCodeClassifier", "ExactCodeClassifier")
SEEDS = 3  # of ours; the others have seed 0
AUDCS = (0.01, 0.015)
HEAD = """\
Adult, adult.data -> adult.test, S = sex: the best AUC of a label's score with an AUDC (mean difference of acceptance
rates over all thresholds) of at most 0.010 and 0.015 on adult.test, over the strengths of each method. Choosing by
test rows makes every method look better than it is. "Columns" are the encoded columns, "posterior" the features of
PosteriorEncoder with the columns beside them. AUC of S: boosted trees, trained on one half of adult.test and tested
on the other, guess the sex from the score, or from the released word of a hard code. The one-bit rule and
ThresholdOptimizer decide: their AUC is that of a decision, and their accuracy at a difference of rates is what
counts."""


def jobs(names: list[str]) -> list[Job]:
    """List the paths: every method on both kinds of inputs."""
    found = []
    for name in [*METHODS, *OTHERS, *RULES]:
        cls = (METHODS | OTHERS | RULES)[name][0]
        kinds = ["posterior"] if name in RULES or cls == "LinearCodeClassifier" else ["columns", "posterior"]
        seeds = range(SEEDS) if cls in OURS else range(1)
        found += [Job(method=name, inputs=kind, seed=seed) for kind in kinds for seed in seeds]
    return [job for job in found if not names or job.method in names]


@cache
def parts() -> tuple[Any, Any]:
    """Return adult.data and adult.test as (X, y, s), s in numbers."""
    return tuple(
        (part.X, part.y.to_numpy(), np.unique(part.s, return_inverse=True)[1])
        for part in (load_adult(subset=name) for name in ("train", "test"))
    )


@cache
def features(kind: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the inputs of both parts."""
    (X, y, s), (X_test, *_) = parts()
    if kind == "columns":
        encoder = fairbits.TableEncoder().fit(X)
        return np.asarray(encoder.transform(X)), np.asarray(encoder.transform(X_test))
    encoder = fairbits.PosteriorEncoder(features=kind, random_state=seed)
    return encoder.fit_transform(X, y, sensitive_features=s), encoder.transform(X_test)


def path(job: Job) -> dict[str, Any]:
    """Train a method with all its strengths and return the scores on adult.test."""
    (X, y, s), (X_test, y_test, s_test) = parts()
    if job.method in RULES:
        name, strength, values = RULES[job.method]
        models = [getattr(fairbits.rivals, name)(**{strength: v}, random_state=job.seed) for v in values]
    else:
        name, strength, values, settings = (METHODS | OTHERS)[job.method]
        source = fairbits.rivals if job.method in OTHERS else fairbits
        models = [getattr(source, name)(**{strength: v}, **settings, random_state=job.seed) for v in values]
        posterior = "probabilities" if name == "LinearCodeClassifier" else "log-ratios"
        X, X_test = features("columns" if job.inputs == "columns" else posterior, job.seed)
    if job.method in METHODS:
        fit_stack(models, X, y, sensitive_features=s)
    else:
        for model in models:
            model.fit(X, y, sensitive_features=s[:, None])
    return {
        "points": [
            {strength: value, **point(model, X_test, y_test, s_test)}
            for value, model in zip(values, models, strict=True)
        ]
    }


def point(model: Any, X: Any, y: np.ndarray, s: np.ndarray) -> dict[str, float]:
    """Return a model's scores on test rows, and the AUC with which trees guess s from its score or hard code."""
    found = held_out_scores(model, X, y, s[:, None])
    known = {"sensitive_features": s[:, None]} if getattr(model, "groups_at_prediction", False) else {}
    shown = model.transform(X) if getattr(model, "is_hard", False) else model.predict_proba(X, **known)[:, 1:]
    half = np.random.default_rng(0).permutation(len(s))
    one, other = np.array_split(half, 2)
    trees = HistGradientBoostingClassifier(random_state=0).fit(shown[one], s[one])
    return {**found, "sensitive_auc": auc(s[other], trees.predict_proba(shown[other]))}


def tables(records: list[dict[str, Any]]) -> list[str]:
    """Return the lines of the page: every method's best AUC at two levels of AUDC."""
    head = " | ".join(f"AUC at AUDC at most {most:.3f} | AUC of S" for most in AUDCS)
    lines = [*HEAD.splitlines(), "", f"| method | inputs | {head} | accuracy at discrimination at most 0.03 |"]
    lines.append("|---" * (3 + 2 * len(AUDCS)) + "|")
    for (method, inputs), own in pd.DataFrame(records).groupby(["method", "inputs"], sort=False):
        best = [best_at(result["points"]) for result in own.result]
        cells = [spread([one[field] for one in best]) for field in best[0]]
        lines.append(f"| {method} | {inputs} | {' | '.join(cells)} |")
    return lines


def best_at(points: list[dict[str, float]]) -> dict[str, float]:
    """Return the best AUC at each level of AUDC with its AUC of S, and the best accuracy; NaN where none is so low."""
    found, nothing = {}, {"auc": np.nan, "sensitive_auc": np.nan, "accuracy": np.nan}
    for most in AUDCS:
        best = max((p for p in points if p["audc"] <= most), key=lambda p: p["auc"], default=nothing)
        found |= {f"auc {most}": best["auc"], f"sensitive {most}": best["sensitive_auc"]}
    drawn = "one_draw_" * ("one_draw_accuracy" in points[0])  # drawn labels are judged as drawn
    low = [p[f"{drawn}accuracy"] for p in points if p[f"{drawn}discrimination"] <= 0.03]
    return found | {"accuracy": max(low, default=np.nan)}


def spread(values: list[float]) -> str:
    """Return a mean, and the least and the largest of several values."""
    if np.isnan(values).any():
        return "none"
    mean = f"{np.mean(values):.4f}"
    return mean if len(values) == 1 else f"{mean} ({min(values):.4f} to {max(values):.4f})"


if __name__ == "__main__":
    run_and_publish(__doc__, jobs, path, FOLDER, tables)
