"""What a fitted code is compared with on the test rows: its path, models without protection, and the optimal front."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.pipeline import Pipeline

from fairbits.auditing import Audit
from fairbits.auditing.probes import score_intervals
from fairbits.certificate.releasing import fitted_code
from fairbits.encoding import GroupEncoder
from fairbits.estimators.certified import method_path
from fairbits.estimators.diagnostics import held_out_scores
from fairbits.estimators.optimal_front import optimal_front
from fairbits.estimators.posterior import PosteriorEncoder
from fairbits.information import total_variation

OWN = "fairbits"  # the name of every model of the path
FRONT = (0.0, 0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6)  # limits at which the optimum is estimated
FRONT_ROWS = 20_000
COARSE: dict[str, Any] = {"bins": 16, "starts": 1}  # of the optimum: a few seconds instead of a minute


@dataclass(frozen=True)
class LabelEstimate:
    """What a `PosteriorEncoder` knows about the label, as a model of its features: one without protection."""

    encoder: PosteriorEncoder

    @property
    def classes_(self) -> np.ndarray:
        """The labels."""
        return self.encoder.classes_

    def predict_proba(self, features: np.ndarray) -> np.ndarray:
        """Return the probability of each class."""
        return self.encoder.label_probabilities(features)


@dataclass(frozen=True)
class Scored:
    """A model's name, its limit or gamma if it has one, and its scores on the test rows."""

    name: str
    value: float | None
    scores: dict[str, float]  # "disparity" is the largest of any decision made from the code, or from a score
    intervals: dict[str, tuple[float, float]]  # of accuracy and AUC; on a path only the chosen model has them
    chosen: bool = False


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
    features = fitted_code(Pipeline([("posterior", encoder), ("end", None)]), X, s)[1]
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
