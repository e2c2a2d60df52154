"""What certificates are worth on real data: ``python -m benchmarks.proof`` (half an hour).

Every job has one line in results/proof/records.jsonl and is not run again. The table is made from the records alone,
and the command fails if a limit is missed.
"""

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from benchmarks.fare import compare
from benchmarks.outcomes import RESULTS, Job, arguments, outcomes_of, publish
from benchmarks.proof_tables import chosen, limits, tables
from benchmarks.receivers import outcome, ten_classifiers
from fairbits import BinaryMIClassifier, CertifiedClassifier, FairCodeClassifier, TableEncoder, VanillaClassifier
from fairbits.auditing.probes import auc_interval, one_vs_rest
from fairbits.certificate import Certificate, certify
from fairbits.certificate.deviations import deviation, hoeffding_deviation
from fairbits.datasets import load_adult, load_bank, load_compas
from fairbits.estimators import fit_stack
from fairbits.metrics import auc

FOLDER = RESULTS / "proof"
LOADERS = {"adult": load_adult, "compas": load_compas, "bank": load_bank}

# Settings tried for Adult on parts of adult.data, all with seed 0; `chosen` takes one before adult.test is looked at.
CANDIDATES: list[dict[str, Any]] = [
    {"code_size": 8},
    {"code_size": 16, "batch_size": 512},
    {"code_size": 16, "batch_size": 1024},
    {"code_size": 16, "batch_size": 512, "hidden_sizes": [128, 64]},
    {"code_size": 24, "batch_size": 512, "max_epochs": 60},
    {"code_size": 32, "batch_size": 512, "max_epochs": 60},
]
TRIED_GAMMAS = [0.85, 0.9, 0.93, 0.95]
TIGHT_GAMMAS = [0.8, 0.85, 0.88, 0.9, 0.92, 0.94, 0.96, 0.98]
HARD_LIMITS = {"adult": 0.05, "compas": 0.25, "bank": 0.15}  # certified for the recommended hard code
HARD_PROBES = [0.05, 0.1]
PROBE_GAMMAS = [0.7, 0.8, 0.9, 0.95, 0.97, 0.98, 0.99]


def jobs() -> list[Job]:
    """List what can be run at once."""
    gammas = {"adult": 0.9, "compas": 0.5, "bank": 0.9}
    receivers = [Job(job="receivers", dataset=name, gamma=gamma, seed=0) for name, gamma in gammas.items()]
    choices = [Job(job="choice", settings=settings, gammas=TRIED_GAMMAS, seed=0) for settings in CANDIDATES]
    hard = [Job(job="hard-receivers", dataset=name, limit=limit, seed=0) for name, limit in HARD_LIMITS.items()]
    hard.append(Job(job="hard-probe", limits=HARD_PROBES, seed=0))
    return [*receivers, *hard, Job(job="probe", gammas=PROBE_GAMMAS, seed=0), *choices]


def later_jobs(records: list[dict[str, Any]]) -> list[Job]:
    """List what has to wait for the choice of the settings."""
    path = {"settings": chosen(records)["settings"], "gammas": TIGHT_GAMMAS, "seed": 0}
    return [Job(job="tightness", **path), Job(job="slack", **path)]


def draw(model: Any, X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw one code per row, (n, m); other calls with this generator use other noise."""
    theta = model.code_probabilities(X)
    return (rng.random(theta.shape) < theta).astype(np.uint8)


def receivers(job: Job) -> dict[str, Any]:
    """Certify a model, and hold what ten recipients do with its codes on fresh rows against the bounds."""
    data, rng = LOADERS[job.dataset](), np.random.default_rng(job.seed)
    names, (train, held, fresh) = np.unique(data.s), thirds(data.s, job.seed)
    s, y = np.searchsorted(names, data.s), data.y.to_numpy()
    encoder = TableEncoder().fit(data.X.iloc[train])
    X = np.asarray(encoder.transform(data.X))
    model = BinaryMIClassifier(gamma=job.gamma, random_state=job.seed)
    model.fit(X[train], y[train], sensitive_features=names[s[train]])
    proof = model.certify(X[held], sensitive_features=names[s[held]])
    seen, code = draw(model, X[train], rng), draw(model, X[fresh], rng)
    return {
        "rows": {"train": len(train), "calibration": len(held), "fresh": len(fresh)},
        "label_auc": auc(y[fresh], model.decode(code)[:, 1]),
        **attacked((seen, y[train], s[train]), (code, y[fresh], s[fresh]), proof, rng),
    }


def thirds(s: Any, seed: int) -> list[np.ndarray]:
    """Return rows to train on, one half, rows to certify on, and fresh ones, a quarter each."""
    train, rest = train_test_split(np.arange(len(s)), test_size=0.5, stratify=s, random_state=seed)
    return [train, *train_test_split(rest, test_size=0.5, stratify=np.asarray(s)[rest], random_state=seed)]


def attacked(train: tuple, fresh: tuple, proof: Certificate, rng: np.random.Generator) -> dict[str, Any]:
    """Return a certificate's bounds and what ten recipients do with codes of fresh rows; each (codes, y, s)."""
    s, rows = train[2], np.bincount(fresh[2])
    even = np.concatenate([rng.choice(np.flatnonzero(s == g), len(s) // 2) for g in np.unique(s)])
    return {
        "bound": proof.total_variation,
        "cap": proof.balanced_accuracy,
        "bound_error": hoeffding_deviation(rows, 1.0, 0.05),
        "cap_error": hoeffding_deviation(rows, 1 / len(rows), 0.05),
        "receivers": {name: outcome(one, (*train, even), fresh) for name, one in ten_classifiers().items()},
    }


def hard_receivers(job: Job) -> dict[str, Any]:
    """Do the same with the hard code that fairbits recommends, chosen and certified within a limit."""
    data, rng = LOADERS[job.dataset](), np.random.default_rng(job.seed)
    s, y = np.unique(data.s, return_inverse=True)[1], data.y.to_numpy()
    train, held, fresh = thirds(data.s, job.seed)
    model = certified(data.X, y, data.s, np.concatenate([train, held]), held, job.limit, job.seed)
    seen, code = model.transform(data.X.iloc[train]), model.transform(data.X.iloc[fresh])
    return {
        "rows": {"train": len(train), "calibration": len(held), "fresh": len(fresh)},
        "label_auc": auc(y[fresh], model.predict_proba(data.X.iloc[fresh])[:, 1]),
        "accuracy": float((model.predict(data.X.iloc[fresh]) == y[fresh]).mean()),
        **attacked((seen, y[train], s[train]), (code, y[fresh], s[fresh]), model.certificate_, rng),
    }


def certified(
    X: pd.DataFrame, y: np.ndarray, s: Any, rows: np.ndarray, held: np.ndarray, limit: float, seed: int
) -> CertifiedClassifier:
    """Train the recommended hard code on some rows but those held back, and certify it on these."""
    model = CertifiedClassifier(FairCodeClassifier(random_state=seed), max_disparity=limit, random_state=seed)
    calibration = np.isin(rows, held)
    return model.fit(X.iloc[rows], y[rows], sensitive_features=s.iloc[rows], calibration=calibration)


@cache
def adult() -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """Return X, y, s of adult.data and of adult.test; s is 0 and 1."""
    train, test = load_adult(subset="train"), load_adult(subset="test")
    encoder = TableEncoder().fit(train.X)
    return tuple(
        (np.asarray(encoder.transform(part.X)), part.y.to_numpy(), (part.s == "Male").to_numpy().astype(int))
        for part in (train, test)
    )


@cache
def adult_path(settings: str, gammas: tuple[float, ...], seed: int) -> list[BinaryMIClassifier]:
    """Train one model per gamma on adult.data; settings as JSON."""
    return trained(json.loads(settings), gammas, seed, *adult()[0])


def trained(settings: dict[str, Any], gammas: Sequence[float], seed: int, X, y, s) -> list[BinaryMIClassifier]:
    """Train one model per gamma; the safest comes first, by what the training rows show."""
    settings = {name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()}
    models = [BinaryMIClassifier(gamma=gamma, random_state=seed, **settings) for gamma in gammas]
    fit_stack(models, X, y, sensitive_features=s)
    shown = [_certify(model.code_probabilities(X), s).total_variation for model in models]
    return [models[i] for i in np.argsort(shown, kind="stable")]


def _certify(theta: np.ndarray, s: np.ndarray) -> Certificate:
    return certify(theta, sensitive_features=s, random_state=0)


def choice(job: Job) -> dict[str, Any]:
    """Try settings: train on three quarters of adult.data, look at the fourth."""
    (X, y, s), (_, _, s_test) = adult()
    parts = train_test_split(X, y, s, test_size=0.25, stratify=2 * y + s, random_state=job.seed)
    train, held = parts[::2], parts[1::2]
    models = trained(job.settings, job.gammas, job.seed, *train)
    points = [point(model, train, held, np.random.default_rng(job.seed)) for model in models]
    return {"path": points, "deviation": deviation(np.bincount(s_test), 0.05)[0]}


def tightness(job: Job) -> dict[str, Any]:
    """Certify the path on adult.test, and test there what is learnt from one draw of adult.data's codes."""
    models = adult_path(json.dumps(job.settings), tuple(job.gammas), job.seed)
    return {"path": [point(model, *adult(), np.random.default_rng(job.seed)) for model in models]}


def point(model: BinaryMIClassifier, train: Any, test: Any, rng: np.random.Generator) -> dict[str, float]:
    """Return a certificate and accuracies on test rows; train and test hold X, y, s."""
    (X, y, _), (X_test, y_test, s_test) = train, test
    proof = _certify(model.code_probabilities(X_test), s_test)
    seen, code = draw(model, X, rng), draw(model, X_test, rng)
    learners = {"logistic": LogisticRegression(), "trees": HistGradientBoostingClassifier(random_state=0)}
    learnt = {name: float((c.fit(seen, y).predict(code) == y_test).mean()) for name, c in learners.items()}
    return {
        "gamma": model.gamma,
        "bound": proof.total_variation,
        "estimate": proof.bounds[0].estimated_total_variation,
        **learnt,
        "head": float((model.decode(code).argmax(1) == y_test).mean()),
        "averaged": float((model.predict(X_test) == y_test).mean()),
    }


def slack(job: Job) -> dict[str, Any]:
    """Compare our bound and FARE's for every model of the path, on the same draw of the same rows."""
    (X, _, s), (X_test, _, s_test) = adult()
    points = []
    for model in adult_path(json.dumps(job.settings), tuple(job.gammas), job.seed):
        rng = np.random.default_rng(job.seed)
        seen, code = draw(model, X, rng), draw(model, X_test, rng)
        points.append({"gamma": model.gamma, "releases": compare(model, seen, s, X_test, code, s_test, rng)})
    return {"path": points}


def probe(job: Job) -> dict[str, Any]:
    """Probe S with boosted trees, one half of adult.test against the other: codes, raw columns, an open network."""
    train, (X, y, s) = adult()
    rng, halves = np.random.default_rng(job.seed), _halves(len(s), job.seed)
    rows = []
    for model in adult_path("{}", tuple(job.gammas), job.seed):
        code, score = draw(model, X, rng), model.predict_proba(X)[:, 1]
        aucs = {"label_auc": auc(y, score), "drawn_auc": auc(y, model.decode(code)[:, 1])}
        rows.append({"source": "code", "gamma": model.gamma, **aucs, **_probe(code, s, *halves)})
        rows.append({"source": "prediction", "gamma": model.gamma, **aucs, **_probe(score[:, None], s, *halves)})
    plain = VanillaClassifier(random_state=job.seed).fit(*train[:2], sensitive_features=train[2])
    plain_auc = auc(y, plain.predict_proba(X)[:, 1])
    rows.append({"source": "hidden layer", "label_auc": plain_auc, **_probe(plain.transform(X), s, *halves)})
    return {"probes": [*rows, {"source": "raw columns", **_probe(X, s, *halves)}]}


def hard_probe(job: Job) -> dict[str, Any]:
    """Probe S in the recommended hard codes as above: trained on adult.data, certified on all of adult.test."""
    train, test = load_adult(subset="train"), load_adult(subset="test")
    X, s = (pd.concat([getattr(part, name) for part in (train, test)], ignore_index=True) for name in ("X", "s"))
    y, every = np.concatenate([train.y, test.y]), np.arange(len(s))
    held, sex = every[len(train.y) :], (test.s == "Male").to_numpy().astype(int)
    halves, rows = _halves(len(held), job.seed), []
    for limit in job.limits:
        model = certified(X, y, s, every, held, limit, job.seed)
        code, score = model.transform(test.X), model.predict_proba(test.X)[:, 1]
        scores = {"label_auc": auc(test.y, score), "accuracy": float((model.predict(test.X) == test.y).mean())}
        found = {**scores, "bound": model.certificate_.total_variation, **_probe(code, sex, *halves)}
        rows.append({"source": "hard code", "limit": limit, **found})
    return {"probes": rows}


def _halves(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    order = np.random.default_rng(seed).permutation(n)
    return order[: n // 2], order[n // 2 :]


def _probe(Z: np.ndarray, s: np.ndarray, train: np.ndarray, test: np.ndarray) -> dict[str, float]:
    trees = HistGradientBoostingClassifier(random_state=0).fit(Z[train], s[train])
    posterior = trees.predict_proba(Z[test])
    low, high = auc_interval(one_vs_rest(posterior), s[test], 0.95)
    return {"auc": auc(s[test], posterior), "low": low, "high": high}


WORK = {
    "receivers": receivers,
    "hard-receivers": hard_receivers,
    "choice": choice,
    "tightness": tightness,
    "slack": slack,
    "probe": probe,
    "hard-probe": hard_probe,
}


def run(job: Job) -> dict[str, Any]:
    """Return the result of a job, computed on one thread."""
    torch.set_num_threads(1)
    with threadpool_limits(1):
        return WORK[job.job](job)


def main() -> None:
    """Run the jobs that have no record, then write the table."""
    workers = arguments(__doc__).workers
    records = outcomes_of(jobs(), run, FOLDER, workers=workers)
    records += outcomes_of(later_jobs(records), run, FOLDER)  # one worker: both need the same trained models
    publish(FOLDER, tables(records), limits(records))


if __name__ == "__main__":
    main()
