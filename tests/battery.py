"""Every public method, to be put through the battery, and a small learning problem."""

import warnings
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import cache, partial

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

import fairbits
from fairbits import datasets
from fairbits.auditing import probes
from fairbits.estimators import (
    ExactCodeClassifier,
    FairCodeClassifier,
    InvariantClassifier,
    LinearCodeClassifier,
    PenalisedCodeClassifier,
    Schedule,
    certified,
    posterior,
)
from fairbits.estimators.base import TrainedClassifier
from fairbits.estimators.debiased import DebiasedCode
from fairbits.workflow import comparisons

PUBLIC = [getattr(fairbits, name) for name in fairbits.__all__]
ESTIMATORS = [found for found in PUBLIC if isinstance(found, type) and issubclass(found, TrainedClassifier)]
CODES = [m for m in ESTIMATORS if issubclass(m, PenalisedCodeClassifier) and not issubclass(m, DebiasedCode)]

KINDS = [  # of loss: plain, random bits, exact words, linear ones, a correction, an opponent, prototypes, an ensemble
    fairbits.VanillaClassifier,
    fairbits.BinaryBernoulliClassifier,
    fairbits.ExactCodeClassifier,
    fairbits.LinearCodeClassifier,
    fairbits.DebiasedBernoulliClassifier,
    fairbits.AdversarialClassifier,
    fairbits.LFRClassifier,
    fairbits.RUBiClassifier,
]

WAYS = [KINDS[0], KINDS[1], fairbits.LinearCodeClassifier]  # to a fit: with a network, a code, and neither

ABSENT_IN_LINEAR = ("hidden_sizes", "channels", "learning_rate", "weight_decay", "batch_size")
LEARNS = {"min_steps": 80, "learning_rate": 0.015}  # with which every method learns the problem


def by_kind(*values, kinds=KINDS, more=()):
    """Return these values with every method, for what all methods inherit: one of each kind, and slowly the rest."""
    quickly = (*kinds, *more)
    return [pytest.param(*values, cls, marks=[] if cls in quickly else pytest.mark.slow) for cls in ESTIMATORS]


def one_quickly(values):
    """Return these values, the first for the default suite and the others slowly."""
    first, *others = values
    return [first, *(pytest.param(value, marks=pytest.mark.slow) for value in others)]


def problem(n=600, n_groups=2, n_classes=2, seed=0):
    """x1 tells the label, x2 the group, x3 both."""
    rng = np.random.default_rng(seed)
    y, s = rng.integers(0, n_classes, n), rng.integers(0, n_groups, n)
    X = np.column_stack([2 * y, 2 * s, y + s]) + rng.normal(size=(n, 3))
    return X, y, s


def quick(cls, **settings):
    """An estimator that trains in a fraction of a second; settings of its schedule may stand beside the others."""
    settings = {"max_epochs": 4, "min_steps": 12, "hidden_sizes": (16,), "random_state": 0, **settings}
    own = {field.name: settings.pop(field.name) for field in fields(Schedule) if field.name in settings}
    if issubclass(cls, LinearCodeClassifier):  # it has neither layers nor batches nor a schedule
        known = {name: value for name, value in settings.items() if name not in ABSENT_IN_LINEAR}
        return cls(**{**known, "max_epochs": max(settings["max_epochs"], own["min_steps"])})
    return cls(schedule=replace(cls.own_schedule, **own), **settings)


PIPELINE = FairCodeClassifier.pipeline


def brief_pipeline(model):
    """The pipeline of a fair code that trains for a moment."""
    if model.release == "hard" and not model.encode_sensitive:
        return PIPELINE(model).set_params(code__max_epochs=40)
    return PIPELINE(model).set_params(code__max_epochs=8, code__learning_rate=0.02, code__hidden_sizes=(16,))


def train_briefly(patch, min_steps=60):
    """Let commands and reports train for a moment.

    The methods' own schedules have 500 or 1,000 steps, however few the epochs. Estimates are of few trees, the optimum
    is of few cells and limits, and a path of limits has three.
    """
    for method in (InvariantClassifier, ExactCodeClassifier):
        patch.setattr(method, "own_schedule", replace(method.own_schedule, min_steps=min_steps))
    patch.setattr(FairCodeClassifier, "pipeline", brief_pipeline)
    patch.setattr(posterior, "HistGradientBoostingClassifier", partial(HistGradientBoostingClassifier, max_iter=10))
    patch.setattr(comparisons, "COARSE", {"bins": 4, "n_words": 4, "rounds": 1, "starts": 1})
    patch.setattr(comparisons, "FRONT", (0.0, 0.03, 0.06, 0.09))
    patch.setattr(certified, "SHARES", (0.2, 0.5, 1.0))


@contextmanager
def few_trees():
    """Let estimates and attacks grow a few trees, also on few rows, and a fair code train a few steps."""
    short = replace(ExactCodeClassifier.own_schedule, min_steps=30)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(posterior, "BOOSTED_ROWS", 1)
        for module in (posterior, probes):
            patch.setattr(module, "HistGradientBoostingClassifier", partial(HistGradientBoostingClassifier, max_iter=4))
        patch.setattr(probes, "RandomForestClassifier", lambda _, **settings: RandomForestClassifier(20, **settings))
        patch.setattr(ExactCodeClassifier, "own_schedule", short)
        patch.setattr(FairCodeClassifier, "pipeline", brief_pipeline)
        yield


@contextmanager
def few_rows(loader, step):
    """Let a loader of a shipped table return every so many rows."""
    data = getattr(datasets, loader)()
    few = replace(data, X=data.X[::step], y=data.y[::step], s=data.s[::step])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets, loader, lambda: few)
        yield


@cache
def fitted(cls):
    """Return the quick estimator fitted to the problem, once for all tests that only look at it."""
    X, y, s = problem()
    return quick(cls).fit(X, y, sensitive_features=s)


@cache
def learned(cls):
    """Return the estimator that has learned the problem, once; it must not warn of anything."""
    X, y, s = problem()
    with warnings.catch_warnings(action="error"):
        return quick(cls, **LEARNS).fit(X, y, sensitive_features=s)


def known_posteriors(n, seed=0):
    """Rows with known p(y,s|x) on a square: p(y=1|x) and p(s=1|x), independent given x, alike in the population."""
    rng = np.random.default_rng(seed)
    label = rng.beta(0.8, 0.8, n)
    group = np.clip(0.25 + 0.5 * label + rng.normal(0, 0.15, n), 0.02, 0.98)
    y, s = rng.random(n) < label, rng.random(n) < group
    joint = np.stack([1 - label, label], 1)[:, :, None] * np.stack([1 - group, group], 1)[:, None]
    return joint.reshape(n, 4).astype(np.float32), y.astype(int), s.astype(int)
