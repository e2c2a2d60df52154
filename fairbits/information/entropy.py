"""Entropies in bits, and the one place where p log p is evaluated."""

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from fairbits.information.given_gradient import with_gradient

LN2 = math.log(2.0)


def binary_entropy(p: Tensor) -> Tensor:
    """Return the entropy of a coin with probability ``p``, in bits.

    h(p) = -p log2 p - (1-p) log2 (1-p), with 0 log 0 = 0. The gradient log2((1-p)/p) stays finite at 0 and 1. If p
    is a sigmoid, prefer `binary_entropy_from_logits`: a saturated sigmoid has lost what the entropy needs.

    Examples
    --------
    >>> binary_entropy(torch.tensor([0.0, 0.11, 0.5]))
    tensor([0.0000, 0.4999, 1.0000])
    """
    with torch.no_grad():
        value = (torch.special.entr(p) + torch.special.entr(1 - p)) / LN2
        slope = (safe_log(1 - p) - safe_log(p)) / LN2
    return with_gradient(p, value, slope)


def binary_entropy_from_logits(z: Tensor) -> Tensor:
    """Return the entropy of a coin with log-odds ``z``, in bits.

    h(sigmoid(z)) = [softplus(u) - u sigmoid(u)] / ln 2 with u = -|z|, accurate and with a finite gradient at any z.

    Examples
    --------
    >>> binary_entropy_from_logits(torch.tensor([0.0, -2.0, 50.0]))
    tensor([1.0000e+00, 5.2707e-01, 1.4191e-20])
    """
    u = -z.abs()
    return (softplus(u) - u * torch.sigmoid(u)) / LN2


def group_entropy(prior: Tensor) -> Tensor:
    """Return the entropy of probabilities (..., K) in bits, H(S) = -sum_s pi_s log2 pi_s: (...).

    >>> group_entropy(torch.tensor([[0.5, 0.5], [1.0, 0.0]]))
    tensor([1., 0.])
    """
    return torch.special.entr(prior).sum(-1) / LN2


def share_entropy(shares: np.ndarray) -> float:
    """Return the entropy of all entries of a numpy array that sum to 1, in bits.

    >>> share_entropy(np.array([0.25, 0.25, 0.5, 0.0]))
    1.5
    """
    positive = shares[shares > 0]
    return float(-(positive * np.log2(positive)).sum())


def conditional_entropy(groups: np.ndarray, y: np.ndarray | None = None) -> float:
    """Return H(S), or with labels y H(S|Y), in bits, of numbered groups (n, columns), added over the columns.

    >>> conditional_entropy(np.array([[0], [1], [0], [1]])), conditional_entropy(np.array([[0], [1]]), np.array([0, 1]))
    (1.0, 0.0)
    """
    labels = np.zeros(len(groups)) if y is None else np.asarray(y)
    strata = [groups[labels == label] for label in np.unique(labels)]
    shares = [(np.unique(column, return_counts=True)[1] / len(rows), len(rows)) for rows in strata for column in rows.T]
    return float(sum(share_entropy(share) * (n / len(groups)) for share, n in shares))


def safe_log(p: Tensor) -> Tensor:
    """Return ln p with p raised to the smallest normal number of its type: finite at 0."""
    return p.clamp(min=torch.finfo(p.dtype).tiny).log()


def mixture_divergence(tables: Tensor, prior: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the mixture, the pointwise divergences of the groups from it and the log-ratios, in nats.

    With x = (P_s - P)/P: P_s ln(1+x) - (P_s - P), never negative, and ln(1+x), set to 0 where P_s = 0. Taking log1p
    of a small x keeps float32 accurate for an information of 1e-8 bits, where ln P_s - ln P is not.

    Parameters
    ----------
    tables : (..., K, cells), P_s
    prior : (..., K)

    Returns
    -------
    mixture (..., 1, cells), divergence (..., K, cells), log_ratio (..., K, cells)
    """
    mixture = prior.unsqueeze(-2) @ tables
    floor = mixture.clamp(min=torch.finfo(mixture.dtype).tiny)
    excess = tables - mixture
    x, logarithm = excess / floor, torch.xlogy(tables > 0, tables / floor)  # xlogy(0, 0) = 0
    log_ratio = torch.where(x > -0.5, torch.log1p(x), logarithm)
    return mixture, tables * log_ratio - excess, log_ratio
