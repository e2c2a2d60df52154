"""The loop: epochs of batches for a stack, full-pass validation, the best epoch of every replica."""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from fairbits.training.batches import BalancedBatches, Batch, StratifiedBatches, TrainingData
from fairbits.training.plan import Loss, Opponent, Replica, TrainingPlan
from fairbits.training.stacks import Stack, StackAdam, load_replica, map_tensors

STEPS_BETWEEN_VALIDATIONS = 10
SMALLEST_RATE = 1e-3  # of the learning rate, where it decays
VALIDATION_ROWS_AT_ONCE = 65_536  # over all replicas, to bound memory


def train(
    replicas: Sequence[Replica],
    data: TrainingData,
    plan: TrainingPlan,
    *,
    hopeless: Callable[[int], Collection[int]] | None = None,
    on_epoch: Callable[[int, int], None] | None = None,
) -> None:
    """Train all replicas; each ends with the parameters of its best validation epoch and a history.

    Parameters
    ----------
    hopeless : called after every epoch with its number; returns the places in `replicas` of those to stop now
    on_epoch : called with (epochs done, epochs at most)
    """
    loop = _Loop(replicas, data, plan)
    most = max(member.max_epochs for member in loop.members)
    for epoch in range(most):
        loop.epoch(epoch, hopeless)
        if on_epoch is not None:
            on_epoch(epoch + 1 if loop.members else most, most)
        if not loop.members:
            break


class _Member:
    """A replica in training: its batches, its random numbers, and its best epoch so far."""

    def __init__(self, replica: Replica, place: int, data: TrainingData, plan: TrainingPlan):
        self.replica, self.place, self.plan = replica, place, plan
        self.noise_size: Any = replica.net.noise_size
        self.batches = StratifiedBatches(data.strata[replica.rows].cpu(), plan.batch_size)
        self.balanced = BalancedBatches(data.cells[replica.rows].cpu(), plan.balanced_rows)
        self.max_epochs = max(plan.max_epochs, -(-plan.schedule.min_steps // self.batches.steps))
        self.generator = torch.Generator().manual_seed(replica.seed)
        self.validation_noise = self._noise(len(replica.validation))
        self.best_value, self.best_state = float("inf"), None

    def _noise(self, *shape: int) -> Tensor:
        return torch.rand(*shape, self.noise_size, generator=self.generator)

    def draw(self, steps: int, width: int) -> tuple[Tensor, ...]:
        """Draw an epoch, padded to (steps, width): rows, their mask, their noise, and the extra rows and noise."""
        own, rows = self.batches, torch.zeros(steps, width, dtype=torch.long)
        rows[: own.steps, : own.width] = self.replica.rows[own.epoch(self.generator)]
        mask, noise = torch.zeros(steps, width), torch.zeros(steps, width, self.noise_size)
        mask[: own.steps, : own.width] = own.mask
        noise[: own.steps, : own.width] = self._noise(own.steps, own.width)
        if not self.plan.balanced_rows:
            return rows, mask, noise
        shape = (steps, self.plan.balanced_rows)
        extra, extra_noise = torch.zeros(shape, dtype=torch.long), torch.zeros(*shape, self.noise_size)
        extra[: own.steps] = self.replica.rows[self.balanced.epoch(own.steps, self.generator)]
        extra_noise[: own.steps] = self._noise(own.steps, self.plan.balanced_rows)
        return rows, mask, noise, extra, extra_noise

    def is_due(self, epoch: int) -> bool:
        """Validate now? Not every epoch where an epoch is but a few steps."""
        every = -(-STEPS_BETWEEN_VALIDATIONS // self.batches.steps)
        return (epoch + 1) % every == 0 or epoch + 1 == self.max_epochs

    def judge(self, epoch: int, trained: dict[str, float], validated: dict[str, float], state: Any) -> bool:
        """Record the epoch, remember its state if it is the best; return whether training is over."""
        replica, value = self.replica, validated.get("selection", validated["total"])
        replica.history.append({"epoch": epoch, **trained, **{f"validation_{k}": v for k, v in validated.items()}})
        if value < self.best_value:
            self.best_value, self.best_state, replica.best_epoch = value, state(), epoch
        enough = (epoch + 1) * self.batches.steps >= self.plan.schedule.min_steps
        waited = epoch - replica.best_epoch >= self.plan.schedule.patience
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
    """Someone who takes steps on every batch: the method itself, or its opponent."""

    loss: Loss
    owns: Callable[[str], bool] | None  # None: every parameter
    adam: StackAdam
    steps: int


class _Loop:
    """The state of one call of `train`; the first dimension of all tensors is the replica."""

    def __init__(self, replicas: Sequence[Replica], data: TrainingData, plan: TrainingPlan):
        self.members = [_Member(replica, place, data, plan) for place, replica in enumerate(replicas)]
        self.data, self.plan, self.device = data, plan, data.x.device
        self.stack = Stack([replica.net for replica in replicas])
        self.scalars = {
            name: torch.tensor([r.scalars[name] for r in replicas], dtype=torch.float32, device=self.device)
            for name in replicas[0].scalars
        }
        self.players = self._players(plan.opponent)

    def _players(self, opponent: Opponent | None) -> list[_Player]:
        """Return who takes steps on a batch, in turn; the last one is the method itself."""
        decay = self.scalars["weight_decay"]
        adam = StackAdam(self.stack.flat, self.scalars["learning_rate"], decay)
        if opponent is None:
            return [_Player(self.plan.loss, None, adam, 1)]
        own = StackAdam(self.stack.flat, self.scalars["opponent_learning_rate"], torch.zeros_like(decay))
        rest = _Player(self.plan.loss, lambda name: not opponent.owns(name), adam, 1)
        return [_Player(opponent.loss, opponent.owns, own, opponent.steps), rest]

    def epoch(self, epoch: int, hopeless: Callable[[int], Collection[int]] | None) -> None:
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
        steps, width = (max(getattr(m.batches, name) for m in self.members) for name in ("steps", "width"))
        drawn = zip(*(member.draw(steps, width) for member in self.members), strict=True)
        rows, mask, noise, *extra = (torch.stack(parts).to(self.device) for parts in drawn)
        batches = self._batch(rows, mask, noise, [m.replica.rows for m in self.members])
        active = mask.amax(-1)  # (R, steps): replicas with fewer rows may have fewer steps
        if extra:
            weight = (active / self.plan.balanced_rows).unsqueeze(-1).expand(extra[0].shape)
            batches = batches._replace(extra=self._prepared(extra[0], weight, extra[1]))
        ragged, ramp = not active.all(), self._ramp(epoch, steps)
        collected: list[dict[str, Tensor]] = []
        self.stack.training(True)
        for step in range(steps):
            self._decay(epoch, step)
            batch = self._inputs(map_tensors(partial(torch.select, dim=1, index=step), batches))
            scalars = {**self.scalars, "ramp": ramp[:, step]}
            collected.append(self._step(batch, scalars, active[:, step] if ragged else None))
        terms = {name: torch.stack([t[name] for t in collected]) for name in collected[0]}  # (steps, R)
        return _records({name: (value * active.T).sum(0) / active.sum(1) for name, value in terms.items()})

    def _batch(self, rows: Tensor, mask: Tensor, noise: Tensor, everything: Iterable[Tensor]) -> Batch:
        """Gather all but the inputs of rows (R, ...), whose shares are relative to each replica's mean weight."""
        means = torch.stack([self.data.weight[own.to(self.device)].mean() for own in everything])
        weight = self.data.batch_weight(rows, mask, means.view(-1, *(1 for _ in rows.shape[1:])))
        return self._prepared(rows, weight, noise)

    def _prepared(self, rows: Tensor, weight: Tensor, noise: Tensor) -> Batch:
        y, s = self.data.y[rows], self.data.s[rows]
        return Batch(rows, y, s, weight, noise, self.plan.prepare(y, s, weight))

    def _inputs(self, batch: Batch) -> Batch:
        """Put the inputs in the place of row numbers."""
        extra = batch.extra._replace(x=self.data.inputs(batch.extra.x)) if batch.extra else ()
        return batch._replace(x=self.data.inputs(batch.x), extra=extra)

    def _step(self, batch: Batch, scalars: dict[str, Tensor], turn: Tensor | None) -> dict[str, Tensor]:
        """Let every player take its steps; return the terms of the last one."""
        for player in self.players:
            for _ in range(player.steps):
                terms = self.stack.map(player.loss, batch, scalars)
                player.adam.step(self.stack.gradient(terms["total"], player.owns), turn)
        return {name: value.detach() for name, value in terms.items()}

    def _decay(self, epoch: int, step: int) -> None:
        """Lower the learning rates on their way to 0 at the last epoch's end."""
        if self.plan.schedule.learning_rate_decay == "linear":
            done = [(epoch + step / m.batches.steps) / m.max_epochs for m in self.members]
            for player in self.players:
                player.adam.rate_factor = np.maximum(1 - np.array(done)[:, None], SMALLEST_RATE)

    def _ramp(self, epoch: int, steps: int) -> Tensor:
        """Return how far the warm-up is, 0 to 1, at every step of the epoch.  (R, steps)"""
        own_steps = torch.tensor([m.batches.steps for m in self.members], device=self.device).unsqueeze(1)
        done = epoch + torch.arange(1, steps + 1, device=self.device) / own_steps
        return (done / max(self.plan.schedule.warmup_epochs, 1e-9)).clamp(max=1)

    @torch.no_grad()
    def _validate(self) -> list[dict[str, float]]:
        """Evaluate all validation rows of every replica in one pass."""
        self.stack.training(False)
        held = [m.replica.validation for m in self.members]
        n = max(map(len, held))
        parts = (held, [torch.ones(len(own)) for own in held], [m.validation_noise for m in self.members])
        rows, mask, noise = (torch.stack([_padded(t, n) for t in part]).to(self.device) for part in parts)
        batch = self._inputs(self._batch(rows, mask, noise, held))
        scalars = {**self.scalars, "ramp": torch.ones(len(rows), device=self.device)}
        terms = self.stack.map(self.plan.evaluate, batch, scalars, chunk=max(1, VALIDATION_ROWS_AT_ONCE // n))
        probabilities = terms.pop("probabilities", None)  # (R, n, classes)
        records = _records(terms)
        if self.plan.select is not None:
            for i, member in enumerate(self.members):
                own = None if probabilities is None else probabilities[i][: len(held[i])]
                records[i]["selection"] = self.plan.select(member.replica, own)
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


def _padded(rows: Tensor, n: int) -> Tensor:
    return torch.cat([rows, rows.new_zeros(n - len(rows), *rows.shape[1:])])


def _records(terms: dict[str, Tensor]) -> list[dict[str, float]]:
    """Turn a dict of (R,) tensors into R plain dicts."""
    columns = {name: value.tolist() for name, value in terms.items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
