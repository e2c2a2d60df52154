"""Layers to test on, and the definitions written out as slowly and plainly as possible."""

import itertools
import math

import torch
from torch import Tensor

LN2 = math.log(2)


def random_layer(seed: int, n=60, m=4, n_groups=2, slope=2.0, dtype=torch.float64) -> tuple[Tensor, Tensor]:
    """theta = sigmoid(slope (x W + b)) of Gaussian rows whose group depends on x; every group has rows."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 5, generator=generator, dtype=torch.float64)
    w = torch.randn(5, m, generator=generator, dtype=torch.float64)
    b = torch.randn(m, generator=generator, dtype=torch.float64) / 2
    noisy = x[:, 0] + torch.randn(n, generator=generator, dtype=torch.float64)
    groups = noisy.argsort().argsort() * n_groups // n
    return torch.sigmoid(slope * (x @ w / 2 + b)).to(dtype), groups


def xor_layer(w: float) -> tuple[Tensor, Tensor]:
    """The linear sigmoid layer whose bits tell nothing alone: x in {-1, 1}^2, S = [x1 != x2]."""
    x = torch.tensor(list(itertools.product((-1.0, 1.0), repeat=2)), dtype=torch.float64)
    return torch.sigmoid(w * x), (x[:, 0] != x[:, 1]).long()


def all_words(m: int) -> Tensor:
    return torch.tensor(list(itertools.product((0.0, 1.0), repeat=m)), dtype=torch.float64)


def row_words(theta: Tensor) -> Tensor:
    """p(t|x) of every row and word: (n, 2^m)."""
    return torch.stack([(theta * t + (1 - theta) * (1 - t)).prod(-1) for t in all_words(theta.shape[-1])], -1)


def slow_tables(theta: Tensor, groups: Tensor, weights=None, n_groups=None) -> tuple[Tensor, Tensor]:
    weights = torch.ones(len(theta), dtype=theta.dtype) if weights is None else weights
    words = row_words(theta)
    masses = [weights[groups == s] for s in range(n_groups or int(groups.max()) + 1)]
    tables = [(w[:, None] * words[groups == s]).sum(0) / w.sum() for s, w in enumerate(masses)]
    prior = torch.stack([w.sum() for w in masses])
    return torch.stack(tables), prior / prior.sum()


def slow_information(tables: Tensor, prior: Tensor) -> Tensor:
    mixture = prior @ tables
    return (prior[:, None] * torch.special.xlogy(tables, tables / mixture)).sum() / LN2


def entropy(p: Tensor) -> Tensor:
    return torch.special.entr(p).sum() / LN2
