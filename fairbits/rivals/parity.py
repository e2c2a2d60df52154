"""Parity: the groups' mean predictions."""

import torch
from torch import Tensor

from fairbits.information import WeighedGroups
from fairbits.nn import HiddenOutput
from fairbits.rivals.penalised import PenalisedClassifier, group_variance
from fairbits.settings import setting


class ParityClassifier(PenalisedClassifier):
    """Penalise the differences between the groups' mean predicted probabilities: demographic parity, relaxed.

    With m_k the mean probabilities of group k, p_k its share of the rows and m the mean of all, and added over classes
    (after Zafar et al. 2017, "Fairness constraints"):

    - "squared": sum_k p_k (m_k - m)^2, the part of the predictions' variance that lies between the groups
    - "relative": the same divided by the predictions' variance, 0 to 1, so that it does not fall when all predictions
      move towards each other
    - "absolute": sum_k p_k |m_k - m|, the usual one: "DiffDP" of Han et al. 2024, "FFB: A fair fairness benchmark"

    The groups of a batch also differ by chance. Penalising that would push the network towards constant predictions, so
    the two squares are corrected for this bias; the absolute difference is not.

    Parameters
    ----------
    distance : "relative", "squared" or "absolute". The square alone does little below gamma 0.9

    The other parameters are those of `PenalisedClassifier`.

    >>> from fairbits import Schedule
    >>> from fairbits.datasets import make_shifted_bits
    >>> data = make_shifted_bits(200, random_state=0)
    >>> model = ParityClassifier(gamma=0.7, max_epochs=5, schedule=Schedule(min_steps=50), random_state=0)
    >>> model.fit(data.X, data.y, sensitive_features=data.s).predict_proba(data.X).shape
    (200, 2)
    """

    distance: str = setting("relative", one_of=("relative", "squared", "absolute"))

    def penalty(self, out: HiddenOutput, groups: WeighedGroups) -> Tensor:
        return parity_gap(torch.softmax(out.logits, -1), groups, self.distance)


def parity_gap(probabilities: Tensor, groups: WeighedGroups, distance: str = "relative") -> Tensor:
    """Return how far the groups' means of probabilities (n, classes) lie from the mean of all.

    >>> from fairbits.information import weigh_groups
    >>> p = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> groups = weigh_groups(torch.tensor([0, 0, 1, 1]), n_groups=2)
    >>> parity_gap(p, groups, "squared"), parity_gap(p, groups, "absolute")
    (tensor(0.5000), tensor(1.))
    """
    off = probabilities - groups.prior @ groups.row_weights @ probabilities
    gaps = groups.row_weights @ off  # (K, classes)
    if distance == "absolute":
        return (groups.prior @ gaps.abs()).sum(-1)
    variance = group_variance(gaps @ gaps.mT, groups.row_weights @ off.square().sum(-1), groups)
    return variance.share if distance == "relative" else variance.between - variance.chance
