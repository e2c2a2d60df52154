"""Rows held out, and the scores of a fitted estimator on them."""

from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from fairbits.errors import InputError
from fairbits.estimators.fitting import number_cells
from fairbits.information.sampling import code_information
from fairbits.metrics.gaps import prediction_scores


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
    if hasattr(model, "sampled_proba"):
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
    smallest = int(np.bincount(cells).min())
    if smallest < n_folds:
        row = int(np.flatnonzero(np.bincount(cells)[cells] == smallest)[0])
        raise InputError(
            f"{n_folds} folds need as many rows of every label in every group; the cell of row {row} has {smallest} "
            f"(label {y[row]}). Use fewer folds, or merge groups or labels."
        )
    return list(StratifiedKFold(n_folds, shuffle=True, random_state=random_state).split(cells, cells))
