"""The list every estimator joins to be put through the battery, and a small learning problem."""

import numpy as np

from fairbits.estimators import (
    AdversarialClassifier,
    BinaryBernoulliClassifier,
    BinaryMIClassifier,
    EnDClassifier,
    HSICClassifier,
    LearnedMixinClassifier,
    LFRClassifier,
    ParityClassifier,
    ReBiasClassifier,
    RUBiClassifier,
    VanillaClassifier,
    VFAEClassifier,
    VIBClassifier,
)

ESTIMATORS = [
    VanillaClassifier,
    BinaryBernoulliClassifier,
    BinaryMIClassifier,
    AdversarialClassifier,
    EnDClassifier,
    HSICClassifier,
    LearnedMixinClassifier,
    LFRClassifier,
    ParityClassifier,
    ReBiasClassifier,
    RUBiClassifier,
    VFAEClassifier,
    VIBClassifier,
]
CODES = [BinaryBernoulliClassifier, BinaryMIClassifier]


def problem(n=600, n_groups=2, n_classes=2, seed=0):
    """x1 tells the label, x2 the group, x3 both."""
    rng = np.random.default_rng(seed)
    y, s = rng.integers(0, n_classes, n), rng.integers(0, n_groups, n)
    X = np.column_stack([2 * y, 2 * s, y + s]) + rng.normal(size=(n, 3))
    return X, y, s


def quick(cls, **settings):
    """An estimator that trains in a fraction of a second."""
    return cls(**{"max_epochs": 5, "min_steps": 30, "hidden_sizes": (16,), "random_state": 0, **settings})
