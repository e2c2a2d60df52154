"""How far the information of a few rows errs above the population's: a first-order correction."""

import torch
from torch import Tensor

from .entropy import LN2
from .weighed_groups import WeighedGroups, group_weights
from .words import mean_words


def joint_bias(
    theta: Tensor,
    groups: Tensor | WeighedGroups,
    *,
    weights: Tensor | None = None,
    prior: Tensor | None = None,
    n_groups: int | None = None,
) -> Tensor:
    """Estimate by how much `joint_information` of these rows exceeds the population's, in bits, to first order.

    sum_s pi_s / (2 n_s ln 2) sum_t Var_{x|s} p(t|x) [1/P_s(t) - pi_s/P(t)], with the rows' own variances; n_s is the
    effective number of rows, 1 / sum_j w_sj^2. Of drawn bits this is Miller and Madow's correction; theta-means need
    less, down to none for a constant theta. Too small for hard codes with more words than rows.

    Arguments as in `word_tables`; shape (...). Subtract it to compare codes on few rows; the rest may be negative.

    Examples
    --------
    >>> theta = torch.rand(200, 6, generator=torch.Generator().manual_seed(0))
    >>> joint_bias(theta, torch.arange(200) % 2)
    tensor(0.0163)
    """
    row_weights, prior = group_weights(theta, groups, weights=weights, prior=prior, n_groups=n_groups)
    zero, one = (1 - theta).square(), theta.square()
    total = zero + one  # squared word probabilities are words of odds one : zero, times the product of the totals
    squares = mean_words(one / total, row_weights * total.prod(-1).unsqueeze(-2))
    return _bias(mean_words(theta, row_weights), squares, row_weights, prior).sum(-1)


def neuronwise_bias(
    theta: Tensor,
    groups: Tensor | WeighedGroups,
    *,
    weights: Tensor | None = None,
    prior: Tensor | None = None,
    n_groups: int | None = None,
) -> Tensor:
    """Estimate by how much `neuronwise_information` of these rows exceeds the population's, in bits, to first order.

    The formula of `joint_bias` for each bit alone. Arguments as in `word_tables`; shape (..., m).

    Examples
    --------
    >>> theta = torch.rand(200, 2, generator=torch.Generator().manual_seed(0))
    >>> neuronwise_bias(theta, torch.arange(200) % 2)
    tensor([0.0012, 0.0012])
    """
    row_weights, prior = group_weights(theta, groups, weights=weights, prior=prior, n_groups=n_groups)
    cells = torch.cat([1 - theta, theta], -1)
    bias = _bias(row_weights @ cells, row_weights @ cells.square(), row_weights, prior)
    return torch.add(*bias.chunk(2, -1))


def _bias(tables: Tensor, squares: Tensor, row_weights: Tensor, prior: Tensor) -> Tensor:
    """Return every cell's part of the bias, from the groups' means and mean squares (..., K, cells): (..., cells)."""
    tiny = torch.finfo(tables.dtype).tiny
    variance = (squares - tables.square()).clamp(min=0) * row_weights.square().sum(-1, keepdim=True)
    share = prior.unsqueeze(-1)
    mixture = prior.unsqueeze(-2) @ tables
    curvature = 1 / tables.clamp(min=tiny) - share / mixture.clamp(min=tiny)
    return (share * variance * curvature).sum(-2) / (2 * LN2)
