"""The loop: epochs of batches for a stack, full-pass validation, the best epoch of every replica."""

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from fairbits.training.augment import augmented, numbers_needed
from fairbits.training.batches import BalancedBatches, Batch, MixedBatches, Replica, StratifiedBatches, TrainingData
from fairbits.training.stacks import Stack, StackAdam, filled, load_replica, map_tensors, tensors_in

STEPS_BETWEEN_VALIDATIONS = 10
SMALLEST_RATE = 1e-3  # of the learning rate, where it decays
VALIDATION_ROWS_AT_ONCE = 16_384  # over all replicas, to bound memory
Hopeless = Callable[[int], Collection[int]] | None
Select = Callable[[Replica, Any], float] | None


def train(
    replicas: Sequence[Replica],
    data: TrainingData,
    method: Any,
    *,
    select: Select = None,
    hopeless: Hopeless = None,
    on_epoch: Callable[[int, int], None] | None = None,
) -> None:
    """Train all replicas; each ends with the parameters of its best validation epoch and a history.

    `method` is an estimator with the settings that the replicas share, its losses and its schedule, `training`. The
    best epoch has the smallest "total" of `evaluate`, or the smallest ``select(replica, probabilities)``. `hopeless` is
    called after every epoch with its number and returns the places in `replicas` of those to stop now; `on_epoch` is
    called with (epochs done, epochs at most).
    """
    loop = _Loop(replicas, data, method, select)
    most = max(member.max_epochs for member in loop.members)
    for epoch in range(most):
        loop.epoch(epoch, hopeless)
        if on_epoch is not None:
            on_epoch(epoch + 1 if loop.members else most, most)
        if not loop.members:
            break


class _Member:
    """A replica in training: its batches, its random numbers, and its best epoch so far."""

    def __init__(self, replica: Replica, place: int, data: TrainingData, method: Any):
        self.replica, self.place, self.schedule = replica, place, method.training
        noise_size: Any = getattr(replica.net, "noise_size", 0)
        self.noise_size: int = noise_size
        self.batches = StratifiedBatches(data.strata[replica.rows].cpu(), method.batch_size)
        cells, share = data.cells[replica.rows].cpu(), self.schedule.cell_share
        self.sources: list[Any] = [MixedBatches(self.batches, cells, share) if share else self.batches]
        if method.balanced_rows:
            self.sources.append(BalancedBatches(cells, self.batches.steps, method.balanced_rows))
        self.max_epochs = max(method.max_epochs, -(-self.schedule.min_steps // self.batches.steps))
        strengths = self.schedule.affine, self.schedule.recolour
        self.augment_size = numbers_needed(*strengths, data.x.shape[-3]) if any(strengths) else 0
        self.generator = self.noise_generator = torch.Generator().manual_seed(replica.seed)
        if replica.noise_seed is not None:
            self.noise_generator = torch.Generator().manual_seed(replica.noise_seed)
        self.validation_noise = torch.rand(len(replica.validation), self.noise_size, generator=self.noise_generator)
        self.best_value, self.best_state = float("inf"), None

    def is_due(self, epoch: int) -> bool:
        """Validate now? Not every epoch where an epoch is but a few steps."""
        every = -(-STEPS_BETWEEN_VALIDATIONS // self.batches.steps)
        return (epoch + 1) % every == 0 or epoch + 1 == self.max_epochs

    def judge(self, epoch: int, trained: dict[str, float], validated: dict[str, float], state: Any) -> bool:
        """Record the epoch, remember its state if it is the best; return whether training is over."""
        replica, value = self.replica, validated.get("selection", validated["total"])
        replica.history.append({"epoch": epoch, **trained, **{f"validation_{k}": v for k, v in validated.items()}})
        if value < self.best_value and math.isfinite(validated["total"]):
            self.best_value, self.best_state, replica.best_epoch = value, state(), epoch
        enough = (epoch + 1) * self.batches.steps >= self.schedule.min_steps
        waited = epoch - replica.best_epoch >= self.schedule.patience
        return (enough and waited) or epoch + 1 == self.max_epochs

    def finish(self) -> None:
        """Put the best epoch's parameters into the network."""
        if self.best_state is None:
            raise FloatingPointError(
                "Training diverged: no epoch had a finite loss on the validation rows. Lower learning_rate, or scale X "
                "(StandardScaler, TableEncoder)."
            )
        load_replica(self.replica.net, *self.best_state)
        for p in self.replica.net.parameters():
            p.data = p.data.clone()  # no longer views of one matrix: a pickle would hold it once per tensor


class _Player(NamedTuple):
    """Someone who takes steps on every batch: the method itself, or the part of the network that plays against it."""

    loss: Callable[..., dict[str, Tensor]]
    owns: Callable[[str], bool] | None  # None: every parameter
    adam: StackAdam
    steps: int = 1


class _Loop:
    """The state of one call of `train`; the first dimension of all tensors is the replica."""

    def __init__(self, replicas: Sequence[Replica], data: TrainingData, method: Any, select: Select):
        self.members = [_Member(replica, place, data, method) for place, replica in enumerate(replicas)]
        self.data, self.method, self.select, self.device = data, method, select, data.x.device
        self.stack = Stack([replica.net for replica in replicas])
        columns = {name: [r.scalars[name] for r in replicas] for name in replicas[0].scalars}
        self.scalars = {k: torch.tensor(v, dtype=torch.float32, device=self.device) for k, v in columns.items()}
        self.players = self._players()
        self._rooms: dict[tuple[int, int], Tensor] = {}

    def _players(self) -> list[_Player]:
        """Return who takes steps on a batch, in turn; the last one is the method itself."""
        method, flat, decay = self.method, self.stack.flat, self.scalars["weight_decay"]
        adam = StackAdam(flat, self.scalars["learning_rate"], decay)
        if method.opponent is None:
            return [_Player(method.loss, None, adam)]
        own = StackAdam(flat, self.scalars["opponent_learning_rate"], torch.zeros_like(decay))
        part = f"{method.opponent}."
        opponent = _Player(method.opponent_loss, lambda name: name.startswith(part), own, method.opponent_steps)
        return [opponent, _Player(method.loss, lambda name: not name.startswith(part), adam)]

    def epoch(self, epoch: int, hopeless: Hopeless) -> None:
        """Train for an epoch, validate the replicas that are due, and let go of those that are done."""
        trained = self._train_epoch(epoch)
        due = [i for i, member in enumerate(self.members) if member.is_due(epoch)]
        validated = self._validate() if due else []
        done = {i for i in due if self.members[i].judge(epoch, trained[i], validated[i], partial(self.stack.state, i))}
        if hopeless is not None:
            given_up = hopeless(epoch)
            done |= {i for i, m in enumerate(self.members) if m.place in given_up and m.best_state is not None}
        if done:
            self._drop(done)

    def _train_epoch(self, epoch: int) -> list[dict[str, float]]:
        """Take every replica once through its rows; return the mean terms."""
        mask = self._stacked([member.batches.mask for member in self.members])
        (rows, noise, uniforms), *others = [self._draw(source) for source in range(len(self.members[0].sources))]
        batches = self._batch(rows, mask, noise, [m.replica.rows for m in self.members])._replace(uniforms=uniforms)
        active = mask.amax(-1)  # (R, steps): replicas with fewer rows may have fewer steps
        for rows, noise, uniforms in others:
            weight = (active / self.method.balanced_rows).unsqueeze(-1).expand(rows.shape)
            batches = batches._replace(extra=self._prepared(rows, weight, noise)._replace(uniforms=uniforms))
        steps, ragged = active.shape[1], not active.all()
        ramp = self._ramp(epoch, steps)
        collected: list[dict[str, Tensor]] = []
        self.stack.training(True)
        parts = (batches, ramp, self.scalars)
        alone = len(self.members) == 1
        batches, ramp, fixed = map_tensors(itemgetter(0), parts) if alone else parts
        places = 0 if alone else 1  # the dimension of the steps
        for step, (batch, now) in enumerate(zip(_steps(batches, places), ramp.unbind(places), strict=True)):
            self._decay(epoch, step)
            batch, scalars = self._inputs(batch), {**fixed, "ramp": now}
            collected.append(self._step(batch, scalars, active[:, step] if ragged else None))
        terms = {name: torch.stack([t[name] for t in collected]) for name in collected[0]}  # (steps, R)
        return _records({name: (value * active.T).sum(0) / active.sum(1) for name, value in terms.items()})

    def _draw(self, source: int) -> tuple[Tensor, Tensor, Tensor]:
        """Draw an epoch of one of the sources of batches: rows, noise and augmentation.  (R, steps, width, ...)"""
        rows = [_take(m.replica.rows, m.sources[source].epoch(m.generator)) for m in self.members]
        shapes = [part.shape for part in rows]
        one, generators = self.members[0], [m.noise_generator for m in self.members]
        noise = self._uniforms((source, 0), shapes, one.noise_size, generators)
        uniforms = self._uniforms((source, 1), shapes, one.augment_size, [m.generator for m in self.members])
        return self._stacked(rows), noise, uniforms

    def _uniforms(self, room: tuple[int, int], shapes: Sequence[Any], size: int, generators: Sequence[Any]) -> Tensor:
        """Draw (R, *shape, size) uniforms, each replica's by its own generator, zeros where its shape is smaller.

        In the memory of the epoch before: in a large stack, copying and fresh memory took a quarter of a step.
        """
        full = (len(shapes), *map(max, zip(*shapes, strict=True)), size)
        if room not in self._rooms or self._rooms[room].shape != full:
            self._rooms[room] = torch.zeros(full)
        for place, shape, generator in zip(self._rooms[room], shapes, generators, strict=True):
            torch.rand(*shape, size, generator=generator, out=place[tuple(map(slice, shape))])
        return self._rooms[room].to(self.device)

    def _stacked(self, parts: Sequence[Tensor]) -> Tensor:
        """Stack a tensor of each member, the smaller ones padded with zeros."""
        if all(part.shape == parts[0].shape for part in parts):
            return torch.stack(list(parts)).to(self.device)
        full = parts[0].new_zeros(len(parts), *map(max, zip(*(part.shape for part in parts), strict=True)))
        for place, part in zip(full, parts, strict=True):
            place[tuple(map(slice, part.shape))] = part
        return full.to(self.device)

    def _batch(self, rows: Tensor, mask: Tensor, noise: Tensor, everything: Sequence[Tensor]) -> Batch:
        """Gather all but the inputs of rows (R, ..., n); `weight` is a row's share in its batch's mean, 0 for padding.

        Shares are relative to the mean weight of all the replica's rows, not of the batch: over an epoch every row
        counts by its weight, whatever batch it falls into. With equal weights they sum to 1.
        """
        means = torch.stack([self.data.weight[own.to(self.device)].mean() for own in everything])
        means = means.view(-1, *(1 for _ in rows.shape[1:]))
        weight = _take(self.data.weight, rows) * mask / (mask.sum(-1, keepdim=True).clamp(min=1) * means)
        return self._prepared(rows, weight, noise)

    def _prepared(self, rows: Tensor, weight: Tensor, noise: Tensor) -> Batch:
        y, s = _take(self.data.y, rows), _take(self.data.s, rows)
        return Batch(rows, y, s, weight, noise, self.method.prepare(y, s, weight))

    def _inputs(self, batch: Batch) -> Batch:
        """Put the inputs, augmented in training, in the place of row numbers."""
        inputs = _take(self.data.x, batch.x)
        if len(batch.uniforms) and batch.uniforms.shape[-1]:
            schedule = self.method.training
            inputs = augmented(inputs, batch.uniforms, schedule.affine, schedule.recolour)
        return batch._replace(x=inputs, uniforms=(), extra=self._inputs(batch.extra) if batch.extra else ())

    def _step(self, batch: Batch, scalars: dict[str, Tensor], turn: Tensor | None) -> dict[str, Tensor]:
        """Let every player take its steps; return the terms of the last one."""
        for player in self.players:
            for _ in range(player.steps):
                how: dict[str, Any] = {"owned": player.owns, "stacked": len(self.members) > 1}
                terms, gradient = self.stack.differentiate(player.loss, batch, scalars, **how)
                player.adam.step(gradient, turn)
        return terms

    def _decay(self, epoch: int, step: int) -> None:
        """Lower the learning rates on their way to 0 at the last epoch's end."""
        if self.method.training.learning_rate_decay == "linear":
            done = [(epoch + step / m.batches.steps) / m.max_epochs for m in self.members]
            for player in self.players:
                player.adam.rate_factor = np.maximum(1 - np.array(done)[:, None], SMALLEST_RATE)

    def _ramp(self, epoch: int, steps: int) -> Tensor:
        """Return how far the warm-up is, 0 to 1, at every step of the epoch.  (R, steps)"""
        own_steps = torch.tensor([m.batches.steps for m in self.members], device=self.device).unsqueeze(1)
        done = epoch + torch.arange(1, steps + 1, device=self.device) / own_steps
        return (done / max(self.method.training.warmup_epochs, 1e-9)).clamp(max=1)

    @torch.no_grad()
    def _validate(self) -> list[dict[str, float]]:
        """Evaluate all validation rows of every replica in one pass."""
        self.stack.training(False)
        held = [m.replica.validation for m in self.members]
        draws = [m.replica.draws[own] for m, own in zip(self.members, held, strict=True)]
        parts = (held, draws, [m.validation_noise for m in self.members])
        rows, mask, noise = map(self._stacked, parts)
        batch = self._inputs(self._batch(rows, mask, noise, held))
        scalars = {**self.scalars, "ramp": torch.ones(len(rows), device=self.device)}
        chunk = max(1, VALIDATION_ROWS_AT_ONCE // rows.shape[1])
        terms = self.stack.map(self.method.evaluate, batch, scalars, chunk=chunk)
        probabilities = terms.pop("probabilities", None)  # (R, n, classes)
        records = _records(terms)
        if self.select is not None:
            for i, member in enumerate(self.members):
                own = None if probabilities is None else probabilities[i][: len(held[i])]
                records[i]["selection"] = self.select(member.replica, own)
        return records

    def _drop(self, done: set[int]) -> None:
        """Finish the replicas that are done, and take them out of the stack."""
        for i in done:
            self.members[i].finish()
        kept = [i for i in range(len(self.members)) if i not in done]
        self.members = [self.members[i] for i in kept]
        if kept:
            index = torch.tensor(kept, device=self.device)
            self.stack.keep(index)
            for player in self.players:
                player.adam.keep(index, self.stack.flat)
            self.scalars = {name: value[index] for name, value in self.scalars.items()}


def _steps(batches: Batch, steps: int) -> Iterator[Batch]:
    """Yield the batch of each step from tensors with this dimension for the steps."""
    for views in zip(*(tensor.unbind(steps) for tensor in tensors_in(batches)), strict=True):
        yield filled(batches, views)


def _take(table: Tensor, rows: Tensor) -> Tensor:
    """Return table[rows] by a function that copies whole rows: three times as fast."""
    return table.index_select(0, rows.reshape(-1)).view(*rows.shape, *table.shape[1:])


def _records(terms: dict[str, Tensor]) -> list[dict[str, float]]:
    """Turn a dict of (R,) tensors into R plain dicts."""
    return [dict(zip(terms, row, strict=True)) for row in torch.stack([*terms.values()], -1).tolist()]
