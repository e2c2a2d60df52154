"""What the calibration rows themselves show: total variation, best guess and information, exact or by Monte-Carlo."""

from itertools import combinations
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from fairbits.certificate.deviations import empirical_bernstein
from fairbits.certificate.releasing import Release
from fairbits.information import binary_entropy, table_information, word_tables
from fairbits.information.sampling import draw_codes, posterior_divergence, relative_tables
from fairbits.information.weighed_groups import group_weights
from fairbits.information.words import MAX_BITS

EXACT_WORK = 2**36  # rows times code words
MONTE_CARLO_DRAWS = 10_000
MONTE_CARLO_SHARE = 0.1  # of delta
CLAMP = 1e-9  # theta in the logarithms of the Monte-Carlo estimate


class Estimates(NamedTuple):
    """Upper limits of what the rows show; exact values unless drawn."""

    total_variation: np.ndarray  # (K, K) between every two groups
    best_guess: float  # (1/K) sum_t max_s P_s(t)
    information: float  # bits
    spent: float  # share of delta used up by drawing


def estimates(
    theta: Tensor, groups: Tensor, n_groups: int, release: Release, prior: Tensor | None, delta: float, generator
) -> Estimates:
    """Return what these rows show about one release; groups (n,) are numbers below n_groups, all with rows."""
    n, m = theta.shape[0], theta.shape[1] * release.draws
    if m <= MAX_BITS and n * 2**m <= EXACT_WORK:
        tables, share = word_tables(release.theta(theta), groups, prior=prior, n_groups=n_groups)
        return _exact(tables if release.coarse is None else _gathered(tables, release.word_cells(m)), share)
    if release.coarse is not None:
        row_weights, share = group_weights(theta, groups, prior=prior, n_groups=n_groups)
        return _exact(row_weights @ release.cell_probabilities(theta, generator), share)
    theta = release.theta(theta)
    return _drawn(theta, groups, n_groups, prior, MONTE_CARLO_SHARE * delta, generator)


def _exact(tables: Tensor, share: Tensor) -> Estimates:
    k = len(tables)
    distance = np.zeros((k, k))
    for s, r in combinations(range(k), 2):
        distance[s, r] = distance[r, s] = float((tables[s] - tables[r]).abs().sum() / 2)
    best_guess = float(tables.amax(0).sum() / k)
    return Estimates(distance, best_guess, float(table_information(tables, share)), 0.0)


def _gathered(tables: Tensor, cells: Tensor) -> Tensor:
    """Add up the words of each cell.  (K, words) -> (K, cells)"""
    return tables.new_zeros(len(tables), int(cells.max()) + 1).index_add_(1, cells, tables)


def _drawn(theta: Tensor, groups: Tensor, n_groups: int, prior: Tensor | None, delta: float, generator) -> Estimates:
    """Draw codes from mixtures of the rows; every limit holds with probability 1 - delta on its own."""
    row_weights, share = group_weights(theta, groups, prior=prior, n_groups=n_groups)
    p = theta.clamp(CLAMP, 1 - CLAMP)
    moved = theta.shape[1] * CLAMP  # total variation by which the clamping may move a group's codes
    distance = np.zeros((n_groups, n_groups))
    for s, r in combinations(range(n_groups), 2):
        pair = row_weights[[s, r]]
        tables = relative_tables(draw_codes(p, pair.mean(0), MONTE_CARLO_DRAWS, generator), p, pair)
        limit = empirical_bernstein(((tables[0] - tables[1]).abs() / tables.sum(0)).numpy(), 1.0, delta)
        distance[s, r] = distance[r, s] = limit + 2 * moved
    tables = relative_tables(draw_codes(p, row_weights.mean(0), MONTE_CARLO_DRAWS, generator), p, row_weights)
    guess = empirical_bernstein((tables.amax(0) / tables.sum(0)).numpy(), 1 - 1 / n_groups, delta) + 2 * moved
    mixture = draw_codes(p, share @ row_weights, MONTE_CARLO_DRAWS, generator)
    values = posterior_divergence(relative_tables(mixture, p, row_weights), share).numpy()
    hidden = 2 * (moved * np.log2(n_groups) + float(binary_entropy(torch.tensor(moved, dtype=theta.dtype))))
    information = empirical_bernstein(values, -np.log2(float(share.min())), delta) + hidden
    return Estimates(distance, guess, information, delta)
