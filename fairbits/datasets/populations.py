"""Populations of Bernoulli codes whose leakage about S is known exactly, to test estimators and certificates.

Each row has parameters theta; its code T has independent bits T_i ~ Ber(theta_i). Rows are drawn one by one
from the population, so their empirical information differs from the stated one, which is the population's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.special import expit, kl_div, xlog1py
from scipy.stats import binom

from fairbits.datasets.dataset import Seed
from fairbits.errors import InputError
from fairbits.settings import check_value

Prior = Sequence[float] | None


@dataclass(frozen=True, eq=False, repr=False)
class Population:
    """Hold rows drawn from a population together with the population's true leakage.

    Attributes
    ----------
    X, y : (n, d), (n,) of 0 and 1; the rows as a learning problem
    theta : (n, m) Bernoulli parameters of each row's code
    groups : (n,) of 0..K-1, also called `s`
    prior : (K,) probabilities of the groups
    information, neuronwise_information : I(T;S), and (m,) I(T_i;S), of the population in bits
    total_variation : distance between two groups' code distributions, the largest over pairs of groups
    """

    name: str
    X: np.ndarray
    y: np.ndarray
    theta: np.ndarray
    groups: np.ndarray
    prior: np.ndarray
    information: float
    neuronwise_information: np.ndarray
    total_variation: float

    @property
    def s(self) -> np.ndarray:
        return self.groups

    def draw_codes(self, random_state: Seed = None) -> np.ndarray:
        """Draw one code per row, (n, m) of 0 and 1."""
        rng = np.random.default_rng(random_state)
        return (rng.random(self.theta.shape) < self.theta).astype(np.uint8)

    def __len__(self) -> int:
        return len(self.theta)

    def __repr__(self) -> str:
        rows = f"{len(self)} rows, {self.theta.shape[1]} bits, {len(self.prior)} groups"
        leak = f"I(T;S) {self.information:.4f} bits, total variation {self.total_variation:.4f}"
        return f"Population({self.name}: {rows}; {leak})"


def make_xor(n_samples: int = 1000, *, w: float = 2.0, n_bits: int = 2, random_state: Seed = None) -> Population:
    """Make codes whose bits reveal S only together.

    x is uniform on {-1, 1}^m, S says whether the number of -1 is odd (for two bits: x1 != x2), theta = sigmoid(w x),
    y = [x1 > 0]. With r = tanh(w/2), the number of zeros in the code is odd or even as S says with probability
    (1 + r^m)/2, hence I(T;S) = 1 - h((1 - r^m)/2), total variation |r|^m and I(T_i;S) = 0. For two bits I(T;S) is
    1 - h(2q(1-q)) with q = sigmoid(-w).

    >>> make_xor(w=2.0)
    Population(xor: 1000 rows, 2 bits, 2 groups; I(T;S) 0.2585 bits, total variation 0.5800)
    """
    check_value("n_samples", n_samples, at_least=1, whole=True)
    check_value("w", w)
    check_value("n_bits", n_bits, at_least=2, whole=True)
    x = np.random.default_rng(random_state).choice([-1.0, 1.0], size=(n_samples, n_bits))
    agreement = float(abs(np.tanh(w / 2)) ** n_bits)
    nats = (xlog1py(1 + agreement, agreement) + xlog1py(1 - agreement, -agreement)) / 2  # accurate when tiny
    return _secretive_bits("xor", x, w, (x < 0).sum(axis=1) % 2, np.full(2, 0.5), float(nats / np.log(2)), agreement)


def make_independent(
    n_samples: int = 1000,
    *,
    w: float = 2.0,
    n_bits: int = 4,
    n_groups: int = 2,
    prior: Prior = None,
    random_state: Seed = None,
) -> Population:
    """Make codes that vary with x and reveal nothing about S: all true leakages are 0.

    x is standard normal in m dimensions, S is drawn apart from it, theta = sigmoid(w x), y = [x1 > 0].

    >>> make_independent(n_groups=3)
    Population(independent: 1000 rows, 4 bits, 3 groups; I(T;S) 0.0000 bits, total variation 0.0000)
    """
    check_value("w", w)
    shares = _checked_shares(n_samples, n_bits, n_groups, prior)
    rng = np.random.default_rng(random_state)
    x = rng.standard_normal((n_samples, n_bits))
    return _secretive_bits("independent", x, w, rng.choice(n_groups, size=n_samples, p=shares), shares)


def make_shifted_bits(
    n_samples: int = 1000,
    *,
    delta: float = 0.2,
    n_bits: int = 4,
    n_groups: int = 2,
    prior: Prior = None,
    random_state: Seed = None,
) -> Population:
    """Make codes whose bits are independent given S, with a different probability in each group.

    Every bit of group k is 1 with probability 1/2 + delta (k/(K-1) - 1/2), so that the first and the last group are
    delta apart. The number of ones then reveals as much about S as the code does, so the truth is exact at any width.

    X holds one draw of the code, which leaks exactly `information` bits, and a last column, standard normal and
    independent of S, whose sign is y: the ideal representation keeps that column only.

    >>> make_shifted_bits(delta=0.4, n_groups=3)
    Population(shifted_bits: 1000 rows, 4 bits, 3 groups; I(T;S) 0.2728 bits, total variation 0.5680)
    """
    check_value("delta", delta, at_least=0, at_most=1)
    shares = _checked_shares(n_samples, n_bits, n_groups, prior)
    rng = np.random.default_rng(random_state)
    levels = 0.5 + delta * np.linspace(-0.5, 0.5, n_groups)  # (K,)
    groups = rng.choice(n_groups, size=n_samples, p=shares)
    theta = np.repeat(levels[groups, None], n_bits, axis=1)
    bits = rng.random(theta.shape) < theta
    signal = rng.standard_normal(n_samples)
    counts, one = (binom.pmf(np.arange(m + 1), m, levels[:, None]) for m in (n_bits, 1))  # laws of the number of ones
    each = np.full(n_bits, _information(one, shares))
    farthest = max(float(abs(a - b).sum() / 2) for a, b in combinations(counts, 2))
    X, y = np.column_stack([bits, signal]), (signal > 0).astype(np.int64)
    return Population("shifted_bits", X, y, theta, groups, shares, _information(counts, shares), each, farthest)


def _secretive_bits(
    name: str,
    x: np.ndarray,
    w: float,
    groups: np.ndarray,
    prior: np.ndarray,
    information: float = 0.0,
    total_variation: float = 0.0,
) -> Population:
    """Return a population of theta = sigmoid(w x) and y = [x1 > 0] in which no bit alone reveals anything."""
    y, each = (x[:, 0] > 0).astype(np.int64), np.zeros(x.shape[1])
    return Population(name, x, y, expit(w * x), groups, prior, information, each, total_variation)


def _checked_shares(n_samples: int, n_bits: int, n_groups: int, prior: Prior) -> np.ndarray:
    """Check the sizes and return the probabilities of the groups; None means equal ones."""
    check_value("n_samples", n_samples, at_least=1, whole=True)
    check_value("n_bits", n_bits, at_least=1, whole=True)
    check_value("n_groups", n_groups, at_least=2, whole=True)
    values = np.ones(n_groups) if prior is None else np.asarray(prior, dtype=float)
    if prior is not None and not (values.shape == (n_groups,) and (values > 0).all() and np.isclose(values.sum(), 1)):
        remedy = f"Pass {n_groups} positive numbers that sum to 1, or None."
        raise InputError("is not possible.", argument="prior", value=prior, remedy=remedy)
    return values / values.sum()


def _information(laws: np.ndarray, prior: np.ndarray) -> float:
    """Return I(word;S) in bits from the law of the words in each group, (K, words)."""
    return float(prior @ kl_div(laws, prior @ laws).sum(axis=1) / np.log(2))
