"""The base of the methods that add a penalty on the differences between groups to a plain network."""

from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from fairbits.estimators import VanillaClassifier, setting, tunable
from fairbits.estimators.base import add_cells, log_softmax
from fairbits.information import WeighedGroups
from fairbits.nn import HiddenOutput
from fairbits.training import Batch

SMALLEST_VARIANCE = 1e-6  # what varies less is constant


class PenalisedClassifier(VanillaClassifier):
    """Base of the plain networks with a penalty: minimise (1 - gamma) * cross-entropy + gamma * penalty.

    The penalty is estimated without bias on batches, so validation rows are judged by the same sum.

    Parameters
    ----------
    gamma : weight of the penalty, 0 to 1
    condition_on_label : penalise within each label, weighted by the label's share, for equalised odds

    The other parameters are those of all methods; see `InvariantClassifier`.
    """

    gamma: float = tunable(0.5, 0.0, 1.0, at_least=0, at_most=1)
    condition_on_label: bool = setting(False, one_of=(False, True))

    stacked_settings: ClassVar[tuple[str, ...]] = ("learning_rate", "weight_decay", "gamma")
    protects: ClassVar[bool] = True

    def penalty(self, out: HiddenOutput, groups: WeighedGroups) -> Tensor:
        """Return how far the groups differ in what the network computes."""
        raise NotImplementedError(f"{type(self).__name__} does not define its penalty.")

    def loss(self, net: Any, batch: Batch, scalars: dict[str, Tensor]) -> dict[str, Tensor]:
        if not self.groups_:
            return super().loss(net, batch, scalars)
        out = net(batch.x)
        cross_entropy = self.cross_entropy(log_softmax(out.logits), batch)
        penalty = add_cells((self.penalty(out, groups) for groups, _ in batch.prepared), batch.prepared)
        total = torch.lerp(cross_entropy, penalty, scalars["gamma"] * scalars["ramp"])
        return {"total": total, "cross_entropy": cross_entropy, "penalty": penalty}


class GroupVariance(NamedTuple):
    """How much of the rows' variance lies between the groups; vectors' variances are added over their entries."""

    between: Tensor  # sum_k p_k |m_k - m|^2 of the groups' means
    chance: Tensor  # the unbiased estimate, from the variance within groups, of `between` if the groups do not differ
    total: Tensor

    @property
    def share(self) -> Tensor:
        """The share of the variance that lies between the groups, 0 on average where they do not differ."""
        return (self.between - self.chance) / (self.total + SMALLEST_VARIANCE)


def group_variance(products: Tensor, squares: Tensor, groups: WeighedGroups) -> GroupVariance:
    """Split the variance of rows, given the products of the groups' means (K, K) and each group's mean square (K,).

    Rows may be numbers, vectors or features of a kernel.
    """
    prior, own = groups.prior, products.diagonal(dim1=-2, dim2=-1)
    overall = (prior @ products * prior).sum(-1)
    one_over_rows = groups.row_weights.square().sum(-1)  # (K,)
    of_mean = (squares - own) * one_over_rows / (1 - one_over_rows).clamp(min=0.01)  # one row has no variance
    chance = (prior * (1 - prior) * of_mean).sum(-1)
    return GroupVariance((prior * own).sum(-1) - overall, chance, (prior * squares).sum(-1) - overall)
