"""Bounds on the information of a code of any width: of these rows for certain, of their population in expectation."""

from typing import Unpack

import torch
from torch import Tensor

from fairbits.errors import InputError
from fairbits.information.array_information import held_out_information
from fairbits.information.exact import LN2, group_entropy, neuronwise_information, safe_log, table_information
from fairbits.information.sampling import CLAMP, RNG, draw_codes, drawn_divergences, relative_tables
from fairbits.information.words import (
    EXACT_BITS,
    Groups,
    WeighedGroups,
    Weighing,
    group_weights,
    mean_words,
    normalised,
)

SUBSET_BITS = 12
BLOCK_ROWS = 2048
_CANDIDATES = 64
Rows = tuple[Tensor, Tensor]  # theta (n, m) and row weights (K, n)


@torch.no_grad()
def information_bounds(
    theta: Tensor, groups: Groups, *, iterations: int = 100, **weighing: Unpack[Weighing]
) -> tuple[Tensor, Tensor]:
    """Return (lower, upper) on the empirical I(T;S) of one drawn code and the group, in bits.

    Both hold for these rows without sampling, and up to 16 bits both are the exact value. Above, lower is the exact
    information of 12 bits chosen greedily, and upper the best of H(S), `pair_bound` and `mixture_bound`, in blocks Z of
    2,048 rows: I(T;S) <= I(Z;S) + I(T;S|Z). Theta is (n, m), other arguments as in `word_tables`. Float64; no gradient.

    >>> theta = torch.tensor([0.6, 0.4]).repeat_interleave(50)[:, None].expand(-1, 30)
    >>> lower, upper = information_bounds(theta, torch.arange(2).repeat_interleave(50))
    >>> print(f"{lower:.3f} {upper:.3f}")  # the truth is 0.552
    0.287 0.598
    """
    theta = theta.double()
    row_weights, prior = _weighed(theta, groups, weighing)
    if theta.shape[-1] <= EXACT_BITS:
        exact = table_information(mean_words(theta, row_weights), prior)
        return exact, exact
    used = row_weights.sum(0) > 0
    theta, row_weights = theta[used], row_weights[:, used]
    bits = informative_bits(theta, row_weights, prior, SUBSET_BITS)
    lower = table_information(mean_words(theta[:, bits], row_weights), prior)
    upper = torch.minimum(blocked_bound(theta, row_weights, prior, iterations), group_entropy(prior))
    return lower, torch.maximum(lower, upper)  # equal up to rounding when the bounds meet


def _weighed(theta: Tensor, groups: Groups, weighing: Weighing) -> WeighedGroups:
    if theta.dim() != 2:
        problem = f"theta must have shape (rows, bits), got {tuple(theta.shape)}."
        raise InputError(problem, remedy="Call it once per replica.")
    return group_weights(theta, groups, check=True, **weighing)


def informative_bits(theta: Tensor, row_weights: Tensor, prior: Tensor, size: int) -> list[int]:
    """Choose ``size`` bits greedily by the information of the code they form, on at most 2,048 rows."""
    alone = neuronwise_information(theta, WeighedGroups(row_weights, prior))
    candidates = alone.topk(min(_CANDIDATES, theta.shape[-1])).indices
    rows = _dealt(row_weights, -(-len(theta) // BLOCK_ROWS)) == 0
    theta, row_weights = theta[rows][:, candidates], normalised(row_weights[:, rows])
    chosen: list[int] = []
    words = torch.ones_like(theta[:, :1]).mT  # (words, rows)
    for _ in range(min(size, len(candidates))):
        ones = torch.stack([(words * w) @ theta for w in row_weights])  # (K, words, m)
        zeros = ((row_weights @ words.mT).unsqueeze(-1) - ones).clamp(min=0)
        gain = table_information(torch.cat([zeros, ones], 1).movedim(-1, 0), prior)  # (m,), of one more bit
        gain[chosen] = -1.0
        chosen.append(int(gain.argmax()))
        bit = theta[:, chosen[-1]]
        words = torch.cat([words * (1 - bit), words * bit])
    return candidates[chosen].tolist()


def _dealt(row_weights: Tensor, n_blocks: int) -> Tensor:
    """Deal the rows of each group out to the blocks in turn: (n,) block numbers."""
    turn = torch.arange(row_weights.shape[-1], device=row_weights.device) % n_blocks
    return torch.empty_like(turn).index_copy_(0, row_weights.argmax(0).argsort(stable=True), turn)


def blocked_bound(
    theta: Tensor, row_weights: Tensor, prior: Tensor, iterations: int, block_rows: int = BLOCK_ROWS
) -> Tensor:
    """Return I(Z;S) + sum_z P(z) bound on I(T;S|Z=z) for blocks Z of rows, stratified by group."""
    n_blocks = -(-len(theta) // block_rows)
    block = _dealt(row_weights, n_blocks)
    mass = row_weights.new_zeros(len(prior), n_blocks).index_add(1, block, row_weights)  # P(z|s)
    total = table_information(mass, prior)
    for z in range(n_blocks):
        joint = prior * mass[:, z]
        inside = row_weights[:, block == z] / torch.where(mass[:, z] > 0, mass[:, z], 1).unsqueeze(-1)
        arguments = (theta[block == z], inside, joint / joint.sum(), iterations)
        total += joint.sum() * torch.minimum(pair_bound(*arguments), mixture_bound(*arguments))
    return total


def pair_bound(theta: Tensor, row_weights: Tensor, prior: Tensor, iterations: int = 100) -> Tensor:
    """Bound I(T;S) in bits by unbalanced pairs of rows of different groups; theta (n, m), row_weights (K, n).

    I <= H(S) - sum_jk (a + b) g(sqrt(ab) BC_jk / (a + b)) for masses a, b of the pairs (docs/theory.md). More groups
    follow the chain I(T;S) = sum_k P(S >= k) I(T; [S = k] | S >= k).
    """
    mass = prior.unsqueeze(-1) * row_weights  # (K, n), probability of each row
    total = mass.new_zeros(())
    for k in range(len(prior) - 1):
        one, rest = mass[k], mass[k + 1 :].sum(0)
        if one.any() and rest.any():
            both = one.sum() + rest.sum()
            here, there = one > 0, rest > 0
            affinity = bhattacharyya(theta[here], theta[there])
            total += both * _unbalanced_pairs(affinity, one[here] / both, rest[there] / both, iterations)
    return total


def bhattacharyya(theta: Tensor, other: Tensor) -> Tensor:
    """Return sum_t sqrt(p(t|x) p(t|x')) of every pair of rows, in [0, 1]: (n, n')."""
    product = theta.new_ones(len(theta), len(other))
    on, off, other_on, other_off = theta.sqrt(), (1 - theta).sqrt(), other.sqrt(), (1 - other).sqrt()
    for i in range(theta.shape[-1]):
        product *= torch.outer(on[:, i], other_on[:, i]).addr_(off[:, i], other_off[:, i])
    return product.clamp_(max=1.0)


def _unbalanced_pairs(affinity: Tensor, w: Tensor, v: Tensor, iterations: int) -> Tensor:
    """Improve the masses a, b of the pairs: F = sum (a + b) g, a becomes a dF/da, b becomes b dF/db, both scaled."""
    a, b = torch.outer(w, v / v.sum()), torch.outer(w / w.sum(), v)
    best = a.new_zeros(())
    for _ in range(iterations):  # every iterate is a bound
        total = a + b
        uncertainty, slope = _posterior_entropy((a * b).sqrt_().mul_(affinity), total)
        previous, best = best, torch.maximum(best, total.mul_(uncertainty).sum())
        if best - previous < 1e-6 * best:
            break
        step = (b - a).mul_(slope).mul_(0.5)
        _scale(a.mul_(uncertainty).add_(step), w.unsqueeze(1), 1)
        _scale(b.mul_(uncertainty).sub_(step), v.unsqueeze(0), 0)
    entropy = torch.special.entr(torch.stack([w.sum(), v.sum()])).sum()
    return (entropy - best) / LN2


def _posterior_entropy(root: Tensor, total: Tensor) -> tuple[Tensor, Tensor]:
    """Return g(v) in nats and v g'(v) at v = root / total, at most 1/2.

    With r = sqrt(1 - 4 v^2), p = (1 - r) / 2 and x = ln((1 - p) / p): g = p x - ln(1 - p) and v g' = 2 v^2 x / r.
    """
    tiny = torch.finfo(root.dtype).tiny
    v2 = root.div_(total.clamp(min=tiny)).clamp_(max=0.5).square_()
    r = (1 - 4 * v2).clamp_(min=1e-12).sqrt_()  # at r = 0 the limit of x / r is 2
    p = 2 * v2 / (1 + r)
    rest = torch.log1p(-p)
    x = rest - p.clamp(min=tiny).log_()
    return (p * x).sub_(rest), x.div_(r).mul_(v2).mul_(2)


def _scale(masses: Tensor, sums: Tensor, dim: int) -> None:
    """Scale in place to the given sums along a dimension; a line of zeros becomes uniform."""
    masses.clamp_(min=1e-290).mul_(sums / masses.sum(dim, keepdim=True))


def mixture_bound(theta: Tensor, row_weights: Tensor, prior: Tensor, iterations: int = 100) -> Tensor:
    """Bound I(T;S) in bits by matching each group's rows with rows of the whole mixture; shapes as in `pair_bound`.

    For phi, psi >= 0 with sum_k phi_jk = w_sj and sum_j psi_jk = w_k (log-sum inequality):
    KL(P_s || P) <= sum_jk phi_jk [ln(phi_jk / psi_jk) + KL_jk], minimised in phi and psi in turn.
    """
    everyone = prior @ row_weights
    total = theta.new_zeros(())
    for share, w in zip(prior, row_weights, strict=True):
        if share > 0:
            rows = w > 0
            total += share * _matched(divergences(theta[rows], theta), w[rows], everyone, iterations)
    return total / LN2


def divergences(theta: Tensor, other: Tensor) -> Tensor:
    """Return KL(p(.|x) || p(.|x')) of every pair of rows in nats, infinite where x' rules a bit out."""
    entropy = (torch.special.entr(theta) + torch.special.entr(1 - theta)).sum(-1, keepdim=True)
    cross = theta @ safe_log(other).mT + (1 - theta) @ safe_log(1 - other).mT
    ruled_out = (theta > 0).to(theta.dtype) @ (other == 0).to(theta.dtype).mT
    ruled_out += (theta < 1).to(theta.dtype) @ (other == 1).to(theta.dtype).mT
    return (-entropy - cross).clamp_(min=0).masked_fill_(ruled_out > 0, torch.inf)


def _matched(divergence: Tensor, w: Tensor, everyone: Tensor, iterations: int) -> Tensor:
    """Minimise over phi (whose value is then closed form) and psi in turn; the best value is kept."""
    similarity = divergence.neg_().exp_()
    psi = torch.outer(w, everyone)
    best = w.new_full((), torch.inf)
    for _ in range(iterations):
        psi.mul_(similarity)
        scale = w / psi.sum(1)
        previous, best = best, torch.minimum(best, torch.special.xlogy(w, scale).sum())
        if previous - best < 1e-6 * best:
            break
        psi.mul_(scale.unsqueeze(1))
        _scale(psi, everyone, 0)
    return best


@torch.no_grad()
def information_sandwich(
    theta: Tensor, groups: Groups, *, n_draws: int = 4096, generator: RNG = None, **weighing: Unpack[Weighing]
) -> tuple[Tensor, Tensor]:
    """Return (lower, upper) around the population's I(T;S), in bits, each valid in expectation.

    Upper: the empirical information. Lower (Barber and Agakov): the mean of log2 r_s(t) / pi_s on one half of the rows,
    with r_s = (1 - c) p(s|t) + c pi_s from the other half and c = 2 / sqrt(n), over both directions. Neither end is a
    confidence bound, and the lower one may be negative; a group with a single row makes it 0. No gradient. Theta is
    (n, m), other arguments as in `word_tables`. Above 16 bits, `n_draws` codes are drawn for each number.

    >>> theta = torch.sigmoid(torch.randn(2000, 8, generator=torch.Generator().manual_seed(0)))
    >>> generator = torch.Generator().manual_seed(1)
    >>> lower, upper = information_sandwich(theta, torch.arange(2000) % 2, generator=generator)
    >>> print(f"{lower:.4f} {upper:.4f}")  # the population's is 0
    -0.0030 0.0010
    """
    row_weights, prior = _weighed(theta, groups, weighing)
    if theta.shape[-1] <= EXACT_BITS:
        upper = table_information(mean_words(theta, row_weights), prior)
    else:
        upper = drawn_divergences(theta, row_weights, prior, n_draws, generator).mean()
    return lower_end(theta, row_weights, prior, n_draws // 2, generator), upper


def lower_end(theta: Tensor, row_weights: Tensor, prior: Tensor, n_draws: int, generator: RNG) -> Tensor:
    """Return the sandwich's lower end, from two random halves that share out each group."""
    used = row_weights.sum(0).nonzero().squeeze(-1)
    used = used[torch.randperm(len(used), generator=generator, device=used.device)]
    half = _dealt(row_weights[:, used], 2)
    parts = [used[half == h].sort().values for h in (0, 1)]
    halves = [(theta[rows], normalised(row_weights[:, rows])) for rows in parts]
    present = prior > 0
    if present.sum() < 2 or any((w.sum(-1) == 0)[present].any() for _, w in halves):
        return theta.new_zeros(())
    ends = [_held_out(fit, test, prior, n_draws, generator) for fit, test in (halves, reversed(halves))]
    return theta.new_tensor((ends[0] + ends[1]) / 2)


def _held_out(fit: Rows, test: Rows, prior: Tensor, n_draws: int, generator: RNG) -> float:
    """Return what rows held out show, in bits: of all words, or of words drawn from these rows."""
    n = len(fit[0]) + len(test[0])
    if fit[0].shape[-1] <= EXACT_BITS:
        known, shown = mean_words(*fit), mean_words(*test)
    else:
        (fit_p, fit_w), (test_p, test_w) = ((t.clamp(CLAMP, 1 - CLAMP), w) for t, w in (fit, test))
        codes = draw_codes(test_p, prior @ test_w, n_draws, generator)
        known, shown = (relative_tables(codes, p, w) for p, w in ((fit_p, fit_w), (test_p, test_w)))
        shown /= (prior @ shown) * n_draws
    fitted, held, share = (table.double().cpu().numpy() for table in (known, shown, prior))
    return held_out_information(fitted, held, share, n)
