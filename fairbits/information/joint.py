"""The joint information of a whole code with the groups, exactly, from the groups' code distributions."""

import torch
from torch import Tensor

from fairbits.errors import InputError

from .entropy import LN2, mixture_divergence
from .given_gradient import with_gradient
from .weighed_groups import WeighedGroups, group_weights
from .words import MAX_BITS, mean_words


def word_tables(
    theta: Tensor,
    groups: Tensor | WeighedGroups,
    *,
    weights: Tensor | None = None,
    prior: Tensor | None = None,
    n_groups: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the probability of every code in every group, and the groups' probabilities.

    P_s(t) = mean over the rows of group s of prod_i theta_i^{t_i} (1 - theta_i)^{1 - t_i}: the law of one
    drawn code of these rows (empirical in the rows, exact in the draws). Differentiable once in theta.

    Parameters
    ----------
    theta : (..., n, m) probabilities that each bit is 1, m at most 20
    groups : (..., n) integers 0..K-1
    weights : (..., n), 1 by default
    prior : (..., K), by default the groups' share of the weight
    n_groups : K; needed under vmap, and skips the check of values

    Returns
    -------
    tables (..., K, 2^m), words ordered as ``itertools.product((0, 1), repeat=m)``, and prior (..., K). An
    absent group has a table of zeros and probability 0.

    Examples
    --------
    >>> tables, prior = word_tables(torch.tensor([[0.5, 0.1], [0.5, 0.9]]), torch.tensor([0, 1]))
    >>> tables
    tensor([[0.4500, 0.0500, 0.4500, 0.0500],
            [0.0500, 0.4500, 0.0500, 0.4500]])
    """
    if theta.shape[-1] > MAX_BITS:
        raise InputError(
            f"theta has {theta.shape[-1]} bits, too many to list all 2^m codes (at most {MAX_BITS}); use "
            "monte_carlo_information for a value, wide_information for a penalty, "
            "information_bounds for an interval"
        )
    row_weights, prior = group_weights(theta, groups, weights=weights, prior=prior, n_groups=n_groups)
    return mean_words(theta, row_weights), prior


def table_information(tables: Tensor, prior: Tensor) -> Tensor:
    """Return the mutual information between a cell and its group, in bits.

    I = sum_s pi_s sum_t P_s(t) log2(P_s(t) / P(t)), P = sum_s pi_s P_s. Its gradient with respect to
    P_s(t) is pi_s log2(P_s(t) / P(t)), taken as 0 where P_s(t) = 0.

    Parameters
    ----------
    tables : (..., K, cells), one distribution per group (all zero for an absent group)
    prior : (..., K)

    Examples
    --------
    >>> table_information(torch.tensor([[0.9, 0.1], [0.1, 0.9]]), torch.tensor([0.5, 0.5]))
    tensor(0.5310)
    """
    with torch.no_grad():
        _, divergence, log_ratio = mixture_divergence(tables, prior)
        share = prior.unsqueeze(-1) / LN2
        value, slope = (share * divergence).sum((-2, -1), keepdim=True), share * log_ratio
    return with_gradient(tables, value, slope).squeeze((-2, -1))


def joint_information(
    theta: Tensor,
    groups: Tensor | WeighedGroups,
    *,
    weights: Tensor | None = None,
    prior: Tensor | None = None,
    n_groups: int | None = None,
) -> Tensor:
    """Return I(T;S) of one drawn code and the group, in bits, exactly over all 2^m codes.

    The empirical information of these rows: no sampling noise, but on few rows it errs above the
    population's. Differentiable once in theta. Arguments as in `word_tables`; the result has shape (...).

    Examples
    --------
    Two bits that say nothing alone and everything together (S = bit 0 xor bit 1):

    >>> theta = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> joint_information(theta, torch.tensor([0, 1, 1, 0]))
    tensor(1.)
    """
    tables, prior = word_tables(theta, groups, weights=weights, prior=prior, n_groups=n_groups)
    return table_information(tables, prior)


def running_information(tables: Tensor, prior: Tensor, running: Tensor, beta: float) -> tuple[Tensor, Tensor]:
    """Return a penalty with the gradient of the information at running tables, in bits, and those tables.

    new_s = beta old_s + (1 - beta) P_s; penalty = sum_s pi_s <P_s, stop_gradient log2(new_s / sum_s pi_s
    new_s)>. Small batches make the information err upwards, and the gradient of that error destroys the
    code; running tables average it away. At beta = 0 value and gradient are those of `table_information`;
    otherwise the penalty is not an information (log ``table_information(new_running, prior)`` instead). A
    group's first batch starts its table; a group absent from the batch keeps it.

    Parameters
    ----------
    tables, prior : from `word_tables`
    running : like tables; zeros at the start
    beta : share of the past, 0.9 to 0.98

    Examples
    --------
    >>> tables, prior = torch.tensor([[0.9, 0.1], [0.1, 0.9]]), torch.tensor([0.5, 0.5])
    >>> penalty, running = running_information(tables, prior, torch.zeros_like(tables), 0.9)
    >>> penalty
    tensor(0.5310)
    """
    with torch.no_grad():
        present = tables.sum(-1, keepdim=True) > 0
        started = running.sum(-1, keepdim=True) > 0
        blend = torch.where(started, beta * running + (1 - beta) * tables, tables)
        new_running = torch.where(present, blend, running)
        _, _, log_ratio = mixture_divergence(new_running, prior)
        slope = prior.unsqueeze(-1) * log_ratio / LN2
    return (slope * tables).sum((-2, -1)), new_running


def total_variation(
    theta: Tensor,
    groups: Tensor | WeighedGroups,
    *,
    weights: Tensor | None = None,
    prior: Tensor | None = None,
    n_groups: int | None = None,
) -> Tensor:
    """Return the largest total variation between two groups' code distributions, in [0, 1], not in bits.

    max over pairs of (1/2) sum_t |P_s(t) - P_s'(t)|: how much better than chance anyone can tell two
    groups of these rows apart from one code. Empirical; groups that are absent or have prior 0 are left out.
    Arguments as in `word_tables`; shape (...).

    Examples
    --------
    >>> total_variation(torch.tensor([[0.9], [0.1], [0.2]]), torch.tensor([0, 1, 2]))
    tensor(0.8000)
    """
    tables, share = word_tables(theta, groups, weights=weights, prior=prior, n_groups=n_groups)
    n, present = tables.shape[-2], share > 0
    pairs = [(0, 0), *((s, r) for s in range(n) for r in range(s))]
    distances = [
        (tables[..., s, :] - tables[..., r, :]).abs().sum(-1) / 2 * (present[..., s] & present[..., r])
        for s, r in pairs
    ]
    return torch.stack(distances, -1).amax(-1)
