"""What held-out rows prove: upper confidence bounds, dimension-free. docs/certificate.md has the proofs."""

import math

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import norm

ASYMPTOTIC_ROWS = 300  # fewer rows per group than this and the normal approximation falls short of its level


def one_set_deviation(rows: np.ndarray, share: float, delta: float, *, asymptotic: bool = False) -> float:
    """Return how far a mean over groups, sum_s share * mean_s(Z) with Z in [0, 1], may fall below its expectation.

    Hoeffding at one fixed event: share sqrt(sum_s 1/n_s ln(1/delta) / 2). The asymptotic variant puts the normal
    quantile and the largest variance, 1/4, in its place.

    >>> round(one_set_deviation(np.array([5000, 5000]), 1.0, 0.05), 4)
    0.0245
    """
    if (rows == 0).any():
        return math.inf
    scale = share * math.sqrt(np.sum(1 / rows))
    return float(scale * (norm.isf(delta) / 2 if asymptotic else math.sqrt(math.log(1 / delta) / 2)))


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
        return min(bound / math.log(2), float(-(prior * np.log2(prior)).sum()))  # at most H(S)
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
    # The function rises from 0 at 0; it is 2 at rho = 1, where it is 0/0.
    top = 1 / smallest
    found = minimize_scalar(lambda rho: -_variance_ratio(rho), bounds=(1e-9, top), method="bounded")
    return max(_variance_ratio(top), -float(found.fun), 2.0)


def _variance_ratio(rho: float) -> float:
    x = rho - 1
    if abs(x) < 1e-3:
        return 2 * (1 + x / 3)
    return rho * math.log(rho) ** 2 / (rho * math.log(rho) - x)


def _least(share: float, excess: float) -> float:
    """Return the smallest q with kl(share || q) <= excess: how rare the rarest group may truly be."""

    def beyond(q: float) -> float:
        other = 0.0 if share >= 1 else (1 - share) * math.log((1 - share) / (1 - q))
        return share * math.log(share / q) + other - excess

    low = share * math.exp(-(excess + math.log(2)) / share) if share > 0 else 0.0
    return brentq(beyond, max(low, 1e-300), share)


def empirical_bernstein(values: np.ndarray, width: float, delta: float) -> float:
    """Return a one-sided upper confidence limit of the mean of independent values in an interval of this width.

    mean + sqrt(2 var ln(2/delta) / R) + 7 width ln(2/delta) / (3 (R - 1)) (Maurer and Pontil 2009).

    >>> round(empirical_bernstein(np.array([0.2] * 1000), 1.0, 0.05), 4)
    0.2086
    """
    log_term, count = math.log(2 / delta), len(values)
    slack = math.sqrt(2 * values.var(ddof=1) * log_term / count) + 7 * width * log_term / (3 * (count - 1))
    return float(values.mean() + slack)
