"""The adapters at high strength, and a problem in which the label follows the group."""

import functools

import numpy as np
import pytest

from fairbits.rivals import (
    AIF360LFRClassifier,
    ExponentiatedGradientClassifier,
    FairlearnAdversarialClassifier,
    ThresholdOptimizerClassifier,
)

ENOUGH = {"adversary_sizes": (16,), "learning_rate": 0.003, "epochs": 150}
RIVALS = {
    "reductions": (ExponentiatedGradientClassifier, {"difference_bound": 0.01}),
    "thresholds": (ThresholdOptimizerClassifier, {"tol": 0.0}),
    "adversarial": (FairlearnAdversarialClassifier, {**ENOUGH, "hidden_sizes": (16,), "alpha": 1.0}),
    "linear adversarial": (FairlearnAdversarialClassifier, {**ENOUGH, "hidden_sizes": (), "alpha": 3.0}),
    "lfr": (AIF360LFRClassifier, {"fairness_weight": 5.0}),
}


def rival(name, **settings):
    """Return a fresh adapter at high strength, or skip where AIF360 is not installed."""
    if name == "lfr":
        pytest.importorskip("aif360")
    cls, strong = RIVALS[name]
    return cls(**{"random_state": 0, **strong, **settings})


def brief(name, **settings):
    """Return an adapter that trains in a moment, however poorly."""
    moment = {"reductions": {"max_iter": 2}, "adversarial": {"epochs": 3}, "linear adversarial": {"epochs": 3}}
    return rival(name, **moment.get(name, {}), **settings)


def problem(n=1000, n_groups=2, seed=0):
    """x1 tells the label, x2 the group, and the label follows both."""
    rng = np.random.default_rng(seed)
    s = rng.integers(0, n_groups, n)
    X = np.column_stack([rng.normal(size=n), 2.0 * s]) + rng.normal(0, 0.5, size=(n, 2))
    y = (X[:, 0] + s + rng.normal(0, 0.5, n) > (n_groups - 1) / 2).astype(int)
    return X, y, s


def fitted(name, seed=0):
    """Return a rival fitted to the problem, once."""
    return _fitted(name, seed)  # the cache would take a default and the same argument for two


@functools.cache
def _fitted(name, seed):
    X, y, s = problem()
    return rival(name, random_state=seed).fit(X, y, sensitive_features=s)


@functools.cache
def briefly_fitted(name, seed=0):
    """Return a rival that has trained for a moment on few rows, once."""
    X, y, s = problem(n=300)
    return brief(name, random_state=seed).fit(X, y, sensitive_features=s)


def told(model, s):
    """Return the keyword of predictions that need the groups."""
    return {"sensitive_features": s} if model.groups_at_prediction else {}
