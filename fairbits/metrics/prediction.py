"""How predictions are scored: accuracy and fairness side by side."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.metrics import roc_auc_score

from fairbits.metrics.gaps import discrimination, discrimination_curve_area, group_pairwise_accuracy_gap
from fairbits.metrics.metric_inputs import as_labels, as_scores, check_rows


def auc(y_true: Any, y_score: Any) -> float:
    """Return scikit-learn's area under the ROC curve: from 0 to 1 (best), 0.5 is chance.

    The probability that a positive scores above a negative, ties counting 1/2; for more than two labels the mean over
    labels, each against the rest. Two labels take a tenth of scikit-learn's time, by ranks.

    Parameters
    ----------
    y_true : (n,) labels; of two, the last in sorted order is positive.
    y_score : (n,) scores for two labels, or (n, C) probabilities, a column per label in sorted order.

    Examples
    --------
    >>> auc(["no", "no", "yes", "yes"], [0.1, 0.4, 0.35, 0.8])
    0.75
    """
    scores = as_scores(y_score, "y_score")
    labels, numbers = as_labels(y_true, "y_true")
    check_rows("y_true", len(numbers), "y_score", len(scores))
    if len(labels) != 2 or scores.shape[1] > 2:
        return float(roc_auc_score(numbers, scores if scores.shape[1] > 2 else scores[:, -1], multi_class="ovr"))
    positive = numbers == 1
    wins = int(positive.sum())
    return float((rankdata(scores[:, -1])[positive].sum() / wins - (wins + 1) / 2) / (len(numbers) - wins))


def prediction_scores(probabilities: np.ndarray, classes: np.ndarray, y: np.ndarray, s: np.ndarray) -> dict[str, float]:
    """Return AUC and accuracy (more is better), GPA, AUDC and yDiscrim (less is better) of predicted probabilities.

    Parameters
    ----------
    probabilities : (n, classes)
    classes : the label of each column
    y : (n,) labels
    s : (n, columns) group numbers; the worst of several columns counts, and without columns the gaps are 0
    """
    score = probabilities[:, 1] if probabilities.shape[1] == 2 else probabilities
    labels = classes[probabilities.argmax(1)]
    return {
        "auc": auc(y, score),
        "accuracy": float(np.mean(y == labels)),
        "gpa": max((group_pairwise_accuracy_gap(y, score, sensitive_features=column) for column in s.T), default=0.0),
        "audc": max((discrimination_curve_area(score, sensitive_features=column) for column in s.T), default=0.0),
        "discrimination": max((discrimination(labels, sensitive_features=column) for column in s.T), default=0.0),
    }


def paper_objective(scores: Mapping[str, float]) -> float:
    """Return the paper's search objective, AUC + (1 - GPA) + (1 - AUDC), of a model's scores: more is better."""
    return scores["auc"] + (1 - scores["gpa"]) + (1 - scores["audc"])
