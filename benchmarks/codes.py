"""What our best codes reach on real tables: ``python -m benchmarks.codes [NAME ...] [--workers N]`` (an hour).

Names are those of the jobs in JOBS. Every job has one line in results/codes/records.jsonl and is not run again; the
table is made from the records alone.
"""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from sklearn.model_selection import train_test_split

import fairbits
import fairbits.rivals
from benchmarks.codes_tables import tables
from benchmarks.outcomes import RESULTS, Job, run_and_publish
from fairbits import BinaryMIClassifier, ExactCodeClassifier, LinearCodeClassifier, PosteriorEncoder, TableEncoder
from fairbits.certificate.deviations import HOEFFDING, deviation, hoeffding_deviation, limit_of_difference
from fairbits.certificate.released_code import binary_number
from fairbits.datasets import load_adult, load_bank, load_compas
from fairbits.estimators import fit_stack
from fairbits.estimators.certified import FEW, SHARES, TIGHT, code_loss
from fairbits.estimators.exact_code import MISTAKE, disparity_slope
from fairbits.estimators.optimal_front import optimal_front
from fairbits.estimators.promises import CalibrationRows
from fairbits.information import share_entropy
from fairbits.information import total_variation as random_code_variation
from fairbits.information.array_information import law_distance
from fairbits.metrics import auc, discrimination_curve_area
from fairbits.nn import word_probabilities

FOLDER = RESULTS / "codes"
LIMITS = np.geomspace(0.006, 0.3, 20).round(4).tolist()
GAMMAS = [0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.99]
PROMISES = {"adult": [0.03, 0.05, 0.1], "bank": [0.07, 0.08, 0.1], "compas": [0.1, 0.11, 0.15, 0.2, 0.25, 0.3]}
SPLITS = {"adult": 5, "bank": 5, "compas": 8}
THEOREMS = (HOEFFDING, "shortest")
HALVES = 5  # random halves of adult.test
FRONT_LIMITS = {"adult": [0.02, 0.05, 0.1], "bank": [0.02, 0.05, 0.1], "compas": [0.05, 0.1, 0.2]}
LEVELS = 16  # of a rival's score: quantiles of the training rows
STRENGTHS = {  # of rivals that see S, as in their papers
    "Adversarial": ("AdversarialClassifier", "gamma", [0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98]),
    "VFAE": ("VFAEClassifier", "beta", [0.0, 1e2, 1e3, 1e4, 3e4, 1e5, 3e5, 1e6]),
    "ThresholdOptimizer": ("ThresholdOptimizerClassifier", "tol", [0.0, 0.02, 0.05, 0.1]),
}


def jobs(names: Sequence[str]) -> list[Job]:
    """List the paths of codes to train: every table and split, seeing S and not, and what they are held against."""
    kinds = {
        "untold": {"method": "linear", "told": False},
        "told": {"method": "exact", "told": True},
        "network": {"method": "exact", "told": False},
        "straight": {"method": "straight-through", "told": False},
        "columns": {"method": "columns", "told": False},
        "paper": {"method": "binary-mi", "told": False},
    }
    kinds |= {name: {"method": name, "told": True} for name in STRENGTHS}
    where = {"straight": ["adult"], "columns": ["adult"], "paper": ["compas", "bank"]}
    return [
        Job(job="path", dataset=dataset, split=split, **kind)
        for name, kind in kinds.items()
        if not names or name in names
        for dataset in where.get(name, list(SPLITS))
        for split in range(SPLITS[dataset])
    ]


def parts(dataset: str, split: int) -> tuple[Any, Any]:
    """Return training and test rows as (X, y, s): adult.data and adult.test, or a random third for testing."""
    if dataset == "adult":
        return tuple((d.X, d.y.to_numpy(), d.s.to_numpy()) for d in (load_adult(subset=p) for p in ("train", "test")))
    data = {"bank": load_bank, "compas": load_compas}[dataset]()
    y, s = data.y.to_numpy(), data.s.to_numpy()
    rows = train_test_split(np.arange(len(y)), test_size=1 / 3, random_state=split)
    return tuple((data.X.iloc[r].reset_index(drop=True), y[r], s[r]) for r in rows)


def path(job: Job) -> dict[str, Any]:
    """Train a path, order it by the training rows, and choose by fixed sequences on test rows."""
    (X, y, s), (X_test, y_test, s_test) = parts(job.dataset, job.split)
    start = time.process_time()
    Z, Z_test, front = features(job, (X, y, s), (X_test, s_test))
    encoded = time.process_time()
    calibrating = len(y_test) // (2 if job.dataset == "adult" else 1)  # half of adult.test in one of the protocols
    models = path_models(job)
    if job.method == "ThresholdOptimizer":
        for model in models:
            model.fit(Z, y, sensitive_features=s)
    else:
        for begun in dict.fromkeys(getattr(model, "start", None) for model in models):
            alike = [model for model in models if getattr(model, "start", None) == begun]
            fit_stack(alike, Z, y, sensitive_features=s)
    seconds = {"encoder": encoded - start, "path": time.process_time() - encoded}
    if job.method in STRENGTHS:
        found = [Levels(model, (Z, y, s), (Z_test, s_test)) for model in models]
    else:
        found = [Released(model, Z, Z_test, y, s) for model in models]
    if job.method == "linear":
        for released, (promise, *_) in zip(found, linear_path(job), strict=True):
            released.promise = promise
            released.trained = code_loss(released.model, CalibrationRows(Z, y))
    found.sort(key=lambda released: released.expected(calibrating))
    everyone = np.arange(len(y_test))
    protocols = {"whole": [(everyone, everyone)]}
    if job.dataset == "adult":
        halves = [np.random.default_rng(k).permutation(len(y_test)) for k in range(HALVES)]
        protocols["halves"] = [(h[: len(h) // 2], h[len(h) // 2 :]) for h in halves]
    kept = [
        {
            "promise": promise,
            "protocol": name,
            "half": k,
            "theorem": theorem,
            **choose(better_than_safer(found, promise), y_test, s_test, *rows, promise, theorem),
        }
        for theorem in THEOREMS
        for promise in PROMISES[job.dataset]
        for name, splits in protocols.items()
        for k, rows in enumerate(splits)
    ]
    points = [f.scores(y_test, s_test) for f in found]
    return {"kept": kept, "points": points, "seconds": seconds, "front": front}


def features(job: Job, train: Any, test: Any) -> tuple[np.ndarray, np.ndarray, Any]:
    """Return the inputs of the code for both parts, and the estimated optimal front of the training rows."""
    (X, y, s), (X_test, s_test) = train, test
    if job.method in STRENGTHS and job.method != "ThresholdOptimizer":
        encoder = TableEncoder(encode_sensitive=True).fit(X, sensitive_features=s)
        both = [encoder.transform(part, sensitive_features=groups) for part, groups in ((X, s), (X_test, s_test))]
        return np.asarray(both[0]), np.asarray(both[1]), None
    if job.method not in ("linear", "exact", "straight-through"):
        encoder = TableEncoder().fit(X)
        return encoder.transform(X), encoder.transform(X_test), None
    kind = "probabilities" if job.method == "linear" else "log-ratios"
    posterior = PosteriorEncoder(features=kind, encode_sensitive=job.told, random_state=job.split)
    Z = posterior.fit_transform(X, y, sensitive_features=s)
    known = {"sensitive_features": s_test} if job.told else {}
    front = None
    if not job.told and job.method == "linear":
        joint = posterior.posterior(Z)
        front = optimal_front(joint.sum(2), joint.sum(1), FRONT_LIMITS[job.dataset]).to_dict("records")
    return Z, posterior.transform(X_test, **known), front


def path_models(job: Job) -> list[Any]:
    """Return one model for every limit or gamma, not fitted."""
    if job.method == "binary-mi":
        return [BinaryMIClassifier(gamma=gamma, code_size=8, random_state=job.split) for gamma in GAMMAS]
    if job.method in STRENGTHS:
        name, strength, values = STRENGTHS[job.method]
        source = fairbits.rivals if job.method == "ThresholdOptimizer" else fairbits
        return [getattr(source, name)(**{strength: value}, random_state=job.split) for value in values]
    if job.method == "linear":
        return [
            LinearCodeClassifier(limit=promise * share, max_words=words, start=start, random_state=job.split)
            for promise, share, words, start in linear_path(job)
        ]
    gradient = "straight-through" if job.method == "straight-through" else "exact"
    return [ExactCodeClassifier(limit=limit, gradient=gradient, random_state=job.split) for limit in LIMITS]


def linear_path(job: Job) -> list[tuple[float, float, int, str]]:
    """Return limit, share, words and start of every model, as `CertifiedClassifier` trains them for each limit."""
    most = LinearCodeClassifier().max_words
    kinds = [(most, "labels", SHARES), (FEW, "labels", SHARES[:TIGHT]), (most, "optimum", SHARES)]
    return [(p, share, *kind) for p in PROMISES[job.dataset] for *kind, shares in kinds for share in shares]


def words(model: Any, Z: np.ndarray, seed: int = 0) -> np.ndarray:
    """Return the number of every row's released word; of a random code, of one draw."""
    theta = model.code_probabilities(Z)
    bits = np.random.default_rng(seed).random(theta.shape) < theta
    return binary_number(bits)


def group_tables(word: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return every group's shares of the words, (groups, words), and its rows."""
    counts = np.stack([np.bincount(word[s == group], minlength=word.max() + 1) for group in np.unique(s)])
    return counts / counts.sum(1, keepdims=True), counts.sum(1)


def total_variation(word: np.ndarray, s: np.ndarray) -> float:
    """Return the largest total variation between two groups' words."""
    shares, _ = group_tables(word, s)
    return max(float(law_distance(a, b)) for a in shares for b in shares)


class Released:
    """A model's released words, decoded probabilities and bounds on the test rows."""

    soft: dict[str, Any] | None = None
    promise: float | None = None  # the only one that this model was trained for
    trained: float | None = None  # its loss on the training rows

    def __init__(self, model: Any, Z: np.ndarray, Z_test: np.ndarray, y: np.ndarray, s: np.ndarray):
        self.setting = getattr(model, "limit", getattr(model, "gamma", None))
        self.model, self.Z = model, Z_test
        self.tables = group_tables(words(model, Z), s)
        self.theta = model.code_probabilities(Z_test)
        self.word = words(model, Z_test, seed=1)
        m = self.theta.shape[1]
        codes = (self.word[:, None] >> np.arange(m - 1, -1, -1)) & 1
        distinct, place = np.unique(codes, axis=0, return_inverse=True)
        self.p = model.decode(distinct)[place]
        if type(model) is ExactCodeClassifier:
            self.soft = self._soft(model, Z, y)

    def _soft(self, model: Any, Z: np.ndarray, y: np.ndarray) -> dict[str, Any]:
        """Return the random code of the same network: its law on the test rows, and a decoder of its own."""
        with torch.no_grad():
            theta, seen = (model.net_.theta(torch.from_numpy(part)).double() for part in (self.Z, Z))
            law, training = word_probabilities(theta).numpy(), word_probabilities(seen).numpy()
        counts = np.stack([training[y == label].sum(0) for label in (0, 1)]) + 0.5
        return {"law": law, "p": counts[1] / counts.sum(0)}

    def expected(self, rows: int) -> float:
        """Return about how much total variation so many rows will show, by the training rows."""
        shares, counts = self.tables
        noise = counts.sum() / rows / counts
        return float(disparity_slope(torch.from_numpy(shares), torch.from_numpy(noise))[0])

    def bound(self, s: np.ndarray, rows: np.ndarray, theorem: str) -> float:
        """Return the 95 % bound on the disparity from some rows."""
        counts, random = np.unique(s[rows], return_counts=True)[1], isinstance(self.model, BinaryMIClassifier)
        if random:
            number = np.unique(s[rows], return_inverse=True)[1]
            shown = float(random_code_variation(torch.from_numpy(self.theta[rows]), torch.from_numpy(number)))
        else:
            shown = total_variation(self.word[rows], s[rows])
        if theorem == HOEFFDING:
            return shown + hoeffding_deviation(counts, 1.0, 0.05)
        return shown + deviation(counts, 0.05)[0] if random else limit_of_difference(shown, counts, 0.05)[0]

    def scores(self, y: np.ndarray, s: np.ndarray) -> dict[str, Any]:
        """Return what the released code does on all test rows, and the random code of the same network."""
        everyone = np.arange(len(y))
        found = {
            "setting": self.setting,
            "trained": self.expected(10**12),
            "bound": self.bound(s, everyone, "shortest"),
        }
        found |= self.at(y, s, everyone)
        if self.soft is not None:
            law, p = self.soft["law"], self.soft["p"]
            tables = [law[s == group].mean(0) for group in np.unique(s)]
            average = law @ p
            found["soft"] = {
                "total_variation": float(law_distance(tables[0], tables[1])),
                "accuracy": float(np.where(y[:, None] == (p > 0.5), law, 0).sum(1).mean()),
                "auc": weighted_auc(law, p, y),
                "averaged_auc": auc(y, average),
                "averaged_audc": discrimination_curve_area(average, sensitive_features=s),
                "averaged_accuracy": float(((average > 0.5) == y).mean()),
            }
        return found

    def at(self, y: np.ndarray, s: np.ndarray, rows: np.ndarray) -> dict[str, float]:
        """Return accuracy, AUC, AUDC and information of some rows."""
        p, label = self.p[rows, 1], y[rows]
        joint = np.zeros((self.word.max() + 1, 2))
        np.add.at(joint, (self.word[rows], label), 1 / len(rows))
        about = share_entropy(joint.sum(0)) + share_entropy(joint.sum(1)) - share_entropy(joint)
        return {
            "total_variation": total_variation(self.word[rows], s[rows]),
            "accuracy": float(((p > 0.5) == label).mean()),
            "auc": auc(label, p),
            "audc": discrimination_curve_area(p, sensitive_features=s[rows]),
            "information": about,
            "words": len(np.unique(self.word[rows])),
        }


class Levels(Released):
    """A rival's score in levels, which are certified like words; of ThresholdOptimizer, its drawn decision."""

    def __init__(self, model: Any, train: Any, test: Any):
        (Z, y, s), (Z_test, s_test) = train, test
        self.model = model
        self.setting = next(getattr(model, name) for _, name, _ in STRENGTHS.values() if hasattr(model, name))
        if getattr(model, "groups_at_prediction", False):
            drawn = [model.sampled_proba(part, sensitive_features=g)[:, 1] for part, g in ((Z, s), (Z_test, s_test))]
            seen, self.word = (part.astype(np.int64) for part in drawn)
        else:
            scores = [model.predict_proba(part)[:, 1] for part in (Z, Z_test)]
            edges = np.unique(np.quantile(scores[0], np.arange(1, LEVELS) / LEVELS))
            seen, self.word = (np.searchsorted(edges, score) for score in scores)
        self.tables = group_tables(seen, s)
        counts = np.stack([np.bincount(seen[y == label], minlength=LEVELS) for label in (0, 1)], 1) + 0.5
        self.p = (counts / counts.sum(1, keepdims=True))[self.word]


def weighted_auc(law: np.ndarray, p: np.ndarray, y: np.ndarray) -> float:
    """Return the AUC of one draw of the word, in expectation over the draws of independent rows."""
    order = np.argsort(p)
    positive, negative = (law[y == label].mean(0)[order] for label in (1, 0))
    ties = (p[order][:, None] == p[order]).astype(float)
    below = np.tril(np.ones_like(ties), -1) * (1 - ties)
    return float(positive @ (below + ties / 2) @ negative)


def better_than_safer(found: list[Released], promise: float) -> list[Released]:
    """Return the models for a limit, without those that are no better on the training rows than a safer one."""
    kept: list[Released] = []
    for model in found:
        beaten = model.trained is not None and any(other.trained <= model.trained for other in kept)
        if model.promise in (None, promise) and not beaten:
            kept.append(model)
    return kept


def choose(
    found: list[Released],
    y: np.ndarray,
    s: np.ndarray,
    held: np.ndarray,
    scored: np.ndarray,
    promise: float,
    theorem: str,
) -> dict[str, Any]:
    """Certify in order on some rows up to the first failure, keep the least loss there, and score it on others."""
    passed = []
    for model in found:
        if model.bound(s, held, theorem) > promise:
            break
        passed.append(model)
    if not passed:
        return {"setting": None}
    losses = [MISTAKE * (m.p[held].argmax(1) != y[held]).mean() - np.log2(m.p[held, y[held]]).mean() for m in passed]
    best = passed[int(np.argmin(losses))]
    return {
        "setting": best.setting,
        "passed": len(passed),
        "bound": best.bound(s, held, theorem),
        **best.at(y, s, scored),
    }


if __name__ == "__main__":
    run_and_publish(__doc__, jobs, path, FOLDER, tables)
