"""What each bit tells on its own: the penalty of the paper."""

import torch
from torch import Tensor

from .group_means import group_weights
from .tables import table_information


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
    ones = (row_weights @ theta).mT  # (..., m, K)
    zeros = (row_weights @ (1 - theta)).mT
    return torch.stack([zeros, ones], -1), prior.unsqueeze(-2)


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
    tables, prior = bit_tables(theta, groups, weights=weights, prior=prior, n_groups=n_groups)
    return table_information(tables, prior)
