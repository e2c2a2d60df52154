"""Look at fitted models: scores on rows held out, the information plane, a warning where fairness got worse."""

from typing import Any

import numpy as np
import torch
from sklearn.model_selection import StratifiedKFold
from torch import Tensor

from fairbits.errors import InputError, InputWarning
from fairbits.estimators.fitting import fit_stack, number_cells
from fairbits.information import binary_entropy, group_entropy, joint_information, word_tables
from fairbits.information.sampling import code_information
from fairbits.metrics.gaps import prediction_scores

ABOUT = ("about_x", "about_y", "about_s")


class LessFairWarning(InputWarning):
    """The model is less fair than one without protection."""


def held_out_scores(model: Any, X: Any, y: np.ndarray, s: np.ndarray, codes: Any = None) -> dict[str, float]:
    """Return the scores of a fitted estimator on rows X; s (n, columns) are group numbers, the worst column counts.

    auc, accuracy: more is better; gpa, audc, discrimination: less. A method with a code also gets the scores of the
    prediction from one drawn code (one_draw_..., of `codes` or fresh ones) and the information of one draw, in bits:
    less is better. A rival whose labels are drawn gets the scores of one draw, too.

    Our methods predict without s. A rival that cannot (`groups_at_prediction`, see `fairbits.rivals`) gets s and must
    have been fitted to the same numbers.
    """
    known = {"sensitive_features": s} if getattr(model, "groups_at_prediction", False) else {}
    scores = prediction_scores(model.predict_proba(X, **known), model.classes_, y, s)
    if hasattr(model, "sampled_proba") and not getattr(model, "is_hard", False):
        shown = model.sampled_proba(X, **known) if codes is None else model.decode(codes)
        drawn = prediction_scores(shown, model.classes_, y, s)
        scores |= {f"one_draw_{name}": value for name, value in drawn.items()}
    if hasattr(model, "decode"):
        theta = model.code_probabilities(X)
        scores["information"] = code_information(theta, s)
        if model.condition_on_label:
            scores["information_within_labels"] = code_information(theta, s, y)
    return scores


def stratified_folds(y: np.ndarray, s: np.ndarray, n_folds: int, random_state: Any) -> list:
    """Return (training rows, test rows) of folds in which every (label, group) cell has its share."""
    cells = number_cells(np.unique(y, return_inverse=True)[1], s)
    sizes = np.bincount(cells)[cells]
    row = int(sizes.argmin())
    if sizes[row] < n_folds:
        raise InputError(
            f"{n_folds} folds need as many rows of every label in every group; the cell of row {row} has {sizes[row]} "
            f"(label {y[row]}). Use fewer folds, or merge groups or labels."
        )
    return list(StratifiedKFold(n_folds, shuffle=True, random_state=random_state).split(cells, cells))


def worse_than_unmitigated(scores: dict[str, float], plain: dict[str, float], groups: np.ndarray) -> list[Warning]:
    """Return a warning if a fairness score (less is better) is clearly larger than that of an unmitigated model.

    Groups (n, columns) are numbered. Clearly: by more than 1.6 standard errors of a difference of two rates, at their
    largest variance and for the smallest groups; a rule of thumb, not a test.
    """
    smallest = min(np.sort(np.unique(column, return_counts=True)[1])[:2].tolist() for column in groups.T)
    margin = 1.645 * 0.5 * float(np.sqrt(np.sum(1 / np.array(smallest))))
    worse = [
        f"{name} {scores[name]:.3f} against {plain[name]:.3f}"
        for name in ("gpa", "audc", "discrimination")
        if name in plain and scores[name] > plain[name] + margin
    ]
    problem = f"The predictions are less fair than those of a model without protection: {', '.join(worse)}."
    remedy = "Try another gamma, more epochs or another seed, and compare again."
    return [LessFairWarning(problem, remedy=remedy)] if worse else []


def information_plane(estimator: Any, X: Any, y: Any, *, sensitive_features: Any) -> list[dict[str, float]]:
    """Fit a copy of a method with a code; return what its code reveals on the validation rows, epoch by epoch, in bits.

    I(X;T) as `about_x`, I(T;Y) as `about_y` and I(T;S) as `about_s` (of several columns the most), exact for these
    rows, which are few: the last two err upwards. The copy measures all this after every epoch; the method itself does
    not, so that nobody else pays for it. At most 20 bits.

    Examples
    --------
    >>> from fairbits import BinaryMIClassifier, Schedule
    >>> from fairbits.datasets import make_shifted_bits
    >>> data = make_shifted_bits(400, random_state=0)
    >>> model = BinaryMIClassifier(code_size=3, max_epochs=2, schedule=Schedule(min_steps=50), random_state=0)
    >>> sorted(information_plane(model, data.X, data.y, sensitive_features=data.s)[-1])
    ['about_s', 'about_x', 'about_y', 'epoch']
    """
    method = type(estimator)

    def evaluate(self: Any, net: Any, batch: Any, scalars: Any) -> dict[str, Tensor]:
        theta, sizes = net.theta(batch.x), [len(self.classes_), *self.group_sizes]
        known = [batch.y, *batch.s.unbind(1)]
        about_y, *about_s = (
            joint_information(theta, groups, weights=batch.weight, n_groups=size)
            for groups, size in zip(known, sizes, strict=True)
        )
        measured = (_about_rows(theta, batch.weight), about_y, torch.stack(about_s).amax(0))
        return method.evaluate(self, net, batch, scalars) | dict(zip(ABOUT, measured, strict=True))

    watched = type(method.__name__, (method,), {"evaluate": evaluate})(**estimator.get_params())
    fit_stack([watched], X, y, sensitive_features=sensitive_features)
    names = {"epoch": "epoch"} | {name: f"validation_{name}" for name in ABOUT}
    return [{name: epoch[logged] for name, logged in names.items()} for epoch in watched.history_]


def _about_rows(theta: Tensor, weight: Tensor) -> Tensor:
    """Return I(X;T) = H(T) - H(T|X) of rows that are all different; without a table for every row."""
    theta, share = theta.double(), (weight / weight.sum()).double()
    (table,), _ = word_tables(theta, torch.zeros(len(share), dtype=torch.int64), weights=share, n_groups=1)
    return (group_entropy(table) - share @ binary_entropy(theta).sum(-1)).float()
