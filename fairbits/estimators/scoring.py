"""How predictions are scored: accuracy and fairness side by side."""

import numpy as np
from sklearn.metrics import accuracy_score, roc_auc_score

from fairbits.metrics import discrimination, discrimination_curve_area, group_pairwise_accuracy_gap


def prediction_scores(probabilities: np.ndarray, classes: np.ndarray, y: np.ndarray, s: np.ndarray) -> dict[str, float]:
    """Return AUC and accuracy (more is better), GPA, AUDC and yDiscrim (less is better) of predicted probabilities.

    Parameters
    ----------
    probabilities : (n, classes)
    classes : the label of each column
    y : (n,) labels
    s : (n, columns) group numbers; of several columns the worst counts, without columns the fairness scores are 0
    """
    score = probabilities[:, 1] if probabilities.shape[1] == 2 else probabilities
    labels = classes[probabilities.argmax(1)]
    return {
        "auc": float(roc_auc_score(y, score, multi_class="ovr")),
        "accuracy": float(accuracy_score(y, labels)),
        "gpa": max((group_pairwise_accuracy_gap(y, score, sensitive_features=column) for column in s.T), default=0.0),
        "audc": max((discrimination_curve_area(score, sensitive_features=column) for column in s.T), default=0.0),
        "discrimination": max((discrimination(labels, sensitive_features=column) for column in s.T), default=0.0),
    }


def paper_objective(scores: dict[str, float]) -> float:
    """Return the paper's search objective, AUC + (1 - GPA) + (1 - AUDC): more is better."""
    return scores["auc"] + (1 - scores["gpa"]) + (1 - scores["audc"])
