"""Normal distributions given by networks: drawing, density and divergence, in bits."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from fairbits.nn.extractors import dense_layers

LOG_VARIANCES = (-6.0, 4.0)  # limits, for every normal a network gives: exponentials and their gradients stay tame


class Normal(NamedTuple):
    """Independent normal distributions, one for each entry."""

    mean: Tensor
    log_variance: Tensor

    def draw(self, uniforms: Tensor) -> Tensor:
        """Return one draw, by uniforms of the same shape."""
        return self.mean + torch.exp(self.log_variance / 2) * normal_quantiles(uniforms)

    def bits(self, x: Tensor) -> Tensor:
        """Return -log2 of the density of rows x, summed over columns.  (n, d) -> (n,)"""
        square = (x - self.mean).square() * torch.exp(-self.log_variance)
        return (square + self.log_variance + math.log(2 * math.pi)).sum(-1) / (2 * math.log(2))


def normal_quantiles(uniforms: Tensor) -> Tensor:
    """Turn uniforms in [0, 1) into standard normals.

    >>> normal_quantiles(torch.tensor([0.5, 0.975])).round(decimals=2)
    tensor([0.0000, 1.9600])
    """
    return math.sqrt(2) * torch.erfinv((2 * uniforms - 1).clamp(-1 + 1e-6, 1 - 1e-6))


def divergence(q: Normal, p: Normal | None = None) -> Tensor:
    """Return KL(q || p) of every row in bits, summed over columns; p is N(0, 1) unless given.  (n,)

    >>> divergence(Normal(torch.ones(1, 2), torch.zeros(1, 2))) * math.log(2)
    tensor([1.])
    """
    mean, log_variance = (0, torch.zeros_like(q.log_variance)) if p is None else p
    log_ratio = q.log_variance - log_variance
    square = (q.mean - mean).square() * torch.exp(-log_variance)
    return (log_ratio.exp() - 1 - log_ratio + square).sum(-1) / (2 * math.log(2))


class NormalLayers(nn.Module):
    """Dense layers that give a normal: its mean, and its log-variance within limits."""

    def __init__(self, sizes: Sequence[int], n_outputs: int):
        super().__init__()
        self.hidden = dense_layers(sizes)
        self.mean = nn.Linear(sizes[-1], n_outputs)
        self.log_variance = nn.Linear(sizes[-1], n_outputs)

    def forward(self, *parts: Tensor) -> Normal:
        hidden = self.hidden(torch.cat(parts, -1))
        return Normal(self.mean(hidden), self.log_variance(hidden).clamp(*LOG_VARIANCES))


class ColumnDecoder(nn.Module):
    """Dense layers that give a normal of variance 1 for each column of x, which should be of the order of 1.

    Learnt variances fit better and serve worse: they make the rarest category of a table as dear as its columns of
    numbers, and the representation spends itself on them.
    """

    def __init__(self, sizes: Sequence[int], n_columns: int):
        super().__init__()
        self.hidden = dense_layers(sizes)
        self.mean = nn.Linear(sizes[-1], n_columns)

    def forward(self, *parts: Tensor) -> Normal:
        mean = self.mean(self.hidden(torch.cat(parts, -1)))
        return Normal(mean, torch.zeros_like(mean))
