"""Other methods, fitted to the training rows of a task on request, to compare with."""

from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np

from fairbits.tables.task import Task

PARITY, REDUCTION = "parity penalty", "exponentiated gradient"
GAMMAS = (0.5, 0.9)  # of the parity penalty
SHARES = (0.5, 0.25)  # of the limit: a rate within half of it of the mean rate is within it of every other


def uncompared(task: Task) -> list[str]:
    """Return notes on methods that cannot be compared here."""
    if find_spec("fairlearn") is None:
        return ["fairlearn is not installed, so --compare leaves it out: pip install 'fairbits[compare]'."]
    many = len(np.unique(task.y))
    return [f"fairlearn takes two classes, and {task.label} has {many}: --compare leaves it out."] * (many > 2)


def rival_models(task: Task, limit: float, seed: int) -> list[tuple[str, float, Any]]:
    """Fit a network with a parity penalty, and fairlearn's ExponentiatedGradient of logistic regressions.

    Returns pipelines with their names and strengths. None of them reads the groups when it decides.
    """
    from sklearn.pipeline import Pipeline

    from fairbits.encoding import GroupEncoder, TableEncoder
    from fairbits.estimators import fit_stack
    from fairbits.rivals import ExponentiatedGradientClassifier
    from fairbits.rivals.parity import ParityClassifier

    X, y, s = task.part(task.parts[0])
    encoder = TableEncoder()
    Z = encoder.fit_transform(X)
    penalised = [ParityClassifier(gamma=gamma, groups=task.groups, random_state=seed) for gamma in GAMMAS]
    found: list[tuple[str, float, Any]] = [
        (PARITY, model.gamma, model) for model in fit_stack(penalised, Z, y, sensitive_features=s)
    ]
    for bound in () if uncompared(task) else [share * limit for share in SHARES]:
        cells = GroupEncoder(min_group_size=1)
        model = ExponentiatedGradientClassifier(difference_bound=bound, groups=cells, random_state=seed)
        found.append((REDUCTION, bound, _drawn(model.fit(Z, y, sensitive_features=s))))
    return [(name, value, Pipeline([("table", encoder), ("rival", model)])) for name, value, model in found]


def _drawn(model: Any) -> SimpleNamespace:
    """Return a model whose probabilities are those of the classes it draws: that is what it decides."""
    return SimpleNamespace(
        classes_=model.classes_, predict_proba=lambda Z: (model.predict(Z)[:, None] == model.classes_).astype(float)
    )
