"""HSIC: the dependence of the representation on the groups, measured by a kernel, and the kernels for it."""

import torch
from torch import Tensor

from fairbits.errors import InputError
from fairbits.information import WeighedGroups
from fairbits.nn import HiddenOutput, Inputs, PlainNet
from fairbits.rivals.penalised import PenalisedClassifier, group_variance


class HSICClassifier(PenalisedClassifier):
    """Penalise the Hilbert-Schmidt independence criterion between the last hidden layer and the group.

    With a Gaussian kernel between rows (bandwidth: their mean distance in the batch) and 1/p_s between two rows of the
    same group s, of share p_s, HSIC = sum_s p_s |mu_s - mu|^2: the variance of the kernel's features that lies between
    the groups. Divided by their whole variance it is 0 for independence and at most 1 ("normalised HSIC"), the same
    for all multiples of the layer; its bias on few rows is corrected. A wide layer can hide a leaking direction among
    its many units, which divides this share by up to their number; so the penalty is the share times the number of
    units. Directions of little variance still escape it: a probe that rescales the layer finds more of the group than
    this measure. A narrow last layer (hidden_sizes=(64, 8)) leaks less than a wide one.

    Differs from the "HSIC" of Han et al. 2024 (FFB), which takes the predicted probability instead of the layer, fixed
    bandwidths, the biased estimate and no normalisation (and needs a weight of 50 to 1000).

    Parameters
    ----------
    gamma : weight of the penalty, 0 to 1: (1 - gamma) * cross-entropy + gamma * penalty
    condition_on_label : measure within each label, weighted by its share, for equalised odds

    The other parameters are those of all methods; see `InvariantClassifier`. At most 2048 validation rows are used,
    because the kernel costs the square of the rows.

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
                "leaves no layer to penalise.",
                argument="hidden_sizes",
                value=(),
                remedy="Pass at least one width, or use VanillaClassifier.",
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


def gaussian_kernel(x: Tensor, bandwidth: Tensor | float | None = None, *, weights: Tensor | None = None) -> Tensor:
    """Return exp(-|x_i - x_j|^2 / (2 bandwidth^2)) of all pairs of rows.  (..., n, n)

    Parameters
    ----------
    x : (..., n, d)
    bandwidth : one number, or one per leading dimension; by default the mean distance between two rows, a constant to
        the gradient. The kernel is then the same for x and any multiple of it, and all 1 if the rows are all equal
    weights : (..., n) non-negative shares of the rows in that mean, equal by default; rows of share 0 have no part

    Examples
    --------
    >>> gaussian_kernel(torch.tensor([[0.0], [2.0]]), 1.0)
    tensor([[1.0000, 0.1353],
            [0.1353, 1.0000]])
    """
    squares = squared_distances(x, weights)
    width = mean_distance(squares, weights) if bandwidth is None else torch.as_tensor(bandwidth).to(x)
    smallest = torch.finfo(x.dtype).tiny ** 0.25  # so that neither it nor its square vanishes
    return torch.exp(squares / width.clamp(min=smallest).square()[..., None, None] / -2)


def squared_distances(x: Tensor, weights: Tensor | None = None) -> Tensor:
    """Return |x_i - x_j|^2 of all pairs of rows (..., n, d); the weighted mean is taken off first, for accuracy."""
    with torch.no_grad():
        centre = (_shares(x[..., 0], weights).unsqueeze(-2) @ x.detach()).detach()  # (..., 1, d)
    x = x - centre
    squares = x.square().sum(-1)
    return (squares.unsqueeze(-1) + squares.unsqueeze(-2) - 2 * x @ x.mT).clamp(min=0)


@torch.no_grad()
def mean_distance(squares: Tensor, weights: Tensor | None = None) -> Tensor:
    """Return the weighted mean of the distances whose squares are given, (..., n, n); without gradient.  (...)"""
    w = _shares(squares[..., 0], weights)
    return _between(w, squares.sqrt(), w)


def hsic(k: Tensor, l: Tensor, weights: Tensor | None = None) -> Tensor:
    """Return the biased HSIC of two kernel matrices: the mean of k times l, both centred.

    sum_ij w_i w_j k~_ij l~_ij, k~_ij = k_ij - k_i. - k_.j + k_.. with weighted means; with equal weights that is
    trace(K H L H) / n^2, H = I - 1/n (Gretton et al. 2005). 0 if and only if two characteristic kernels see
    independence; of n independent rows about (1 - mean k)(1 - mean l) / n.

    Parameters
    ----------
    k, l : (..., n, n) symmetric
    weights : (..., n) non-negative, of any sum; equal by default. Rows of weight 0 have no part

    Examples
    --------
    >>> same = gaussian_kernel(torch.tensor([[0.0], [1.0]]))
    >>> hsic(same, same), hsic(same, torch.ones(2, 2))
    (tensor(0.1869), tensor(0.))
    """
    w = _shares(k[..., 0], weights)
    return _between(w, centred(k, w) * centred(l, w), w)


def unbiased_hsic(k: Tensor, l: Tensor, weights: Tensor | None = None) -> Tensor:
    """Return the HSIC over distinct rows (Song et al. 2012): 0 on average for independent ones, sometimes below.

    mean k_ij l_ij + mean k_ij l_qr - 2 mean k_ij l_iq, each over rows i, j, q, r that differ and weighted by the
    product of their weights. The kernels are centred first, which with equal weights changes nothing but the rounding.
    Of fewer than four rows of weight above 0 it means nothing, but is finite. Parameters as in `hsic`.

    Examples
    --------
    >>> same = gaussian_kernel(torch.arange(4.0).unsqueeze(-1))
    >>> unbiased_hsic(same, same)
    tensor(0.1086)
    """
    w = _shares(k[..., 0], weights)
    others = 1 - torch.eye(k.shape[-1], dtype=k.dtype, device=k.device)
    rounding = 10 * torch.finfo(k.dtype).eps
    sums = zip(_sums(centred(k, w) * others, centred(l, w) * others, w), _sums(others, others, w), strict=True)
    two, three, four = (value / count.clamp(min=rounding) for value, count in sums)
    return two + four - 2 * three


def _sums(k: Tensor, l: Tensor, w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the weighted sums of k_ij l_ij, k_ij l_iq and k_ij l_qr over distinct rows; the diagonals are 0."""
    both, square = k * l, w.square()
    of_k, of_l = ((m @ w.unsqueeze(-1)).squeeze(-1) for m in (k, l))
    twice = _between(square, both, square)
    three = (w * of_k * of_l).sum(-1) - _between(w, both, square)
    four = (w * of_k).sum(-1) * (w * of_l).sum(-1) - 4 * (square * of_k * of_l).sum(-1) + 2 * twice
    return _between(w, both, w), three, four


def centred(k: Tensor, w: Tensor) -> Tensor:
    """Return the kernel of the features less their mean under shares w (..., n), which sum to 1."""
    rows = k @ w.unsqueeze(-1)  # (..., n, 1)
    return k - rows - rows.mT + w.unsqueeze(-2) @ rows


def _shares(like: Tensor, weights: Tensor | None) -> Tensor:
    """Return weights that sum to 1, equal ones by default.  (..., n)"""
    w = torch.ones_like(like) if weights is None else weights.to(like)
    return w / w.sum(-1, keepdim=True).clamp(min=torch.finfo(w.dtype).tiny)


def _between(left: Tensor, matrix: Tensor, right: Tensor) -> Tensor:
    """Return left^T matrix right.  (...)"""
    return (left.unsqueeze(-2) @ matrix @ right.unsqueeze(-1)).squeeze(-1).squeeze(-1)
