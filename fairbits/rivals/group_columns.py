"""Inputs and groups as columns of numbers, for networks that reconstruct the first and know the second."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from fairbits.nn.code_networks import Inputs, from_bytes
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
        steps = [math.prod(self.sizes[c + 1 :]) for c in range(len(self.sizes))]
        whole, modulus = (torch.tensor(numbers, dtype=torch.long) for numbers in (steps, self.sizes))
        # In the order of `joint_groups`, and by torch alone: a loaded network has its shapes before its numbers.
        cells = torch.arange(math.prod(self.sizes)).unsqueeze(-1) // whole % modulus
        self.register_buffer("codes", indicators(cells, self.sizes))
        self.register_buffer("shares", torch.full((len(cells),), 1 / len(cells)))

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
