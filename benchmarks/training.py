"""Speed of training: a stack against one at a time, one fit against a plain torch loop, every method's epoch."""

import warnings
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from time import process_time

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import fairbits
from benchmarks.ratios import Line, Size, in_turns, line, seconds
from fairbits.datasets import biased_digits, load_adult, load_compas
from fairbits.encoding import GroupEncoder, TableEncoder
from fairbits.estimators import BinaryBernoulliClassifier, fit_stack
from fairbits.information import neuronwise_penalty, weigh_groups
from fairbits.nn import CodeNet
from fairbits.training import Replica, Schedule, TrainingData, train

BATCH = 175  # of COMPAS
METHODS = (
    "BinaryBernoulliClassifier",
    "BinaryMIClassifier",
    "AdversarialClassifier",
    "HSICClassifier",
    "ParityClassifier",
    "VFAEClassifier",
    "VIBClassifier",
    "LFRClassifier",
    "RUBiClassifier",
    "LearnedMixinClassifier",
    "ReBiasClassifier",
    "EnDClassifier",
)
NOT_FOR_IMAGES = ("VFAEClassifier", "VIBClassifier", "LFRClassifier")  # they model every pixel


def encoded(dataset, rows: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the first rows of a dataset as tensors x, y, s."""
    x = TableEncoder().fit_transform(dataset.X)
    s = GroupEncoder().fit(dataset.s).transform(dataset.s)
    return torch.from_numpy(np.asarray(x))[:rows], torch.tensor(dataset.y.to_numpy())[:rows], torch.from_numpy(s)[:rows]


def eager_epoch(net: nn.Module, loss, data, batch_size: int, **adam) -> None:
    """Train for an epoch by a plain loop: shuffle, slice, loss, backward, Adam."""
    optimiser = torch.optim.Adam(net.parameters(), 1e-3, **adam)
    for rows in torch.randperm(len(data[0])).split(batch_size):
        optimiser.zero_grad()
        loss(net, *(part[rows] for part in data)).backward()
        optimiser.step()


def penalised(net: CodeNet, x, y, s) -> torch.Tensor:
    """Return BinaryBernoulli's loss, written for one network."""
    out = net(x, torch.rand(len(x), net.noise_size))
    leak = neuronwise_penalty(out.theta, weigh_groups(s[:, 0], n_groups=2))
    return 0.1 * leak + 0.9 * cross_entropy(out.logits, y) / np.log(2)


def epoch_ratios(estimators, data, batch_size: int, epochs: int, other: Callable[[], None]) -> np.ndarray:
    """Train estimators as one stack, hardly validated; return the other's seconds over those of each epoch."""
    x, y, s = data
    first, ratios, start = estimators[0], [], 0.0
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
    first.batch_size, first.max_epochs, first.schedule = batch_size, epochs, Schedule(min_steps=0)

    def alternate(*_) -> None:
        nonlocal start
        ours = process_time() - start
        ratios.append(seconds(other) / ours)
        start = process_time()

    train(replicas, table, first, on_epoch=alternate)
    return np.array(ratios[1:])  # the first warms up


def stacked(models: int, size: Size) -> list[Line]:
    """Compare a stack with the same loss one at a time, and with what it cannot do without (COMPAS, 3 layers of 20)."""
    data = encoded(load_compas(), size.rows)
    net = CodeNet(data[0].shape[1], (20, 20), 20, 2)
    others = {
        "one at a time, plain torch loop": (partial(eager_epoch, net, penalised, data, BATCH), models),
        "its matrix products and random numbers": (partial(bare_epoch, data[0], models), 1),
    }
    lines = []
    for against, (other, times) in others.items():
        stack = [BinaryBernoulliClassifier(hidden_sizes=(20, 20), code_size=20) for _ in range(models)]
        found = epoch_ratios(stack, data, BATCH, size.epochs, other)
        target = {"at_least": 10.0} if models == 64 and times > 1 else {}
        lines.append(line(f"one of {models} in a stack, 20-20-20 bits, COMPAS : {against}", times * found, **target))
    return lines


def bare_epoch(x: torch.Tensor, models: int) -> None:
    """Take an epoch's matrix products, forward and backward, and draw its noise; nothing else."""
    sizes = list(pairwise((x.shape[1], 20, 20, 20, 2)))
    layers = [(torch.ones(models, BATCH, a), torch.ones(models, a, b), torch.ones(models, BATCH, b)) for a, b in sizes]
    for _ in range(-(-len(x) // BATCH)):
        torch.rand(models, BATCH, 20)
        for number, (rows, weight, above) in enumerate(layers):
            rows @ weight, rows.mT @ above, above @ weight.mT if number else None


def alone(size: Size, **adam) -> Line:
    """Compare BinaryBernoulli's training steps with those of a plain network without penalty."""
    data = encoded(load_adult(), size.rows)
    mlp = nn.Sequential(nn.Linear(data[0].shape[1], 64), nn.ReLU(), nn.Linear(64, 8), nn.Sigmoid(), nn.Linear(8, 2))
    plain = partial(eager_epoch, mlp, lambda net, x, y, s: cross_entropy(net(x), y), data, 256, **adam)
    found = epoch_ratios([BinaryBernoulliClassifier()], data, 256, size.epochs, plain)
    name = f"steps of one BinaryBernoulli, Adult, batch 256 : plain torch loop, no penalty{', fused Adam' * bool(adam)}"
    # 1.3 times the time
    return line(name, found, **({} if adam else {"at_least": 0.769}))


def methods(kind: str, data, names, size: Size) -> list[Line]:
    """Compare a short fit of every method with that of the plain network."""

    def fit(name: str) -> None:
        schedule = Schedule(min_steps=0, patience=size.epochs)
        model = getattr(fairbits, name)(max_epochs=size.epochs // 2, schedule=schedule, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit_stack([model], *data[:2], sensitive_features=data[2])

    took = in_turns({name: partial(fit, name) for name in ("VanillaClassifier", *names)}, size.repeats // 2 + 1)
    about = f"{size.epochs // 2} epochs, {kind} : plain network in the same loop"
    return [line(f"{name}, {about}", took["VanillaClassifier"] / took[name]) for name in names]


def run(size: Size) -> list[Line]:
    """Return the ratios with their targets."""
    adult, digits = encoded(load_adult(), size.rows), biased_digits(0.9, "train")
    tables = {"Adult": [part.numpy() for part in adult], "digits": [digits.X, digits.y, digits.s]}
    by_method = [
        methods(kind, [part[: size.rows] for part in data], names, size)
        for (kind, data), names in zip(
            tables.items(), (METHODS, [m for m in METHODS if m not in NOT_FOR_IMAGES]), strict=True
        )
    ]
    return [*stacked(16, size), *stacked(64, size), alone(size), alone(size, fused=True), *by_method[0], *by_method[1]]
