"""The information of codes of any width, from drawn codes."""

import warnings
from typing import TypeAlias, Unpack

import torch
from torch import Generator, Tensor
from torch.nn.functional import threshold

from fairbits.errors import InputError, InputWarning
from fairbits.information.exact import LN2, mixture_divergence, safe_log, table_information
from fairbits.information.words import Groups, Weighing, group_weights, with_gradient

RNG: TypeAlias = Generator | None
CLAMP = 1e-6
PENALTY_CLAMP = 1e-3
_CHUNK_NUMBERS = 2**20  # likelihoods held at a time: 4 MB in float32
_NEGLIGIBLE = 1e-30  # relative to the largest likelihood; smaller numbers only slow the processor down


class SparseCountsWarning(InputWarning):
    """There are too few rows for the number of possible codes: counts overstate the information."""


@torch.no_grad()
def monte_carlo_information(
    theta: Tensor, groups: Groups, n_draws: int, generator: RNG = None, **weighing: Unpack[Weighing]
) -> tuple[Tensor, Tensor]:
    """Estimate I(T;S) of one drawn code and the group, in bits, with its standard error, at any width: (...) each.

    Mean over `n_draws` (at least 2) drawn codes t of KL(p(S|t) || pi), where p(S|t) uses all rows: unbiased for the
    information of these rows. Theta is kept within [1e-6, 1 - 1e-6]. It has no gradient (see `wide_information`). Other
    arguments as in `word_tables`.

    >>> theta = torch.tensor([0.6, 0.4]).repeat_interleave(50)[:, None].expand(-1, 30)
    >>> groups = torch.arange(2).repeat_interleave(50)
    >>> estimate, error = monte_carlo_information(theta, groups, 10_000, torch.Generator().manual_seed(0))
    >>> print(f"{estimate:.3f} +- {error:.3f}")
    0.552 +- 0.003
    """
    if n_draws < 2:
        raise InputError(f"n_draws is {n_draws}, but a standard error needs at least 2 draws.")
    v = drawn_divergences(theta, *group_weights(theta, groups, check=True, **weighing), n_draws, generator)
    return v.mean(-1), v.std(-1) / n_draws**0.5


def drawn_divergences(theta: Tensor, row_weights: Tensor, prior: Tensor, n_draws: int, generator: RNG) -> Tensor:
    """Return KL(p(S|t) || prior) of independently drawn codes, in bits: (..., n_draws)."""
    p = theta.clamp(CLAMP, 1 - CLAMP)
    codes = draw_codes(p, (prior.unsqueeze(-2) @ row_weights).squeeze(-2), n_draws, generator)
    return posterior_divergence(relative_tables(codes, p, row_weights), prior)


def draw_codes(p: Tensor, row_probabilities: Tensor, n_draws: int, generator: RNG) -> Tensor:
    """Draw rows with replacement and a code (..., n_draws, m) of 0. and 1. from each."""
    chances = row_probabilities.reshape(-1, row_probabilities.shape[-1])
    chances = torch.where(chances.sum(-1, keepdim=True) > 0, chances, 1)
    rows = torch.multinomial(chances, n_draws, replacement=True, generator=generator)
    rows = rows.reshape(*p.shape[:-2], n_draws, 1).expand(*p.shape[:-2], n_draws, p.shape[-1])
    return torch.bernoulli(p.gather(-2, rows), generator=generator)


def relative_tables(codes: Tensor, p: Tensor, row_weights: Tensor) -> Tensor:
    """Return P_s(t) for given codes (..., d, m), up to a factor shared by the groups: (..., K, d)."""
    terms = _log_terms(p)
    return torch.cat([row_weights @ _relative_likelihood(t, *terms).mT for t in _chunks(codes, -2, p)], -1)


def posterior_divergence(tables: Tensor, prior: Tensor) -> Tensor:
    """Return KL(p(S|t) || prior) in bits for the codes of (unnormalised) tables (..., K, d): (..., d)."""
    mixture, divergence, _ = mixture_divergence(tables, prior)
    floor = mixture.squeeze(-2).clamp(min=torch.finfo(tables.dtype).tiny)
    return (prior.unsqueeze(-1) * divergence).sum(-2) / floor / LN2


def _log_terms(p: Tensor) -> tuple[Tensor, Tensor]:
    """Return what makes ln p(t|x) one matrix product: the log-odds (..., n, m) and ln p(0|x) (..., 1, n)."""
    return torch.logit(p), torch.log1p(-p).sum(-1).unsqueeze(-2)


def _relative_likelihood(codes: Tensor, logits: Tensor, log_zeros: Tensor) -> Tensor:
    """Return p(t|x) of every code under every row, divided by the largest of each code: (..., d, n)."""
    log_likelihood = (codes @ logits.mT).add_(log_zeros)
    likelihood = log_likelihood.sub_(log_likelihood.amax(-1, keepdim=True)).exp_()
    return threshold(likelihood, _NEGLIGIBLE, 0.0, inplace=True)


def _chunks(draws: Tensor, dim: int, p: Tensor) -> tuple[Tensor, ...]:
    """Cut the draws so that the likelihoods of a chunk under all rows of p fit the memory set aside."""
    return draws.split(max(1, _CHUNK_NUMBERS // p.shape[:-1].numel()), dim)


def wide_information(
    theta: Tensor, groups: Groups, *, generator: RNG = None, noise: Tensor | None = None, **weighing: Unpack[Weighing]
) -> Tensor:
    """Estimate I(T;S) of one drawn code and the group, in bits, with an unbiased gradient: a penalty at any width.

    Draws one code t_j per row and averages KL(p(S|t_j) || pi); the gradient puts both values of each bit i into t_j,
    g_ji = w_j [log2 P_s/P (t_j, t_i=1) - log2 P_s/P (t_j, t_i=0)]. The estimate keeps theta within [0.001, 0.999]. The
    draws come from `generator`, or from `noise`, uniform numbers (..., n, m). Other arguments as in `word_tables`.

    >>> theta = torch.tensor([0.9, 0.1]).repeat_interleave(500)[:, None].expand(-1, 64)
    >>> groups = torch.arange(2).repeat_interleave(500)
    >>> wide_information(theta, groups, generator=torch.Generator().manual_seed(0))
    tensor(1.0000)
    """
    if noise is not None and noise.shape != theta.shape:
        raise InputError(f"noise has shape {tuple(noise.shape)}, but theta has shape {tuple(theta.shape)}.")
    row_weights, prior = group_weights(theta, groups, **weighing)
    if noise is None:
        noise = torch.rand(theta.shape, generator=generator, dtype=theta.dtype, device=theta.device)
    with torch.no_grad():
        p = theta.clamp(PENALTY_CLAMP, 1 - PENALTY_CLAMP)
        value, gradient = local_expectation(p, (noise < p).to(p.dtype), row_weights, prior)
    return with_gradient(theta, value[..., None, None], gradient).squeeze((-2, -1))


def local_expectation(p: Tensor, codes: Tensor, row_weights: Tensor, prior: Tensor) -> tuple[Tensor, Tensor]:
    """Return the value (...) and the gradient (..., n, m), in bits, for one code per row."""
    logits, log_zeros = _log_terms(p)
    ones = torch.ones_like(p[..., :1])
    flips = torch.cat([logits.exp(), (-logits).exp(), ones], -1)  # p(t|x) changes by these when a bit flips
    flips_all = (prior.unsqueeze(-2) @ row_weights).mT * flips  # (..., n, 2m + 1)
    values, gradients = [], []
    for t, own in zip(_chunks(codes, -2, p), _chunks(row_weights, -1, p), strict=True):  # own (..., K, c): one group
        likelihood = _relative_likelihood(t, logits, log_zeros)
        share = ((prior * (prior < 1)).unsqueeze(-1) * own).sum(-2)  # pi_s / n_s, 0 for a group alone
        values.append((share * posterior_divergence(row_weights @ likelihood.mT, prior)).sum(-1))
        same_group = (own > 0).to(p.dtype).mT @ row_weights  # (..., c, n)
        ratio = _flip_ratio(t, likelihood @ flips_all) - _flip_ratio(t, likelihood.mul_(same_group) @ flips)
        gradients.append(share.unsqueeze(-1) * (2 * t - 1) * ratio / LN2)
    return torch.stack(values, -1).sum(-1), torch.cat(gradients, -2)


def _flip_ratio(t: Tensor, sums: Tensor) -> Tensor:
    """Return ln P(t with bit i flipped) - ln P(t) from P of t with each bit set, cleared and as it is."""
    m = t.shape[-1]
    up, down, total = sums.split([m, m, 1], -1)
    return safe_log(torch.where(t > 0, down, up)) - safe_log(total)


@torch.no_grad()
def counted_information(codes: Tensor, groups: Tensor, **weighing: Unpack[Weighing]) -> Tensor:
    """Return I(T;S) of the histogram of drawn codes (n, m) of 0 and 1, in bits: the paper supplement's BinaryMI.

    Counts have no gradient, exceed the information of the law the codes were drawn from by about
    (2^m - 1)(K - 1) / (2 n ln 2) and saturate at H(S) as soon as all codes differ: prefer `joint_information`. Warns by
    `SparseCountsWarning` when 2^m > n / 10. Other arguments as in `word_tables`, one table only.

    >>> codes = torch.tensor([[0], [0], [0], [1]] * 10)
    >>> counted_information(codes, torch.tensor([0, 0, 1, 1] * 10))
    tensor(0.3113)
    """
    if codes.dim() != 2 or ((codes != 0) & (codes != 1)).any():
        raise InputError(f"codes must be 0 or 1 of shape (rows, bits), got {codes.dtype} of {tuple(codes.shape)}.")
    n, m = codes.shape
    if 2**m > n / 10:
        warning = SparseCountsWarning(
            f"{n} rows for 2^{m} possible codes are too few: counting them overstates the information.",
            remedy=f"Draw from at least 10 * 2^{m} rows, or use joint_information on the probabilities.",
        )
        warnings.warn(warning, stacklevel=3)  # past no_grad's wrapper
    shape = codes if codes.is_floating_point() else codes.to(torch.get_default_dtype())
    row_weights, prior = group_weights(shape, groups, check=True, **weighing)
    words, word = codes.unique(dim=0, return_inverse=True)
    tables = row_weights.new_zeros(prior.shape[-1], len(words)).index_add(1, word, row_weights)
    return table_information(tables, prior)
