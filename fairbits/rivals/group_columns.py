"""Inputs and groups as columns of numbers, for networks that reconstruct the first and know the second."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from fairbits.nn.layers import Inputs, from_bytes
from fairbits.training import joint_groups


def n_columns(inputs: Inputs) -> int:
    """Return how many numbers an input holds: features of a row, values of an image."""
    return inputs if isinstance(inputs, int) else torch.Size(inputs).numel()


def flat_columns(x: Tensor) -> Tensor:
    """Return rows as they are and images as rows of values; bytes become numbers from -1 to 1.  (n, d)"""
    return from_bytes(x).flatten(1)


def indicators(s: Tensor, sizes: Sequence[int]) -> Tensor:
    """Return group numbers (n, columns) one-hot, side by side; `sizes` are the numbers of groups.  (n, sum of sizes)

    >>> indicators(torch.tensor([[0, 2], [1, 0]]), (2, 3))
    tensor([[1., 0., 0., 0., 1.],
            [0., 1., 1., 0., 0.]])
    """
    parts = [s[:, c : c + 1] == torch.arange(k, device=s.device) for c, k in enumerate(sizes)]
    return torch.cat([torch.zeros(len(s), 0, device=s.device), *parts], -1)


def _combinations(number: Tensor, sizes: Sequence[int]) -> Tensor:
    """Return the groups behind numbers (n,), the inverse of `joint_groups`.  (n, columns)"""
    columns = []
    for size in reversed(sizes):
        columns.append(number % size)
        number = number // size
    return torch.stack(columns[::-1], -1) if columns else number.new_zeros(len(number), 0)


class GroupCells(nn.Module):
    """The combinations of the groups of all sensitive columns, and the share of each among the training rows.

    A network that takes S is f(x) = sum over s of p(s) f(x, s) where S is not known. Without columns there is one
    combination, of no groups.

    >>> cells = GroupCells((2,))
    >>> cells.count(torch.tensor([[0], [1], [1], [1]]), torch.ones(4))
    >>> cells.mean(lambda code: code, 1)
    tensor([[0.2500, 0.7500]])
    """

    codes: Tensor
    shares: Tensor

    def __init__(self, sizes: Sequence[int]):
        super().__init__()
        self.sizes = tuple(sizes)
        count = math.prod(self.sizes)
        self.register_buffer("codes", indicators(_combinations(torch.arange(count), self.sizes), self.sizes))
        self.register_buffer("shares", torch.full((count,), 1 / count))

    def count(self, s: Tensor, weight: Tensor) -> None:
        """Set the shares to those among rows of groups s (n, columns) and weights (n,)."""
        place = joint_groups(s, self.sizes)
        self.shares.copy_(torch.bincount(place, weight, minlength=len(self.shares)) / weight.sum())

    def forward(self, s: Tensor) -> Tensor:
        return indicators(s, self.sizes)

    def draw(self, uniforms: Tensor) -> Tensor:
        """Return the code of a cell drawn by its share for each of n uniforms.  (n, groups)"""
        steps = self.shares.cumsum(0)[:-1].contiguous()
        return self.codes[torch.searchsorted(steps, uniforms.contiguous(), right=True)]

    def mean(self, function: Callable[[Tensor], Tensor], n: int) -> Tensor:
        """Return the sum over cells of share * function(code), with each code repeated for n rows."""
        values = [share * function(code.expand(n, -1)) for code, share in zip(self.codes, self.shares, strict=True)]
        return torch.stack(values).sum(0)
