"""A penalty for codes too wide to list: one drawn code per row, with its exact local-expectation gradient."""

import torch
from torch import Tensor

from fairbits.errors import InputError

from .entropy import LN2, safe_log
from .given_gradient import with_gradient
from .sampling import draw_chunks, log_terms, posterior_divergence, relative_likelihood
from .weighed_groups import WeighedGroups, group_weights

CLAMP = 1e-3


def wide_information(
    theta: Tensor,
    groups: Tensor | WeighedGroups,
    *,
    weights: Tensor | None = None,
    prior: Tensor | None = None,
    n_groups: int | None = None,
    generator: torch.Generator | None = None,
    noise: Tensor | None = None,
) -> Tensor:
    """Estimate I(T;S) of one drawn code and the group, in bits, with an unbiased gradient at any width.

    Draws one code t_j per row and averages KL(p(S|t_j) || pi). The gradient is not that of the drawn
    value, whose expectation is zero: for each bit i both of its values are put into t_j, g_ji = w_j [log2
    P_s/P (t_j, t_i=1) - log2 P_s/P (t_j, t_i=0)], whose mean over draws is the exact gradient. Empirical;
    theta is kept within [0.001, 0.999] for the estimate, and gradients pass to theta unchanged.

    Parameters
    ----------
    theta, groups, weights, prior, n_groups : as in `word_tables`, at any width
    generator : where the draws come from
    noise : (..., n, m) uniform numbers to draw with, instead of a generator

    Examples
    --------
    >>> theta = torch.tensor([0.9, 0.1]).repeat_interleave(500)[:, None].expand(-1, 64)
    >>> groups = torch.arange(2).repeat_interleave(500)
    >>> wide_information(theta, groups, generator=torch.Generator().manual_seed(0))
    tensor(1.0000)
    """
    if noise is not None and noise.shape != theta.shape:
        raise InputError(f"noise has shape {tuple(noise.shape)}, but must be like theta: {tuple(theta.shape)}")
    row_weights, prior = group_weights(theta, groups, weights=weights, prior=prior, n_groups=n_groups)
    if noise is None:
        noise = torch.rand(theta.shape, generator=generator, dtype=theta.dtype, device=theta.device)
    with torch.no_grad():
        p = theta.clamp(CLAMP, 1 - CLAMP)
        value, gradient = local_expectation(p, (noise < p).to(p.dtype), row_weights, prior)
    return with_gradient(theta, value[..., None, None], gradient).squeeze((-2, -1))


def local_expectation(p: Tensor, codes: Tensor, row_weights: Tensor, prior: Tensor) -> tuple[Tensor, Tensor]:
    """Return the value (...) and the gradient (..., n, m), in bits, for one code per row."""
    logits, log_zeros = log_terms(p)
    ones = torch.ones_like(p[..., :1])
    flips = torch.cat([logits.exp(), (-logits).exp(), ones], -1)  # p(t|x) changes by these when a bit flips
    flips_all = (prior.unsqueeze(-2) @ row_weights).mT * flips  # (..., n, 2m + 1)
    values, gradients = [], []
    for rows in draw_chunks(p, codes.shape[-2]):
        t, own = codes[..., rows, :], row_weights[..., rows]  # own (..., K, c): one group per row
        likelihood = relative_likelihood(t, logits, log_zeros)
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
