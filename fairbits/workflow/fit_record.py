"""What is known of a fit: how it compares on the test rows, and all of it as the JSON record that reports read."""

import datetime
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.pipeline import Pipeline

from fairbits.auditing.auditor import Audit, column_leakage
from fairbits.auditing.probes import score_intervals
from fairbits.certificate import Certificate
from fairbits.certificate.released_code import encode_rows, fitted_code
from fairbits.encoding import GroupEncoder
from fairbits.encoding.recognition import row_hashes, table_fingerprint
from fairbits.encoding.table_encoder import inner_encoder
from fairbits.estimators.certified import method_path
from fairbits.estimators.diagnostics import held_out_scores
from fairbits.estimators.optimal_front import optimal_front
from fairbits.estimators.posterior import PosteriorEncoder
from fairbits.information import total_variation
from fairbits.report.page import FORMAT
from fairbits.storage import versions
from fairbits.tables.task import Task

OWN = "fairbits"  # the name of every model of the path
FRONT = (0.0, 0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6)  # limits at which the optimum is estimated
FRONT_ROWS = 20_000
COARSE: dict[str, Any] = {"bins": 16, "starts": 1}  # of the optimum: a few seconds instead of a minute
SCORE_BINS = 20
PIECE = 50_000  # rows


@dataclass(frozen=True)
class Scored:
    """A model's name, its limit or gamma if it has one, and its scores on the test rows."""

    name: str
    value: float | None
    scores: dict[str, float]  # "disparity" is the largest of any decision made from the code, or from a score
    intervals: dict[str, tuple[float, float]]  # of accuracy and AUC; on a path only the chosen model has them
    chosen: bool = False


@dataclass(frozen=True)
class Chosen:
    """A model and how it was chosen."""

    model: Pipeline
    certificate: Certificate
    refusal: str | None  # why the limits could not be certified
    path: list[Pipeline]  # that the model is from
    tested: list[dict[str, Any]]  # the models whose limits were tested, in order, up to the first failure


@dataclass(frozen=True)
class Fit(Chosen):
    """A chosen model and all that is known about it."""

    asked: dict[str, Any]  # the options
    audit: Audit
    alternatives: list[Scored]
    front: list[dict[str, float]]  # an estimate of what any representation can reach
    rows: dict[str, int]  # of every part of the table
    test: np.ndarray  # numbers of the rows that were not used in training or certifying
    concerns: list[str]

    @property
    def certified(self) -> bool:
        """The limits were certified; with a fixed gamma there are none."""
        return self.refusal is None

    @property
    def varied(self) -> str:
        """The setting in which the models of the path differ: limit or gamma."""
        return method_path(self.model[-1])


def alternatives(
    model: Pipeline, path: list[Pipeline], references: dict[str, Pipeline], found: Audit, test: tuple[Any, Any, Any]
) -> list[Scored]:
    """Score the models of a path, which share their encoder, and references; the audit has scored the chosen model."""
    X, y, s = test
    method, rows = fitted_code(model, X, s)
    groups, varied, scored = method.group_encoder_.transform(s), method_path(method), []
    for code in (one[-1] for one in path):
        chosen = code is method
        scores = found.task or {} if chosen else held_out_scores(code, rows, y, groups)
        theta = torch.from_numpy(code.code_probabilities(rows))
        apart = max(float(total_variation(theta, torch.from_numpy(column))) for column in groups.T)
        known = found.intervals if chosen else {}
        scored.append(Scored(OWN, getattr(code, varied), {**scores, "disparity": apart}, known, chosen))
    for name, reference in references.items():
        last, seen = fitted_code(reference, X, s)
        probabilities = last.predict_proba(seen)
        scores = held_out_scores(last, seen, y, groups) | {"disparity": threshold_disparity(probabilities, groups)}
        known = score_intervals(probabilities, np.searchsorted(last.classes_, y), found.confidence)
        scored.append(Scored(name, None, scores, known))
    return scored


def threshold_disparity(probabilities: np.ndarray, groups: np.ndarray) -> float:
    """Return by how much two groups differ most in how often a probability is above a threshold, for any threshold.

    Probabilities are (n, classes), groups (n, columns) numbers.

    >>> threshold_disparity(np.array([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.3, 0.7]]), np.array([[0], [1], [1], [1]]))
    1.0
    """
    most = 0.0
    for score in probabilities.T:
        thresholds = np.unique(score)
        for column in groups.T:
            own = (np.sort(score[column == group]) for group in np.unique(column))
            below = np.stack([np.searchsorted(scores, thresholds, side="right") / len(scores) for scores in own])
            most = max(most, float(np.ptp(below, axis=0).max()))
    return most


def estimated_front(encoder: PosteriorEncoder, X: Any, s: Any, groups: GroupEncoder) -> list[dict[str, float]]:
    """Estimate the best accuracy and AUC within limits of the disparity, from rows that the encoder has not seen.

    Of several sensitive columns, each on its own, the one that costs most counts: no representation does better.
    """
    X, s = X[:FRONT_ROWS], s[:FRONT_ROWS]  # in random order
    features = encode_rows([("posterior", encoder)], X, s)
    label, fronts = encoder.label_probabilities(features), []
    for place, (names, number) in enumerate(zip(groups.names_, groups.transform(s).T, strict=True)):
        if encoder.encode_sensitive:
            group = np.eye(len(names))[number]
        else:
            group = encoder.posterior(features, column=place).sum(1)
        fronts.append(optimal_front(label, group[:, group.any(0)], FRONT, **COARSE))
    binding = (min((front.iloc[i] for front in fronts), key=lambda row: row.information) for i in range(len(FRONT)))
    found = pd.DataFrame(binding).rename(columns={"total_variation": "disparity"})[["disparity", "accuracy", "auc"]]
    return found.cummax().drop_duplicates().to_dict("records")  # what is within one limit is within every larger one


def fit_record(fit: Fit, task: Task, source: str, *, fewest_shown: int = 10) -> dict[str, Any]:
    """Return all that is known of a fit to the table `source` as plain lists, numbers and texts.

    The scores of groups of fewer rows than `fewest_shown` are left out: they would show single people.
    """
    X, y, s = task.part(fit.test)
    method, Z = fitted_code(fit.model, X, s)
    encoder = inner_encoder(fit.model[0])
    groups = {name: GroupEncoder(min_group_size=1).fit(task.s[[name]]) for name in task.s}
    numbers = {name: groups[name].transform(s[[name]])[:, 0] for name in groups}
    theta = method.code_probabilities(Z)
    about: list[Any] = [("label", task.label, np.searchsorted(method.classes_, y), method.classes_)]
    about += [("sensitive", name, numbers[name], groups[name].names_[0]) for name in groups]
    bits = []
    for role, name, number, names in about:
        leak = column_leakage(theta, theta, number, name, names)
        whole = {"joint": leak.joint, "lower": leak.lower, "entropy": leak.entropy}
        bits.append({"about": name, "role": role, "each": leak.each_bit, **whole})
    score = method.predict_proba(Z)[:, -1]
    counts = [
        {"column": name, "group": group, "counts": np.histogram(score[number == i], SCORE_BINS, (0, 1))[0].tolist()}
        for name, number in numbers.items()
        for i, group in enumerate(groups[name].names_[0])
    ]
    # What recognises the whole table if it comes back to certify the fit; it recognises no single row.
    pieces = (task.part(np.arange(i, min(i + PIECE, len(task.y)))) for i in range(0, len(task.y), PIECE))
    hashes = [row_hashes(encoder.own_columns(fitted_code(fit.model, X, s)[1])) for X, _, s in pieces]
    return {
        "format": FORMAT,
        "source": source,
        "table": table_fingerprint(np.concatenate(hashes)),
        "task": {
            "label": task.label,
            "classes": [str(c) for c in method.classes_],
            "sensitive": list(task.s.columns),
            "groups": task.groups,
            "group_sizes": task.group_sizes,
            "bins": task.bins,
            "rows": fit.rows,
            "columns": encoder.describe().splitlines(),
            "notes": task.notes,
        },
        "asked": fit.asked,
        "method": {
            "name": type(method).__name__,
            "varied": fit.varied,
            "value": getattr(method, fit.varied),
            "code_size": method.code_size,
            "hard": method.is_hard,
        },
        "certified": fit.certified,
        "refusal": fit.refusal,
        "certificate": fit.certificate.to_dict(),
        "audit": fit.audit.to_dict(),
        "alternatives": [asdict(scored) for scored in fit.alternatives],
        "tested": fit.tested,
        "bits": bits,
        "scores_by_group": [found for found in counts if sum(found["counts"]) >= fewest_shown],
        "history": method.history_,
        "best_epoch": method.best_epoch_,
        "front": fit.front,
        "concerns": fit.concerns,
        "made": {"date": datetime.date.today().isoformat(), **versions()},
    }
