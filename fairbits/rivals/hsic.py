"""HSIC: the dependence of the representation on the groups, measured by a kernel, and the kernels for it."""

import torch
from torch import Tensor

from fairbits.errors import InputError
from fairbits.information import WeighedGroups
from fairbits.information.words import normalised
from fairbits.nn import HiddenOutput, Inputs, PlainNet
from fairbits.rivals.penalised import PenalisedClassifier, group_variance


class HSICClassifier(PenalisedClassifier):
    """Penalise the Hilbert-Schmidt independence criterion between the last hidden layer and the group.

    With a Gaussian kernel between rows (bandwidth: their mean distance in the batch) and 1/p_s between two rows of the
    same group s, of share p_s, HSIC = sum_s p_s |mu_s - mu|^2: the variance of the kernel's features that lies between
    the groups (Gretton et al. 2005, Perez-Suay et al. 2017). Divided by their whole variance it is 0 for independence
    and at most 1 ("normalised HSIC"), the same for all multiples of the layer; its bias on few rows is corrected. A
    wide layer can hide a leaking direction among its many units, which divides this share by up to their number; so the
    penalty is the share times the number of units. Directions of little variance still escape it: a probe that rescales
    the layer finds more of the group than this measure. A narrow last layer (hidden_sizes=(64, 8)) leaks less.

    Differs from the "HSIC" of Han et al. 2024 (FFB), which takes the predicted probability instead of the layer, fixed
    bandwidths, the biased estimate and no normalisation (and needs a weight of 50 to 1000).

    The parameters are those of `PenalisedClassifier`. At most 2048 validation rows are used, because the kernel costs
    the square of the rows.

    >>> from fairbits import Schedule
    >>> from fairbits.datasets import make_shifted_bits
    >>> data = make_shifted_bits(200, random_state=0)
    >>> model = HSICClassifier(gamma=0.3, max_epochs=5, schedule=Schedule(min_steps=50), random_state=0)
    >>> model.fit(data.X, data.y, sensitive_features=data.s).transform(data.X).shape
    (200, 64)
    """

    max_validation_rows = 2048

    def build(self, inputs: Inputs, n_classes: int) -> PlainNet:
        if isinstance(inputs, int) and not self.hidden_sizes:
            remedy = "Pass at least one width, or use VanillaClassifier."
            raise InputError("leaves no layer to penalise.", argument="hidden_sizes", value=(), remedy=remedy)
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
    kernel = gaussian_kernel(x, groups.prior @ groups.row_weights)
    products = groups.row_weights @ kernel @ groups.row_weights.mT  # of the groups' mean features
    return group_variance(products, torch.ones_like(groups.prior), groups).share


def gaussian_kernel(x: Tensor, weights: Tensor) -> Tensor:
    """Return exp(-|x_i - x_j|^2 / (2 b^2)) of all pairs of rows x (..., n, d), with b their mean distance.  (..., n, n)

    b is a constant to the gradient. The kernel is the same for x and any multiple of it, and all 1 if the rows are all
    equal. `weights` (..., n) are non-negative, of any sum; rows of weight 0 have no part in b.

    >>> gaussian_kernel(torch.tensor([[0.0], [2.0]]), torch.ones(2))
    tensor([[1.0000, 0.1353],
            [0.1353, 1.0000]])
    """
    w = normalised(weights.to(x))
    x = x - (w.unsqueeze(-2) @ x.detach()).detach()  # for accuracy
    squares = x.square().sum(-1)
    squares = (squares.unsqueeze(-1) + squares.unsqueeze(-2) - 2 * x @ x.mT).clamp(min=0)
    with torch.no_grad():
        width = _between(w, squares.sqrt(), w)
    smallest = torch.finfo(x.dtype).tiny ** 0.25  # so that neither it nor its square vanishes
    return torch.exp(squares / width.clamp(min=smallest).square()[..., None, None] / -2)


def hsic(k: Tensor, l: Tensor, weights: Tensor) -> Tensor:
    """Return the biased HSIC of two symmetric kernel matrices (..., n, n): the mean of k times l, both centred.

    sum_ij w_i w_j k~_ij l~_ij, k~_ij = k_ij - k_i. - k_.j + k_.. with weighted means; with equal weights that is
    trace(K H L H) / n^2, H = I - 1/n (Gretton et al. 2005). 0 if and only if two characteristic kernels see
    independence; of n independent rows about (1 - mean k)(1 - mean l) / n. Weights as in `gaussian_kernel`.

    >>> same = gaussian_kernel(torch.tensor([[0.0], [1.0]]), torch.ones(2))
    >>> hsic(same, same, torch.ones(2)), hsic(same, torch.ones(2, 2), torch.ones(2))
    (tensor(0.1869), tensor(0.))
    """
    w = normalised(weights.to(k))
    return _between(w, _centred(k, w) * _centred(l, w), w)


def _centred(k: Tensor, w: Tensor) -> Tensor:
    """Return the kernel of the features less their mean under shares w (..., n), which sum to 1."""
    rows = k @ w.unsqueeze(-1)  # (..., n, 1)
    return k - rows - rows.mT + w.unsqueeze(-2) @ rows


def _between(left: Tensor, matrix: Tensor, right: Tensor) -> Tensor:
    """Return left^T matrix right.  (...)"""
    return (left.unsqueeze(-2) @ matrix @ right.unsqueeze(-1)).squeeze(-1).squeeze(-1)
