"""Every rival learns, and its strength does something: ``python -m benchmarks.rivals [compas] [adult]``.

Three folds per method and strength, ours trained as one stack; held-out scores beside the unprotected network's on the
same folds. Every method and seed has one line in results/rivals/records.jsonl and is not run again. Methods of other
libraries need ``pip install 'fairbits[compare]'``.
"""

import itertools
from typing import Any

import numpy as np
import torch

import fairbits
import fairbits.rivals
from benchmarks.outcomes import RESULTS, Job, arguments, outcomes, outcomes_of, publish
from fairbits.datasets import load_adult, load_compas
from fairbits.estimators import fit_stack
from fairbits.estimators.codes import held_out_scores
from fairbits.estimators.fitting import stratified_folds

FOLDER = RESULTS / "rivals"
LOADERS = {"compas": load_compas, "adult": load_adult}
FOLDS = 3
# name -> class, settings without strength, settings at high strength, AUC allowed below the unprotected network's
METHODS: dict[str, tuple[str, dict[str, Any], dict[str, Any], float | None]] = {
    "Vanilla": ("VanillaClassifier", {}, {}, None),
    "Adversarial": ("AdversarialClassifier", {"gamma": 0.0}, {"gamma": 0.9}, 0.01),
    "HSIC": ("HSICClassifier", {"gamma": 0.0}, {"gamma": 0.9}, 0.01),
    "Parity": ("ParityClassifier", {"gamma": 0.0}, {"gamma": 0.9}, 0.01),
    "VFAE": ("VFAEClassifier", {"beta": 0.0}, {"beta": 10_000.0}, 0.03),
    "VIB": ("VIBClassifier", {"gamma": 0.0}, {"gamma": 3.0}, 0.03),
    "LFR": ("LFRClassifier", {"A_z": 0.0}, {"A_z": 100.0}, None),
    "RUBi": ("RUBiClassifier", {"gamma": 0.0}, {"gamma": 1.0}, 0.01),
    "LearnedMixin+H": ("LearnedMixinClassifier", {"gamma": 0.0}, {"gamma": 1.0}, 0.01),
    "ReBias": ("ReBiasClassifier", {"gamma": 0.0}, {"gamma": 10.0}, 0.01),
    "EnD": ("EnDClassifier", {"alpha": 0.0, "beta": 0.0}, {"alpha": 3.0, "beta": 3.0}, 0.01),
}
# Of other libraries, at their own default strength; fitted fold by fold, and no limit is set for them.
LINEAR = {"hidden_sizes": ()}
OTHERS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "fairlearn ExponentiatedGradient": (
        "ExponentiatedGradientClassifier",
        {"difference_bound": 1.0},
        {"difference_bound": 0.01},
    ),
    "fairlearn ExponentiatedGradient, mixed probabilities": (
        "ExponentiatedGradientClassifier",
        {"difference_bound": 1.0, "mixture": "probabilities"},
        {"difference_bound": 0.01, "mixture": "probabilities"},
    ),
    "fairlearn ThresholdOptimizer (sees S)": ("ThresholdOptimizerClassifier", {"tol": 1.0}, {"tol": 0.0}),
    "fairlearn adversarial, hidden layer": ("FairlearnAdversarialClassifier", {"alpha": 0.0}, {"alpha": 1.0}),
    "fairlearn adversarial, linear": (
        "FairlearnAdversarialClassifier",
        {"alpha": 0.0, **LINEAR},
        {"alpha": 1.0, **LINEAR},
    ),
    "AIF360 LFR": ("AIF360LFRClassifier", {"fairness_weight": 0.0}, {"fairness_weight": 50.0}),
    "AIF360 LFR, weaker": ("AIF360LFRClassifier", {"fairness_weight": 3.0}, {"fairness_weight": 3.0}),
}
METHODS |= {name: (*method, None) for name, method in OTHERS.items()}
HEAD = """\
Held-out means of three folds, all other settings at their defaults; AUC / accuracy / GPA / discrimination.

Read with care, of the other libraries' methods:

- ThresholdOptimizer needs the group of every test row. No other method in the table does.
- ExponentiatedGradient and ThresholdOptimizer draw labels: accuracy and discrimination are those of one draw, AUC and
  GPA those of its chances, which take few values. "Mixed probabilities" are a finer score, but nothing constrains them.
- fairlearn's adversarial classifier (0.15) has a wrong projection for predictors with a hidden layer; the linear one is
  right. At alpha 0 the projection remains: neither is a model without protection. One seed each.
- "Weaker" was chosen on COMPAS, on these folds, among eleven weights; else strength is the library's default."""
PROTECT = ("Adversarial", "HSIC", "Parity", "VFAE", "VIB", "LFR")  # the others fight a shortcut, not a disparity
MAY_DIVERGE = ("Adversarial", "VFAE")


Done = dict[str, dict[str, Any]]  # hash of the job -> outcome


def fit(dataset: str, method: str, settings: dict[str, Any], seed: int = 0) -> Job:
    """Return the job of a method at one strength on one dataset, all folds."""
    return Job(dataset=dataset, method=method, settings=settings, seed=seed)


def strengths(method: str) -> list[dict[str, Any]]:
    """Return the settings without strength and at high strength, which may be the same."""
    _, zero, high, _ = METHODS[method]
    return [zero] if zero == high else [zero, high]


def jobs(datasets: list[str]) -> list[Job]:
    """List the fits; twenty seeds of what may diverge."""
    found = [fit(d, name, settings) for d in datasets for name in METHODS for settings in strengths(name)]
    stable = [fit("compas", name, METHODS[name][2], seed) for name in MAY_DIVERGE for seed in range(1, 20)]
    return found + [job for job in stable if job.dataset in datasets]


def run(job: Job) -> dict[str, Any]:
    """Fit all folds of a job, ours as one stack, and return the held-out scores of each."""
    torch.set_num_threads(1)
    data = LOADERS[job.dataset]()
    X, y = np.asarray(fairbits.TableEncoder().fit_transform(data.X)), data.y.to_numpy()
    s = np.unique(data.s, return_inverse=True)[1][:, None]
    folds = stratified_folds(y, s, FOLDS, 0)
    other = job.method in OTHERS
    method = getattr(fairbits.rivals if other else fairbits, METHODS[job.method][0])
    models = [method(random_state=job.seed, **job.settings) for _ in folds]
    if other:
        for model, (train, _) in zip(models, folds, strict=True):
            model.fit(X[train], y[train], sensitive_features=s[train])
    else:
        fit_stack(models, X, y, sensitive_features=data.s, rows=[train for train, _ in folds])
    scores = [held_out_scores(model, X[test], y[test], s[test]) for model, (_, test) in zip(models, folds, strict=True)]
    return {"scores": scores}


def scores_of(done: Done, job: Job) -> list[dict[str, float]]:
    """Return the scores of each fold, none where there is no record."""
    return done[job.hash]["result"]["scores"] if job.hash in done else []


def mean(done: Done, job: Job, field: str) -> float:
    """Return the mean over folds of a score, NaN where there is no record."""
    found = scores_of(done, job)
    return float(np.mean([s[field] for s in found])) if found else float("nan")


def measured(done: Done) -> list[str]:
    """Return the datasets whose unprotected network has its record."""
    return [dataset for dataset in LOADERS if scores_of(done, fit(dataset, "Vanilla", {}))]


def cell(done: Done, job: Job) -> str:
    """Return the scores of a job; drawn labels are judged as drawn."""
    drawn = "one_draw_" * any("one_draw_auc" in scores for scores in scores_of(done, job))
    fields = ("auc", f"{drawn}accuracy", "gpa", f"{drawn}discrimination")
    return " / ".join(f"{mean(done, job, field):.3f}" for field in fields)


def tables(done: Done) -> list[str]:
    """Return the lines of the table: the scores of every method without and with strength."""
    datasets = measured(done)
    head = f"| method | settings | {' | '.join(datasets)} |"
    lines = [*HEAD.splitlines(), "", head, "|---" * (2 + len(datasets)) + "|"]
    for name in METHODS:
        for settings in strengths(name):
            cells = [cell(done, fit(dataset, name, settings)) for dataset in datasets]
            words = ", ".join(f"{k} {v:g}" for k, v in settings.items() if isinstance(v, float))
            lines.append(f"| {name} | {words} | {' | '.join(cells)} |")
    return lines


def limits(done: Done) -> dict[str, bool]:
    """Say what holds: learning without strength, fairer with it, twenty seeds without a NaN."""
    found = {}
    for dataset, (name, (_, zero, high, allowed)) in itertools.product(measured(done), METHODS.items()):
        plain, weak, strong = fit(dataset, "Vanilla", {}), fit(dataset, name, zero), fit(dataset, name, high)
        if allowed is not None:
            gap = mean(done, plain, "auc") - mean(done, weak, "auc")
            found[f"{dataset}, {name}: AUC within {allowed} of the unprotected network's"] = gap <= allowed
        if name in PROTECT:
            fairer = [mean(done, strong, f) < mean(done, weak, f) for f in ("gpa", "discrimination")]
            found[f"{dataset}, {name}: lower GPA or discrimination at high strength"] = any(fairer)
    for name in MAY_DIVERGE:
        values = [mean(done, fit("compas", name, METHODS[name][2], seed), "auc") for seed in range(20)]
        found[f"compas, {name}: 20 seeds without a NaN"] = bool(np.isfinite(values).all())
    return found


def main() -> None:
    """Run the jobs of the datasets (all if none is named) that have no record, then write the table."""
    asked = arguments(__doc__, "DATASET")
    outcomes_of(jobs(asked.names or list(LOADERS)), run, FOLDER, workers=asked.workers)
    done = outcomes(FOLDER)
    held = limits(done)
    lines = [*tables(done), "", *(f"- {name}: {'holds' if holds else 'not reached'}" for name, holds in held.items())]
    publish(FOLDER, lines, held)


if __name__ == "__main__":
    main()
