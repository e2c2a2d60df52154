"""Deterministic bounds on the empirical information of a code of any width."""

import torch
from torch import Tensor

from fairbits.errors import InputError

from .entropy import LN2
from .joint import table_information
from .neuronwise import neuronwise_information
from .transport import transport_bound
from .weighed_groups import WeighedGroups, group_weights
from .words import EXACT_BITS, mean_words

SUBSET_BITS = 12
BLOCK_ROWS = 2048
_CANDIDATES = 64


@torch.no_grad()
def information_bounds(
    theta: Tensor,
    groups: Tensor | WeighedGroups,
    *,
    weights: Tensor | None = None,
    prior: Tensor | None = None,
    n_groups: int | None = None,
    iterations: int = 100,
) -> tuple[Tensor, Tensor]:
    """Return (lower, upper) on the empirical I(T;S) of one drawn code and the group, in bits.

    Both hold for these rows without sampling. Up to 16 bits both are the exact value. Above, lower is the
    exact information of 12 bits chosen greedily, and upper the best of H(S) and `transport_bound`, which
    compares rows in pairs and so charges for all dispersion of theta: for reports, a poor penalty.
    Float64; no gradient.

    Parameters
    ----------
    theta : (n, m)
    groups, weights, prior, n_groups : as in `word_tables`
    iterations : of the upper bound; every iterate is valid

    Notes
    -----
    More than 2,048 rows are cut into blocks Z that share out each group: I(T;S) <= I(Z;S) + I(T;S|Z).

    Examples
    --------
    >>> theta = torch.tensor([0.6, 0.4]).repeat_interleave(50)[:, None].expand(-1, 30)
    >>> lower, upper = information_bounds(theta, torch.arange(2).repeat_interleave(50))
    >>> print(f"{lower:.3f} {upper:.3f}")  # the truth is 0.552
    0.287 0.598
    """
    if theta.dim() != 2:
        raise InputError(f"theta must have shape (rows, bits), got {tuple(theta.shape)}; call once per replica")
    theta = theta.double()
    row_weights, prior = group_weights(
        theta, groups, weights=weights, prior=prior, n_groups=n_groups, check_values=True
    )
    if theta.shape[-1] <= EXACT_BITS:
        exact = table_information(mean_words(theta, row_weights), prior)
        return exact, exact
    if (prior > 0).sum() < 2:
        return prior.new_zeros(()), prior.new_zeros(())
    used = row_weights.sum(0) > 0
    theta, row_weights = theta[used], row_weights[:, used]
    bits = informative_bits(theta, row_weights, prior, SUBSET_BITS)
    lower = table_information(mean_words(theta[:, bits], row_weights), prior)
    upper = torch.minimum(blocked_bound(theta, row_weights, prior, iterations), group_entropy(prior))
    return lower, torch.maximum(lower, upper)  # equal up to rounding when the bounds meet


def group_entropy(prior: Tensor) -> Tensor:
    """Return H(S) in bits."""
    return torch.special.entr(prior).sum(-1) / LN2


def blocked_bound(theta: Tensor, row_weights: Tensor, prior: Tensor, iterations: int) -> Tensor:
    """Return I(Z;S) + sum_z P(z) bound on I(T;S|Z=z) for blocks Z of rows, stratified by group."""
    block = _blocks(row_weights)
    n_blocks = int(block.max()) + 1
    mass = row_weights.new_zeros(len(prior), n_blocks).index_add(1, block, row_weights)  # P(z|s)
    total = table_information(mass, prior)
    for z in range(n_blocks):
        joint = prior * mass[:, z]
        inside = row_weights[:, block == z] / torch.where(mass[:, z] > 0, mass[:, z], 1).unsqueeze(-1)
        total += joint.sum() * transport_bound(theta[block == z], inside, joint / joint.sum(), iterations)
    return total


def _blocks(row_weights: Tensor) -> Tensor:
    """Deal the rows of each group out to the blocks in turn: (n,) block numbers."""
    n = row_weights.shape[-1]
    n_blocks = -(-n // BLOCK_ROWS)
    block = torch.empty(n, dtype=torch.long, device=row_weights.device)
    block[row_weights.argmax(0).argsort(stable=True)] = torch.arange(n, device=row_weights.device) % n_blocks
    return block


def informative_bits(theta: Tensor, row_weights: Tensor, prior: Tensor, size: int) -> list[int]:
    """Choose ``size`` bits greedily by the information of the code they form, on at most 2,048 rows.

    One matrix product tells, for every candidate bit, the distribution of the chosen bits with it.
    """
    rows = _blocks(row_weights) == 0
    groups = row_weights.argmax(0)
    alone = neuronwise_information(theta, groups, weights=row_weights.sum(0), prior=prior, n_groups=len(prior))
    candidates = alone.topk(min(_CANDIDATES, theta.shape[-1])).indices
    theta, w = theta[rows][:, candidates], row_weights[:, rows]
    w = w / w.sum(-1, keepdim=True).clamp(min=torch.finfo(w.dtype).tiny)
    chosen: list[int] = []
    words = torch.ones_like(theta[:, :1]).mT  # (words, rows)
    for _ in range(min(size, len(candidates))):
        gain = table_information(_extended_tables(words, theta, w), prior)
        gain[chosen] = -1.0
        chosen.append(int(gain.argmax()))
        bit = theta[:, chosen[-1]]
        words = torch.cat([words * (1 - bit), words * bit])
    return candidates[chosen].tolist()


def _extended_tables(words: Tensor, theta: Tensor, row_weights: Tensor) -> Tensor:
    """Return the tables of the words with one more bit, for every bit: (m, K, 2 words)."""
    ones = torch.stack([(words * w) @ theta for w in row_weights])  # (K, words, m)
    zeros = ((row_weights @ words.mT).unsqueeze(-1) - ones).clamp(min=0)
    return torch.cat([zeros, ones], 1).movedim(-1, 0)
