"""How predictions are scored: accuracy and fairness side by side."""

import numpy as np
from scipy.stats import rankdata
from sklearn.metrics import roc_auc_score

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
        "auc": _auc(y, score, classes),
        "accuracy": float(np.mean(y == labels)),
        "gpa": max((group_pairwise_accuracy_gap(y, score, sensitive_features=column) for column in s.T), default=0.0),
        "audc": max((discrimination_curve_area(score, sensitive_features=column) for column in s.T), default=0.0),
        "discrimination": max((discrimination(labels, sensitive_features=column) for column in s.T), default=0.0),
    }


def _auc(y: np.ndarray, score: np.ndarray, classes: np.ndarray) -> float:
    """Return scikit-learn's AUC; by ranks for two classes, where its checks take ten times as long as the work."""
    positive = y == classes[-1]
    wins = int(positive.sum())
    if score.ndim > 1 or wins in (0, len(y)):
        return float(roc_auc_score(y, score, multi_class="ovr"))
    return float((rankdata(score)[positive].sum() / wins - (wins + 1) / 2) / (len(y) - wins))
