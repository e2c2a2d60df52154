"""EnD: representations of one group are pushed apart, those of one class in different groups pulled together."""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from fairbits.estimators import VanillaClassifier, setting, tunable
from fairbits.estimators.base import log_softmax
from fairbits.nn import Inputs
from fairbits.training import Batch


class EnDClassifier(VanillaClassifier):
    """Disentangle the groups and entangle them within classes (EnD, Tartaglione et al. 2021).

    Minimise CE + alpha R_d + beta R_e over the directions z = h/|h| of the last hidden layer. R_d is the mean of
    z_i . z_j over pairs of one group, to become orthogonal; R_e is the mean of (1 - z_i . z_j) / 2 over pairs of one
    class in different groups, to become parallel. Several sensitive columns add up.

    Parameters
    ----------
    alpha, beta : weights of R_d, the disentangling, and R_e, the entangling. The authors searched 0 to 1, beside a
        cross-entropy in nats: that is 0 to 1.44 here, in bits
    normalise : let the last hidden layer be z itself, h = tanh(...) with length 1, which the head reads, as published;
        otherwise only the penalties see z, and with both weights 0 this is the plain network

    The other parameters are those of all methods; see `InvariantClassifier`. R_d takes |.| of each group's sum, as the
    authors' code does. That code loses half of the pairs in different groups, those whose first row is of the later
    group; here all count, by their weights. Sums over pairs come from sums over cells, so they cost no n^2.
    """

    alpha: float = tunable(1.0, 0.0, 3.0, at_least=0)
    beta: float = tunable(1.0, 0.0, 3.0, at_least=0)
    normalise: bool = setting(True, one_of=(False, True))

    stacked_settings: ClassVar[tuple[str, ...]] = ("learning_rate", "weight_decay", "alpha", "beta")
    protects: ClassVar[bool] = True

    def build(self, inputs: Inputs, n_classes: int) -> Any:
        net = super().build(inputs, n_classes)
        if self.normalise and self.groups_:
            net.features = end_in_unit_vectors(net.features)
        return net

    def loss(self, net: Any, batch: Batch, scalars: dict[str, Tensor]) -> dict[str, Tensor]:
        if not self.groups_:
            return super().loss(net, batch, scalars)
        out = net(batch.x)
        z = nn.functional.normalize(out.hidden, dim=-1, eps=1e-6)
        classes = members(batch.y, len(self.classes_)).unsqueeze(1)  # (C, 1, n)
        columns = [members(s, k) * batch.weight for s, k in zip(batch.s.unbind(-1), self.group_sizes, strict=True)]
        apart = torch.stack([disentangling(z, groups) for groups in columns]).sum(0)  # groups are (K, n)
        together = torch.stack([entangling(z, classes * groups) for groups in columns]).sum(0)
        cross_entropy = self.cross_entropy(log_softmax(out.logits), batch)
        total = cross_entropy + scalars["ramp"] * (scalars["alpha"] * apart + scalars["beta"] * together)
        return {"total": total, "cross_entropy": cross_entropy, "disentangling": apart, "entangling": together}


class UnitTanh(nn.Module):
    """tanh(x) / |tanh(x)|, row by row."""

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.normalize(torch.tanh(x), dim=-1, eps=1e-6)


def end_in_unit_vectors(features: nn.Module) -> nn.Module:
    """Replace the last ReLU of the layers by tanh, and scale each row to length 1.

    Where max-pooling follows, tanh comes after it, which is the same.
    """
    for name in [name for name, layer in features.named_modules() if isinstance(layer, nn.ReLU)][-1:]:
        parent, _, own = name.rpartition(".")
        setattr(features.get_submodule(parent), own, nn.Identity())
    return nn.Sequential(features, UnitTanh())


def members(numbers: Tensor, size: int) -> Tensor:
    """Return 1 where a row has the number.  (size, n)"""
    return (numbers == torch.arange(size, device=numbers.device).unsqueeze(-1)).float()


def disentangling(z: Tensor, groups: Tensor) -> Tensor:
    """Return the mean of z_i . z_j over pairs of rows of one group; z (n, d), the groups' row weights (K, n)."""
    pairs = (groups @ z).square().sum(-1) - groups.square() @ z.square().sum(-1)
    mass = groups.sum(-1).square() - groups.square().sum(-1)
    return _mean(pairs.abs().sum(), mass.sum())


def entangling(z: Tensor, cells: Tensor) -> Tensor:
    """Return the mean of (1 - z_i . z_j) / 2 over pairs of one class in different groups; row weights (C, K, n)."""
    different = 1 - torch.eye(cells.shape[-2], device=z.device)
    sums, weights = cells @ z, cells.sum(-1, keepdim=True)  # (C, K, d), (C, K, 1)
    pairs, mass = (different * (a @ a.mT) for a in (sums, weights))
    return _mean(mass.sum() - pairs.sum(), mass.sum()) / 2


def _mean(total: Tensor, mass: Tensor) -> Tensor:
    """Return total / mass, 0 where there are no pairs."""
    return total / torch.where(mass > 0, mass, torch.inf)
