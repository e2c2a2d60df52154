"""The loop: epochs of batches for a stack, full-pass validation, the best epoch of every replica."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from fairbits.training.adam import StackAdam
from fairbits.training.batches import StratifiedBatches, TrainingData
from fairbits.training.stack import Stack, load_replica

Loss = Callable[..., dict[str, Tensor]]  # (net, batch, scalars) -> terms with "total", all scalars


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """How long and how to train; the same for all replicas of a stack."""

    batch_size: int = 256
    max_epochs: int = 100
    min_steps: int = 500  # more epochs than max_epochs if the table is small
    patience: int = 20  # epochs without a better validation value
    warmup_epochs: int = 5  # scalars["ramp"] rises from 0 to 1


@dataclass(kw_only=True)
class Replica:
    """One model of a stack: what differs from its neighbours, and afterwards what became of it."""

    net: nn.Module
    rows: Tensor  # training rows
    validation: Tensor  # validation rows
    seed: int
    scalars: dict[str, float]  # must hold learning_rate and weight_decay; the loss sees all of them
    history: list[dict[str, float]] = field(default_factory=list)
    best_epoch: int = -1


def train(
    replicas: Sequence[Replica],
    data: TrainingData,
    loss: Loss,
    evaluate: Loss,
    schedule: Schedule,
    *,
    select: Callable[[Replica, Tensor], float] | None = None,
    on_epoch: Callable[[int, int], None] | None = None,
) -> None:
    """Train all replicas; each ends with the parameters of its best validation epoch and a history.

    Parameters
    ----------
    loss : (net, batch, scalars) -> terms; "total" is minimised on batches
    evaluate : the same for a full pass over the validation rows; the epoch with the smallest "total" is kept
    select : another criterion, to be minimised: (replica, evaluate's "probabilities") -> value, on plain tensors
    on_epoch : called with (epochs done, epochs at most)
    """
    run = _Run(replicas, data, loss, evaluate, schedule, select)
    for epoch in range(run.max_epochs):
        run.epoch(epoch)
        if on_epoch is not None:
            on_epoch(epoch + 1, run.max_epochs)
        if not run.replicas:
            break
    run.finish(list(range(len(run.replicas))))


class _Run:
    """The state of one call of `train`. Replicas that have stopped leave the stack."""

    def __init__(self, replicas, data: TrainingData, loss: Loss, evaluate: Loss, schedule: Schedule, select):
        self.replicas, self.select = list(replicas), select
        self.data, self.loss, self.evaluate, self.schedule = data, loss, evaluate, schedule
        self.device = data.x.device
        self.stack = Stack([r.net for r in self.replicas])
        self.batches = [
            StratifiedBatches(data.strata[r.rows].cpu(), schedule.batch_size) for r in self.replicas
        ]
        self.generators = [torch.Generator().manual_seed(r.seed) for r in self.replicas]
        self.scalars = {
            name: torch.tensor(
                [r.scalars[name] for r in self.replicas], dtype=torch.float32, device=self.device
            )
            for name in self.replicas[0].scalars
        }
        self.adam = StackAdam(self.stack.flat, self.scalars["learning_rate"], self.scalars["weight_decay"])
        self.best = [(float("inf"), self._snapshot(i)) for i in range(len(self.replicas))]
        self.max_epochs = max(schedule.max_epochs, *(-(-schedule.min_steps // b.steps) for b in self.batches))
        self.validation_noise = [
            torch.rand(len(r.validation), r.net.noise_size, generator=g)
            for r, g in zip(self.replicas, self.generators, strict=True)
        ]

    def epoch(self, epoch: int) -> None:
        trained = self._train_epoch(epoch)
        validated = self._validate()
        stopped = [i for i in range(len(self.replicas)) if self._judge(i, epoch, trained[i], validated[i])]
        if stopped:
            self._drop(stopped)

    def _train_epoch(self, epoch: int) -> list[dict[str, float]]:
        """Take every replica once through its rows; return the mean terms."""
        rows, mask, noise = self._draw_epoch()
        active = (mask.sum(-1) > 0).float()  # (R, steps): replicas with fewer rows may have fewer steps
        all_active = bool(active.all())
        sums: dict[str, Tensor] = {}
        self.stack.training(True)
        steps = rows.shape[1]
        for step in range(steps):
            ramp = min(1.0, (epoch + (step + 1) / steps) / max(self.schedule.warmup_epochs, 1e-9))
            batch = self.data.batch(rows[:, step], noise[:, step], mask[:, step])
            terms = self.stack.map(self.loss, batch, self._scalars(ramp))
            on = None if all_active else active[:, step]
            self.adam.step(self.stack.gradient(terms["total"]), on)
            for name, value in terms.items():
                value = value.detach() if on is None else value.detach() * on
                sums[name] = sums[name] + value if name in sums else value
        return _records({name: value / active.sum(1) for name, value in sums.items()})

    def _scalars(self, ramp: float) -> dict[str, Tensor]:
        return {**self.scalars, "ramp": torch.full((len(self.replicas),), ramp, device=self.device)}

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

    @torch.no_grad()
    def _validate(self) -> list[dict[str, float]]:
        """Evaluate all validation rows of every replica in one pass."""
        self.stack.training(False)
        n = max(len(r.validation) for r in self.replicas)
        rows = torch.stack([_padded(r.validation, n) for r in self.replicas])
        mask = torch.stack([_padded(torch.ones(len(r.validation)), n) for r in self.replicas])
        noise = torch.stack([_padded(u, n) for u in self.validation_noise])
        batch = self.data.batch(rows.to(self.device), noise.to(self.device), mask.to(self.device))
        terms = self.stack.map(self.evaluate, batch, self._scalars(1.0))
        probabilities = terms.pop("probabilities", None)  # (R, n, classes)
        records = _records(terms)
        for i, r in enumerate(self.replicas if self.select else ()):
            records[i]["selection"] = self.select(r, probabilities[i, : len(r.validation)])
        return records

    def _judge(self, i: int, epoch: int, trained: dict[str, float], validated: dict[str, float]) -> bool:
        """Record the epoch, remember it if it is the best; return whether the replica is done."""
        replica, value = self.replicas[i], validated.get("selection", validated["total"])
        replica.history.append(
            {"epoch": epoch, **trained, **{f"validation_{name}": v for name, v in validated.items()}}
        )
        if value < self.best[i][0] or replica.best_epoch < 0:
            self.best[i], replica.best_epoch = (value, self._snapshot(i)), epoch
        enough = (epoch + 1) * self.batches[i].steps >= self.schedule.min_steps
        return enough and epoch - replica.best_epoch >= self.schedule.patience

    def _snapshot(self, i: int) -> tuple[Tensor, dict[str, Tensor]]:
        return self.stack.flat[i].clone(), {name: b[i].clone() for name, b in self.stack.buffers.items()}

    def _drop(self, stopped: list[int]) -> None:
        self.finish(stopped)
        kept = [i for i in range(len(self.replicas)) if i not in stopped]
        for name in ("replicas", "batches", "generators", "best", "validation_noise"):
            setattr(self, name, [getattr(self, name)[i] for i in kept])
        if kept:
            index = torch.tensor(kept, device=self.device)
            self.stack.keep(index)
            self.adam.keep(index, self.stack.flat)
            self.scalars = {name: value[index] for name, value in self.scalars.items()}

    def finish(self, replicas: list[int]) -> None:
        """Put the best epoch's parameters back."""
        for i in replicas:
            load_replica(self.replicas[i].net, *self.best[i][1])
            for p in self.replicas[i].net.parameters():
                p.data = (
                    p.data.clone()
                )  # no longer views of one matrix: a pickle would hold it once per tensor


def _padded(rows: Tensor, n: int) -> Tensor:
    return torch.cat([rows, rows.new_zeros(n - len(rows), *rows.shape[1:])])


def _records(terms: dict[str, Tensor]) -> list[dict[str, float]]:
    """Turn a dict of (R,) tensors into R plain dicts."""
    columns = {name: value.tolist() for name, value in terms.items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
