"""Rows into batches: stratified by group, the same for a replica alone and in a stack."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor


class Batch(NamedTuple):
    """What a loss sees of one replica."""

    x: Tensor  # (n, ...) inputs
    y: Tensor  # (n,) class index
    s: Tensor  # (n, columns) group index of each sensitive column
    weight: Tensor  # (n,) each row's share in the batch's mean, 0 for padding
    noise: Tensor  # (n, noise_size) uniforms for the network's draws
    prepared: Any = ()  # tensors in nested tuples: what the method computed of y, s and weight beforehand
    extra: Any = ()  # a second batch, drawn evenly from the (label, group) cells, for a method that asks for it


class TrainingData(NamedTuple):
    """All rows of a fit, on the device; replicas own index lists into them."""

    x: Tensor
    y: Tensor
    s: Tensor
    weight: Tensor
    strata: Tensor  # (n,) batches hold each stratum's share of the rows
    cells: Tensor  # (n,) number of each row's (label, groups): extra batches are drawn evenly from these

    def inputs(self, rows: Tensor) -> Tensor:
        """Return x of rows (..., n)."""
        # index_select copies whole rows: three times as fast as x[rows]
        return self.x.index_select(0, rows.reshape(-1)).view(*rows.shape, *self.x.shape[1:])

    def batch_weight(self, rows: Tensor, mask: Tensor, mean: Tensor) -> Tensor:
        """Return each row's share in its batch's mean, (..., n); padding (`mask` 0) has none.

        Shares are relative to the mean weight of all the replica's rows, not of the batch: over an epoch every row
        counts by its weight, whatever batch it falls into. With equal weights they sum to 1.
        """
        return self.weight[rows] * mask / (mask.sum(-1, keepdim=True).clamp(min=1) * mean)


def joint_groups(s: Tensor, sizes: Sequence[int]) -> Tensor:
    """Return a number for each combination of the groups (..., columns) of all sensitive columns."""
    number = s.new_zeros(s.shape[:-1])
    for column, size in enumerate(sizes):
        number = number * size + s[..., column]
    return number


class StratifiedBatches:
    """Batches in which every stratum has its share, as even as the counts allow.

    The pattern of strata over the epoch is fixed by interleaving; each epoch only the rows within a stratum are
    permuted. Batches differ by at most one row; the shorter ones are padded with row 0 and mask 0.

    >>> batches = StratifiedBatches(torch.tensor([0, 1, 0, 0, 1, 0]), 3)
    >>> batches.mask
    tensor([[1., 1., 1.],
            [1., 1., 1.]])
    """

    def __init__(self, strata: Tensor, batch_size: int):
        n = len(strata)
        self.steps = -(-n // batch_size)
        self.width = -(-n // self.steps)
        members = [(strata == k).nonzero().squeeze(-1) for k in strata.unique()]
        turn = torch.cat([(torch.arange(len(rows)) + 0.5) / len(rows) for rows in members])
        place = torch.empty(n, dtype=torch.long)
        place[turn.argsort(stable=True)] = torch.arange(n)  # position in the epoch of each (stratum, turn)
        step = place * self.steps // n
        first = (torch.arange(self.steps) * n + self.steps - 1) // self.steps  # first position of each step
        self._slots = (step * self.width + place - first[step]).split([len(rows) for rows in members])
        self._members = members
        self.mask = torch.zeros(self.steps * self.width)
        self.mask[torch.cat(self._slots)] = 1
        self.mask = self.mask.view(self.steps, self.width)

    def epoch(self, generator: torch.Generator) -> Tensor:
        """Return the rows of one epoch's batches.  (steps, width)"""
        order = torch.zeros(self.steps * self.width, dtype=torch.long)
        for slots, rows in zip(self._slots, self._members, strict=True):
            order[slots] = rows[torch.randperm(len(rows), generator=generator)]
        return order.view(self.steps, self.width)


class BalancedBatches:
    """Rows drawn with replacement, evenly from the cells however rare they are.

    >>> batches = BalancedBatches(torch.tensor([0] * 99 + [1]), 1000)
    >>> rows = batches.epoch(1, torch.Generator().manual_seed(0))
    >>> bool((rows == 99).float().mean() > 0.45)
    True
    """

    def __init__(self, cells: Tensor, batch_size: int):
        self._rows = cells.argsort(stable=True)
        self._counts = cells.unique(return_counts=True)[1]
        self._first = self._counts.cumsum(0) - self._counts
        self.batch_size = batch_size

    def epoch(self, steps: int, generator: torch.Generator) -> Tensor:
        """Return the rows of so many batches.  (steps, batch_size)"""
        shape = (steps, self.batch_size)
        cell = torch.randint(len(self._counts), shape, generator=generator)
        place = (torch.rand(shape, generator=generator) * self._counts[cell]).long()
        return self._rows[self._first[cell] + place.minimum(self._counts[cell] - 1)]


def split_rows(strata: Tensor, fraction: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Split rows into (training, held-out), the held-out ones a systematic sample over the shuffled strata.

    >>> train, held = split_rows(torch.arange(100) % 2, 0.1, torch.Generator().manual_seed(0))
    >>> len(train), len(held), int((held % 2).sum())
    (90, 10, 5)
    """
    n = len(strata)
    n_held = round(fraction * n)
    shuffled = torch.randperm(n, generator=generator)
    by_stratum = shuffled[strata[shuffled].argsort(stable=True)]
    start = torch.rand(1, generator=generator)
    picked = torch.zeros(n, dtype=torch.bool)
    if n_held:
        spots = ((torch.arange(n_held) + start) * (n / n_held)).long()
        picked[spots.clamp(max=n - 1)] = True  # float32 may round the last one up
    held = by_stratum[picked]
    return by_stratum[~picked], held[torch.randperm(len(held), generator=generator)]
