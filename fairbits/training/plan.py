"""What a training needs to know: the loss, how long, which models, and who plays against them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

Loss = Callable[..., dict[str, Tensor]]  # (net, batch, scalars) -> terms with "total", all scalars


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
    """

    min_steps: int = 500
    patience: int = 20
    warmup_epochs: int = 5
    learning_rate_decay: str = "none"
    validation_fraction: float = 0.1
    selection: str = "objective"


@dataclass(frozen=True, kw_only=True)
class Opponent:
    """A part of the network that plays against the rest: before every step of theirs it takes its own on its own loss.

    Its learning rate is the replica's scalar "opponent_learning_rate"; its parameters move by no other loss.
    """

    part: str  # name of the submodule
    loss: Loss
    steps: int = 1

    def owns(self, name: str) -> bool:
        """Return whether a parameter is the opponent's."""
        return name.startswith(self.part + ".")


@dataclass(frozen=True, kw_only=True)
class TrainingPlan:
    """What all replicas of a stack share.

    Parameters
    ----------
    loss : (net, batch, scalars) -> terms; "total" is minimised on batches
    evaluate : the same for a full pass over the validation rows; the epoch with the smallest "total" is kept
    prepare : (y, s, weight) -> nested tuples of tensors, for all batches of an epoch at once; each batch gets its part
        as ``batch.prepared``
    select : another criterion to minimise: (replica, evaluate's "probabilities" or None) -> value, no vmap
    opponent : a part of the network that is trained in turn with the rest, on a loss of its own
    balanced_rows : rows of an extra batch at every step, drawn evenly from the (label, group) cells
    """

    loss: Loss
    evaluate: Loss
    batch_size: int = 256
    max_epochs: int = 100
    schedule: Schedule = Schedule()
    prepare: Callable[[Tensor, Tensor, Tensor], Any] = lambda *_: ()
    select: Callable[["Replica", Any], float] | None = None
    opponent: Opponent | None = None
    balanced_rows: int = 0


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
