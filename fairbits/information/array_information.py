"""What distributions of words in numpy arrays, one per group, reveal about the group; needs no torch."""

import math

import numpy as np
from scipy.special import kl_div


def share_entropy(shares: np.ndarray) -> float:
    """Return the entropy of all entries of a numpy array that sum to 1, in bits.

    >>> share_entropy(np.array([0.25, 0.25, 0.5, 0.0]))
    1.5
    """
    positive = shares[shares > 0]
    return float(-(positive * np.log2(positive)).sum())


def law_distance(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the total variation between two laws of words (..., words): half the sum of their differences.

    >>> float(law_distance(np.array([0.9, 0.1]), np.array([0.6, 0.4])).round(4))
    0.3
    """
    return np.abs(first - second).sum(-1) / 2


def shown_information(tables: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Return the information between a word and its group, in bits: `table_information` of (..., K, words) and (K,).

    >>> float(shown_information(np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([0.5, 0.5])).round(4))
    0.531
    """
    mixture = (prior[:, None] * tables).sum(-2, keepdims=True)
    return (prior[:, None] * kl_div(tables, mixture)).sum((-2, -1)) / math.log(2)


def held_out_information(fit: np.ndarray, test: np.ndarray, prior: np.ndarray, n: int) -> float:
    """Return the mean of log2 r_s(t) / pi_s over the tables of some rows, with r from those of others, in bits.

    Tables are (K, words), of two halves of n rows. r_s = (1 - c) p(s|t) + c pi_s, c = 2 / sqrt(n); where no row of
    `fit` reaches a word, r is the prior. In expectation below the population's information (Barber and Agakov).

    >>> half = np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> round(held_out_information(half, half, np.array([0.5, 0.5]), 10_000), 4)
    0.5305
    """
    mixture, mixing = prior @ fit, min(1.0, 2 / math.sqrt(n))
    ratio = np.divide(fit, mixture, out=np.ones_like(fit), where=mixture > 0)
    return float((prior[:, None] * test * np.log2((1 - mixing) * ratio + mixing)).sum())
