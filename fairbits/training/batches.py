"""What a training is given: rows and the batches made of them, how long, which models."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from fairbits.settings import check_settings, setting


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """How an estimator trains; the defaults serve most tables.

    Parameters
    ----------
    min_steps : optimiser steps to take at least, in more than `max_epochs` epochs where the table is small
    patience : epochs without a better validation value before training stops
    warmup_epochs : over which the penalty rises to its weight
    learning_rate_decay : "linear" lowers the learning rate to 0 over `max_epochs`
    validation_fraction : share of the rows held out to choose the epoch; where that is under 10 rows, the training
        rows are used instead
    selection : "objective" keeps the epoch with the smallest loss on the validation rows, "paper" the one with the
        largest AUC + (1 - GPA) + (1 - AUDC), "last" the last one, for data whose validation rows would mislead
    cell_share : share of every batch that is drawn evenly from the (label, group) cells, however rare they are; the
        cross-entropy counts these rows too, and what a method learns from counts is that of the mixture
    affine, recolour : strengths of random changes of the images of every batch, see `fairbits.training.augment`: turns,
        scales, shears and shifts; and gains and offsets of the channels, which assume that colour says nothing
    """

    min_steps: int = setting(500, at_least=0, whole=True)
    patience: int = setting(20, at_least=1, whole=True)
    warmup_epochs: int = setting(5, at_least=0, whole=True)
    learning_rate_decay: str = setting("none", one_of=("none", "linear"))
    validation_fraction: float = setting(0.1, at_least=0, at_most=0.9)
    selection: str = setting("objective", one_of=("objective", "paper", "last"))
    cell_share: float = setting(0.0, at_least=0, at_most=1)
    affine: float = setting(0.0, at_least=0)
    recolour: float = setting(0.0, at_least=0)

    __post_init__ = check_settings  # type: ignore[misc]


@dataclass(kw_only=True)
class Replica:
    """One model of a stack: what differs from its neighbours, and afterwards what became of it."""

    net: nn.Module
    rows: Tensor  # training rows
    validation: Tensor  # validation rows
    seed: int
    draws: Tensor  # (all rows,) how often training draws a row on average, relative to a pass over its rows
    scalars: dict[str, float]  # must hold learning_rate and weight_decay; the loss sees all of them
    noise_seed: int | None = None  # of the network's draws, where other draws must not move the batches
    history: list[dict[str, float]] = field(default_factory=list)
    best_epoch: int = -1


class Batch(NamedTuple):
    """What a loss sees of one replica."""

    x: Tensor  # (n, ...) inputs
    y: Tensor  # (n,) class index
    s: Tensor  # (n, columns) group index of each sensitive column
    weight: Tensor  # (n,) each row's share in the batch's mean, 0 for padding
    noise: Tensor  # (n, noise_size) uniforms for the network's draws
    prepared: Any = ()  # tensors in nested tuples: what the method computed of y, s and weight beforehand
    uniforms: Any = ()  # (n, numbers) what augments the images, until that has happened
    extra: Any = ()  # a second batch, drawn evenly from the (label, group) cells, for a method that asks for it


class TrainingData(NamedTuple):
    """All rows of a fit, on the device; replicas own index lists into them."""

    x: Tensor
    y: Tensor
    s: Tensor
    weight: Tensor
    strata: Tensor  # (n,) batches hold each stratum's share of the rows
    cells: Tensor  # (n,) number of each row's (label, groups): extra batches are drawn evenly from these


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
            order.index_copy_(0, slots, rows.index_select(0, torch.randperm(len(rows), generator=generator)))
        return order.view(self.steps, self.width)


class BalancedBatches:
    """Rows drawn with replacement, evenly from the cells however rare they are.

    >>> batches = BalancedBatches(torch.tensor([0] * 99 + [1]), 1, 1000)
    >>> rows = batches.epoch(torch.Generator().manual_seed(0))
    >>> bool((rows == 99).float().mean() > 0.45)
    True
    """

    def __init__(self, cells: Tensor, steps: int, width: int):
        self._shape = (steps, width)
        self._rows = cells.argsort(stable=True)
        self._counts = cells.unique(return_counts=True)[1]
        self._first = self._counts.cumsum(0) - self._counts

    def epoch(self, generator: torch.Generator) -> Tensor:
        """Return the rows of one epoch's batches.  (steps, width)"""
        cell = torch.randint(len(self._counts), self._shape, generator=generator)
        place = (torch.rand(self._shape, generator=generator) * self._counts[cell]).long()
        return self._rows[self._first[cell] + place.minimum(self._counts[cell] - 1)]


class MixedBatches:
    """Batches in which a share of the places, chosen at random, goes to rows drawn evenly from the cells."""

    def __init__(self, batches: StratifiedBatches, cells: Tensor, share: float):
        self._batches, self._share = batches, share
        self._even = BalancedBatches(cells, batches.steps, batches.width)

    def epoch(self, generator: torch.Generator) -> Tensor:
        """Return the rows of one epoch's batches.  (steps, width)"""
        rows, even = self._batches.epoch(generator), self._even.epoch(generator)
        return torch.where(torch.rand(rows.shape, generator=generator) < self._share, even, rows)


def expected_draws(cells: Tensor, rows: Tensor, share: float) -> Tensor:
    """Return how often `MixedBatches` of these rows draw a row of each cell in an epoch, on average.  (all rows,)

    1 - share + share n / (k n_c), for n rows in k cells, n_c of them in the row's own.

    >>> expected_draws(torch.tensor([0, 0, 0, 1]), torch.arange(4), 0.5)
    tensor([0.8333, 0.8333, 0.8333, 1.5000])
    """
    counts = cells[rows].bincount(minlength=int(cells.max()) + 1)
    return 1 - share + share * len(rows) / ((counts > 0).sum() * counts.clamp(min=1))[cells]
