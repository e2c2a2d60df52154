"""What rows prove: bounds of total variation, guesses and information, dimension-free. docs/certificate.md proves them.

Upper bounds are what the rows themselves show, exactly or by Monte-Carlo, plus how far it may lie below the truth; a
lower bound, a disparity that is there for certain, contradicts an upper one below it.
"""

import math
from itertools import combinations
from typing import NamedTuple

import numpy as np
import torch
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import beta
from torch import Tensor

from fairbits.certificate.deviations import HOEFFDING, deviation, hoeffding_deviation, limit_of_difference
from fairbits.certificate.released_code import Release
from fairbits.errors import InputError
from fairbits.information import WeighedGroups, binary_entropy, share_entropy, table_information, word_tables
from fairbits.information.sampling import draw_codes, posterior_divergence, relative_tables
from fairbits.information.weighed_groups import group_weights
from fairbits.information.words import MAX_BITS

EXACT_WORK = 2**36  # rows times code words
MONTE_CARLO_DRAWS = 10_000
MONTE_CARLO_SHARE = 0.1  # of delta
CLAMP = 1e-9  # theta in the logarithms of the Monte-Carlo estimate


def information_bound(estimate: float, rows: np.ndarray, delta: float, prior: np.ndarray | None = None) -> float:
    """Return an upper confidence bound on the population's I(T;S), in bits, from the rows' own information.

    The one-function Bernstein bound. `prior` fixes the groups' probabilities; None stands for the unknown ones of the
    population the rows were drawn from, and spends a tenth of delta on them.

    Parameters
    ----------
    estimate : I of the rows, bits, at `prior`, or at the groups' shares of the rows
    rows : (K,) rows per group

    >>> round(information_bound(0.005, np.array([10_000, 10_000]), 0.05), 4)
    0.0096
    """
    n, k = int(rows.sum()), len(rows)
    if (rows == 0).any():
        return math.log2(k)
    if prior is not None:
        bound = _bernstein(estimate * math.log(2), prior, rows, delta, smallest=float(prior.min()))
        return min(bound / math.log(2), share_entropy(prior))  # at most H(S)
    spent, share = delta / 10, rows / n
    excess = (k - 1) * math.log(2 * (k - 1) / spent) / n  # KL of the rows' shares from the true ones
    bound = _bernstein(estimate * math.log(2), share, rows, delta - spent, smallest=_least(float(share.min()), excess))
    return min((bound + excess) / math.log(2), math.log2(k))


def _bernstein(estimate: float, prior: np.ndarray, rows: np.ndarray, delta: float, smallest: float) -> float:
    """Solve I = estimate + ln(1/(1-c)) + q + sqrt(q^2 + 2 k I) for the largest I, in nats."""
    log_delta, c = math.log(1 / delta), 1 / rows.sum()
    weight = float((prior / rows).max())
    q = weight * (math.log(1 / c) + math.log(1 / smallest)) * log_delta / 3
    k = weight * variance_constant(smallest) * log_delta
    start = estimate - math.log1p(-c) + q
    return start + k + math.sqrt(2 * start * k + k * k + q * q)


def variance_constant(smallest: float) -> float:
    """Return sup over 0 < rho <= 1/smallest of rho ln^2 rho / (rho ln rho - rho + 1).

    >>> round(variance_constant(0.5), 2), round(variance_constant(0.1), 2)
    (2.49, 3.78)
    """

    def ratio(rho: float) -> float:
        x = rho - 1
        return 2 * (1 + x / 3) if abs(x) < 1e-3 else rho * math.log(rho) ** 2 / (rho * math.log(rho) - x)

    # The function rises from 0 at 0; it is 2 at rho = 1, where it is 0/0.
    found = minimize_scalar(lambda rho: -ratio(rho), bounds=(1e-9, 1 / smallest), method="bounded")
    return max(ratio(1 / smallest), -float(found.fun), 2.0)


def _least(share: float, excess: float) -> float:
    """Return the smallest q with kl(share || q) <= excess: how rare the rarest group may truly be."""

    def beyond(q: float) -> float:
        other = 0.0 if share >= 1 else (1 - share) * math.log((1 - share) / (1 - q))
        return share * math.log(share / q) + other - excess

    return brentq(beyond, max(share * math.exp(-(excess + math.log(2)) / share), 1e-300), share)


def empirical_bernstein(values: np.ndarray, width: float, delta: float) -> float:
    """Return a one-sided upper confidence limit of the mean of independent values in an interval of this width.

    mean + sqrt(2 var ln(2/delta) / R) + 7 width ln(2/delta) / (3 (R - 1)) (Maurer and Pontil 2009).

    >>> round(empirical_bernstein(np.array([0.2] * 1000), 1.0, 0.05), 4)
    0.2086
    """
    log_term, count = math.log(2 / delta), len(values)
    slack = math.sqrt(2 * values.var(ddof=1) * log_term / count) + 7 * width * log_term / (3 * (count - 1))
    return float(values.mean() + slack)


class Estimates(NamedTuple):
    """Upper limits of what the rows show; exact values unless drawn."""

    total_variation: dict[tuple[int, int], float]  # between every two groups
    best_guess: float  # (1/K) sum_t max_s P_s(t)
    information: float  # bits
    spent: float = 0.0  # share of delta used up by drawing

    def upper_bounds(
        self, rows: np.ndarray, delta: float, prior: np.ndarray | None, hard: bool, theorem: str
    ) -> tuple[float, float, float, float, float, str]:
        """Return bounds of total variation, balanced accuracy and information from rows (K,), the estimates, a name.

        The name is that of the theorem behind the bound of the total variation.
        """
        k, distance, name = len(rows), 0.0, HOEFFDING
        for pair, shown in self.total_variation.items():
            found = _limit(shown, rows[[*pair]], delta, hard and self.spent == 0, theorem)
            distance, name = max((distance, name), found)
        guess = (1 + distance) / 2  # of two groups: the same claim
        if k > 2:
            guess = self.best_guess + hoeffding_deviation(rows, 1 / k, delta)
        information = information_bound(self.information, rows, delta, prior)
        shown = max(self.total_variation.values())
        return min(1.0, distance), min(1.0, guess), information, shown, self.information, name


def _limit(shown: float, rows: np.ndarray, delta: float, hard: bool, theorem: str) -> tuple[float, str]:
    """Return an upper limit of the total variation of two groups, and the name of its theorem."""
    if theorem == HOEFFDING:
        return shown + hoeffding_deviation(rows, 1.0, delta), HOEFFDING
    if hard:
        return limit_of_difference(shown, rows, delta)
    length, name = deviation(rows, delta)
    return shown + length, name


def estimates(
    theta: Tensor,
    groups: Tensor,
    n_groups: int,
    release: Release,
    prior: np.ndarray | None,
    delta: float,
    generator: torch.Generator | None,
) -> Estimates:
    """Return what these rows show about one release; groups (n,) are numbers below n_groups."""
    pairs = list(combinations(range(n_groups), 2))
    if len(groups.unique()) < n_groups:  # nothing is known about a group
        return Estimates(dict.fromkeys(pairs, 1.0), 1.0, float(np.log2(n_groups)))
    given = None if prior is None else torch.from_numpy(prior)
    weighed = group_weights(theta, groups, prior=given, n_groups=n_groups)
    tables = _tables(theta, weighed, release, generator)
    if tables is None:
        return _drawn(release.theta(theta), weighed, pairs, MONTE_CARLO_SHARE * delta, generator)
    distance = {(s, r): float((tables[s] - tables[r]).abs().sum() / 2) for s, r in pairs}
    information = float(table_information(tables, weighed.prior))
    return Estimates(distance, float(tables.amax(0).sum() / n_groups), information)


def _tables(
    theta: Tensor, weighed: WeighedGroups, release: Release, generator: torch.Generator | None
) -> Tensor | None:
    """Return how often each group has each word or cell, (K, cells); None if there are too many words."""
    n, m = theta.shape[0], theta.shape[1] * release.draws
    if m <= MAX_BITS and n * 2**m <= EXACT_WORK:
        tables, _ = word_tables(release.theta(theta), weighed)
        if release.coarse is None:
            return tables
        cells = release.word_cells(m)
        return tables.new_zeros(len(tables), int(cells.max()) + 1).index_add_(1, cells, tables)
    return None if release.coarse is None else weighed.row_weights @ release.cell_probabilities(theta, generator)


def _drawn(
    theta: Tensor, weighed: WeighedGroups, pairs: list, delta: float, generator: torch.Generator | None
) -> Estimates:
    """Draw codes from mixtures of the rows; every limit holds with probability 1 - delta on its own."""
    (row_weights, share), k = weighed, len(weighed.prior)
    p = theta.clamp(CLAMP, 1 - CLAMP)
    moved = theta.shape[1] * CLAMP  # total variation by which the clamping may move a group's codes

    def drawn(mixture: Tensor, weights: Tensor) -> Tensor:
        return relative_tables(draw_codes(p, mixture, MONTE_CARLO_DRAWS, generator), p, weights)

    distance = {}
    for pair in pairs:
        tables = drawn(row_weights[[*pair]].mean(0), row_weights[[*pair]])
        apart = ((tables[0] - tables[1]).abs() / tables.sum(0)).numpy()
        distance[pair] = empirical_bernstein(apart, 1.0, delta) + 2 * moved
    tables = drawn(row_weights.mean(0), row_weights)
    guess = empirical_bernstein((tables.amax(0) / tables.sum(0)).numpy(), 1 - 1 / k, delta) + 2 * moved
    values = posterior_divergence(drawn(share @ row_weights, row_weights), share).numpy()
    hidden = 2 * (moved * np.log2(k) + float(binary_entropy(torch.tensor(moved, dtype=theta.dtype))))
    information = empirical_bernstein(values, -np.log2(float(share.min())), delta) + hidden
    return Estimates(distance, guess, information, delta)


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
    to_choose, rows = (np.bincount(groups[half], minlength=n_groups) for half in (first, ~first))
    pairs, sizes = list(combinations(np.flatnonzero(to_choose * rows).tolist(), 2)), to_choose + rows
    if not pairs:
        return ProvedGap(0.0, 0.0)
    halves = []
    for half in (first, ~first):
        weighed = group_weights(theta[half], torch.from_numpy(groups[half]), n_groups=n_groups)
        tables = _tables(theta[half], weighed, release, generator)
        if tables is None:
            bits = theta.shape[1] * release.draws
            problem = f"A code of {bits} bits has too many words to list for {half.sum()} rows."
            raise InputError(problem, remedy="Please pass a coarse code of it.")
        halves.append(tables)
    width = max(tables.shape[1] for tables in halves)  # drawn cells: the last ones may be empty in one half
    chosen, measured = (torch.nn.functional.pad(tables, (0, width - tables.shape[1])) for tables in halves)

    def hoped_for(pair: tuple[int, int]) -> float:
        s, r = pair
        return float((chosen[s] - chosen[r]).clamp(min=0).sum()) - hoeffding_deviation(rows[[s, r]], 1.0, delta)

    s, r = max(pairs, key=hoped_for)
    gap = float((measured[s] - measured[r])[chosen[s] > chosen[r]].sum())
    proved, also = (max(gap - hoeffding_deviation(rows[[s, r]], 1.0, error), 0.0) for error in (delta, delta / 2))
    # Lower limits of the shares of all groups together (Clopper and Pearson): the rows that choose also say how many.
    shares = beta.ppf(delta / 2 / n_groups, np.maximum(sizes, 1), sizes.sum() - sizes + 1)[[s, r]]
    return ProvedGap(proved, 2 * also**2 * float(shares.prod() / shares.sum()) / math.log(2))
