"""Score a fitted estimator on rows it has not seen."""

from typing import Any

import numpy as np

from fairbits.estimators.code import code_information
from fairbits.estimators.scoring import prediction_scores


def held_out_scores(model: Any, X: Any, y: np.ndarray, s: np.ndarray, codes: Any = None) -> dict[str, float]:
    """Return the scores of a fitted estimator on rows X; s (n, columns) are group numbers, the worst column counts.

    auc, accuracy: more is better; gpa, audc, discrimination: less. A method with a code also gets the scores of the
    prediction from one drawn code (one_draw_..., of `codes` or fresh ones) and the information of one draw, in bits:
    less is better. A rival whose labels are drawn gets the scores of one draw, too.

    No method of ours is told s. A rival that cannot predict without (`groups_at_prediction`, see `fairbits.compare`)
    is: it has to be fitted to the same numbers.
    """
    told = {"sensitive_features": s} if getattr(model, "groups_at_prediction", False) else {}
    scores = prediction_scores(model.predict_proba(X, **told), model.classes_, y, s)
    if hasattr(model, "sampled_proba"):
        shown = model.sampled_proba(X, **told) if codes is None else model.decode(codes)
        drawn = prediction_scores(shown, model.classes_, y, s)
        scores |= {f"one_draw_{name}": value for name, value in drawn.items()}
    if hasattr(model, "decode"):
        theta = model.code_probabilities(X)
        scores["information"] = code_information(theta, s)
        if model.condition_on_label:
            scores["information_within_labels"] = code_information(theta, s, y)
    return scores
