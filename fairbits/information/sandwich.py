"""Two numbers that hold the population's information between them, in expectation."""

import torch
from torch import Tensor

from .entropy import LN2
from .group_means import group_weights
from .sampling import CLAMP, draw_codes, drawn_divergences, relative_tables
from .tables import table_information
from .words import mean_words

EXACT_BITS = 16


@torch.no_grad()
def information_sandwich(
    theta: Tensor,
    groups: Tensor,
    *,
    weights: Tensor | None = None,
    prior: Tensor | None = None,
    n_groups: int | None = None,
    n_draws: int = 4096,
    generator: torch.Generator | None = None,
) -> tuple[Tensor, Tensor]:
    """Return (lower, upper) around the population's I(T;S), in bits, each valid in expectation.

    Upper: the empirical information, which errs upwards on average. Lower (Barber and Agakov): the mean
    of log2 r_s(t) / pi_s on one half of the rows, r = (1 - c) p(s|t) + c pi_s fitted on the other half, c
    = 2 / sqrt(n); averaged over the two directions. For rows drawn independently and a fixed prior.
    Neither end is a confidence bound, and the lower one may be negative. No gradient.

    Parameters
    ----------
    theta : (n, m); exact up to 16 bits, by drawing codes above
    groups, weights, prior, n_groups : as in `word_tables`. A group with a single row makes the lower end 0
    n_draws : codes drawn for each number above 16 bits
    generator : splits the rows, and draws

    Examples
    --------
    >>> theta = torch.sigmoid(torch.randn(2000, 8, generator=torch.Generator().manual_seed(0)))
    >>> lower, upper = information_sandwich(
    ...     theta, torch.arange(2000) % 2, generator=torch.Generator().manual_seed(1)
    ... )
    >>> print(f"{lower:.4f} {upper:.4f}")  # the population's is 0
    -0.0030 0.0010
    """
    if theta.dim() != 2:
        raise ValueError(
            f"theta must have shape (rows, bits), got {tuple(theta.shape)}; call once per replica"
        )
    row_weights, prior = group_weights(
        theta, groups, weights=weights, prior=prior, n_groups=n_groups, check_values=True
    )
    if theta.shape[-1] <= EXACT_BITS:
        upper = table_information(mean_words(theta, row_weights), prior)
    else:
        upper = drawn_divergences(theta, row_weights, prior, n_draws, generator).mean()
    used = row_weights.sum(0) > 0
    theta, row_weights = theta[used], row_weights[:, used]
    half = _halve(row_weights, generator)
    first, second = ((theta[h], row_weights[:, h]) for h in (half, ~half))
    if any(((w > 0).sum(-1) == 0)[prior > 0].any() for _, w in (first, second)):
        return torch.zeros_like(upper), upper
    draws = n_draws // 2
    lower = _held_out(first, second, prior, draws, generator) + _held_out(
        second, first, prior, draws, generator
    )
    return lower / 2, upper


def _halve(row_weights: Tensor, generator: torch.Generator | None) -> Tensor:
    """Put every other row of each group, in random order, into the first half."""
    n = row_weights.shape[-1]
    shuffled = torch.randperm(n, generator=generator, device=row_weights.device)
    by_group = shuffled[row_weights.argmax(0)[shuffled].argsort(stable=True)]
    half = torch.zeros(n, dtype=torch.bool, device=row_weights.device)
    half[by_group[::2]] = True
    return half


def _held_out(
    fit: tuple[Tensor, Tensor],
    test: tuple[Tensor, Tensor],
    prior: Tensor,
    n_draws: int,
    generator: torch.Generator | None,
) -> Tensor:
    """Return the mean log2 r_s(t) / pi_s on the test rows (theta, weights), with r from the fit rows."""
    n = fit[0].shape[0] + test[0].shape[0]
    fit, test = (
        (t, w / w.sum(-1, keepdim=True).clamp(min=torch.finfo(w.dtype).tiny)) for t, w in (fit, test)
    )
    if fit[0].shape[-1] <= EXACT_BITS:
        gain = _log_gain(mean_words(*fit), prior, n)
        return (prior.unsqueeze(-1) * mean_words(*test) * gain).sum()
    (fit_p, fit_w), (test_p, test_w) = ((t.clamp(CLAMP, 1 - CLAMP), w) for t, w in (fit, test))
    codes = draw_codes(test_p, prior @ test_w, n_draws, generator)
    joint = prior.unsqueeze(-1) * relative_tables(codes, test_p, test_w)  # (K, draws)
    posterior = joint / joint.sum(0)
    return (posterior * _log_gain(relative_tables(codes, fit_p, fit_w), prior, n)).sum(0).mean()


def _log_gain(tables: Tensor, prior: Tensor, n: int) -> Tensor:
    """Return log2 r_s(t) / pi_s = log2((1 - c) P_s/P + c), in bits; where no row reaches a code, r is the prior."""
    mixture = prior @ tables
    ratio = torch.where(mixture > 0, tables / mixture.clamp(min=torch.finfo(tables.dtype).tiny), 1)
    c = min(1.0, 2 / n**0.5)
    return ((1 - c) * ratio + c).log() / LN2
