"""Bias-balanced learning: the label's prior given the groups is added to the logits in training."""

from typing import Any, ClassVar

import torch
from torch import Tensor

from fairbits.estimators import VanillaClassifier, tunable
from fairbits.estimators.base import log_softmax
from fairbits.estimators.debiased import log_label_shares
from fairbits.nn import HiddenOutput
from fairbits.training import Batch, Schedule, joint_groups


class BiasBalancedClassifier(VanillaClassifier):
    """Add log p(y|s) to the logits in training (bias-balanced learning, BiasBal; Hong and Yang 2021).

    Minimise CE(f + gamma log p(y|s)), in bits. Where p(x|y,s) is the same, f is then the log-posterior of data in which
    every group has the same labels: softmax(f + log p(y|s)) is p(y|x,s) if softmax(f) is that of balanced data, up to
    the base rates of the labels, which become equal. Only f predicts; it does not need s. `DebiasedBernoulliClassifier`
    corrects the logits of a code in the same way.

    Parameters
    ----------
    gamma : 1 is the published loss, 0 the plain network

    The other parameters are those of all methods; see `InvariantClassifier`. p(y|s) is counted over all sensitive
    columns together, with one uniform row added to each combination; the published code adds 1e-9 to the share. With
    the schedule's `cell_share` it is that of the rows really drawn.
    """

    gamma: float = tunable(1.0, 0.0, 1.0, at_least=0)

    stacked_settings: ClassVar[tuple[str, ...]] = ("learning_rate", "weight_decay", "gamma")
    own_schedule: ClassVar[Schedule] = Schedule(warmup_epochs=0)  # gamma does not rise, as published
    protects: ClassVar[bool] = True

    def initialise(self, net: Any, y: Tensor, s: Tensor, weight: Tensor) -> None:
        if self.groups_:
            shares = log_label_shares(y.clamp(min=0), s, weight * (y >= 0), self.group_sizes, len(self.classes_))
            net.register_buffer("log_prior", shares, persistent=False)

    def loss(self, net: Any, batch: Batch, scalars: dict[str, Tensor]) -> dict[str, Tensor]:
        if not self.groups_:
            return super().loss(net, batch, scalars)
        return self.corrected_loss(net, net(batch.x), batch, scalars)

    def corrected_loss(
        self, net: Any, out: HiddenOutput, batch: Batch, scalars: dict[str, Tensor]
    ) -> dict[str, Tensor]:
        """Return the cross-entropy of the corrected logits."""
        prior = net.log_prior[joint_groups(batch.s, self.group_sizes)]
        logits = torch.add(out.logits, scalars["gamma"] * scalars["ramp"] * prior)
        cross_entropy = self.cross_entropy(log_softmax(logits), batch)
        return {"total": cross_entropy, "cross_entropy": cross_entropy}
