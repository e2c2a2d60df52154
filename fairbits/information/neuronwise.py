"""What each bit tells on its own: the penalty of the paper."""

import torch
from torch import Tensor

from .entropy import LN2, mixture_divergence
from .given_gradient import with_gradient
from .weighed_groups import WeighedGroups, group_weights


def neuronwise_information(
    theta: Tensor,
    groups: Tensor | WeighedGroups,
    *,
    weights: Tensor | None = None,
    prior: Tensor | None = None,
    n_groups: int | None = None,
) -> Tensor:
    """Return I(T_i;S) of each bit and the group, in bits, exactly.

    I(T_i;S) = h(mu_i) - sum_s pi_s h(mu_si), mu_si = mean of theta_i over group s. The empirical
    information of these rows. The sum over bits is the paper's surrogate for the information of the whole
    code: the code may hold more (bits that tell only together) or less (bits that repeat each other); see
    `joint_information`.

    Arguments as in `word_tables`, at any width; the result has shape (..., m). Differentiable once in theta.

    Examples
    --------
    >>> theta = torch.tensor([[0.9, 0.5], [0.9, 0.5], [0.1, 0.5], [0.1, 0.5]])
    >>> neuronwise_information(theta, torch.tensor([0, 0, 1, 1]))
    tensor([0.5310, 0.0000])
    """
    row_weights, prior = group_weights(theta, groups, weights=weights, prior=prior, n_groups=n_groups)
    with torch.no_grad():
        cells = _cells(theta, row_weights)
        _, divergence, log_ratio = mixture_divergence(cells, prior)
        share = prior.unsqueeze(-1) / LN2
        value = torch.add(*(share.mT @ divergence).chunk(2, -1))  # (..., 1, m)
        zero, one = (share * log_ratio).chunk(2, -1)
        gradient = row_weights.mT @ (one - zero)  # (..., n, m)
    return with_gradient(theta, value, gradient).squeeze(-2)


def neuronwise_penalty(theta: Tensor, groups: WeighedGroups) -> Tensor:
    """Return the sum over bits of `neuronwise_information`, in bits, in a form made for training steps.

    sum_s pi_s <cells_s, stop_gradient log2(cells_s / cells)>: the same gradient with half the operations, and the same
    value but for the rounding of its terms (1e-7 bits in float32, where the other is exact to a fraction of itself).

    Examples
    --------
    >>> theta = torch.tensor([[0.9, 0.5], [0.9, 0.5], [0.1, 0.5], [0.1, 0.5]])
    >>> from fairbits.information import weigh_groups
    >>> neuronwise_penalty(theta, weigh_groups(torch.tensor([0, 0, 1, 1]), n_groups=2))
    tensor(0.5310)
    """
    row_weights, prior = groups
    with torch.no_grad():
        _, _, log_ratio = mixture_divergence(_cells(theta, row_weights), prior)
        zero, one = (prior.unsqueeze(-1) / LN2 * log_ratio).chunk(2, -1)
        constant, gradient = zero.sum((-2, -1)), row_weights.mT @ (one - zero)
    return (theta * gradient).sum((-2, -1)) + constant


def _cells(theta: Tensor, row_weights: Tensor) -> Tensor:
    """Return every bit's chances of 0, then of 1, in each group.  (..., K, 2m)"""
    return row_weights @ torch.cat([1 - theta, theta], -1)
