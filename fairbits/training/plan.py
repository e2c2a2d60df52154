"""What a training is told: how long, which models, and who plays against them."""

from collections.abc import Callable
from dataclasses import dataclass, field

from torch import Tensor, nn

Loss = Callable[..., dict[str, Tensor]]  # (net, batch, scalars) -> terms with "total", all scalars


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """How long and how to train; the same for all replicas of a stack."""

    batch_size: int = 256
    max_epochs: int = 100
    min_steps: int = 500  # more epochs than max_epochs if the table is small
    patience: int = 20  # epochs without a better validation value
    warmup_epochs: int = 5  # scalars["ramp"] rises from 0 to 1
    learning_rate_decay: str = "none"  # "linear": to 0 at the last epoch
    balanced_rows: int = 0  # of an extra batch at every step, drawn evenly from the (label, group) cells


@dataclass(frozen=True, kw_only=True)
class Opponent:
    """A part of the network that plays against the rest: before every step of theirs it takes its own on its own loss.

    Its learning rate is the replica's scalar "opponent_learning_rate"; its parameters move by no other loss.
    """

    part: str  # name of the submodule
    loss: Loss
    steps: int = 1

    def owns(self, name: str) -> bool:
        """Say whether a parameter is the opponent's."""
        return name.startswith(self.part + ".")


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
