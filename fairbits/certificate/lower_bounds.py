"""A disparity that is there for certain: what contradicts an upper bound below it."""

import math
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import beta

from fairbits.certificate.confidence_bounds import GroupSums, group_sums
from fairbits.certificate.deviations import hoeffding_deviation
from fairbits.certificate.released_code import Release
from fairbits.errors import InputError


class ProvedGap(NamedTuple):
    """A lower confidence bound on the total variation between two groups, and on the information, in bits."""

    total_variation: float
    information: float


def proved_gap(
    theta: Any,
    groups: np.ndarray,
    n_groups: int,
    delta: float,
    *,
    release: Release | None = None,
    random_state: Any = None,
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
    >>> theta = np.where(groups == 1, 0.7, 0.3)[:, None]
    >>> round(proved_gap(theta, groups, 2, 0.05).total_variation, 2)
    0.35
    """
    theta, release = np.asarray(theta, dtype=np.float64), release or Release()
    first = np.zeros(len(groups), dtype=bool)
    first[np.random.default_rng(0).permutation(len(groups))[::2]] = True
    halves = [group_sums(theta[half], groups[half], n_groups, release, rng=random_state) for half in (first, ~first)]
    choosing, measuring = halves
    if choosing is None or measuring is None:
        problem = f"A code of {theta.shape[1] * release.draws} bits has too many words to list for {len(theta)} rows."
        raise InputError(problem, remedy="Please pass a coarse code of it.")
    return gap_of_sums(choosing, measuring, delta)


def gap_of_sums(choosing: GroupSums, measuring: GroupSums, delta: float) -> ProvedGap:
    """Return `proved_gap` from the sums of two random halves of the rows: one chooses, the other measures."""
    to_choose, rows = choosing.people, measuring.people
    pairs, sizes = list(combinations(np.flatnonzero(to_choose * rows).tolist(), 2)), to_choose + rows
    if not pairs:
        return ProvedGap(0.0, 0.0)
    found = [choosing.shares, measuring.shares]  # how often each group has each word or cell
    width = max(shares.shape[1] for shares in found)  # drawn cells: the last ones may be empty in one half
    chosen, measured = (np.pad(shares, ((0, 0), (0, width - shares.shape[1]))) for shares in found)

    def hoped_for(pair: tuple[int, int]) -> float:
        s, r = pair
        return float(np.maximum(chosen[s] - chosen[r], 0).sum()) - hoeffding_deviation(rows[[s, r]], 1.0, delta)

    s, r = max(pairs, key=hoped_for)
    gap = float((measured[s] - measured[r])[chosen[s] > chosen[r]].sum())
    proved, also = (max(gap - hoeffding_deviation(rows[[s, r]], 1.0, error), 0.0) for error in (delta, delta / 2))
    # Lower limits of the shares of all groups together (Clopper and Pearson): the rows that choose also say how many.
    shares = beta.ppf(delta / 2 / len(sizes), np.maximum(sizes, 1), sizes.sum() - sizes + 1)[[s, r]]
    return ProvedGap(proved, 2 * also**2 * float(shares.prod() / shares.sum()) / math.log(2))
