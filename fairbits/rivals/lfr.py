"""LFR: rows become memberships in a few prototypes."""

import math
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from fairbits.estimators.base import InvariantClassifier, log_softmax
from fairbits.information import WeighedGroups
from fairbits.nn import Inputs
from fairbits.rivals.group_columns import flat_columns, n_columns
from fairbits.rivals.latent import added, mean_over_pairs
from fairbits.settings import setting, tunable
from fairbits.training import Batch


class LFRNet(nn.Module):
    """Prototypes v_k, a weight a_i > 0 for each column, and the logits of each prototype's label."""

    def __init__(self, inputs: Inputs, n_prototypes: int, n_classes: int):
        super().__init__()
        d = n_columns(inputs)
        self.prototypes = nn.Parameter(torch.randn(n_prototypes, d))
        self.log_weights = nn.Parameter(torch.full((d,), -math.log(d)))
        self.labels = nn.Parameter(torch.randn(n_prototypes, n_classes))

    def memberships(self, x: Tensor) -> Tensor:
        """Return the softmax over prototypes of -sum_i a_i (x_i - v_ki)^2.  (n, K)"""
        a, v = self.log_weights.exp(), self.prototypes
        return torch.softmax(2 * (a * flat_columns(x)) @ v.mT - v.square() @ a, -1)  # |x|^2 is the same for all k

    def probabilities(self, memberships: Tensor) -> Tensor:
        """Return the mean of the prototypes' labels.  (n, classes)"""
        return memberships @ log_softmax(self.labels).exp()


class LFRClassifier(TransformerMixin, InvariantClassifier):
    """Learning fair representations (Zemel et al. 2013): each row becomes a mixture of K prototypes.

    M_nk = softmax_k(-sum_i a_i (x_ni - v_ki)^2) are the memberships of row n, and the loss is

        A_x mean_n |x_n - sum_k M_nk v_k|^2  +  A_y mean_n -log2 sum_k M_nk p_k(y_n)
        +  A_z sum_k |mean of M_nk in one group - mean in the other|

    The last term is twice the total variation between the groups of a prototype drawn by the memberships, which is
    what the penalty protects; the memberships themselves, and the predictions, are functions of the row. With more
    than two groups it is the mean over pairs of groups, which count by the product of their shares.

    Differences from the published version: one set of column weights, not one for each group, so that predictions need
    no S; labels of several classes; trained on batches by Adam. The model is K regions of soft linear borders with one
    label rate each: expect less accuracy than from a network.

    Parameters
    ----------
    n_prototypes : K
    A_x, A_y, A_z : weights of reconstruction, label and parity

    The other parameters are those of all methods, see `InvariantClassifier`; there are no hidden layers, and images are
    rows of pixels.
    """

    learning_rate: float = tunable(1e-2, 1e-3, 0.1, log=True, above=0)
    n_prototypes: int = setting(10, at_least=2, whole=True)
    A_x: float = tunable(0.01, 0.001, 1.0, log=True, at_least=0)
    A_y: float = tunable(1.0, 0.1, 10.0, log=True, at_least=0)
    A_z: float = tunable(1.0, 0.01, 100.0, log=True, at_least=0)

    stacked_settings: ClassVar[tuple[str, ...]] = ("learning_rate", "weight_decay", "A_x", "A_y", "A_z")
    protects: ClassVar[bool] = True

    def build(self, inputs: Inputs, n_classes: int) -> Any:
        return LFRNet(inputs, self.n_prototypes, n_classes)

    def loss(self, net: Any, batch: Batch, scalars: dict[str, Tensor]) -> dict[str, Tensor]:
        x, m = flat_columns(batch.x), net.memberships(batch.x)
        reconstruction = batch.weight @ (x - m @ net.prototypes).square().sum(-1)
        log_p = net.probabilities(m).clamp(min=torch.finfo(m.dtype).tiny).log()
        cross_entropy = self.cross_entropy(log_p, batch)
        parity = added((membership_gap(m, groups) for groups, _ in batch.prepared), m)
        total = scalars["A_x"] * reconstruction + scalars["A_y"] * cross_entropy
        total = total + scalars["A_z"] * scalars["ramp"] * parity
        return {"total": total, "cross_entropy": cross_entropy, "reconstruction": reconstruction, "parity": parity}

    def probabilities(self, net: Any, x: Tensor) -> Tensor:
        return net.probabilities(net.memberships(x))

    def transform(self, X: Any) -> np.ndarray:
        """Return each row's memberships.  (n, n_prototypes)"""
        return self._by_rows(X, lambda net, x: net.memberships(x))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Name the prototypes: prototype0, prototype1, ..."""
        check_is_fitted(self)
        return np.array([f"prototype{k}" for k in range(self.n_prototypes)], dtype=object)


def membership_gap(memberships: Tensor, groups: WeighedGroups) -> Tensor:
    """Return the sum over prototypes of the difference between groups' mean memberships (n, K); 0 to 2.

    >>> from fairbits.information import weigh_groups
    >>> groups = weigh_groups(torch.tensor([0, 0, 1, 1]), n_groups=3)
    >>> membership_gap(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]]), groups)
    tensor(1.)
    """
    means = groups.row_weights @ memberships  # (groups, K)
    gaps = (means.unsqueeze(-2) - means.unsqueeze(-3)).abs().sum(-1)
    return mean_over_pairs(gaps, groups.prior)
