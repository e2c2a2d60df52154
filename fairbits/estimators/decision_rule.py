"""The most accurate decisions, and the words that say most of a label, within limits of the disparity: by p(y,s|x)."""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import linprog
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from fairbits.information.array_information import law_distance

SHARES = np.linspace(1, 0, 21)[1:]  # of the disparity without protection: the limits of the linear programmes
COLLINEAR = 1e-6  # of the largest singular value: directions of X below this are left out
ROUNDING = 1e-3  # of the sum of p(y,s|x), in single precision
BEYOND = (1.05, 1.1, 1.2, 1.4)  # times the prices of no disparity: other rows differ from the estimates
ROUNDS = 6  # of words and their decoder
CONVERGED = 1e-7  # bits that a round must add
LEAST_LIMITS = (4e-7, 2e-6, 2e-5)  # below, HiGHS calls some programmes infeasible that have a solution
SMALLEST = 1e-9  # probability, before its logarithm is taken


def decision_rules(p_label: np.ndarray, p_groups: Sequence[np.ndarray], mass: np.ndarray) -> list[list[np.ndarray]]:
    """Return rules from the most accurate on to those of ever less disparity, as prices of the groups.

    A rule decides on the class y with the largest p(y|x) - sum_s prices[y,s] p(s|x) / p(s). The prices are those of a
    linear programme: if the estimates are right, no decision that looks at x alone is more accurate at the same
    disparity (Chen et al. 2023; Xian and Zhao 2024; Zeng et al. 2024).

    Parameters
    ----------
    p_label : (cells, C) estimates of p(y|x)
    p_groups : for every column, or every label of one, the estimates of p(s|x) (cells, K); of a label those of p(y,s|x)
    mass : (cells,) shares of the rows

    Returns
    -------
    Of every rule, the prices (C, K) for each of `p_groups`. The first has none: it decides on the most probable class.

    Examples
    --------
    >>> p_label = np.array([[0.9, 0.1], [0.6, 0.4], [0.4, 0.6], [0.1, 0.9]])
    >>> p_group = np.array([[0.5, 0.5], [0.9, 0.1], [0.1, 0.9], [0.5, 0.5]])
    >>> rules = decision_rules(p_label, [p_group], mass := np.full(4, 1 / 4))
    >>> [decided(p_label, [p_group], mass, rule).tolist() for rule in (rules[0], rules[-1])]
    [[0, 0, 1, 1], [0, 1, 0, 1]]
    """
    shares = [_within(group, mass) for group in p_groups]
    rules = [[np.zeros((p_label.shape[1], group.shape[1])) for group in p_groups]]
    plain = np.eye(p_label.shape[1])[p_label.argmax(1)]
    rates = [(share @ plain)[share.any(1)] for share in shares]
    most = max((float(law_distance(own[:, None], own).max()) for own in rates), default=0.0)
    if most == 0:
        return rules
    gain = p_label * mass[:, None]
    for share in SHARES:
        found = _prices(gain, shares, share * most)
        # Prices of a limit leave some cells undecided; those half way to the next limit do not.
        rules += [[(a + b) / 2 for a, b in zip(rules[-1], found, strict=True)], found]
    return rules + [[factor * prices for prices in rules[-1]] for factor in BEYOND]


def joint_estimates(
    x: np.ndarray, y: np.ndarray, s: np.ndarray, weight: np.ndarray, n_classes: int, sizes: Sequence[int]
) -> np.ndarray:
    """Return how p(y,s|x) depends on x, linearly: by what it says itself if it holds that, else by least squares.

    Labels y (n,) and groups s (n, columns) are numbers, `sizes` says how many groups each column has. The result is
    (features + 1, C, all K), the groups of all columns side by side; the last feature is 1.
    """
    shape = n_classes, max(sum(sizes), 1)
    if x.shape[1] == np.prod(shape) and (x >= 0).all() and np.allclose(x.sum(1), max(len(sizes), 1), atol=ROUNDING):
        return np.eye(x.shape[1] + 1, x.shape[1]).reshape(-1, *shape)
    groups = [np.eye(size)[column] for column, size in zip(s.T, sizes, strict=True)] or [np.ones((len(x), 1))]
    known = np.eye(n_classes)[y][:, :, None] * np.hstack(groups)[:, None]
    root = np.sqrt(weight)[:, None]
    columns = root * np.column_stack([x, np.ones(len(x))])
    return np.linalg.lstsq(columns, root * known.reshape(len(x), -1), rcond=COLLINEAR)[0].reshape(-1, *shape)


class Cells(NamedTuple):
    """Cells of rows with estimates of p(y,s|x), and where in these stand what must not differ between groups."""

    joint: np.ndarray  # (features + 1, C, all K) the `joint_estimates`
    mass: np.ndarray  # (cells,)
    p_label: np.ndarray  # (cells, C)
    p_groups: list[np.ndarray]  # of every column, or every label of one, p(s|x) or p(y,s|x) (cells, K)
    places: list[tuple[list[int], slice]]  # the labels and groups of each

    def scores(self, worth: np.ndarray, prices: Sequence[np.ndarray]) -> np.ndarray:
        """Return sum_y worth[t,y] p(y|x) - sum_s prices[t,s] p(s|x) / p(s), scores of words.  (words, features + 1)"""
        counted = np.zeros((len(worth), *self.joint.shape[1:]))  # in the score of a word: p(y,s|x)
        first = self.places[0][1] if self.places else slice(None)
        counted[:, :, first] = worth[:, :, None]
        for (own, column), group, price in zip(self.places, self.p_groups, prices, strict=True):
            counted[:, own, column] -= (price / group_sizes(group, self.mass))[:, None]
        return np.tensordot(counted, self.joint, ((1, 2), (1, 2)))


def estimated_cells(
    joint: np.ndarray, centres: np.ndarray, mass: np.ndarray, sizes: Sequence[int], within_labels: bool
) -> Cells:
    """Return cells with these centres (cells, features) and masses; groups count in all rows or within labels."""
    n_classes = joint.shape[1]
    parts = np.tensordot(np.column_stack([centres, np.ones(len(centres))]), joint, 1).clip(0)  # (cells, C, all K)
    ends = np.cumsum(sizes)
    columns = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    labels = [[label] for label in range(n_classes)] if within_labels else [list(range(n_classes))]
    places = [(own, column) for column in columns for own in labels]
    first = columns[0] if columns else slice(None)
    p_groups = [parts[:, own, column].sum(1) for own, column in places]
    return Cells(joint, mass, parts[:, :, first].sum(2), p_groups, places)


def scored_rules(cells: Cells) -> list[np.ndarray]:
    """Return the rules for decisions on cells, as scores (C, features + 1)."""
    worth = np.eye(cells.p_label.shape[1])
    rules = decision_rules(cells.p_label, cells.p_groups, cells.mass)
    return [cells.scores(worth, prices) for prices in rules]


def scored_words(cells: Cells, n_words: int, limit: float | None, mistake: float) -> np.ndarray:
    """Return the words of a code with the most information about the label within a limit, if there is one, as scores.

    Given a decoder p(y|t), a word is worth log2 p(y|t) bits for a row with label y, and `mistake` bits more if y is its
    most probable label. A linear programme prices the groups for this worth; every cell gets the word with the highest
    score; the decoder of these words is next, and so on. The first decoder is the centres of the cells' p(y|x).

    Returns
    -------
    (at most n_words, features + 1)
    """
    joint = cells.p_label * cells.mass[:, None]
    roots = np.sqrt(cells.p_label / np.maximum(cells.p_label.sum(1, keepdims=True), SMALLEST))
    decoder = k_means(roots, n_words, np.random.default_rng(0), weight=cells.mass) ** 2
    shares = [_within(group, cells.mass) for group in cells.p_groups]
    prices = [np.zeros((len(decoder), group.shape[1])) for group in cells.p_groups]
    best, most = np.empty(0), -np.inf
    for _ in range(ROUNDS):
        worth = _worth(decoder, mistake)
        if limit is not None:
            prices = _prices(joint @ worth.T, shares, limit)
        value = cells.p_label @ worth.T
        for group, price in zip(cells.p_groups, prices, strict=True):
            value -= group / group_sizes(group, cells.mass) @ price.T
        labels = np.eye(len(decoder))[value.argmax(1)].T @ joint  # (words, C)
        size = labels.sum(1, keepdims=True)
        decoder = np.divide(labels, size, out=decoder.copy(), where=size > SMALLEST)
        information = float((labels * _worth(decoder, mistake)).sum())
        if information < most + CONVERGED:
            break
        best, most = cells.scores(worth, prices), information
    return best


def _worth(decoder: np.ndarray, mistake: float) -> np.ndarray:
    """Return what each word is worth for each label, in bits.  (words, C)"""
    return np.log2(np.maximum(decoder, SMALLEST)) + mistake * (decoder == decoder.max(1, keepdims=True))


def decided(p_label: np.ndarray, p_groups: Sequence[np.ndarray], mass: np.ndarray, rule: Any) -> np.ndarray:
    """Return the class, as a number, that a rule decides on in each cell.  (cells,)"""
    scores = p_label.copy()
    for group, prices in zip(p_groups, rule, strict=True):
        scores -= group / group_sizes(group, mass) @ prices.T
    return scores.argmax(1)


def group_sizes(group: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Return the shares of the groups in all rows; those of an absent one as 1.  (K,)"""
    size = mass @ group
    return np.where(size > 0, size, 1.0)


def _within(group: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Return the law of the cells in each group; 0 of an absent one.  (K, cells)"""
    return (group * mass[:, None] / group_sizes(group, mass)).T


def _prices(gain: np.ndarray, shares: list[np.ndarray], limit: float) -> list[np.ndarray]:
    """Maximise sum_bt gain[b,t] q(t|b) with all groups' rates of a word t in a band, and return the prices (words, K).

    The widths of the bands add up to twice the limit, so no total variation between two groups is above it; of two
    words or two groups this is the limit itself. Groups without rows have no price.
    """
    cells, classes = gain.shape
    present = [np.asarray(share.any(1)) for share in shares]
    shares = [share[own] for share, own in zip(shares, present, strict=True)]
    if not shares:
        return []
    n, bands = cells * classes, len(shares) * 2 * classes  # every class of every column has a band: its start and width
    above, below, widths = [], [], []
    for place, share in enumerate(shares):
        rates = sparse.kron(share, sparse.identity(classes))  # (K * classes, n), the classes of a group side by side
        one_each, own = np.ones((len(share), 1)), np.zeros((1, len(shares)))
        own[0, place] = 1
        start, end = (sparse.kron(own, np.kron([part], np.eye(classes))) for part in ((1, 0), (1, 1)))
        above.append(sparse.hstack([rates, -sparse.kron(one_each, end)]))
        below.append(sparse.hstack([-rates, sparse.kron(one_each, start)]))
        widths.append(np.concatenate([np.zeros(n), np.kron(own[0], np.kron([0, 1], np.ones(classes)))]))
    limits = sparse.vstack([*above, *below, np.array(widths)], format="csr")
    one_class = sparse.hstack(
        [sparse.kron(sparse.identity(cells), np.ones((1, classes))), sparse.csr_matrix((cells, bands))]
    )
    cost = np.concatenate([-gain.ravel(), np.zeros(bands)])
    found = solved(cost, limits, len(shares), 2 * limit, one_class.tocsr())
    upper, lower = -found.ineqlin.marginals[: -len(shares)].reshape(2, -1, classes)
    ends = np.cumsum([len(share) for share in shares])[:-1]
    prices = [np.zeros((classes, len(own))) for own in present]
    for price, kept, part in zip(prices, present, np.split(upper - lower, ends), strict=True):
        price[:, kept] = part.T
    return prices


def solved(cost: np.ndarray, below: Any, n: int, most: float, sums: Any) -> Any:
    """Return what HiGHS finds to cost least where `sums` are 1 and `below` is at most 0, in its last n rows `most`."""
    for least in LEAST_LIMITS:
        ends = np.append(np.zeros(below.shape[0] - n), np.full(n, max(most, least)))
        found = linprog(cost, A_ub=below, b_ub=ends, A_eq=sums, b_eq=np.ones(sums.shape[0]), method="highs")
        if found.x is not None:
            return found
    raise RuntimeError(f"The linear programme of {len(cost):,} numbers has no solution: {found.message}")


def k_means(points: np.ndarray, count: int, rng: np.random.Generator, weight: Any = None) -> np.ndarray:
    """Return k-means centres, or all different points if there are no more than `count`."""
    different = np.unique(points, axis=0)
    if len(different) <= count:
        return different
    seed = int(rng.integers(2**31))
    with warnings.catch_warnings():  # points that differ in their last digits alone may be fewer than they seem
        warnings.simplefilter("ignore", ConvergenceWarning)
        return KMeans(count, n_init=1, random_state=seed).fit(points, sample_weight=weight).cluster_centers_
