"""Contrastive rivals: rows of one class in different groups are pulled together, or treated alike."""

import math
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from fairbits.estimators import VanillaClassifier, tunable
from fairbits.estimators.base import log_softmax
from fairbits.nn import Inputs
from fairbits.rivals.bias_balanced import BiasBalancedClassifier
from fairbits.rivals.end import end_in_unit_vectors
from fairbits.training import Batch, joint_groups

SMALLEST_VARIANCE = 1e-4


class BiasContrastiveClassifier(BiasBalancedClassifier):
    """Pull rows of one class in different groups together (BiasCon + BiasBal, Hong and Yang 2021).

    Minimise CE(f + gamma log p(y|s)) + alpha C, in bits, where C contrasts the directions z = h/|h| of the last hidden
    layer: for every row i the mean over its partners j, rows of the same class in another group, of

        -log2 [exp(z_i . z_j / temperature) / sum over all k other than i of exp(z_i . z_k / temperature)]

    Rows without a partner count 0. Several sensitive columns are taken together.

    Parameters
    ----------
    alpha : weight of the contrast; 100 as published, where the cross-entropy has weight 0.01; 0 is bias-balanced
        learning
    temperature : of the contrast
    gamma : weight of the correction of the logits; with 0 this is BiasCon alone

    The other parameters are those of all methods; see `InvariantClassifier`. Differences from the published version:
    the contrast is of the batch itself, not of a second one of 64 rows with two views each, turned and recoloured,
    drawn up to 10 times as often from rare cells; the schedule's `cell_share` and `affine` do that for every term.
    """

    alpha: float = tunable(100.0, 0.1, 1000.0, log=True, at_least=0)
    temperature: float = tunable(0.07, 0.02, 1.0, log=True, above=0)

    stacked_settings: ClassVar[tuple[str, ...]] = ("learning_rate", "weight_decay", "gamma", "alpha")

    def loss(self, net: Any, batch: Batch, scalars: dict[str, Tensor]) -> dict[str, Tensor]:
        if not self.groups_:
            return super().loss(net, batch, scalars)
        out = net(batch.x)
        terms = self.corrected_loss(net, out, batch, scalars)
        same_class, same_group = alike(batch.y), alike(joint_groups(batch.s, self.group_sizes))
        z = nn.functional.normalize(out.hidden, dim=-1, eps=1e-6)
        contrast = supervised_contrast(z, same_class * (1 - same_group), batch.weight, self.temperature)
        total = terms["total"] + scalars["ramp"] * scalars["alpha"] * contrast
        return terms | {"total": total, "contrast": contrast}


class FairKLClassifier(VanillaClassifier):
    """Make distances within groups distributed like those between groups (FairKL, Barbano et al. 2023).

    Minimise CE + alpha C + beta R, in bits. The network ends in unit vectors z, which the head reads. C is the
    contrast of `BiasContrastiveClassifier` with all rows of the same class as partners (SupInfoNCE: of the partners,
    only j itself is in the sum over k). R compares the similarities z_i . z_j of pairs in one group ("aligned") with
    those of pairs in different groups, as if they were normal, once among pairs of one class and once among the others:

        KL(N(m, v) || N(m', v')) = [(v + (m - m')^2) / v' - 1 - ln(v / v')] / (2 ln 2)

    Parameters
    ----------
    alpha, beta : weights of the contrast and of the divergences
    temperature : of the contrast

    The other parameters are those of all methods; see `InvariantClassifier`. Differences from the published version:
    the head learns with the network, not from its features afterwards; the divergence is the one of the paper (the
    published code has squared differences of means and deviations, the latter over a matrix padded with zeros).
    """

    alpha: float = tunable(1.0, 0.1, 10.0, log=True, at_least=0)
    beta: float = tunable(1.0, 0.1, 10.0, log=True, at_least=0)
    temperature: float = tunable(0.1, 0.02, 1.0, log=True, above=0)

    stacked_settings: ClassVar[tuple[str, ...]] = ("learning_rate", "weight_decay", "alpha", "beta")
    protects: ClassVar[bool] = True

    def build(self, inputs: Inputs, n_classes: int) -> Any:
        net = super().build(inputs, n_classes)
        if self.groups_:
            net.features = end_in_unit_vectors(net.features)
        return net

    def loss(self, net: Any, batch: Batch, scalars: dict[str, Tensor]) -> dict[str, Tensor]:
        if not self.groups_:
            return super().loss(net, batch, scalars)
        z, logits = net(batch.x)
        cross_entropy = self.cross_entropy(log_softmax(logits), batch)
        same_class, same_group = alike(batch.y), alike(joint_groups(batch.s, self.group_sizes))
        contrast = supervised_contrast(z, same_class, batch.weight, self.temperature, crowded=False)
        pairs = batch.weight.unsqueeze(-1) * batch.weight * (1 - torch.eye(len(z), device=z.device))
        unequal = [divergence(z @ z.mT, pairs * kind, same_group) for kind in (same_class, 1 - same_class)]
        bits = torch.stack(unequal).sum()
        total = cross_entropy + scalars["ramp"] * (scalars["alpha"] * contrast + scalars["beta"] * bits)
        return {"total": total, "cross_entropy": cross_entropy, "contrast": contrast, "divergence": bits}


def alike(numbers: Tensor) -> Tensor:
    """Return 1 for pairs of rows with the same number.  (n, n)"""
    return (numbers.unsqueeze(-1) == numbers).float()


def supervised_contrast(
    z: Tensor, partners: Tensor, weight: Tensor, temperature: float, *, crowded: bool = True
) -> Tensor:
    """Return the weighted mean over rows of their mean -log2 share of a partner's closeness, in bits.

    z (n, d) are unit vectors and partners (n, n) 1 for the pairs to pull together; a row is no partner of itself, and
    rows of weight 0 take no part. With `crowded`, a partner competes with all other rows, else not with the partners.

    >>> z = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> partners = torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    >>> supervised_contrast(z, partners, torch.tensor([0.5, 0.5, 0.0]), 1.0)  # row 2 has weight 0: no competitor
    tensor(0.)
    """
    others = (1 - torch.eye(len(z), device=z.device)) * (weight > 0)
    partners = partners * others
    closeness = z @ z.mT / temperature
    rivals = others if crowded else others - partners
    crowd = torch.logsumexp(torch.where(rivals > 0, closeness, -1e9), -1, keepdim=True)
    if not crowded:
        crowd = torch.logaddexp(crowd, closeness)
    mean = (partners * (crowd - closeness)).sum(-1) / partners.sum(-1).clamp(min=1)
    return weight @ mean / math.log(2)


def divergence(similarity: Tensor, pairs: Tensor, aligned: Tensor) -> Tensor:
    """Return the divergence of the similarities of aligned pairs from those of the others, as normals, in bits.

    `pairs` (n, n) are weights; 0 if either kind of pair has none.
    """
    weights = torch.stack([pairs * aligned, pairs * (1 - aligned)])
    mass = weights.sum((-2, -1))
    weights = weights / torch.where(mass > 0, mass, torch.inf).unsqueeze(-1).unsqueeze(-1)
    mean = (weights * similarity).sum((-2, -1))
    spread = (similarity - mean.unsqueeze(-1).unsqueeze(-1)).square()
    variance = (weights * spread).sum((-2, -1)) + SMALLEST_VARIANCE
    (m, other_m), (v, other_v) = mean.unbind(), variance.unbind()
    value = ((v + (m - other_m).square()) / other_v - 1 - (v / other_v).log()) / (2 * math.log(2))
    return value * (mass > 0).all()
