"""Methods as the paper or its authors' code has them, where ours differ: to compare with, not to use."""

from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from fairbits.estimators.base import log_softmax, softmax
from fairbits.estimators.binary import BinaryBernoulliClassifier, BinaryMIClassifier, PenalisedCodeClassifier
from fairbits.information import WeighedGroups
from fairbits.nn import CodeNet, Inputs, draw_bits
from fairbits.nn.code_networks import Linear
from fairbits.rivals.adversarial import AdversarialClassifier
from fairbits.rivals.group_columns import indicators
from fairbits.rivals.vfae import VFAEClassifier
from fairbits.training import Batch


def counted_words(codes: Tensor, groups: WeighedGroups) -> Tensor:
    """Return I(T;S) of the histogram of drawn codes (n, m), in bits, at any width: what `counted_information` returns.

    >>> from fairbits.information import weigh_groups
    >>> codes = torch.tensor([[0.0], [0.0], [0.0], [1.0]] * 10)
    >>> counted_words(codes, weigh_groups(torch.tensor([0, 0, 1, 1] * 10), n_groups=2))
    tensor(0.3113)
    """
    agreements = codes @ codes.mT + (1 - codes) @ (1 - codes).mT
    same = (agreements > codes.shape[-1] - 0.5).to(codes.dtype)  # (n, n)
    within = groups.row_weights @ same  # (K, n): the share of each row's word in each group
    overall = groups.prior @ within
    smallest = torch.finfo(codes.dtype).tiny
    ratio = torch.log2(within.clamp(min=smallest)) - torch.log2(overall.clamp(min=smallest))
    return groups.prior @ (groups.row_weights * ratio).sum(-1)


class CountedMIClassifier(BinaryMIClassifier):
    """BinaryMI as published: penalise the histogram of one drawn code per row (Cerrato et al. 2023, supplement).

    A count has no gradient, so that gamma weighs the cross-entropy alone and helps to choose the epoch; and it comes
    near H(S) once there are more words than rows in a batch. The parameters are those of `BinaryMIClassifier`, of which
    `running_tables` has no effect.
    """

    max_validation_rows = 1024  # it compares every row with every other

    def leakage(self, theta: Tensor, groups: WeighedGroups, *, noise: Tensor) -> Tensor:
        return counted_words((noise < theta).to(theta.dtype), groups)

    def leakage_bias(self, theta: Tensor, groups: WeighedGroups) -> Tensor:
        return PenalisedCodeClassifier.leakage_bias(self, theta, groups)

    def _runs(self) -> bool:
        return False


class ThresholdNet(CodeNet):
    """A code of threshold neurons, T_i = [mean over j of w_ij h_j >= 1/2], with the gradient of the mean itself."""

    def __init__(self, *arguments: Any, **options: Any):
        super().__init__(*arguments, **options)
        self.logits = Linear(self.logits.in_features, self.logits.out_features, bias=False)

    def theta(self, x: Tensor) -> Tensor:
        return draw_bits(self.logits(self.features(x)) / self.logits.in_features, 0.5)


class ThresholdCodeClassifier(BinaryBernoulliClassifier):
    """BinaryBernoulli with the paper's deterministic neuron: a bit is 1 where the mean of its inputs is at least 1/2.

    The shares of ones in the groups, and with them the penalty, are those of the bits themselves.
    `temperature`, `noise_floor` and `prediction` have no effect, because nothing is drawn.
    """

    @property
    def is_hard(self) -> bool:
        return True

    def build(self, inputs: Inputs, n_classes: int) -> CodeNet:
        return ThresholdNet(inputs, self.hidden_sizes, self.code_size, n_classes, channels=self.channels)


class JointAdversarialClassifier(AdversarialClassifier):
    """AdvCls as the paper's authors train it: one step for all on (1 - gamma) CE_y + gamma CE_s, by gradient reversal.

    So gamma also weighs what the adversary learns, which at a small gamma learns late; `reversal` of
    `AdversarialClassifier` keeps its learning apart. The parameters are those of `AdversarialClassifier`; those of the
    opponent's steps have no effect.
    """

    @property
    def opponent(self) -> str | None:
        return None

    def loss(self, net: Any, batch: Batch, scalars: dict[str, Tensor]) -> dict[str, Tensor]:
        out = net(batch.x)
        cross_entropy = self.cross_entropy(log_softmax(out.logits), batch)
        if not self.groups_:
            return {"total": cross_entropy, "cross_entropy": cross_entropy}
        reversed_hidden = 2 * out.hidden.detach() - out.hidden  # the same values, minus the gradient
        error = torch.stack(self.errors(net.adversary, reversed_hidden, batch)).sum(0)
        total = torch.lerp(cross_entropy, error, scalars["gamma"] * scalars["ramp"])
        return {"total": total, "cross_entropy": cross_entropy, "adversary": error}


class GroupVFAEClassifier(VFAEClassifier):
    """VFAE as published: the encoder q(z1|x,s) gets S, in training and for predictions.

    Epochs are chosen by predictions averaged over S. The parameters are those of `VFAEClassifier`.
    """

    groups_at_prediction: ClassVar[bool] = True

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Return the probability of each class; without `sensitive_features`, averaged over S."""
        check_is_fitted(self)
        if sensitive_features is None or self.group_encoder_ is None:
            return super().predict_proba(X)
        X = np.asarray(X)
        groups = self.group_encoder_.transform(sensitive_features, n_rows=len(X))
        found = np.zeros((len(X), len(self.classes_)))
        for cell in np.unique(groups, axis=0):
            rows, code = (groups == cell).all(1), indicators(torch.from_numpy(cell)[None], self.group_sizes)

            def of_cell(net: Any, x: Tensor, code: Tensor = code) -> Tensor:
                return softmax(net.head(net.first(net.features(x), code.expand(len(x), -1)).mean))

            found[rows] = self._by_rows(X[rows], of_cell)
        return found
