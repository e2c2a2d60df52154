"""RUBi: the network learns less from rows whose label the groups alone predict."""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from fairbits.estimators import VanillaClassifier, tunable
from fairbits.estimators.base import log_softmax
from fairbits.nn import Inputs
from fairbits.rivals.group_columns import indicators
from fairbits.rivals.learned_mixin import base_rates, what_groups_say
from fairbits.training import Batch, Schedule


class RUBiClassifier(VanillaClassifier):
    """Mask the network's logits by the predictions of the groups alone (RUBi, Cadene et al. 2019).

    Minimise (1 - gamma) CE(f) + gamma CE(f * sigmoid(g)) + CE(g), in bits: f are the network's logits of x, g those of
    a linear model of the one-hot groups, which learns by its own term only: no gradient reaches it through the mask.
    Only f predicts. It is trained under a mask below 1, so its probabilities are overconfident.

    Parameters
    ----------
    gamma : 1 is the published loss, 0 the plain network

    The other parameters are those of all methods; see `InvariantClassifier`. Differences from the published version:
    the biased branch reads the sensitive features, all columns side by side, instead of a question, and starts from the
    shares p(y|s) of the training rows; the epoch is chosen by f's part of the loss on the validation rows.
    """

    gamma: float = tunable(1.0, 0.0, 1.0, at_least=0, at_most=1)

    stacked_settings: ClassVar[tuple[str, ...]] = ("learning_rate", "weight_decay", "gamma")
    own_schedule: ClassVar[Schedule] = Schedule(warmup_epochs=0)  # gamma does not rise, as published
    protects: ClassVar[bool] = True

    def build(self, inputs: Inputs, n_classes: int) -> Any:
        net = super().build(inputs, n_classes)
        if self.groups_:
            net.biased = nn.Linear(sum(map(len, self.groups_)), n_classes)
        return net

    @torch.no_grad()
    def initialise(self, net: Any, y: Tensor, s: Tensor, weight: Tensor) -> None:
        """Start the biased branch near its optimum, with logits that sum to 0; training from 0 would take long."""
        if self.groups_:
            columns = [(s[:, c : c + 1], [len(names)]) for c, names in enumerate(self.groups_)]
            said = [what_groups_say(y, column, weight, size, len(self.classes_)) for column, size in columns]
            net.biased.weight.copy_(centred(torch.cat(said)).T)
            net.biased.bias.copy_(centred(base_rates(y, weight, len(self.classes_))))

    def loss(self, net: Any, batch: Batch, scalars: dict[str, Tensor]) -> dict[str, Tensor]:
        if not self.groups_:
            return super().loss(net, batch, scalars)
        logits = net(batch.x).logits
        biased = net.biased(indicators(batch.s, self.group_sizes))
        masked = logits * biased.detach().sigmoid()
        plain, under_mask, own = (self.cross_entropy(log_softmax(z), batch) for z in (logits, masked, biased))
        total = torch.lerp(plain, under_mask, scalars["gamma"] * scalars["ramp"]) + own
        return {"total": total, "cross_entropy": plain, "masked_cross_entropy": under_mask, "biased_cross_entropy": own}

    def evaluate(self, net: Any, batch: Batch, scalars: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the loss without the biased branch's own term, in which f has no part."""
        terms = super().evaluate(net, batch, scalars)
        if self.groups_:
            terms["total"] = terms["total"] - terms["biased_cross_entropy"]
        return terms


def centred(logits: Tensor) -> Tensor:
    """Return the same logits (..., classes) with a sum of 0."""
    return logits - logits.mean(-1, keepdim=True)
