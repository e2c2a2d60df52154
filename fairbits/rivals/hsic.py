"""HSIC: the dependence of the representation on the groups, measured by a kernel."""

import torch
from torch import Tensor

from fairbits.errors import InputError
from fairbits.information import WeighedGroups
from fairbits.nn import HiddenOutput, Inputs, PlainNet
from fairbits.rivals.kernels import gaussian_kernel
from fairbits.rivals.penalised import PenalisedClassifier, group_variance


class HSICClassifier(PenalisedClassifier):
    """Penalise the Hilbert-Schmidt independence criterion between the last hidden layer and the group.

    With a Gaussian kernel between rows (bandwidth: their mean distance in the batch) and 1/p_s between two rows of the
    same group s, of share p_s, HSIC = sum_s p_s |mu_s - mu|^2: the variance of the kernel's features that lies between
    the groups. Divided by their whole variance it is 0 for independence and at most 1 ("normalised HSIC"), the same
    for all multiples of the layer; it is freed of its bias on few rows. A wide layer can hide a leaking direction
    among its many units, which divides this share by up to their number; so the penalty is the share times the number
    of units. Directions of little variance still escape it: a probe that rescales the layer finds more of the group
    than this measure, and a narrow last layer (hidden_sizes=(64, 8)) less than a wide one.

    Differs from the "HSIC" of Han et al. 2024 (FFB), which takes the predicted probability instead of the layer, fixed
    bandwidths, the biased estimate and no normalisation (and needs a weight of 50 to 1000).

    Parameters
    ----------
    gamma : weight of the penalty, 0 to 1: (1 - gamma) * cross-entropy + gamma * penalty
    condition_on_label : measure within each label, weighted by its share, for equalised odds

    The other parameters are those of all methods; see `InvariantClassifier`. At most 2048 validation rows are looked
    at: the kernel costs the square of the rows.

    References
    ----------
    Gretton et al. 2005, "Measuring statistical dependence with Hilbert-Schmidt norms"; Perez-Suay et al. 2017, "Fair
    kernel learning".

    Examples
    --------
    >>> from fairbits import Schedule
    >>> from fairbits.datasets import make_shifted_bits
    >>> data = make_shifted_bits(200, random_state=0)
    >>> model = HSICClassifier(gamma=0.3, max_epochs=5, schedule=Schedule(min_steps=50), random_state=0)
    >>> model = model.fit(data.X, data.y, sensitive_features=data.s)
    >>> model.transform(data.X).shape
    (200, 64)
    """

    @property
    def max_validation_rows(self) -> int:
        return 2048

    def build(self, inputs: Inputs, n_classes: int) -> PlainNet:
        if isinstance(inputs, int) and not self.hidden_sizes:
            raise InputError(
                "hidden_sizes=() leaves no layer to penalise: give at least one width, or use VanillaClassifier."
            )
        return super().build(inputs, n_classes)

    def penalty(self, out: HiddenOutput, groups: WeighedGroups) -> Tensor:
        return out.hidden.shape[-1] * normalised_hsic(out.hidden, groups)


def normalised_hsic(x: Tensor, groups: WeighedGroups) -> Tensor:
    """Return the share of the variance of a Gaussian kernel's features of x (n, d) that lies between the groups.

    >>> from fairbits.information import weigh_groups
    >>> groups = weigh_groups(torch.tensor([0, 0, 1, 1]), n_groups=2)
    >>> normalised_hsic(torch.tensor([[0.0], [0.0], [1.0], [1.0]]), groups)
    tensor(1.0000)
    """
    kernel = gaussian_kernel(x, weights=groups.prior @ groups.row_weights)
    products = groups.row_weights @ kernel @ groups.row_weights.mT  # of the groups' mean features
    return group_variance(products, torch.ones_like(groups.prior), groups).share
