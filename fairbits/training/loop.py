"""The loop: epochs of batches for a stack, full-pass validation, the best epoch of every replica."""

from collections.abc import Callable, Collection, Sequence
from itertools import islice, repeat
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from fairbits.training.adam import StackAdam
from fairbits.training.batches import BalancedBatches, Batch, StratifiedBatches, TrainingData
from fairbits.training.plan import Loss, Opponent, Replica, Schedule
from fairbits.training.stack import Stack, load_replica

STEPS_BETWEEN_VALIDATIONS = 10
SMALLEST_RATE = 1e-3  # of the learning rate, where it decays
VALIDATION_ROWS_AT_ONCE = 65_536  # over all replicas: memory
Prepare = Callable[[Tensor, Tensor, Tensor], Any]


def train(
    replicas: Sequence[Replica],
    data: TrainingData,
    loss: Loss,
    evaluate: Loss,
    schedule: Schedule,
    *,
    prepare: Prepare | None = None,
    select: Callable[[Replica, Any], float] | None = None,
    opponent: Opponent | None = None,
    hopeless: Callable[[int], Collection[int]] | None = None,
    on_epoch: Callable[[int, int], None] | None = None,
) -> None:
    """Train all replicas; each ends with the parameters of its best validation epoch and a history.

    Parameters
    ----------
    loss : (net, batch, scalars) -> terms; "total" is minimised on batches
    evaluate : the same for a full pass over the validation rows; the epoch with the smallest "total" is kept
    prepare : (y, s, weight) -> nested tuples of tensors, for all batches of an epoch at once; each batch gets its part
        as ``batch.prepared``
    select : another criterion, to be minimised: (replica, evaluate's "probabilities" or None) -> value, no vmap
    opponent : a part of the network that is trained in turn with the rest, on a loss of its own
    hopeless : called after every epoch with its number; returns the places in `replicas` of those to stop now
    on_epoch : called with (epochs done, epochs at most)
    """
    run = _Run(replicas, data, loss, evaluate, schedule, prepare or (lambda *_: ()), select, opponent)
    most = max(run.max_epochs)
    for epoch in range(most):
        run.epoch(epoch, hopeless)
        if on_epoch is not None:
            on_epoch(epoch + 1 if run.replicas else most, most)
        if not run.replicas:
            break


class _Player(NamedTuple):
    loss: Loss
    owns: Callable[[str], bool] | None  # None: every parameter
    adam: StackAdam
    steps: int


class _Run:
    """The state of one call of `train`. Replicas that have stopped leave the stack."""

    def __init__(self, replicas, data: TrainingData, loss: Loss, evaluate: Loss, schedule, prepare, select, opponent):
        self.replicas, self.prepare, self.select = list(replicas), prepare, select
        self.places = list(range(len(self.replicas)))
        self.data, self.loss, self.evaluate, self.schedule = data, loss, evaluate, schedule
        self.device = data.x.device
        self.stack = Stack([r.net for r in self.replicas])
        self.batches = [StratifiedBatches(data.strata[r.rows].cpu(), schedule.batch_size) for r in self.replicas]
        self.balanced = [BalancedBatches(data.cells[r.rows].cpu(), schedule.balanced_rows) for r in self.replicas]
        self.generators = [torch.Generator().manual_seed(r.seed) for r in self.replicas]
        self.scalars = {
            name: torch.tensor([r.scalars[name] for r in self.replicas], dtype=torch.float32, device=self.device)
            for name in self.replicas[0].scalars
        }
        self.players = self._players(opponent)
        self.best = [(float("inf"), self._snapshot(i)) for i in range(len(self.replicas))]
        self.max_epochs = [max(schedule.max_epochs, -(-schedule.min_steps // b.steps)) for b in self.batches]
        self.validation_noise = [
            torch.rand(len(r.validation), r.net.noise_size, generator=g)
            for r, g in zip(self.replicas, self.generators, strict=True)
        ]

    def _players(self, opponent: Opponent | None) -> list[_Player]:
        """Return who takes steps on a batch, in turn; the last one is the method itself."""
        decay = self.scalars["weight_decay"]
        adam = StackAdam(self.stack.flat, self.scalars["learning_rate"], decay)
        if opponent is None:
            return [_Player(self.loss, None, adam, 1)]
        own = StackAdam(self.stack.flat, self.scalars["opponent_learning_rate"], torch.zeros_like(decay))
        rest = _Player(self.loss, lambda name: not opponent.owns(name), adam, 1)
        return [_Player(opponent.loss, opponent.owns, own, opponent.steps), rest]

    def _step(self, batch: Batch, scalars: dict[str, Tensor], turn: Tensor | None) -> dict[str, Tensor]:
        """Let every player take its steps; return the terms of the last one."""
        for player in self.players:
            for _ in range(player.steps):
                terms = self.stack.map(player.loss, batch, scalars)
                player.adam.step(self.stack.gradient(terms["total"], player.owns), turn)
        return {name: value.detach() for name, value in terms.items()}

    def epoch(self, epoch: int, hopeless: Callable[[int], Collection[int]] | None) -> None:
        trained = self._train_epoch(epoch)
        due = [i for i in range(len(self.replicas)) if self._due(i, epoch)]
        validated = self._validate() if due else []
        stopped = {i for i in due if self._judge(i, epoch, trained[i], validated[i])}
        if hopeless is not None:
            given_up = hopeless(epoch)
            stopped |= {i for i, r in enumerate(self.replicas) if self.places[i] in given_up and r.best_epoch >= 0}
        if stopped:
            self._drop(stopped)

    def _due(self, i: int, epoch: int) -> bool:
        """Say whether to validate now: not every epoch where an epoch is but a few steps."""
        every = -(-STEPS_BETWEEN_VALIDATIONS // self.batches[i].steps)
        return (epoch + 1) % every == 0 or epoch + 1 == self.max_epochs[i]

    def _train_epoch(self, epoch: int) -> list[dict[str, float]]:
        """Take every replica once through its rows; return the mean terms."""
        rows, mask, noise = self._draw_epoch()  # (R, steps, ...)
        y, s, weight = self.data.y[rows], self.data.s[rows], self._weight(rows, mask, [r.rows for r in self.replicas])
        ramp = self._ramp(epoch, rows.shape[1])
        active = mask.amax(-1)  # (R, steps): replicas with fewer rows may have fewer steps
        turns = [None] * rows.shape[1] if active.all() else active.unbind(1)
        scalars = self.stack.unstacked(self.scalars)
        rest = Batch(rows, y, s, weight, noise, self.prepare(y, s, weight), self._extra(rows.shape[1]))
        collected: list[dict[str, Tensor]] = []
        self.stack.training(True)
        steps = zip(self._by_step(rest), self._by_step(ramp), turns, strict=True)
        for step, (batch, ramp_now, turn) in enumerate(steps):
            self._decay(epoch, step)
            extra = batch.extra._replace(x=self.data.inputs(batch.extra.x)) if batch.extra else ()
            batch = batch._replace(x=self.data.inputs(batch.x), extra=extra)
            collected.append(self._step(batch, {**scalars, "ramp": ramp_now}, turn))
        terms = {name: torch.stack([t[name] for t in collected]).view(-1, len(self.stack)) for name in collected[0]}
        return _records({name: (value * active.T).sum(0) / active.sum(1) for name, value in terms.items()})

    def _decay(self, epoch: int, step: int) -> None:
        """Lower the learning rates on their way to 0 at the last epoch's end."""
        if self.schedule.learning_rate_decay == "linear":
            done = [(epoch + step / b.steps) / most for b, most in zip(self.batches, self.max_epochs, strict=True)]
            for player in self.players:
                player.adam.rate_factor = np.maximum(1 - np.array(done)[:, None], SMALLEST_RATE)

    def _weight(self, rows: Tensor, mask: Tensor, own: list[Tensor]) -> Tensor:
        """Return the rows' shares, given all the rows of each replica."""
        means = torch.stack([self.data.weight[r.to(self.device)].mean() for r in own])
        return self.data.batch_weight(rows, mask, means.view(-1, *(1 for _ in rows.shape[1:])))

    def _by_step(self, tree: Any) -> Sequence[Any]:
        """Cut nested tuples of tensors (R, steps, ...) into what each step sees."""
        if isinstance(tree, Tensor):
            return self.stack.unstacked(tree).unbind(0 if len(self.stack) == 1 else 1)
        steps = zip(*(self._by_step(part) for part in tree), strict=True) if tree else repeat(())
        return [_like(tree, parts) for parts in islice(steps, max(b.steps for b in self.batches))]

    def _ramp(self, epoch: int, steps: int) -> Tensor:
        """Return how far the warm-up is, 0 to 1, at every step of the epoch.  (R, steps)"""
        own_steps = torch.tensor([b.steps for b in self.batches], device=self.device).unsqueeze(1)
        done = epoch + torch.arange(1, steps + 1, device=self.device) / own_steps
        return (done / max(self.schedule.warmup_epochs, 1e-9)).clamp(max=1)

    def _draw_epoch(self) -> tuple[Tensor, Tensor, Tensor]:
        """Draw the rows (R, steps, width), their mask and their noise (R, steps, width, noise_size)."""
        steps, width = max(b.steps for b in self.batches), max(b.width for b in self.batches)
        size = self.replicas[0].net.noise_size
        count = len(self.replicas)
        rows = torch.zeros(count, steps, width, dtype=torch.long)
        mask, noise = torch.zeros(count, steps, width), torch.zeros(count, steps, width, size)
        for i, (r, b, g) in enumerate(zip(self.replicas, self.batches, self.generators, strict=True)):
            rows[i, : b.steps, : b.width] = r.rows[b.epoch(g)]
            mask[i, : b.steps, : b.width] = b.mask
            noise[i, : b.steps, : b.width] = torch.rand(b.steps, b.width, size, generator=g)
        return rows.to(self.device), mask.to(self.device), noise.to(self.device)

    def _extra(self, steps: int) -> Batch | tuple[()]:
        """Draw an extra batch for every step, (R, steps, ...), its inputs as row numbers."""
        size = self.schedule.balanced_rows
        if not size:
            return ()
        parts = list(zip(self.replicas, self.balanced, self.generators, strict=True))
        rows = torch.stack([r.rows[b.epoch(steps, g)] for r, b, g in parts]).to(self.device)
        noise = torch.stack([torch.rand(steps, size, r.net.noise_size, generator=g) for r, _, g in parts])
        y, s, weight = self.data.y[rows], self.data.s[rows], torch.full(rows.shape, 1 / size, device=self.device)
        return Batch(rows, y, s, weight, noise.to(self.device), self.prepare(y, s, weight))

    @torch.no_grad()
    def _validate(self) -> list[dict[str, float]]:
        """Evaluate all validation rows of every replica in one pass."""
        self.stack.training(False)
        n = max(len(r.validation) for r in self.replicas)
        rows = torch.stack([_padded(r.validation, n) for r in self.replicas])
        mask = torch.stack([_padded(torch.ones(len(r.validation)), n) for r in self.replicas])
        noise = torch.stack([_padded(u, n) for u in self.validation_noise])
        rows, mask, noise = rows.to(self.device), mask.to(self.device), noise.to(self.device)
        weight = self._weight(rows, mask, [r.validation for r in self.replicas])
        y, s = self.data.y[rows], self.data.s[rows]
        batch = Batch(self.data.inputs(rows), y, s, weight, noise, self.prepare(y, s, weight))
        scalars = {**self.scalars, "ramp": torch.ones(len(rows), device=self.device)}
        chunk = max(1, VALIDATION_ROWS_AT_ONCE // rows.shape[1])
        terms = self.stack.map(self.evaluate, self.stack.unstacked(batch), self.stack.unstacked(scalars), chunk=chunk)
        probabilities = terms.pop("probabilities", None)  # (R, n, classes)
        records = _records({name: value.view(len(rows)) for name, value in terms.items()})
        for i, r in enumerate(self.replicas if self.select else ()):
            own = probabilities
            if probabilities is not None:
                own = probabilities.view(len(rows), *probabilities.shape[-2:])[i][: len(r.validation)]
            records[i]["selection"] = self.select(r, own)
        return records

    def _judge(self, i: int, epoch: int, trained: dict[str, float], validated: dict[str, float]) -> bool:
        """Record the epoch, remember it if it is the best; return whether the replica is done."""
        replica, value = self.replicas[i], validated.get("selection", validated["total"])
        replica.history.append(
            {"epoch": epoch, **trained, **{f"validation_{name}": v for name, v in validated.items()}}
        )
        if value < self.best[i][0]:
            self.best[i], replica.best_epoch = (value, self._snapshot(i)), epoch
        enough = (epoch + 1) * self.batches[i].steps >= self.schedule.min_steps
        waited = epoch - replica.best_epoch >= self.schedule.patience
        return (enough and waited) or epoch + 1 == self.max_epochs[i]

    def _snapshot(self, i: int) -> tuple[Tensor, dict[str, Tensor]]:
        return self.stack.flat[i].clone(), {name: b[i].clone() for name, b in self.stack.buffers.items()}

    def _drop(self, stopped: set[int]) -> None:
        """Put the best epoch's parameters into the replicas that are done, and take them out of the stack."""
        for i in stopped:
            if self.replicas[i].best_epoch < 0:
                raise FloatingPointError(
                    "Training diverged: no epoch had a finite loss on the validation rows. Lower learning_rate, or "
                    "scale X (StandardScaler, TableEncoder)."
                )
            load_replica(self.replicas[i].net, *self.best[i][1])
            for p in self.replicas[i].net.parameters():
                p.data = p.data.clone()  # no longer views of one matrix: a pickle would hold it once per tensor
        kept = [i for i in range(len(self.replicas)) if i not in stopped]
        for name in (
            "replicas",
            "places",
            "batches",
            "balanced",
            "generators",
            "best",
            "validation_noise",
            "max_epochs",
        ):
            setattr(self, name, [getattr(self, name)[i] for i in kept])
        if kept:
            index = torch.tensor(kept, device=self.device)
            self.stack.keep(index)
            for player in self.players:
                player.adam.keep(index, self.stack.flat)
            self.scalars = {name: value[index] for name, value in self.scalars.items()}


def _like(tree: tuple, parts: tuple) -> tuple:
    """Return the parts as the same kind of (named) tuple."""
    return tree._make(parts) if hasattr(tree, "_make") else tuple(parts)


def _padded(rows: Tensor, n: int) -> Tensor:
    return torch.cat([rows, rows.new_zeros(n - len(rows), *rows.shape[1:])])


def _records(terms: dict[str, Tensor]) -> list[dict[str, float]]:
    """Turn a dict of (R,) tensors into R plain dicts."""
    columns = {name: value.tolist() for name, value in terms.items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
