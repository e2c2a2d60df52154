"""The information of codes of any width, by drawing codes and averaging exactly over everything else."""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn.functional import threshold

from fairbits.errors import InputError

from .entropy import LN2, mixture_divergence
from .weighed_groups import WeighedGroups, group_weights

CLAMP = 1e-6
_CHUNK_NUMBERS = 2**20  # likelihoods held at a time: 4 MB in float32
_NEGLIGIBLE = 1e-30  # beside the largest likelihood; smaller numbers only slow the processor down


@torch.no_grad()
def monte_carlo_information(
    theta: Tensor,
    groups: Tensor | WeighedGroups,
    n_draws: int,
    generator: torch.Generator | None = None,
    *,
    weights: Tensor | None = None,
    prior: Tensor | None = None,
    n_groups: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Estimate I(T;S) of one drawn code and the group, in bits, with its standard error, at any width.

    Mean over drawn codes t of KL(p(S|t) || pi), where p(S|t) uses all rows: unbiased for the empirical
    information of these rows, each term between 0 and log2(1 / min pi). Rows are drawn independently with
    weights pi_s / n_s; theta is kept within [1e-6, 1 - 1e-6]. A value, not a penalty: it has no gradient
    (see `wide_information`).

    Parameters
    ----------
    theta, groups, weights, prior, n_groups : as in `word_tables`, at any width
    n_draws : at least 2
    generator : where the draws come from

    Returns
    -------
    estimate (...), standard_error (...)

    Examples
    --------
    >>> theta = torch.tensor([0.6, 0.4]).repeat_interleave(50)[:, None].expand(-1, 30)
    >>> groups = torch.arange(2).repeat_interleave(50)
    >>> estimate, error = monte_carlo_information(theta, groups, 10_000, torch.Generator().manual_seed(0))
    >>> print(f"{estimate:.3f} +- {error:.3f}")
    0.552 +- 0.003
    """
    if n_draws < 2:
        raise InputError(f"n_draws is {n_draws}; a standard error needs at least 2 draws")
    row_weights, prior = group_weights(
        theta, groups, weights=weights, prior=prior, n_groups=n_groups, check_values=True
    )
    v = drawn_divergences(theta, row_weights, prior, n_draws, generator)
    return v.mean(-1), v.std(-1) / n_draws**0.5


def drawn_divergences(
    theta: Tensor, row_weights: Tensor, prior: Tensor, n_draws: int, generator: torch.Generator | None
) -> Tensor:
    """Return KL(p(S|t) || prior) of independently drawn codes, in bits: (..., n_draws)."""
    p = theta.clamp(CLAMP, 1 - CLAMP)
    codes = draw_codes(p, (prior.unsqueeze(-2) @ row_weights).squeeze(-2), n_draws, generator)
    return posterior_divergence(relative_tables(codes, p, row_weights), prior)


def draw_codes(p: Tensor, row_probabilities: Tensor, n_draws: int, generator: torch.Generator | None) -> Tensor:
    """Draw rows with replacement and a code (..., n_draws, m) of 0. and 1. from each."""
    chances = row_probabilities.reshape(-1, row_probabilities.shape[-1])
    chances = torch.where(chances.sum(-1, keepdim=True) > 0, chances, 1)
    rows = torch.multinomial(chances, n_draws, replacement=True, generator=generator)
    rows = rows.reshape(*p.shape[:-2], n_draws, 1).expand(*p.shape[:-2], n_draws, p.shape[-1])
    return torch.bernoulli(p.gather(-2, rows), generator=generator)


def relative_tables(codes: Tensor, p: Tensor, row_weights: Tensor) -> Tensor:
    """Return P_s(t) for given codes (..., d, m), up to a factor shared by the groups: (..., K, d)."""
    logits, log_zeros = log_terms(p)
    chunks = [
        row_weights @ relative_likelihood(codes[..., draws, :], logits, log_zeros).mT
        for draws in draw_chunks(p, codes.shape[-2])
    ]
    return torch.cat(chunks, -1)


def log_terms(p: Tensor) -> tuple[Tensor, Tensor]:
    """Return what makes ln p(t|x) one matrix product: the log-odds (..., n, m) and ln p(0|x) (..., 1, n)."""
    return torch.logit(p), torch.log1p(-p).sum(-1).unsqueeze(-2)


def relative_likelihood(codes: Tensor, logits: Tensor, log_zeros: Tensor) -> Tensor:
    """Return p(t|x) of every code under every row, divided by the largest of each code: (..., d, n)."""
    log_likelihood = (codes @ logits.mT).add_(log_zeros)
    likelihood = log_likelihood.sub_(log_likelihood.amax(-1, keepdim=True)).exp_()
    return threshold(likelihood, _NEGLIGIBLE, 0.0, inplace=True)


def posterior_divergence(tables: Tensor, prior: Tensor) -> Tensor:
    """Return KL(p(S|t) || prior) in bits for the codes of (unnormalised) tables (..., K, d): (..., d)."""
    mixture, divergence, _ = mixture_divergence(tables, prior)
    floor = mixture.squeeze(-2).clamp(min=torch.finfo(tables.dtype).tiny)
    return (prior.unsqueeze(-1) * divergence).sum(-2) / floor / LN2


def draw_chunks(p: Tensor, n_draws: int) -> Iterator[slice]:
    """Cut the draws so that the likelihoods of a chunk under all rows fit the memory set aside."""
    size = max(1, _CHUNK_NUMBERS // p.shape[:-1].numel())
    return (slice(start, start + size) for start in range(0, n_draws, size))
