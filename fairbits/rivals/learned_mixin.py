"""LearnedMixin+H: the network learns what the groups alone cannot predict."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from fairbits.estimators import VanillaClassifier, tunable
from fairbits.estimators.base import log_softmax
from fairbits.estimators.debiased import log_label_shares
from fairbits.nn import Inputs
from fairbits.training import Batch, Schedule, joint_groups


class LearnedMixinClassifier(VanillaClassifier):
    """Train the network in an ensemble with a model of the groups alone (LearnedMixin+H, Clark et al. 2019).

    Minimise (1 - gamma) CE(f) + gamma (CE(log p_f + a(x) b) + entropy_weight H(a(x) b)), in bits. The model of the
    groups is b = log p(y|s) / p(y); a(x) = softplus(w h(x) + c), of the last hidden layer h, is how far to trust it; H
    is the entropy of the softmax of a(x) b and keeps a(x) from vanishing. Only f predicts.

    The best model of the groups is the table p(y|s) of the training rows, all columns together and one uniform row
    added to each combination; it is computed, not trained. The published version has b = log p(y|s). That is the same
    where classes are equally frequent; elsewhere f would also lose the base rate, which does not come from the groups.

    Parameters
    ----------
    gamma : 1 is the published loss, 0 the plain network
    entropy_weight : of H; 0 is LearnedMixin without H

    The other parameters are those of all methods; see `InvariantClassifier`.
    """

    gamma: float = tunable(1.0, 0.0, 1.0, at_least=0, at_most=1)
    entropy_weight: float = tunable(0.36, 0.0, 1.0, at_least=0)

    stacked_settings: ClassVar[tuple[str, ...]] = ("learning_rate", "weight_decay", "gamma", "entropy_weight")
    own_schedule: ClassVar[Schedule] = Schedule(warmup_epochs=0)  # gamma does not rise, as published
    protects: ClassVar[bool] = True

    def build(self, inputs: Inputs, n_classes: int) -> Any:
        net = super().build(inputs, n_classes)
        if self.groups_:
            net.trust = nn.Linear(net.head.in_features, 1)
        return net

    def initialise(self, net: Any, y: Tensor, s: Tensor, weight: Tensor) -> None:
        if self.groups_:
            said = what_groups_say(y, s, weight, self.group_sizes, len(self.classes_))
            net.register_buffer("said", said, persistent=False)

    def loss(self, net: Any, batch: Batch, scalars: dict[str, Tensor]) -> dict[str, Tensor]:
        if not self.groups_:
            return super().loss(net, batch, scalars)
        out = net(batch.x)
        log_p = log_softmax(out.logits)
        trusted = nn.functional.softplus(net.trust(out.hidden)) * net.said[joint_groups(batch.s, self.group_sizes)]
        plain, ensemble = (self.cross_entropy(z, batch) for z in (log_p, log_softmax(log_p + trusted)))
        entropy = batch.weight @ entropy_bits(log_softmax(trusted))
        mixed = ensemble + scalars["entropy_weight"] * entropy
        total = torch.lerp(plain, mixed, scalars["gamma"] * scalars["ramp"])
        return {"total": total, "cross_entropy": plain, "ensemble_cross_entropy": ensemble, "entropy": entropy}


def base_rates(y: Tensor, weight: Tensor, n_classes: int) -> Tensor:
    """Return log p(y); rows with a label below 0 have none and no part.  (classes,)"""
    return log_label_shares(y.clamp(min=0), torch.zeros_like(y[:, None]), weight * (y >= 0), [1], n_classes)[0]


def what_groups_say(y: Tensor, s: Tensor, weight: Tensor, sizes: Sequence[int], n_classes: int) -> Tensor:
    """Return log p(y|s) / p(y) for all combinations of groups (n, columns), so many each.  (combinations, classes)"""
    shares = log_label_shares(y.clamp(min=0), s, weight * (y >= 0), sizes, n_classes)
    return shares - base_rates(y, weight, n_classes)


def entropy_bits(log_probabilities: Tensor) -> Tensor:
    """Return the entropy of rows of log-probabilities (..., classes), in bits.  (...)"""
    return (log_probabilities.exp() * log_probabilities).sum(-1) / -math.log(2)
