"""The arena: what every method releases about the same rows, certified in the same way."""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split

from fairbits import datasets
from fairbits.certificate import certify
from fairbits.certificate.released_code import binary_digits, binary_number
from fairbits.encoding import GroupEncoder, TableEncoder
from fairbits.estimators import LinearCodeClassifier, fit_stack
from fairbits.estimators.certified import TIGHT, few_words
from fairbits.estimators.exact_code import disparity_slope
from fairbits.estimators.posterior import PosteriorEncoder
from fairbits.information.array_information import law_distance
from fairbits.lab.run_parts import Result, estimator_of
from fairbits.metrics import auc
from fairbits.workflow.comparisons import decision_front, estimated_front

LEVELS = 16  # of a score: quantiles of the training rows
CALIBRATION, TEST = 1 / 3, 1 / 6  # shares of the rows; the others train
LIMIT = 0.05  # the smallest that is asked for


class Rows(NamedTuple):
    """Rows of a table, labels and groups in numbers."""

    X: Any
    y: np.ndarray
    s: np.ndarray


class Release(NamedTuple):
    """What a model releases about rows: numbered words and the label's probability in each row's word."""

    words: np.ndarray
    chance: np.ndarray
    law: np.ndarray | None = None  # of a random code: the probabilities of the bits


def compete(run: Any) -> Result:
    """Fit a method with all its strengths; return what every model releases, proves and predicts.

    One part of the rows trains, one calibrates, one scores. `code` is what may be shared: the word of a code, or the
    score in 16 levels; `decision` is the predicted class. Each has what so many rows are expected to show
    ("expected", by the training rows; it puts the models in order), its bound ("bound") and what it loses on the
    calibration rows. Scores on the test rows are those of the release. A `PosteriorEncoder` releases nothing; its
    estimates of the test rows say what any method could reach there ("front").
    """
    train, held, test = parts(run.dataset, run.seed)
    if run.method.estimator == "PosteriorEncoder":
        return {"points": [], "front": front(estimator_of(run.method, random_state=run.seed), train, test)}
    inputs = [part for part in features(run.dataset, run.seed, run.inputs)]
    models = _models(run, np.bincount(held.s))
    if all(hasattr(model, "stacked_settings") for model in models):
        fit_stack(models, inputs[0], train.y, sensitive_features=train.s)
    else:
        for model in models:
            model.fit(inputs[0], train.y, sensitive_features=train.s)
    rows = [part._replace(X=x) for part, x in zip((train, held, test), inputs, strict=True)]
    most = np.bincount(train.y).argmax()
    points = [point(model, *rows) for model in models]
    return {"points": points, "constant": float((test.y == most).mean())}


def front(encoder: PosteriorEncoder, train: Rows, test: Rows) -> dict[str, list[dict[str, float]]]:
    """Return estimates of the best codes, and of the best decisions, at each disparity of the test rows."""
    encoder.fit(train.X, train.y, sensitive_features=train.s)
    groups = GroupEncoder().fit(train.s)
    decisions = decision_front(encoder, test, groups, np.arange(len(test.y)))
    return {"code": estimated_front(encoder, test.X, test.s, groups), "decision": decisions}


def _models(run: Any, rows: np.ndarray) -> list[Any]:
    """Return the method with all its strengths; linear codes as `CertifiedClassifier` trains them for such groups."""
    values = [{run.method.strength: value} for value in run.values] or [{}]
    models = [estimator_of(run.method, **value, random_state=run.seed) for value in values]
    if isinstance(models[0], LinearCodeClassifier) and models[0].objective == "information":
        few = [{**v, "max_words": words} for words in few_words(LIMIT, rows) for v in values[:TIGHT]]
        models += [estimator_of(run.method, **value, random_state=run.seed) for value in few]
    return models


@lru_cache(4)
def parts(dataset: str, seed: int) -> tuple[Rows, Rows, Rows]:
    """Return the rows that train, calibrate and score."""
    if dataset.startswith("adult"):
        data = datasets.load_adult(subset="both")
        groups = data.s.astype(str)
        if dataset == "adult-crossed":
            groups = groups + " " + np.where(data.X.race == "White", "white", "other")
    else:
        data = getattr(datasets, f"load_{dataset}")()
        groups = data.s.astype(str)
    y, s = data.y.to_numpy(), np.unique(groups, return_inverse=True)[1]
    rows, rest = train_test_split(np.arange(len(y)), test_size=CALIBRATION + TEST, random_state=seed, stratify=s)
    held, test = train_test_split(rest, test_size=TEST / (CALIBRATION + TEST), random_state=seed, stratify=s[rest])
    train, calibrate, score = (
        Rows(data.X.iloc[part].reset_index(drop=True), y[part], s[part]) for part in (rows, held, test)
    )
    return train, calibrate, score


@lru_cache(4)
def features(dataset: str, seed: int, kind: str) -> list[Any]:
    """Return the inputs of all parts: the table, its columns as numbers, or estimates of p(y,s|x)."""
    train, *others = parts(dataset, seed)
    if kind == "table":
        return [train.X, *(part.X for part in others)]
    if kind == "columns":
        encoder: Any = TableEncoder().fit(train.X)
        return [np.asarray(encoder.transform(part.X)) for part in (train, *others)]
    encoder = PosteriorEncoder(features=kind, random_state=seed)
    first = encoder.fit_transform(train.X, train.y, sensitive_features=train.s)
    return [first, *(encoder.transform(part.X) for part in others)]


def point(model: Any, train: Rows, held: Rows, test: Rows) -> dict[str, Any]:
    """Return what one model releases, proves and predicts."""
    found = releases(model, train, held, test)
    chosen = [decided(model, part) for part in (train, held, test)]
    decision = _certified(chosen, train, held, (chosen[1] != held.y).mean())
    _, calibrated, shown = found
    own = np.where(held.y == 1, calibrated.chance, 1 - calibrated.chance)
    bits = -np.log2(np.maximum(own, 1e-12)).mean()
    words = [part.words for part in found]
    code = _certified(words, train, held, bits + ((calibrated.chance > 0.5) != held.y).mean() / 2, calibrated.law)
    one, other = np.array_split(np.random.default_rng(0).permutation(len(test.s)), 2)
    trees = HistGradientBoostingClassifier(max_iter=50, random_state=0)
    read = shown.words[:, None].astype(float) if shown.law is None else _bits(model, shown.words)
    trees.fit(read[one], test.s[one])
    return {
        "code": {
            **code,
            "accuracy": float(((shown.chance > 0.5) == test.y).mean()),
            "auc": auc(test.y, shown.chance),
            "disparity": variation(shown.words, test.s),
            "auc_of_s": auc(test.s[other], trees.predict_proba(read[other])),
        },
        "decision": {
            **decision,
            "accuracy": float((chosen[2] == test.y).mean()),
            "disparity": variation(chosen[2], test.s),
        },
    }


def _certified(numbers: list[np.ndarray], train: Rows, held: Rows, loss: float, law: Any = None) -> dict[str, float]:
    """Return the bound from the calibration rows, what the training rows let expect there, and the loss."""
    width = int(max(part.max() for part in numbers)) + 1
    tables, counts = shares(numbers[0], train.s, width)
    noise = counts.sum() / len(held.y) / counts
    expected = float(disparity_slope(torch.from_numpy(tables), torch.from_numpy(noise))[0])
    if law is None:  # whole numbers: a hard code, or two decisions
        law = numbers[1] if width == 2 else binary_digits(numbers[1], width).astype(np.uint8)
    bound = certify(law, sensitive_features=held.s).total_variation
    return {"expected": expected, "bound": float(bound), "loss": float(loss)}


def decided(model: Any, rows: Rows) -> np.ndarray:
    """Return the predicted classes, drawn where the method draws them.  (n,)"""
    known = {"sensitive_features": rows.s} if getattr(model, "groups_at_prediction", False) else {}
    return np.asarray(model.predict(rows.X, **known)).astype(np.int64)


def releases(model: Any, train: Rows, *others: Rows) -> list[Release]:
    """Return what a model releases about each part."""
    every = (train, *others)
    if getattr(model, "is_hard", False):
        bits = [model.transform(part.X) for part in every]
        return [Release(binary_number(part), model.decode(part)[:, 1]) for part in bits]
    if hasattr(model, "code_probabilities"):
        laws = [model.code_probabilities(part.X) for part in every]
        drawn = [(np.random.default_rng(k).random(law.shape) < law).astype(int) for k, law in enumerate(laws)]
        return [Release(binary_number(d), model.decode(d)[:, 1], law) for d, law in zip(drawn, laws, strict=True)]
    if getattr(model, "groups_at_prediction", False):  # its scores differ by group: what it decides is released
        words = [decided(model, part) for part in every]
    else:
        scores = [model.predict_proba(part.X)[:, 1] for part in every]
        edges = np.unique(np.quantile(scores[0], np.arange(1, LEVELS) / LEVELS))
        words = [np.searchsorted(edges, score) for score in scores]
    counts = np.stack([np.bincount(words[0][train.y == label], minlength=LEVELS) for label in (0, 1)], 1) + 0.5
    chance = counts[:, 1] / counts.sum(1)
    return [Release(part, chance[part]) for part in words]


def shares(words: np.ndarray, s: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return every group's shares of the words, (groups, words), and its rows."""
    counts = np.stack([np.bincount(words[s == group], minlength=width) for group in np.unique(s)])
    return counts / counts.sum(1, keepdims=True), counts.sum(1)


def variation(words: np.ndarray, s: np.ndarray) -> float:
    """Return the largest total variation between two groups' words."""
    tables, _ = shares(words, s, int(words.max()) + 1)
    return float(law_distance(tables[:, None], tables).max())


def _bits(model: Any, words: np.ndarray) -> np.ndarray:
    return binary_digits(words, 2**model.code_size)
