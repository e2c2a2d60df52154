"""What each bit tells on its own: the penalty of the paper."""

import torch
from torch import Tensor

from .given_gradient import with_gradient
from .group_means import group_weights
from .tables import information_and_slope


def bit_tables(
    theta: Tensor,
    groups: Tensor,
    *,
    weights: Tensor | None = None,
    prior: Tensor | None = None,
    n_groups: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the probabilities of 0 and 1 of every bit in every group, and the groups' probabilities.

    Arguments as in `word_tables`, at any width.

    Returns
    -------
    tables (..., m, K, 2) and prior (..., 1, K): m one-bit codes, ready for `table_information` and
    `running_information`

    Examples
    --------
    >>> bit_tables(torch.tensor([[0.5, 0.1], [0.5, 0.9]]), torch.tensor([0, 1]))[0]
    tensor([[[0.5000, 0.5000],
             [0.5000, 0.5000]],
    <BLANKLINE>
            [[0.9000, 0.1000],
             [0.1000, 0.9000]]])
    """
    row_weights, prior = group_weights(theta, groups, weights=weights, prior=prior, n_groups=n_groups)
    return _bit_tables(theta, row_weights), prior.unsqueeze(-2)


def _bit_tables(theta: Tensor, row_weights: Tensor) -> Tensor:
    zeros, ones = row_weights @ (1 - theta), row_weights @ theta  # not 1 - ones: exact near 1 too
    return torch.stack([zeros.mT, ones.mT], -1)


def neuronwise_information(
    theta: Tensor,
    groups: Tensor,
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
        value, slope = information_and_slope(_bit_tables(theta, row_weights), prior.unsqueeze(-2))
        zero, one = slope.unbind(-1)
        gradient = (one - zero) @ row_weights  # (..., m, n)
    return with_gradient(theta.mT.unsqueeze(-2), value, gradient.unsqueeze(-2))
