"""Speed of training as ratios: a stack against one-at-a-time, one protected fit against a plain torch loop."""

import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from benchmarks.outcomes import seconds, show
from fairbits.datasets import load_adult, load_compas
from fairbits.encoding import GroupEncoder, TableEncoder
from fairbits.estimators import BinaryBernoulliClassifier
from fairbits.information import neuronwise_penalty, weigh_groups
from fairbits.nn import CodeNet
from fairbits.training import Replica, Schedule, TrainingData, train

EPOCHS = 6


def encoded(dataset) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return a dataset as tensors x, y, s."""
    x = TableEncoder().fit_transform(dataset.X)
    s = GroupEncoder().fit(dataset.s).transform(dataset.s)
    return torch.from_numpy(np.asarray(x)), torch.tensor(dataset.y.to_numpy()), torch.from_numpy(s)


def eager_epochs(net: nn.Module, loss, data, batch_size: int, epochs: int, **adam) -> None:
    """Train with a plain loop: shuffle, slice, loss, backward, Adam."""
    optimiser = torch.optim.Adam(net.parameters(), 1e-3, **adam)
    for _ in range(epochs):
        for rows in torch.randperm(len(data[0])).split(batch_size):
            optimiser.zero_grad()
            loss(net, *(part[rows] for part in data)).backward()
            optimiser.step()


def penalised(net: CodeNet, x, y, s) -> torch.Tensor:
    """Return BinaryBernoulli's loss, written for one network."""
    out = net(x, torch.rand(len(x), net.noise_size))
    leak = neuronwise_penalty(out.theta, weigh_groups(s[:, 0], n_groups=2))
    return 0.1 * leak + 0.9 * cross_entropy(out.logits, y) / np.log(2)


def epoch_pairs(estimators, data, batch_size: int, other: Callable[[], None]) -> list[tuple[float, float]]:
    """Train estimators as one stack, with hardly any validation; return the seconds of each epoch and of the other."""
    x, y, s = data
    first, pairs, start = estimators[0], [], 0.0
    first.groups_, first.classes_ = [["a", "b"]], np.array([0, 1])
    rows = torch.arange(len(x))
    replicas = [
        Replica(
            net=first.build(x.shape[1], 2),
            rows=rows,
            validation=rows[:10],
            seed=i,
            draws=torch.ones(len(x)),
            scalars={name: float(getattr(e, name)) for name in e.stacked_settings},
        )
        for i, e in enumerate(estimators)
    ]
    table = TrainingData(x, y, s, torch.ones(len(x)), s[:, 0], s[:, 0])
    first.batch_size, first.max_epochs, first.schedule = batch_size, EPOCHS, Schedule(min_steps=0)

    def alternate(*_) -> None:
        nonlocal start
        pairs.append((time.perf_counter() - start, seconds(other)))
        start = time.perf_counter()

    train(replicas, table, first, on_epoch=alternate)
    return pairs[1:]


def stack_ratio(size: int) -> float:
    """Models per second of a stack over those of the eager loop (COMPAS, batch 175, 3 layers of 20)."""
    data = encoded(load_compas())
    net = CodeNet(data[0].shape[1], (20, 20), 20, 2)
    stack = [BinaryBernoulliClassifier(hidden_sizes=(20, 20), code_size=20) for _ in range(size)]
    pairs = epoch_pairs(stack, data, 175, lambda: eager_epochs(net, penalised, data, 175, 1))
    return statistics.median(size * one / stacked for stacked, one in pairs)


def fit_ratio(**adam) -> float:
    """Seconds of BinaryBernoulli's training steps over those of a plain MLP without penalty (Adult, batch 256)."""
    data = encoded(load_adult())
    mlp = nn.Sequential(nn.Linear(data[0].shape[1], 64), nn.ReLU(), nn.Linear(64, 8), nn.Sigmoid(), nn.Linear(8, 2))

    def plain() -> None:
        eager_epochs(mlp, lambda net, x, y, s: cross_entropy(net(x), y), data, 256, 1, **adam)

    pairs = epoch_pairs([BinaryBernoulliClassifier()], data, 256, plain)
    return statistics.median(ours / theirs for ours, theirs in pairs)


def run() -> list[dict]:
    """Return the ratios with their limits."""
    torch.set_num_threads(1)
    return [
        {"name": "models/s, stack of 16 : one at a time", "value": stack_ratio(16), "at_least": 5.0},
        {"name": "models/s, stack of 64 : one at a time", "value": stack_ratio(64), "at_least": 9.0},
        {"name": "step of one fit : plain torch loop", "value": fit_ratio(), "at_most": 1.3},
        {"name": "step of one fit : plain loop, fused Adam", "value": fit_ratio(fused=True)},
    ]


if __name__ == "__main__":
    show(run())
