"""CORAL: the groups' covariances."""

from torch import Tensor

from fairbits.information import WeighedGroups
from fairbits.nn import HiddenOutput
from fairbits.rivals.latent import mean_over_pairs
from fairbits.rivals.penalised import PenalisedClassifier


class CoralClassifier(PenalisedClassifier):
    """Penalise the distance between the groups' covariances of the last hidden layer (Sun and Saenko 2016).

    Made for domain adaptation, with the domain as group: the mean over pairs of groups of |C_i - C_j|_F^2 / (4 d), d
    the width of the layer. The published factor is 1 / (4 d^2); with 1 / (4 d) the penalty is of the size of the
    cross-entropy. Means may differ: the cross-entropy of the unlabelled domain is not looked at.

    The parameters are those of `PenalisedClassifier`.

    >>> from fairbits import Schedule
    >>> from fairbits.datasets import make_shifted_bits
    >>> data = make_shifted_bits(200, random_state=0)
    >>> model = CoralClassifier(gamma=0.3, max_epochs=5, schedule=Schedule(min_steps=50), random_state=0)
    >>> model.fit(data.X, data.y, sensitive_features=data.s).transform(data.X).shape
    (200, 64)
    """

    def penalty(self, out: HiddenOutput, groups: WeighedGroups) -> Tensor:
        return covariance_distance(out.hidden, groups)


def covariance_distance(x: Tensor, groups: WeighedGroups) -> Tensor:
    """Return the mean over pairs of groups of |C_i - C_j|_F^2 / (4 d) of rows x (n, d).

    >>> import torch
    >>> from fairbits.information import weigh_groups
    >>> x = torch.tensor([[0.0], [2.0], [5.0], [5.0]])
    >>> covariance_distance(x, weigh_groups(torch.tensor([0, 0, 1, 1]), n_groups=2))
    tensor(0.2500)
    """
    weights, prior = groups
    centred = x.unsqueeze(-3) - (weights @ x).unsqueeze(-2)  # (K, n, d)
    covariances = (weights.unsqueeze(-1) * centred).mT @ centred
    flat = covariances.flatten(-2)
    gaps = (flat.unsqueeze(-2) - flat.unsqueeze(-3)).square().sum(-1)
    return mean_over_pairs(gaps, prior) / (4 * x.shape[-1])
