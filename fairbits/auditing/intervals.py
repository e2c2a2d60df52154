"""AUC, accuracy and balanced accuracy of several groups or classes, and their confidence intervals."""

import math

import numpy as np
from scipy.stats import binomtest, norm, rankdata


def one_vs_rest(posterior: np.ndarray) -> np.ndarray:
    """Return a score of each group against the rest, (n, K); of two groups, exactly opposite ones."""
    return posterior[:, 1:] * [-1, 1] if posterior.shape[1] == 2 else posterior


def macro_auc(ranks: np.ndarray, groups: np.ndarray) -> float:
    """Return the mean over groups of the AUC of a group against the rest, from ranks of the scores, (n, K).

    >>> macro_auc(rankdata(one_vs_rest(np.array([[0.8, 0.2], [0.5, 0.5], [0.5, 0.5]])), axis=0), np.array([0, 0, 1]))
    0.75
    """
    counts = np.bincount(groups)
    sums = np.bincount(groups, weights=ranks[np.arange(len(groups)), groups])
    return float(np.mean((sums - counts * (counts + 1) / 2) / (counts * (len(groups) - counts))))


def auc_interval(scores: np.ndarray, groups: np.ndarray, confidence: float) -> tuple[float, float]:
    """Return a two-sided confidence interval of the macro AUC of scores (n, K), for a probe that is given.

    DeLong's variance, the sum over rows of (placement - AUC)^2 / rows^2, where a row's placement is the share of the
    other side that it is ordered right with; for more than two groups a row counts with the sum of its terms against
    every group. Each group is given two more rows, one with all placements 0 and one with 1, so that no interval has
    zero width, nor is narrower than DeLong's.
    """
    k = scores.shape[1]
    auc, terms, ends = 0.0, np.zeros(len(groups)), np.zeros((2, k))
    for group, score in enumerate(scores.T):
        own = groups == group
        below = rankdata(score)  # rows of the other side below a row, ties counting half
        for side in (own, ~own):
            below[side] -= rankdata(score[side])
        placement = np.where(own, below / np.sum(~own), 1 - below / np.sum(own))
        mean, n = placement[own].mean(), own.sum()
        auc += mean / k
        terms += (placement - mean) / np.where(own, n, len(own) - n) / k
        ends += np.array([[0 - mean], [1 - mean]]) / np.where(np.arange(k) == group, n, len(own) - n) / k
    margin = norm.isf((1 - confidence) / 2) * math.sqrt(np.sum(terms**2) + np.sum(ends**2))
    return max(float(auc - margin), 0.0), min(float(auc + margin), 1.0)


def balanced_accuracy_interval(hits: np.ndarray, counts: np.ndarray, confidence: float) -> tuple[float, float]:
    """Return a two-sided confidence interval of the mean over groups of hits / counts, (K,) each.

    Wilson's interval in each group; the distances of its ends add in squares (Zou and Donner 2008).

    >>> low, high = balanced_accuracy_interval(np.array([50, 50]), np.array([50, 50]), 0.95)
    >>> round(low, 3), round(high, 3)
    (0.95, 1.0)
    """
    tests = [binomtest(int(k), int(n)) for k, n in zip(hits, counts, strict=True)]
    rate, ends = hits / counts, np.array([test.proportion_ci(confidence, "wilson") for test in tests])
    below, above = np.linalg.norm(ends - rate[:, None], axis=0) / len(counts)
    return float(rate.mean() - below), float(rate.mean() + above)


def score_intervals(probabilities: np.ndarray, labels: np.ndarray, confidence: float) -> dict[str, tuple[float, float]]:
    """Return two-sided confidence intervals of the accuracy and the AUC of predicted probabilities (n, classes).

    Wilson's for the accuracy, DeLong's for the AUC as in `auc_interval`, which is left out if a class has no rows.

    Parameters
    ----------
    labels : (n,) numbers of the true classes

    >>> found = score_intervals(np.array([[0.8, 0.2]] * 50 + [[0.3, 0.7]] * 50), np.arange(100) // 50, 0.95)
    >>> {name: (round(low, 3), round(high, 3)) for name, (low, high) in found.items()}
    {'accuracy': (0.963, 1.0), 'auc': (0.945, 1.0)}
    """
    right = int(np.sum(probabilities.argmax(1) == labels))
    accuracy = binomtest(right, len(labels)).proportion_ci(confidence, "wilson")
    found = {"accuracy": (float(accuracy.low), float(accuracy.high))}
    if (np.bincount(labels, minlength=probabilities.shape[1]) > 0).all():
        found["auc"] = auc_interval(one_vs_rest(probabilities), labels, confidence)
    return found
