"""The most accurate decisions within limits of the disparity, of all that look at p(y,s|x) alone."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

SHARES = np.linspace(1, 0, 21)[1:]  # of the disparity without protection: the limits of the linear programmes
COLLINEAR = 1e-6  # of the largest singular value: directions of X below this are left out
ROUNDING = 1e-3  # of the sum of p(y,s|x), in single precision
BEYOND = (1.05, 1.1, 1.2, 1.4)  # times the prices of no disparity: other rows differ from the estimates


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
    present = [mass @ group > 0 for group in p_groups]
    shares = [_within(group, mass)[own] for group, own in zip(p_groups, present, strict=True)]
    rules = [[np.zeros((p_label.shape[1], group.shape[1])) for group in p_groups]]
    plain = np.eye(p_label.shape[1])[p_label.argmax(1)]
    most = max((_apart(share @ plain) for share in shares), default=0.0)
    if most == 0:
        return rules
    gain = p_label * mass[:, None]
    for share in SHARES:
        found = [np.zeros_like(prices) for prices in rules[0]]
        for prices, own, priced in zip(found, present, _prices(gain, shares, share * most), strict=True):
            prices[:, own] = priced
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


def scored_rules(
    joint: np.ndarray, centres: np.ndarray, mass: np.ndarray, sizes: Sequence[int], within_labels: bool
) -> list[np.ndarray]:
    """Return the rules on cells with these centres (cells, features) and masses, as scores (C, features + 1).

    `joint` are the `joint_estimates`; with `within_labels` the disparity is that among rows of the same label.
    """
    n_classes, width = joint.shape[1:]
    parts = np.tensordot(np.column_stack([centres, np.ones(len(centres))]), joint, 1).clip(0)  # (cells, C, all K)
    ends = np.cumsum(sizes)
    columns = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    labels = [[label] for label in range(n_classes)] if within_labels else [list(range(n_classes))]
    blocks = [(own, column) for column in columns for own in labels]
    first = columns[0] if columns else slice(None)
    p_groups = [parts[:, own, column].sum(1) for own, column in blocks]
    found = []
    for rule in decision_rules(parts[:, :, first].sum(2), p_groups, mass):
        counted = np.zeros((n_classes, n_classes, width))  # in the score of a decision: p(y,s|x)
        counted[np.arange(n_classes), np.arange(n_classes), first] = 1
        for (own, column), group, prices in zip(blocks, p_groups, rule, strict=True):
            counted[:, own, column] -= (prices / group_sizes(group, mass))[:, None]
        found.append(np.tensordot(counted, joint, ((1, 2), (1, 2))))
    return found


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
    """Return the law of the cells in each group.  (K, cells)"""
    return (group * mass[:, None] / group_sizes(group, mass)).T


def _apart(rates: np.ndarray) -> float:
    """Return the largest total variation between two rows of rates (K, C)."""
    return float(np.abs(rates[:, None] - rates).sum(-1).max() / 2)


def _prices(gain: np.ndarray, shares: list[np.ndarray], limit: float) -> list[np.ndarray]:
    """Maximise sum_bt gain[b,t] q(t|b) with all groups' rates of a class t in a band, and return the groups' prices.

    The widths of the bands add up to twice the limit, so no total variation between two groups is above it; of two
    classes or two groups this is the limit itself.
    """
    cells, classes = gain.shape
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
    most = np.concatenate([np.zeros(limits.shape[0] - len(shares)), np.full(len(shares), 2 * limit)])
    one_class = sparse.hstack(
        [sparse.kron(sparse.identity(cells), np.ones((1, classes))), sparse.csr_matrix((cells, bands))]
    )
    cost = np.concatenate([-gain.ravel(), np.zeros(bands)])
    found = linprog(cost, A_ub=limits, b_ub=most, A_eq=one_class.tocsr(), b_eq=np.ones(cells), method="highs")
    if found.x is None:
        raise RuntimeError(f"The linear programme of {cells} cells has no solution: {found.message}")
    sizes = [len(share) for share in shares]
    upper, lower = -found.ineqlin.marginals[: -len(shares)].reshape(2, -1, classes)
    return [part.T for part in np.split(upper - lower, np.cumsum(sizes)[:-1])]
