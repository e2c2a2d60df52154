"""Entropies, and the information of a code and of each of its bits, exactly: no draws, all rows and all words.

Of a wide code, block of bits by block. docs/theory.md derives the formulas, here and in the other modules.
"""

import math
from itertools import combinations
from typing import Unpack

import torch
from torch import Tensor, nn
from torch.nn.functional import pad, softplus

from fairbits.errors import InputError
from fairbits.information.words import (
    MAX_BITS,
    Groups,
    WeighedGroups,
    Weighing,
    group_weights,
    mean_words,
    with_gradient,
)

LN2 = math.log(2.0)
BLOCK_BITS = 8


def binary_entropy(p: Tensor) -> Tensor:
    """Return the entropy of a coin with probability ``p``, in bits.

    h(p) = -p log2 p - (1-p) log2 (1-p), with a finite gradient at 0 and 1. If p is a sigmoid, prefer
    `binary_entropy_from_logits`: a saturated sigmoid has lost what the entropy needs.

    >>> binary_entropy(torch.tensor([0.0, 0.11, 0.5]))
    tensor([0.0000, 0.4999, 1.0000])
    """
    with torch.no_grad():
        value = (torch.special.entr(p) + torch.special.entr(1 - p)) / LN2
        slope = (safe_log(1 - p) - safe_log(p)) / LN2
    return with_gradient(p, value, slope)


def binary_entropy_from_logits(z: Tensor) -> Tensor:
    """Return the entropy of a coin with log-odds ``z``, in bits.

    h(sigmoid(z)) = [softplus(u) - u sigmoid(u)] / ln 2 with u = -|z|, accurate and with a finite gradient at any z.

    >>> binary_entropy_from_logits(torch.tensor([0.0, -2.0, 50.0]))
    tensor([1.0000e+00, 5.2707e-01, 1.4191e-20])
    """
    u = -z.abs()
    return (softplus(u) - u * torch.sigmoid(u)) / LN2


def group_entropy(prior: Tensor) -> Tensor:
    """Return the entropy of probabilities (..., K) in bits, H(S) = -sum_s pi_s log2 pi_s: (...).

    >>> group_entropy(torch.tensor([[0.5, 0.5], [1.0, 0.0]]))
    tensor([1., 0.])
    """
    return torch.special.entr(prior).sum(-1) / LN2


def safe_log(p: Tensor) -> Tensor:
    """Return ln p with p raised to the smallest normal number of its type: finite at 0."""
    return p.clamp(min=torch.finfo(p.dtype).tiny).log()


def mixture_ratio(tables: Tensor, prior: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the mixture P (..., 1, cells), P_s - P and ln(P_s / P), set to 0 where P_s = 0 (..., K, cells), in nats.

    Taking log1p of a small x = (P_s - P)/P keeps float32 accurate for an information of 1e-8 bits, where
    ln P_s - ln P is not.
    """
    mixture = prior.unsqueeze(-2) @ tables
    floor = mixture.clamp(min=torch.finfo(mixture.dtype).tiny)
    excess = tables - mixture
    x, logarithm = excess / floor, torch.xlogy(tables > 0, tables / floor)  # xlogy(0, 0) = 0
    return mixture, excess, torch.where(x > -0.5, torch.log1p(x), logarithm)


def mixture_divergence(tables: Tensor, prior: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the mixture P (..., 1, cells), the groups' divergences from it and log-ratios (..., K, cells), in nats.

    The divergence is P_s ln(P_s / P) - (P_s - P), never negative.
    """
    mixture, excess, log_ratio = mixture_ratio(tables, prior)
    return mixture, tables * log_ratio - excess, log_ratio


def neuronwise_information(theta: Tensor, groups: Groups, **weighing: Unpack[Weighing]) -> Tensor:
    """Return I(T_i;S) of each bit and the group, in bits, exactly: (..., m), at any width.

    I(T_i;S) = h(mu_i) - sum_s pi_s h(mu_si), mu_si = mean of theta_i over group s. Their sum is the paper's surrogate
    for the information of the whole code, which may be more or less: see `joint_information`.

    >>> theta = torch.tensor([[0.9, 0.5], [0.9, 0.5], [0.1, 0.5], [0.1, 0.5]])
    >>> neuronwise_information(theta, torch.tensor([0, 0, 1, 1]))
    tensor([0.5310, 0.0000])
    """
    row_weights, prior = group_weights(theta, groups, **weighing)
    with torch.no_grad():
        _, divergence, log_ratio = mixture_divergence(_cell_means(row_weights, 1 - theta, theta), prior)
        share = prior.unsqueeze(-1) / LN2
        value = torch.add(*(share.mT @ divergence).chunk(2, -1))  # (..., 1, m)
        zero, one = (share * log_ratio).chunk(2, -1)
        gradient = row_weights.mT @ (one - zero)  # (..., n, m)
    return with_gradient(theta, value, gradient).squeeze(-2)


def neuronwise_penalty(theta: Tensor, groups: WeighedGroups) -> Tensor:
    """Return the sum over bits of `neuronwise_information`, in bits, in a form made for training steps.

    sum_s pi_s <cells_s, stop_gradient log2(cells_s / cells)>: the same gradient with half the operations, and the same
    value to 1e-7 bits in float32.

    >>> theta = torch.tensor([[0.9, 0.5], [0.9, 0.5], [0.1, 0.5], [0.1, 0.5]])
    >>> from fairbits.information import weigh_groups
    >>> neuronwise_penalty(theta, weigh_groups(torch.tensor([0, 0, 1, 1]), n_groups=2))
    tensor(0.5310)
    """
    row_weights, prior = groups
    with torch.no_grad():
        _, _, log_ratio = mixture_ratio(_cell_means(row_weights, 1 - theta, theta), prior)
        zero, one = (prior.unsqueeze(-1) / LN2 * log_ratio).chunk(2, -1)
        constant, gradient = zero.sum((-2, -1)), row_weights.mT @ (one - zero)
    return (theta * gradient).sum((-2, -1)) + constant


def _cell_means(row_weights: Tensor, zero: Tensor, one: Tensor) -> Tensor:
    """Return the groups' means of something of every bit's 0, then of its 1 (..., n, m).  (..., K, 2m)"""
    return torch.cat([row_weights @ zero, row_weights @ one], -1)  # the small tables side by side, not the rows


def word_tables(theta: Tensor, groups: Groups, **weighing: Unpack[Weighing]) -> tuple[Tensor, Tensor]:
    """Return the probability of every code in every group, and the groups' probabilities.

    P_s(t) = mean over the rows of group s of prod_i theta_i^{t_i} (1 - theta_i)^{1 - t_i}: tables (..., K, 2^m), words
    ordered as ``itertools.product((0, 1), repeat=m)``, and prior (..., K). An absent group has a table of zeros and
    probability 0. Like all measures of theta, differentiable once.

    Theta (..., n, m) are the probabilities that each bit is 1, m at most 20; groups (..., n) integers 0..K-1, or
    `WeighedGroups`. By name: weights (..., n), 1 by default; prior (..., K), by default the groups' share of the
    weight; n_groups, K, needed under vmap, which skips the check of values.

    >>> tables, prior = word_tables(torch.tensor([[0.5, 0.1], [0.5, 0.9]]), torch.tensor([0, 1]))
    >>> tables
    tensor([[0.4500, 0.0500, 0.4500, 0.0500],
            [0.0500, 0.4500, 0.0500, 0.4500]])
    """
    if theta.shape[-1] > MAX_BITS:
        problem = f"theta has {theta.shape[-1]} bits, too many to list all 2^m codes (at most {MAX_BITS})."
        wide = "monte_carlo_information for a value, wide_information for a penalty, information_bounds for an interval"
        raise InputError(problem, remedy=f"Use {wide}.")
    row_weights, prior = group_weights(theta, groups, **weighing)
    return mean_words(theta, row_weights), prior


def table_information(tables: Tensor, prior: Tensor) -> Tensor:
    """Return the mutual information between a cell and its group, in bits.

    I = sum_s pi_s sum_t P_s(t) log2(P_s(t) / P(t)), P = sum_s pi_s P_s. Tables are (..., K, cells), one distribution
    per group (all zero for an absent group), and prior (..., K).

    >>> table_information(torch.tensor([[0.9, 0.1], [0.1, 0.9]]), torch.tensor([0.5, 0.5]))
    tensor(0.5310)
    """
    with torch.no_grad():
        _, divergence, log_ratio = mixture_divergence(tables, prior)
        share = prior.unsqueeze(-1) / LN2
        value, slope = (share * divergence).sum((-2, -1), keepdim=True), share * log_ratio
    return with_gradient(tables, value, slope).squeeze((-2, -1))


def joint_information(theta: Tensor, groups: Groups, **weighing: Unpack[Weighing]) -> Tensor:
    """Return I(T;S) of one drawn code and the group, in bits, exactly over all 2^m codes: (...).

    Of these rows: on few of them it exceeds the population's on average (see `joint_bias`). Arguments as in
    `word_tables`. Two bits that reveal nothing alone and everything together (S = bit 0 xor bit 1):

    >>> theta = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> joint_information(theta, torch.tensor([0, 1, 1, 0]))
    tensor(1.)
    """
    return table_information(*word_tables(theta, groups, **weighing))


def running_information(tables: Tensor, prior: Tensor, running: Tensor, beta: float) -> tuple[Tensor, Tensor]:
    """Return a penalty with the gradient of the information at running tables, in bits, and those tables.

    new_s = beta old_s + (1 - beta) P_s; penalty = sum_s pi_s <P_s, stop_gradient log2(new_s / sum_s pi_s new_s)>. The
    penalty is an information only at beta = 0; log ``table_information(new_running, prior)`` instead. A group's first
    batch starts its table; a group absent from the batch keeps it. Tables and prior are those of `word_tables`, running
    is like tables (zeros at the start), and beta is the share of the past, 0.9 to 0.98.

    >>> tables, prior = torch.tensor([[0.9, 0.1], [0.1, 0.9]]), torch.tensor([0.5, 0.5])
    >>> penalty, running = running_information(tables, prior, torch.zeros_like(tables), 0.9)
    >>> penalty
    tensor(0.5310)
    """
    with torch.no_grad():
        present, started = (t.sum(-1, keepdim=True) > 0 for t in (tables, running))
        blend = torch.where(started, beta * running + (1 - beta) * tables, tables)
        new_running = torch.where(present, blend, running)
        _, _, log_ratio = mixture_ratio(new_running, prior)
        slope = prior.unsqueeze(-1) * log_ratio / LN2
    return (slope * tables).sum((-2, -1)), new_running


def total_variation(theta: Tensor, groups: Groups, **weighing: Unpack[Weighing]) -> Tensor:
    """Return the largest total variation between two groups' code distributions, in [0, 1], not in bits: (...).

    max over pairs of (1/2) sum_t |P_s(t) - P_s'(t)|: how much better than chance anyone can distinguish two groups of
    these rows from one code. Groups that are absent or have prior 0 are left out. Arguments as in `word_tables`.

    >>> total_variation(torch.tensor([[0.9], [0.1], [0.2]]), torch.tensor([0, 1, 2]))
    tensor(0.8000)
    """
    tables, share = word_tables(theta, groups, **weighing)
    every = list(zip(tables.unbind(-2), (share > 0).unbind(-1), strict=True))
    pairs = [(every[0], every[0]), *combinations(every, 2)]  # a group alone is at distance 0
    distances = [(p - q).abs().sum(-1) / 2 * (has_p & has_q) for (p, has_p), (q, has_q) in pairs]
    return torch.stack(distances, -1).amax(-1)


def joint_bias(theta: Tensor, groups: Groups, **weighing: Unpack[Weighing]) -> Tensor:
    """Estimate by how much `joint_information` of these rows exceeds the population's, in bits, to first order: (...).

    sum_s pi_s / (2 n_s ln 2) sum_t Var_{x|s} p(t|x) [1/P_s(t) - pi_s/P(t)], with n_s the effective number of rows,
    1 / sum_j w_sj^2. Too small for hard codes with more words than rows. Arguments as in `word_tables`.

    >>> theta = torch.rand(200, 6, generator=torch.Generator().manual_seed(0))
    >>> joint_bias(theta, torch.arange(200) % 2)
    tensor(0.0163)
    """
    row_weights, prior = group_weights(theta, groups, **weighing)
    zero, one = (1 - theta).square(), theta.square()
    total = zero + one  # squared word probabilities are words of odds one : zero, times the product of the totals
    squares = mean_words(one / total, row_weights * total.prod(-1).unsqueeze(-2))
    return _bias(mean_words(theta, row_weights), squares, row_weights, prior).sum(-1)


def neuronwise_bias(theta: Tensor, groups: Groups, **weighing: Unpack[Weighing]) -> Tensor:
    """Estimate by how much `neuronwise_information` of these rows exceeds the population's, by bit: (..., m).

    The formula of `joint_bias` for each bit alone, in bits and to first order. Arguments as in `word_tables`.

    >>> theta = torch.rand(200, 2, generator=torch.Generator().manual_seed(0))
    >>> neuronwise_bias(theta, torch.arange(200) % 2)
    tensor([0.0012, 0.0012])
    """
    row_weights, prior = group_weights(theta, groups, **weighing)
    zero, one = 1 - theta, theta
    means, squares = _cell_means(row_weights, zero, one), _cell_means(row_weights, zero.square(), one.square())
    bias = _bias(means, squares, row_weights, prior)
    return torch.add(*bias.chunk(2, -1))


def _bias(tables: Tensor, squares: Tensor, row_weights: Tensor, prior: Tensor) -> Tensor:
    """Return every cell's part of the bias, from the groups' means and mean squares (..., K, cells): (..., cells)."""
    tiny = torch.finfo(tables.dtype).tiny
    variance = (squares - tables.square()).clamp(min=0) * row_weights.square().sum(-1, keepdim=True)
    share = prior.unsqueeze(-1)
    mixture = prior.unsqueeze(-2) @ tables
    curvature = 1 / tables.clamp(min=tiny) - share / mixture.clamp(min=tiny)
    return (share * variance * curvature).sum(-2) / (2 * LN2)


def code_blocks(theta: Tensor, groups: WeighedGroups) -> tuple[Tensor, WeighedGroups]:
    """Cut theta (n, m) into blocks of 8 bits (blocks, n, 8), with the groups repeated for each.

    A last block of fewer bits is filled up with bits that are always 0 and reveal nothing.
    """
    row_weights, prior = groups
    blocks = pad(theta, (0, -theta.shape[-1] % BLOCK_BITS)).unflatten(-1, (-1, BLOCK_BITS)).movedim(-2, -3)
    lead = blocks.shape[:-2]
    return blocks, WeighedGroups(
        row_weights.unsqueeze(-3).expand(*lead, *row_weights.shape[-2:]), prior.unsqueeze(-2).expand(*lead, -1)
    )


def block_information(theta: Tensor, groups: WeighedGroups) -> Tensor:
    """Return the sum of I(T_b;S) over consecutive blocks b of 8 bits, in bits, exactly, at any width.

    Up to 8 bits this is `joint_information`. Of a wider code it is, like the sum over single bits, a surrogate: blocks
    may repeat each other, or reveal more together. But no synergy within a block escapes it, and its error on few rows
    is that of codes of 8 bits, while the joint information of a code of 64 bits is close to H(S) on any batch.

    >>> from fairbits.information import weigh_groups
    >>> theta = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]).repeat(1, 8)  # 16 bits
    >>> block_information(theta, weigh_groups(torch.tensor([0, 1, 1, 0]), n_groups=2))
    tensor(2.)
    """
    return joint_information(*code_blocks(theta, groups)).sum(-1)


def block_bias(theta: Tensor, groups: WeighedGroups) -> Tensor:
    """Estimate by how much `block_information` of these rows exceeds the population's, as `joint_bias` does: bits.

    >>> from fairbits.information import weigh_groups
    >>> theta = torch.rand(200, 12, generator=torch.Generator().manual_seed(0))
    >>> block_bias(theta, weigh_groups(torch.arange(200) % 2, n_groups=2))
    tensor(0.0341)
    """
    return joint_bias(*code_blocks(theta, groups)).sum(-1)


class RunningInformation(nn.Module):
    """Exact joint information with running tables in training, of the rows given in evaluation; bits.

    Like batch normalisation it averages over batches in training: the information of one small batch errs upwards, and
    that error's gradient wipes out what the code says about x (`running_information` has the formula).

    Returns (penalty, information): the first carries the gradient, the second is the value to log. With `blocks`, theta
    is (blocks, n, code_size), as `code_blocks` gives it, and so many values are returned.
    """

    tables: Tensor

    def __init__(self, n_groups: int, code_size: int, beta: float = 0.98, *, blocks: int | None = None):
        super().__init__()
        self.beta = beta
        lead = () if blocks is None else (blocks,)
        self.register_buffer("tables", torch.zeros(*lead, n_groups, 2**code_size), persistent=False)

    def forward(self, theta: Tensor, groups: Tensor | WeighedGroups) -> tuple[Tensor, Tensor]:
        tables, prior = word_tables(theta, groups, n_groups=self.tables.shape[-2])
        if not self.training:
            information = table_information(tables, prior)
            return information, information.detach()
        penalty, running = running_information(tables, prior, self.tables, self.beta)
        self.tables.copy_(running)
        return penalty, table_information(running, prior).detach()
