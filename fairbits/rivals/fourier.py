"""Maximum mean discrepancy of groups by random Fourier features."""

import math

import torch
from torch import Tensor, nn

from fairbits.information import WeighedGroups


class FourierFeatures(nn.Module):
    """Random features psi whose products are a Gaussian kernel: psi(x) psi(x') ~ exp(-|x - x'|^2 / width).

    psi(x) = sqrt(2/D) cos(sqrt(2/width) x W + b),  W standard normal, b uniform on [0, 2 pi]  (Rahimi and Recht 2007)

    W and b come from a seed of their own: the same in every network, and nothing moves them.

    >>> FourierFeatures(3, width=6.0)(torch.zeros(5, 3)).shape
    torch.Size([5, 500])
    """

    W: Tensor
    b: Tensor

    def __init__(self, n_inputs: int, *, width: float, n_features: int = 500, seed: int = 0):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.register_buffer("W", torch.randn(n_inputs, n_features, generator=generator), persistent=False)
        self.register_buffer("b", 2 * math.pi * torch.rand(n_features, generator=generator), persistent=False)
        self.width = width

    def forward(self, x: Tensor) -> Tensor:
        return math.sqrt(2 / len(self.b)) * torch.cos(math.sqrt(2 / self.width) * x @ self.W + self.b)


def standardised(x: Tensor, weight: Tensor) -> Tensor:
    """Return columns (n, d) of weighted mean 0 and variance 1, so that a discrepancy cannot hide in their scale."""
    share = weight / weight.sum().clamp(min=torch.finfo(x.dtype).tiny)
    centred = x - share @ x
    return centred * torch.rsqrt(share @ centred.square() + 1e-8)


def mean_discrepancy(features: Tensor, groups: WeighedGroups) -> Tensor:
    """Return the squared maximum mean discrepancy between groups, given the features (n, D) of their rows.

    Of two groups it is |E psi(x) - E psi(x')|^2; of more, the mean over pairs of groups, which count by the product
    of their shares. Without bias: no row is compared with itself, so that groups of equal distribution give 0 on
    average, whatever their spread and size. Groups of fewer than two rows are left out.

    >>> from fairbits.information import weigh_groups
    >>> groups = weigh_groups(torch.tensor([0, 0, 1, 1]), n_groups=3)
    >>> mean_discrepancy(torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]), groups)
    tensor(2.)
    """
    weights, prior = groups  # (K, n), (K,)
    means = weights @ features
    products = means @ means.mT  # (K, K)
    alone = weights.square().sum(-1)  # 1 where a group has one row
    own = weights.square() @ features.square().sum(-1)
    eps = torch.finfo(features.dtype).eps
    within = (products.diagonal(dim1=-2, dim2=-1) - own) / (1 - alone).clamp(min=eps)
    share = prior * (alone < 1 - 4 * eps)
    pairs = share.unsqueeze(-1) * share.unsqueeze(-2) * (1 - torch.eye(len(prior), device=prior.device))
    pairs = pairs / pairs.sum().clamp(min=torch.finfo(pairs.dtype).tiny)  # here: a gradient over tiny would overflow
    return (pairs * (within.unsqueeze(-1) + within.unsqueeze(-2) - 2 * products)).sum()
