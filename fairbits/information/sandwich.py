"""Two numbers that hold the population's information between them, in expectation."""

import torch
from torch import Tensor

from fairbits.errors import InputError
from fairbits.information.entropy import LN2
from fairbits.information.exact import table_information
from fairbits.information.sampling import CLAMP, draw_codes, drawn_divergences, relative_tables
from fairbits.information.weighed_groups import ONE_REPLICA, Groups, Weights, group_weights, normalised
from fairbits.information.words import EXACT_BITS, mean_words

Rows = tuple[Tensor, Tensor]  # theta (n, m) and row weights (K, n)


@torch.no_grad()
def information_sandwich(
    theta: Tensor,
    groups: Groups,
    *,
    weights: Weights = None,
    prior: Weights = None,
    n_groups: int | None = None,
    n_draws: int = 4096,
    generator: torch.Generator | None = None,
) -> tuple[Tensor, Tensor]:
    """Return (lower, upper) around the population's I(T;S), in bits, each valid in expectation.

    Upper: the empirical information, whose mean lies above. Lower (Barber and Agakov): the mean of log2 r_s(t) / pi_s
    on one half of the rows, where r_s = (1 - c) p(s|t) + c pi_s comes from the other half and c = 2 / sqrt(n);
    averaged over the two directions. For rows drawn independently and a fixed prior. Neither end is a confidence
    bound, and the lower one may be negative. No gradient.

    Parameters
    ----------
    theta : (n, m); exact up to 16 bits, by drawing codes above
    groups, weights, prior, n_groups : as in `word_tables`. A group with a single row makes the lower end 0
    n_draws : codes drawn for each number above 16 bits
    generator : splits the rows, and draws

    Examples
    --------
    >>> theta = torch.sigmoid(torch.randn(2000, 8, generator=torch.Generator().manual_seed(0)))
    >>> generator = torch.Generator().manual_seed(1)
    >>> lower, upper = information_sandwich(theta, torch.arange(2000) % 2, generator=generator)
    >>> print(f"{lower:.4f} {upper:.4f}")  # the population's is 0
    -0.0030 0.0010
    """
    if theta.dim() != 2:
        raise InputError(f"theta must have shape (rows, bits), got {tuple(theta.shape)}.", remedy=ONE_REPLICA)
    row_weights, prior = group_weights(theta, groups, weights=weights, prior=prior, n_groups=n_groups, check=True)
    if theta.shape[-1] <= EXACT_BITS:
        upper = table_information(mean_words(theta, row_weights), prior)
    else:
        upper = drawn_divergences(theta, row_weights, prior, n_draws, generator).mean()
    return _lower_end(theta, row_weights, prior, n_draws // 2, generator), upper


def _lower_end(
    theta: Tensor, row_weights: Tensor, prior: Tensor, n_draws: int, generator: torch.Generator | None
) -> Tensor:
    first = _first_half(row_weights, generator)
    second = (row_weights.sum(0) > 0) & ~first
    halves = [(theta[rows], normalised(row_weights[:, rows])) for rows in (first, second)]
    present = prior > 0
    if present.sum() < 2 or any((w.sum(-1) == 0)[present].any() for _, w in halves):
        return theta.new_zeros(())
    mixing = min(1.0, 2 / float(first.sum() + second.sum()) ** 0.5)
    ends = [_held_out(fit, test, prior, mixing, n_draws, generator) for fit, test in (halves, reversed(halves))]
    return (ends[0] + ends[1]) / 2


def _first_half(row_weights: Tensor, generator: torch.Generator | None) -> Tensor:
    """Choose at random every other row of each group, among those with weight: (n,) booleans."""
    used = row_weights.sum(0).nonzero().squeeze(-1)
    used = used[torch.randperm(len(used), generator=generator, device=used.device)]
    by_group = used[row_weights[:, used].argmax(0).argsort(stable=True)]
    half = torch.zeros_like(row_weights[0], dtype=torch.bool)
    half[by_group[::2]] = True
    return half


def _held_out(
    fit: Rows, test: Rows, prior: Tensor, mixing: float, n_draws: int, generator: torch.Generator | None
) -> Tensor:
    """Return the mean log2 r_s(t) / pi_s on the test rows, with r from the fit rows."""
    if fit[0].shape[-1] <= EXACT_BITS:
        gain = _log_gain(mean_words(*fit), prior, mixing)
        return (prior.unsqueeze(-1) * mean_words(*test) * gain).sum()
    (fit_p, fit_w), (test_p, test_w) = ((t.clamp(CLAMP, 1 - CLAMP), w) for t, w in (fit, test))
    codes = draw_codes(test_p, prior @ test_w, n_draws, generator)
    joint = prior.unsqueeze(-1) * relative_tables(codes, test_p, test_w)  # (K, draws)
    gain = _log_gain(relative_tables(codes, fit_p, fit_w), prior, mixing)
    return (joint / joint.sum(0) * gain).sum(0).mean()


def _log_gain(tables: Tensor, prior: Tensor, mixing: float) -> Tensor:
    """Return log2 r_s(t) / pi_s = log2((1 - c) P_s/P + c); where no row reaches a code, r is the prior."""
    mixture = prior @ tables
    ratio = torch.where(mixture > 0, tables / mixture.clamp(min=torch.finfo(tables.dtype).tiny), 1)
    return ((1 - mixing) * ratio + mixing).log() / LN2
