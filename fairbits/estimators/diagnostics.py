"""Look at fitted models: scores on rows held out, and a warning where fairness got worse."""

from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from fairbits.errors import InputError, InputWarning
from fairbits.estimators.fitting import number_cells
from fairbits.information.sampling import code_information
from fairbits.metrics.gaps import prediction_scores


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
