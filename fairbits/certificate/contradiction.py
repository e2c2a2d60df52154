"""What new rows prove from below: a disparity that is there for certain contradicts a bound below it."""

import math
from itertools import combinations
from typing import NamedTuple

import numpy as np
import torch
from scipy.stats import beta
from torch import Tensor

from fairbits.certificate.deviations import one_set_deviation
from fairbits.certificate.estimates import EXACT_WORK
from fairbits.certificate.releasing import Release
from fairbits.errors import InputError
from fairbits.information import word_tables
from fairbits.information.weighed_groups import group_weights
from fairbits.information.words import MAX_BITS


class ProvedGap(NamedTuple):
    """A lower confidence bound on the total variation between two groups, and on the information, in bits."""

    total_variation: float
    information: float


def proved_gap(
    theta: Tensor,
    groups: np.ndarray,
    n_groups: int,
    delta: float,
    *,
    release: Release | None = None,
    generator: torch.Generator | None = None,
) -> ProvedGap:
    """Return how much the code of these rows reveals at least, each number with probability 1 - delta.

    Half of the rows choose two groups and a set of words, the other half measure the gap of its rates, less the
    deviation of one set: the set is fixed given the first half, so nothing is paid for the choice. The information
    follows from the gap by Pinsker's inequality and lower confidence limits of the groups' shares.

    Parameters
    ----------
    theta : (n, m) chances of the bits
    groups : (n,) numbers below n_groups
    release : as in `certify`; a code too wide to list needs a coarse one, which chooses among its cells

    Examples
    --------
    >>> groups = np.arange(4000) % 2
    >>> theta = torch.from_numpy(np.where(groups == 1, 0.7, 0.3))[:, None]
    >>> round(proved_gap(theta, groups, 2, 0.05).total_variation, 2)
    0.35
    """
    release = release or Release()
    first = np.zeros(len(groups), dtype=bool)
    first[np.random.default_rng(0).permutation(len(groups))[::2]] = True
    counts = [np.bincount(groups[half], minlength=n_groups) for half in (first, ~first)]
    present = np.flatnonzero((counts[0] > 0) & (counts[1] > 0))
    if len(present) < 2:
        return ProvedGap(0.0, 0.0)
    number = np.full(n_groups, -1)
    number[present] = np.arange(len(present))
    kept = number[groups] >= 0
    tables = [
        _tables(theta[kept & half], torch.from_numpy(number[groups[kept & half]]), len(present), release, generator)
        for half in (first, ~first)
    ]
    width = max(table.shape[1] for table in tables)  # drawn cells: the last ones may be empty in one half
    chosen, measured = (torch.nn.functional.pad(table, (0, width - table.shape[1])) for table in tables)
    sizes, error = counts[0] + counts[1], delta / 2
    # Lower limits of the shares of all groups together (Clopper and Pearson): the rows that choose also say how many.
    shares = beta.ppf(error / n_groups, np.maximum(sizes, 1), sizes.sum() - sizes + 1)[present]
    return _proved(chosen, measured, counts[1][present], shares, delta)


def _tables(theta: Tensor, groups: Tensor, k: int, release: Release, generator: torch.Generator | None) -> Tensor:
    """Return how often each group has each word or cell, in the mean over its rows.  (K, cells)"""
    n, m = theta.shape[0], theta.shape[1] * release.draws
    if release.coarse is None:
        if m > MAX_BITS or n * 2**m > EXACT_WORK:
            problem = f"A code of {m} bits has too many words to list for {n} rows."
            raise InputError(problem, remedy="Please pass a coarse code of it.")
        return word_tables(release.theta(theta), groups, n_groups=k)[0]
    weights, _ = group_weights(theta, groups, n_groups=k)
    return weights @ release.cell_probabilities(theta, generator)


def _proved(chosen: Tensor, measured: Tensor, rows: np.ndarray, shares: np.ndarray, delta: float) -> ProvedGap:
    """Choose two groups and a set by the first tables, and measure by the second; `rows` are of the second half."""

    def hoped_for(pair: tuple[int, int]) -> float:
        s, r = pair
        return float((chosen[s] - chosen[r]).clamp(min=0).sum()) - one_set_deviation(rows[[s, r]], 1.0, delta)

    s, r = max(combinations(range(len(rows)), 2), key=hoped_for)
    gap = float((measured[s] - measured[r])[chosen[s] > chosen[r]].sum())
    proved, half = (max(gap - one_set_deviation(rows[[s, r]], 1.0, error), 0.0) for error in (delta, delta / 2))
    share = float(shares[s] * shares[r] / (shares[s] + shares[r]))
    return ProvedGap(proved, 2 * half**2 * share / math.log(2))
