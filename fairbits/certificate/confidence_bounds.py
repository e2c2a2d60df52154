"""Rows become sums, how much of every group falls on every word, and sums prove bounds of any width of code.

A certificate needs nothing else of the rows. docs/certificate.md proves the bounds of total variation, guesses and
information. Upper bounds are what the rows themselves show, plus how far it may lie below the truth.
"""

import math
from functools import lru_cache
from itertools import combinations
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import entropy

from fairbits.certificate.decision_rates import limit_of_rates
from fairbits.certificate.deviations import HOEFFDING, deviation, hoeffding_deviation, limit_of_difference
from fairbits.certificate.released_code import Release, binary_number
from fairbits.errors import InputError
from fairbits.information.array_information import law_distance, shown_information

MAX_BITS = 20  # the most whose words are all listed
CHUNK = 2**22  # numbers in the products of a part of the rows


class GroupSums(NamedTuple):
    """Sums over the people of every group, so that the sums of two tables of people add up."""

    words: np.ndarray  # (K, words): of the chances that a person's release is the word
    people: np.ndarray  # (K,)

    @property
    def shares(self) -> np.ndarray:
        """How often each group has each word, (K, words)."""
        return self.words / np.maximum(self.people, 1)[:, None]

    def merge(self, other: Self) -> "GroupSums":
        """Return the sums of both."""
        return GroupSums(self.words + other.words, self.people + other.people)


def group_sums(
    theta: np.ndarray,
    groups: np.ndarray,
    n_groups: int,
    release: Release,
    *,
    person: np.ndarray | None = None,
    rng: Any = None,
) -> GroupSums | None:
    """Return the sums of rows with bits of chances theta (n, m) and groups (n,); None if there are too many words.

    Of several rows with the same number of a person (n,) the mean counts. The words of a hard code that is too wide are
    numbered as they come.
    """
    weights, people = _people(person, groups, n_groups)
    m = theta.shape[1] * release.draws
    if release.hard:
        codes = theta.astype(np.uint8)
        cells = release.cells(codes) if release.coarse is not None else _numbers(codes)
        width = 2**m if release.coarse is None and m <= MAX_BITS else int(cells.max(initial=0)) + 1
        place = groups * width + cells
        words = np.bincount(place, weights, minlength=n_groups * width).astype(np.float64).reshape(n_groups, width)
    elif m <= MAX_BITS:
        words = _mean_words(release.theta(theta), groups, n_groups, weights)
        if release.coarse is not None:
            cells = release.word_cells(m)
            words = np.stack([np.bincount(cells, own) for own in words])
    elif release.coarse is not None:
        chances = release.cell_probabilities(theta, rng)
        members = (groups == np.arange(n_groups)[:, None]).astype(np.float64)
        words = (members if weights is None else members * weights) @ chances
    else:
        return None
    return GroupSums(words, people)


def _people(person: np.ndarray | None, groups: np.ndarray, n_groups: int) -> tuple[np.ndarray | None, np.ndarray]:
    """Return the rows' weights, one for all rows of a person together, and the people of every group."""
    if person is None:
        return None, np.bincount(groups, minlength=n_groups)
    _, first, number = np.unique(person, return_index=True, return_inverse=True)
    torn = np.unique(number[groups != groups[first][number]])
    if len(torn):
        problem = (
            f"{len(torn):,} people have rows in two groups." if len(torn) > 1 else "A person has rows in two groups."
        )
        raise InputError(problem, remedy="Correct the groups, or leave these people out.")
    return 1 / np.bincount(number)[number], np.bincount(groups[first], minlength=n_groups)


def _numbers(codes: np.ndarray) -> np.ndarray:
    """Return the number of every word of (n, m) bits, the first bit most significant; of wide codes any number."""
    if codes.shape[1] <= MAX_BITS:
        return binary_number(codes)
    return np.unique(np.packbits(codes, axis=1), axis=0, return_inverse=True)[1].ravel()


def _mean_words(theta: np.ndarray, groups: np.ndarray, n_groups: int, weights: np.ndarray | None) -> np.ndarray:
    """Return sums of p(t|x) over the rows of every group, (K, 2^m): products of half codes, multiplied."""
    m = theta.shape[1]
    words = np.zeros((n_groups, 2 ** (m // 2), 2 ** (m - m // 2)))
    size = max(256, CHUNK >> (m - m // 2))
    for group in range(n_groups):
        rows = np.flatnonzero(groups == group)
        for part in np.array_split(rows, len(rows) // size + 1):
            left, right = _products(theta[part, : m // 2]), _products(theta[part, m // 2 :])
            words[group] += (left if weights is None else left * weights[part, None]).T @ right
    return words.reshape(n_groups, -1)


def _products(theta: np.ndarray) -> np.ndarray:
    """Return the chances of all words of bits (n, m), the first bit most significant.  (n, 2^m)"""
    chances = np.ones((len(theta), 1))
    for bit in theta.T[..., None]:
        chances = np.stack([chances * (1 - bit), chances * bit], -1).reshape(len(theta), 2 * chances.shape[1])
    return chances


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
        return min(bound / math.log(2), float(entropy(prior, base=2)))  # at most H(S)
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


@lru_cache(4096)
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

    @classmethod
    def nothing(cls, n_groups: int) -> Self:
        """Return what is known where a group has no rows."""
        return cls(dict.fromkeys(combinations(range(n_groups), 2), 1.0), 1.0, math.log2(n_groups))

    @classmethod
    def of(cls, sums: GroupSums, prior: np.ndarray | None) -> Self:
        """Return what sums over the rows show, the information at `prior`, or at the groups' shares of the people."""
        k, shares = len(sums.people), sums.shares
        share = sums.people / sums.people.sum() if prior is None else prior
        distance = {(s, r): float(law_distance(shares[s], shares[r])) for s, r in combinations(range(k), 2)}
        return cls(distance, float(shares.max(0).sum() / k), float(shown_information(shares, share)))

    def upper_bounds(
        self,
        rows: np.ndarray,
        delta: float,
        prior: np.ndarray | None,
        hard: bool,
        theorem: str,
        ones: np.ndarray | None = None,
    ) -> tuple[float, float, float, float, float, str]:
        """Return bounds of total variation, balanced accuracy and information from rows (K,), the estimates, a name.

        The name is that of the theorem behind the bound of the total variation. `ones` (K,) are the counts of one of
        the two values of a hard bit.
        """
        k, distance, name = len(rows), 0.0, HOEFFDING
        for pair, shown in self.total_variation.items():
            counts = None if ones is None else ones[[*pair]]
            found = _limit(shown, rows[[*pair]], delta, hard and self.spent == 0, theorem, counts)
            distance, name = max((distance, name), found)
        guess = (1 + distance) / 2  # of two groups: the same claim
        if k > 2:
            guess = self.best_guess + hoeffding_deviation(rows, 1 / k, delta)
        information = information_bound(self.information, rows, delta, prior)
        shown = max(self.total_variation.values())
        return min(1.0, distance), min(1.0, guess), information, shown, self.information, name


def _limit(
    shown: float, rows: np.ndarray, delta: float, hard: bool, theorem: str, ones: np.ndarray | None
) -> tuple[float, str]:
    """Return an upper limit of the total variation of two groups, and the name of its theorem."""
    if theorem == HOEFFDING:
        return shown + hoeffding_deviation(rows, 1.0, delta), HOEFFDING
    if ones is not None:
        return limit_of_rates(ones, rows, delta)
    if hard:
        return limit_of_difference(shown, rows, delta)
    length, name = deviation(rows, delta)
    return shown + length, name
