"""What rows prove: bounds of total variation, guesses and information, dimension-free. docs/certificate.md proves them.

Upper bounds are what the rows themselves show, plus how far it may lie below the truth.
"""

import math
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple, Self

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import entropy

from fairbits.certificate.deviations import HOEFFDING, deviation, hoeffding_deviation, limit_of_difference
from fairbits.certificate.group_sums import GroupSums
from fairbits.certificate.limits_of_rates import limit_of_rates
from fairbits.information.shown_tables import shown_information


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
        distance = {(s, r): float(np.abs(shares[s] - shares[r]).sum() / 2) for s, r in combinations(range(k), 2)}
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
