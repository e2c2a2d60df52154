"""The optimal front: an estimate of what any representation of x can reach, from estimates of p(y|x) and p(s|x)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.special import kl_div
from sklearn.metrics import pairwise_distances_argmin

from fairbits.errors import InputError
from fairbits.estimators.decision_rule import CONVERGED, SMALLEST, k_means, solved
from fairbits.settings import check_value

CELL_ROWS = 20_000  # rows that k-means looks at
MEASURES = ("limit", "information", "accuracy", "auc", "total_variation")


@dataclass(frozen=True)
class OptimalCode:
    """A point of the front and the code that reaches it; the measures are estimates, exact if the posteriors are."""

    limit: float  # of the total variation
    information: float  # I(T;Y), in bits
    accuracy: float
    auc: float  # of the scores `decoder`; of more than two classes the mean, each against the rest
    total_variation: float  # the largest between two groups
    centres: np.ndarray  # (cells, C + K) square roots of the posteriors in the middle of each cell
    law: np.ndarray  # (cells, words) q(t|b); few rows are not 0 and 1
    decoder: np.ndarray  # (words, C) p(y|t)

    def word_probabilities(self, p_label: Any, p_group: Any) -> np.ndarray:
        """Return the chance of each word for rows with these posteriors.  (n, words)"""
        return self.law[pairwise_distances_argmin(_roots(p_label, p_group), self.centres)]


def optimal_front(p_label: Any, p_group: Any, limits: Any, **options: Any) -> pd.DataFrame:
    """Estimate what a representation of x can reach within each limit of the total variation between groups.

    Parameters and options are those of `optimal_codes`. There is a row for each limit: limit, information (I(T;Y) in
    bits), accuracy, auc, total_variation.

    Examples
    --------
    >>> p_label = np.array([[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]])
    >>> p_group = np.array([[0.7, 0.3], [0.5, 0.5], [0.3, 0.7]])
    >>> optimal_front(p_label, p_group, [0, 0.1, 1])[["information", "total_variation"]].round(3)
       information  total_variation
    0        0.000            0.000
    1        0.133            0.100
    2        0.354            0.267
    """
    codes = optimal_codes(p_label, p_group, limits, **options)
    return pd.DataFrame([{name: getattr(code, name) for name in MEASURES} for code in codes])


def optimal_codes(
    p_label: Any,
    p_group: Any,
    limits: Any,
    *,
    n_words: int = 8,
    bins: int = 24,
    rounds: int = 6,
    starts: int = 3,
    random_state: int = 0,
) -> list[OptimalCode]:
    """Return the codes of the optimal front, the best within each limit of the total variation between groups.

    Whatever I(T;Y) and total variation a representation T of x has, a code of (p(y|x), p(s|x)) has, too. On cells b of
    these posteriors, with masses P_b and label means Y_b, the code q(t|b) of the words t maximises

        sum_b P_b sum_t q(t|b) sum_y Y_b(y) log2 v_t(y),    max_{s,s'} sum_t |P(t|s) - P(t|s')| / 2 <= limit

    a linear programme for given v. Then v_t becomes p(y|t), and so on; I(T;Y) never falls. The front is an estimate:
    posteriors err, the alternation may end in a local optimum, and more words may reach more. It never falls with the
    limit, because a code within one limit is within every larger one.

    Parameters
    ----------
    p_label, p_group : (n, C) and (n, K) estimates of p(y|x) and p(s|x), by models that have not seen the rows (out of
        fold), as `PosteriorEncoder.posterior` has them. Models that have seen the rows make the front too high
    limits : one or several, from 0 (nothing may differ) to 1 (everything may)
    n_words : words of the code; a few more add a little information
    bins : there are at most bins**2 cells. Where the rows have no more different posteriors, these are the cells, and
        otherwise those of k-means on the square roots of the probabilities
    rounds, starts : rounds of each alternation, and alternations for each limit; the best is kept. The first begins at
        the k-means centres of the cells' label means, the others at those of half of the cells; one more begins at the
        code of the next smaller limit
    random_state : seed of k-means and of the starts
    """
    smallest = {"n_words": 2, "bins": 2, "rounds": 1, "starts": 1}
    for (name, least), value in zip(smallest.items(), (n_words, bins, rounds, starts), strict=True):
        check_value(name, value, at_least=least, whole=True)
    wanted = np.atleast_1d(np.asarray(limits, dtype=np.float64))
    if wanted.ndim != 1 or not ((wanted >= 0) & (wanted <= 1)).all():
        raise InputError("must be numbers from 0 to 1.", argument="limits", value=limits)
    rng = np.random.default_rng(random_state)
    problem = _Cells.of(*_checked(p_label, p_group), bins, rng)
    first = [*problem.starts(n_words, starts, rng)]
    found: dict[float, OptimalCode] = {}
    for limit in np.unique(wanted).tolist():
        smaller = [*found.values()][-1:]  # feasible here, too
        tried = [problem.alternate(v, limit, rounds) for v in [*first, *(code.decoder for code in smaller)]]
        best = max([*tried, *smaller], key=lambda code: code.information)
        found[limit] = replace(best, limit=limit)
    return [found[limit] for limit in wanted.tolist()]


@dataclass(frozen=True)
class _Cells:
    """Cells of the posteriors: what a linear programme needs to know about the rows."""

    centres: np.ndarray  # (cells, C + K)
    label: np.ndarray  # (cells, C) joint probabilities p(b, y)
    group: np.ndarray  # (K, cells) p(b|s)

    @classmethod
    def of(cls, p_label: np.ndarray, p_group: np.ndarray, bins: int, rng: np.random.Generator) -> "_Cells":
        points = _roots(p_label, p_group)
        centres = np.unique(points, axis=0)
        if len(centres) > bins**2:
            some = rng.choice(len(points), min(len(points), CELL_ROWS), replace=False)
            centres = k_means(points[some], bins**2, rng)
        used, cell = np.unique(pairwise_distances_argmin(points, centres), return_inverse=True)
        member = sparse.csr_matrix((np.ones(len(cell)), (cell, np.arange(len(cell)))))  # (cells, n)
        label, group = member @ p_label / len(cell), member @ p_group
        return cls(centres[used], label, (group / group.sum(0)).T)

    def starts(self, n_words: int, count: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """Yield decoders to begin with, (words, C)."""
        mass = self.label.sum(1)
        roots = np.sqrt(self.label / mass[:, None])
        for number in range(count):
            part = np.flatnonzero(rng.random(len(mass)) < (1 if number == 0 else 0.5))
            part = part if len(part) else np.arange(len(mass))
            centres = k_means(roots[part], n_words, rng, weight=mass[part]) ** 2
            spare = rng.dirichlet(np.ones(len(part)), n_words - len(centres)) @ roots[part] ** 2
            decoder = np.vstack([centres, spare])
            yield decoder / decoder.sum(1, keepdims=True)

    def alternate(self, decoder: np.ndarray, limit: float, rounds: int) -> OptimalCode:
        """Return the code after so many rounds: the best law for a decoder, the decoder of that law."""
        last = -np.inf
        for _ in range(rounds):
            law, _ = constrained_law(self.label @ np.log2(np.maximum(decoder, SMALLEST)).T, self.group, limit)
            joint = law.T @ self.label  # (words, C)
            mass = joint.sum(1, keepdims=True)
            decoder = np.divide(joint, mass, out=decoder.copy(), where=mass > SMALLEST)
            information = word_information(joint)
            if information < last + CONVERGED:
                break
            last = information
        apart = [np.abs((a - b) @ law).sum() / 2 for a, b in combinations(self.group, 2)]
        scores = information, float(joint.max(1).sum()), word_auc(joint, decoder), float(max(apart))
        return OptimalCode(limit, *scores, self.centres, law, decoder)


def constrained_law(gain: np.ndarray, group: np.ndarray, limit: float) -> tuple[np.ndarray, np.ndarray]:
    """Maximise sum_bt gain[b,t] q(t|b) within a limit of the total variation between groups, and price the limit.

    Parameters
    ----------
    gain : (cells, words) what a word gains in a cell, times the mass of the cell
    group : (K, cells) law of the cells in each group
    limit : of max_{s,s'} sum_t |P(t|s) - P(t|s')| / 2

    Returns
    -------
    The law q (cells, words), and prices (K, words): the words of a cell are those of the largest
    gain[b,t] - sum_s group[s,b] prices[s,t].
    """
    n, words = gain.shape
    first, second = np.triu_indices(len(group), 1)
    sign = np.eye(len(group))[first] - np.eye(len(group))[second]  # (pairs, K)
    pairs, slacks, one_each = len(sign), len(sign) * words, np.ones((1, words))
    apart = sparse.kron(sign @ group, sparse.identity(words))  # (pairs * words, cells * words): P(t|s) - P(t|s')
    slack, added = sparse.identity(slacks), sparse.kron(sparse.identity(pairs), one_each)
    below = sparse.block_array([[apart, -slack], [-apart, -slack], [None, added]], format="csr")
    sums = sparse.hstack([sparse.kron(sparse.identity(n), one_each), sparse.csr_matrix((n, slacks))], format="csr")
    cost = np.concatenate([-gain.ravel(), np.zeros(slacks)])
    found = solved(cost, below, pairs, 2 * limit, sums)
    law = np.clip(found.x[: n * words].reshape(n, words), 0, 1)
    law[law < SMALLEST] = 0
    upper, lower = -found.ineqlin.marginals[: 2 * slacks].reshape(2, pairs, words)
    return law / law.sum(1, keepdims=True), sign.T @ (upper - lower)


def word_information(joint: np.ndarray) -> float:
    """Return I(T;Y) in bits of a joint law (words, classes).

    >>> round(word_information(np.eye(2) / 2), 6)
    1.0
    """
    apart = joint.sum(1, keepdims=True) * joint.sum(0)
    return float(kl_div(joint, apart).sum() / np.log(2))


def word_auc(joint: np.ndarray, scores: np.ndarray) -> float:
    """Return the AUC of words' scores (words, classes) under a joint law; of several classes the mean against the rest.

    >>> word_auc(np.array([[0.4, 0.1], [0.1, 0.4]]), np.array([[0.8, 0.2], [0.2, 0.8]]))
    0.8
    """
    classes = [c for c, share in enumerate(joint.sum(0)) if 0 < share < joint.sum()]
    areas = []
    for c in classes[1:] if joint.shape[1] == 2 else classes:
        above = np.sign(scores[:, None, c] - scores[:, c])  # (words, words)
        positive, rest = joint[:, c], joint.sum(1) - joint[:, c]
        areas.append((1 + positive @ above @ rest / (positive.sum() * rest.sum())) / 2)
    return float(np.mean(areas)) if areas else float("nan")


def _roots(p_label: Any, p_group: Any) -> np.ndarray:
    """Return square roots of posteriors side by side: distances as Hellinger's.  (n, C + K)"""
    return np.sqrt(np.hstack([p_label, p_group]))


def _checked(p_label: Any, p_group: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return arrays of probabilities (n, classes) and (n, groups), or raise what is wrong with them."""
    arrays = [np.asarray(p, dtype=np.float64) for p in (p_label, p_group)]
    for name, array in zip(("p_label", "p_group"), arrays, strict=True):
        if array.ndim != 2 or array.shape[1] < 2 or not len(array) or len(array) != len(arrays[0]):
            problem = f"{name} has shape {array.shape}, and p_label {arrays[0].shape}."
            raise InputError(problem, remedy="Pass one row per person and one column for each class or group.")
        if not ((array >= 0).all() and np.allclose(array.sum(1), 1, atol=1e-3)):
            raise InputError(f"{name} must be probabilities: each row at least 0 with the sum 1.")
        if not array.sum(0).all():
            raise InputError(f"A column of {name} is 0 in all rows.", remedy="Leave that class or group out.")
    label, group = (array / array.sum(1, keepdims=True) for array in arrays)
    return label, group
