"""What a fitted model is compared with: the other models of its path, references, and what is possible at all."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.stats import mannwhitneyu, norm
from sklearn.pipeline import Pipeline
from sklearn.tree import DecisionTreeRegressor

from fairbits.auditing.auditor import Audit
from fairbits.auditing.probes import score_intervals
from fairbits.certificate.released_code import certified_decision, encode_rows, fitted_code
from fairbits.encoding import GroupEncoder
from fairbits.estimators.base import method_path
from fairbits.estimators.codes import code_information, held_out_scores
from fairbits.estimators.decision_rule import estimated_cells, scored_rules
from fairbits.estimators.optimal_front import optimal_front
from fairbits.estimators.posterior import PosteriorEncoder
from fairbits.estimators.promises import released_class
from fairbits.information import total_variation
from fairbits.metrics.gaps import mcnemar_p_value

OWN = "fairbits"  # the name of every model of the path
FRONT = (0.0, 0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6)  # limits at which the optimum is estimated
FRONT_ROWS, FRONT_GROUPS, FRONT_CELLS = 20_000, 4, 256
CHANCES = 201  # at which a shock is looked at
USELESS = 0.05  # p-value above which a model is not better than the constant class
COARSE: dict[str, Any] = {"bins": 16, "starts": 1}  # of the optimum: a few seconds instead of a minute


@dataclass(frozen=True)
class Scored:
    """A model's name, its limit or gamma if it has one, and its scores on the test rows."""

    name: str
    value: float | None
    scores: dict[str, float]  # "disparity" is the largest of any decision made from the code, or from a score
    intervals: dict[str, tuple[float, float]]  # of accuracy and AUC; of random codes only the chosen one has them
    chosen: bool = False
    useful: bool | None = None  # the class is more accurate than the constant one, or the code tells labels apart
    p_value: float | None = None  # of the test of that
    learners: tuple[str, ...] = ()  # of the estimates that the model without protection is
    proved: dict[str, float] | None = None  # of a reference: bounds on its decisions, named as those of the path


def alternatives(
    fit: Any,
    references: dict[str, Pipeline],
    found: Audit,
    test: tuple[Any, Any, Any],
    prove: Callable[[Any], dict[str, float]],
    rivals: Sequence[tuple[str, float, Pipeline]] = (),
) -> list[Scored]:
    """Score the models of a path, which share their encoder, and references; the audit has scored the chosen model.

    `prove` bounds the decisions of a reference, where the certificate is about decisions; `rivals` are more references,
    with their strengths.
    """
    X, y, s = test
    method, rows = fitted_code(fit.model, X, s)
    groups, varied, scored = method.group_encoder_.transform(s), method_path(method), []
    labels = np.searchsorted(method.classes_, y)
    decides, constant = certified_decision(fit.released), references["constant"].predict(X[:1])[0]
    for code in (one[-1] for one in fit.path):
        chosen = code is method
        scores = found.task or {} if chosen else held_out_scores(code, rows, y, groups)
        p_value = chance(y, code, rows, constant, decides)
        theta = released_class(code, rows).theta if decides else code.code_probabilities(rows)
        scores = scores | {"disparity": _apart(theta, groups)}
        if decides:
            scores["information"] = code_information(theta, groups)
        own = score_intervals(code.predict_proba(rows), labels, found.confidence) if code.is_hard else {}
        known = found.intervals if chosen else own
        scored.append(Scored(OWN, getattr(code, varied), scores, known, chosen, p_value <= USELESS, p_value))
    for name, value, reference in [*((name, None, one) for name, one in references.items()), *rivals]:
        last, seen = fitted_code(reference, X, s)
        probabilities = last.predict_proba(seen)
        classes = np.eye(probabilities.shape[1])[probabilities.argmax(1)]
        apart = _apart(classes, groups) if decides else threshold_disparity(probabilities, groups)
        scores = held_out_scores(last, seen, y, groups) | {"disparity": apart}
        known = score_intervals(probabilities, labels, found.confidence)
        learners = tuple(learner.name for learner in getattr(reference[0], "learners_", ()))
        proof = prove(reference) if decides else None
        scored.append(Scored(name, value, scores, known, learners=learners, proved=proof))
    return scored


def chance(y: np.ndarray, code: Any, rows: np.ndarray, constant: Any, decides: bool) -> float:
    """Return the p-value of "not useful": for decisions McNemar's test, for a code of two labels Mann and Whitney's."""
    if decides or len(code.classes_) > 2:
        return better_than_constant(y, code.predict(rows), constant)
    score, positive = code.predict_proba(rows)[:, 1], y == code.classes_[1]
    return float(mannwhitneyu(score[positive], score[~positive], alternative="greater").pvalue)


def better_than_constant(y: np.ndarray, predicted: np.ndarray, constant: Any) -> float:
    """Return the p-value of McNemar's exact test: is a model right more often than one class for everybody?

    >>> better_than_constant(np.array([1, 1, 1, 1, 1, 0, 0, 0]), np.array([1, 1, 1, 1, 1, 0, 0, 0]), 0)
    0.03125
    """
    return mcnemar_p_value(y, predicted, np.full(len(y), constant))


def verdict_changes(
    bounds: np.ndarray, estimates: np.ndarray, limits: Sequence[float], confidence: float, p_values: np.ndarray
) -> dict[str, float]:
    """Predict how probable each verdict is in another split of this size, from all models that may pass.

    Bounds and estimates are (models, claims) in the order of the tests, the p-values (models,) are those of "not
    useful". All estimates rise and fall together and not below 0; so do all p-values. Both this split and the other one
    err, each by one standard error, so their difference varies twice as much. Which models pass is then up to the first
    failure, and it takes one useful model among them.

    >>> bounds, estimates, p_values = np.array([[0.1], [0.18]]), np.array([[0.02], [0.1]]), np.array([0.4, 1e-6])
    >>> {name: round(share, 2) for name, share in verdict_changes(bounds, estimates, [0.2], 0.95, p_values).items()}
    {'not certified': 0.07, 'certified': 0.65, 'certified but not useful': 0.27}
    """
    shocks = math.sqrt(2) * norm.ppf((np.arange(CHANCES) + 0.5) / CHANCES)
    width, score = bounds - estimates, norm.isf(np.clip(p_values, 1e-12, 1 - 1e-12))
    error = width / norm.isf(1 - confidence)  # the slack is that of a bound at this confidence
    shown = np.maximum(estimates + shocks[:, None, None] * error, 0)  # (shocks, models, claims)
    passed = np.logical_and.accumulate((shown + width <= limits).all(2), 1)
    best = np.where(passed, score, -np.inf).max(1)
    useful, some = float(norm.cdf((best - norm.isf(USELESS)) / math.sqrt(2)).mean()), float(passed[:, 0].mean())
    return {"not certified": 1 - some, "certified": useful, "certified but not useful": some - useful}


def smallest_useful(bounds: list[float], useful: list[bool]) -> float | None:
    """Return the smallest limit within which the first models up to a useful one are; None if none is useful.

    >>> smallest_useful([0.05, 0.04, 0.08, 0.2], [False, False, True, True])
    0.08
    """
    reached = np.maximum.accumulate(bounds)
    return min((float(most) for most, fit in zip(reached, useful, strict=True) if fit), default=None)


def _few_groups(group: np.ndarray) -> np.ndarray:
    """Return p(s|x) of the largest groups, and of all others together."""
    order = np.argsort(-group.sum(0), kind="stable")
    few = np.column_stack([group[:, order[:FRONT_GROUPS]], group[:, order[FRONT_GROUPS:]].sum(1)])
    return few[:, few.any(0)]


def _apart(theta: np.ndarray, groups: np.ndarray) -> float:
    """Return the largest disparity of any decision made from a code, in the worst column of groups (n, columns)."""
    return max(float(total_variation(torch.from_numpy(theta), torch.from_numpy(column))) for column in groups.T)


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


def decision_front(
    encoder: PosteriorEncoder, rows: tuple[Any, np.ndarray, Any], groups: GroupEncoder, scored: np.ndarray
) -> list[dict[str, float]]:
    """Estimate the most accurate decision at each disparity, of all that look at x, from rows new to the encoder.

    The linear programmes know these rows by their estimated p(y,s|x) alone. So the labels and groups, which say how
    accurate each rule is on the `scored` rows and how far it differs on all of them, have not chosen it.
    """
    X, y, s = rows
    x, sizes = encode_rows([("posterior", encoder)], X, s), [len(names) for names in groups.names_]
    if encoder.features != "probabilities":
        joint = [encoder.posterior(x, column=place) for place in range(len(sizes))]
        x = np.concatenate(joint, 2).reshape(len(x), -1)
    x = x.astype(np.float64)
    cell = DecisionTreeRegressor(max_leaf_nodes=FRONT_CELLS, random_state=0).fit(x, x).apply(x)
    _, cell, mass = np.unique(cell, return_inverse=True, return_counts=True)
    centres = np.stack([np.bincount(cell, column) for column in x.T], 1) / mass[:, None]
    own = np.eye(x.shape[1] + 1, x.shape[1]).reshape(-1, len(encoder.classes_), sum(sizes))
    numbers, labels = groups.transform(s), np.searchsorted(encoder.classes_, y)
    most = np.bincount(labels).argmax()
    decided = [np.full(len(x), most)]
    for scores in scored_rules(estimated_cells(own, centres, mass / len(x), sizes, within_labels=False)):
        decided.append((x @ scores[:, :-1].T + scores[:, -1]).argmax(1))
    found = pd.DataFrame(
        {
            "disparity": [_apart(np.eye(len(encoder.classes_))[one], numbers) for one in decided],
            "accuracy": [float((one == labels)[scored].mean()) for one in decided],
        }
    )
    return found.sort_values("disparity").cummax().drop_duplicates("accuracy").to_dict("records")


def estimated_front(encoder: PosteriorEncoder, X: Any, s: Any, groups: GroupEncoder) -> list[dict[str, float]]:
    """Estimate the best accuracy and AUC within limits of the disparity, from rows that the encoder has not seen.

    Of several sensitive columns, each on its own, the one that costs most counts: no representation does better. Rare
    groups are put together, as the programme grows with the pairs: what all groups allow, the mixture of some does.
    """
    X, s = X[:FRONT_ROWS], s[:FRONT_ROWS]  # in random order
    features = encode_rows([("posterior", encoder)], X, s)
    label, fronts = encoder.label_probabilities(features), []
    for place, (names, number) in enumerate(zip(groups.names_, groups.transform(s).T, strict=True)):
        if encoder.encode_sensitive:
            group = np.eye(len(names))[number]
        else:
            group = encoder.posterior(features, column=place).sum(1)
        fronts.append(optimal_front(label, _few_groups(group), FRONT, **COARSE))
    binding = (min((front.iloc[i] for front in fronts), key=lambda row: row.information) for i in range(len(FRONT)))
    found = pd.DataFrame(binding).rename(columns={"total_variation": "disparity"})[["disparity", "accuracy", "auc"]]
    return found.cummax().drop_duplicates().to_dict("records")  # what is within one limit is within every larger one
