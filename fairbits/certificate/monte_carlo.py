"""What rows show of codes with too many words to list: upper limits from draws."""

from itertools import combinations

import numpy as np
import torch
from torch import Tensor

from fairbits.certificate.confidence_bounds import Estimates, empirical_bernstein
from fairbits.information import binary_entropy
from fairbits.information.sampling import draw_codes, posterior_divergence, relative_tables
from fairbits.information.words import group_weights

DRAWS = 10_000
SHARE = 0.1  # of delta
CLAMP = 1e-9  # theta in the logarithms


def drawn_estimates(
    theta: np.ndarray, groups: np.ndarray, n_groups: int, prior: np.ndarray | None, delta: float, seed: int
) -> Estimates:
    """Draw codes from mixtures of the rows; every limit holds with probability 1 - SHARE delta on its own."""
    generator, delta, p = torch.Generator().manual_seed(seed), SHARE * delta, torch.from_numpy(theta)
    given = None if prior is None else torch.from_numpy(prior)
    row_weights, share = group_weights(p, torch.from_numpy(groups), prior=given, n_groups=n_groups)
    p = p.clamp(CLAMP, 1 - CLAMP)
    moved = theta.shape[1] * CLAMP  # total variation by which the clamping may move a group's codes

    def drawn(mixture: Tensor, weights: Tensor) -> Tensor:
        return relative_tables(draw_codes(p, mixture, DRAWS, generator), p, weights)

    distance = {}
    for pair in combinations(range(n_groups), 2):
        tables = drawn(row_weights[[*pair]].mean(0), row_weights[[*pair]])
        apart = ((tables[0] - tables[1]).abs() / tables.sum(0)).numpy()
        distance[pair] = empirical_bernstein(apart, 1.0, delta) + 2 * moved
    tables = drawn(row_weights.mean(0), row_weights)
    guess = empirical_bernstein((tables.amax(0) / tables.sum(0)).numpy(), 1 - 1 / n_groups, delta) + 2 * moved
    values = posterior_divergence(drawn(share @ row_weights, row_weights), share).numpy()
    hidden = 2 * (moved * np.log2(n_groups) + float(binary_entropy(torch.tensor(moved, dtype=p.dtype))))
    information = empirical_bernstein(values, -np.log2(float(share.min())), delta) + hidden
    return Estimates(distance, guess, information, delta)
