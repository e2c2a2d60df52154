"""What a linear probe knows of the groups, in closed form."""

import math

import torch
from torch import Tensor

from fairbits.information import WeighedGroups

RIDGE = 1e-3  # relative to the variance of a unit


def linear_information(x: Tensor, groups: WeighedGroups) -> Tensor:
    """Return what a linear probe of rows x (n, d) knows of their groups, in bits; each row is guessed from the others.

    With phi^2 = chi^2 / n the share of the groups' indicators that it explains, -(K - 1)/2 log2(1 - phi^2 / (K - 1)),
    which is exact for two normal variables and for weak dependence, and at most the groups' entropy.

    >>> from fairbits.information import weigh_groups
    >>> groups = weigh_groups(torch.arange(100) % 2, n_groups=2)
    >>> linear_information((torch.arange(100) % 2).unsqueeze(-1) + torch.zeros(100, 1), groups)
    tensor(1.)
    """
    weight, directions = _row_shares(groups), max(groups.prior.shape[-1] - 1, 1)
    indicators = (groups.row_weights > 0).to(x.dtype).mT - groups.prior  # (n, K)
    left = _left_out_residuals(_standardised(x, weight), indicators, weight)
    explained = (weight.unsqueeze(-1) * (indicators.square() - left.square())).sum(-2) / groups.prior.clamp(min=1e-6)
    phi = explained.sum(-1).clamp(min=0) / directions
    bits = torch.log2((1 - phi).clamp(min=1e-6)) * (directions / -2)
    return torch.minimum(bits, torch.special.entr(groups.prior).sum(-1) / math.log(2))


def _left_out_residuals(z: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    """Return what a ridge regression of centred targets (n, K) on z (n, d) misses of a row, fitted to the rest."""
    weighted = weight.unsqueeze(-1) * z
    inverse = torch.linalg.inv(z.mT @ weighted + RIDGE * torch.eye(z.shape[-1], dtype=z.dtype, device=z.device))
    missed = target - z @ (inverse @ (weighted.mT @ target))
    leverage = weight + ((z @ inverse) * weighted).sum(-1)
    return missed / (1 - leverage).clamp(min=1e-3).unsqueeze(-1)


def _standardised(x: Tensor, weight: Tensor) -> Tensor:
    """Return x (n, d) with mean 0 and variance 1 of every column; constant ones stay 0."""
    x = x - weight @ x
    variance = weight @ x.square()
    return x / (variance + 1e-6 * variance.mean() + 1e-12).sqrt()


def _row_shares(groups: WeighedGroups) -> Tensor:
    """Return each row's share of the weight of all.  (n,)"""
    return groups.prior @ groups.row_weights
