"""FARE: the leaves of a decision tree that splits where labels differ and groups do not."""

import heapq
from typing import Any, ClassVar, NamedTuple

import numpy as np

from fairbits.rivals.compared import ComparedClassifier
from fairbits.rivals.hard_words import HardWordsMixin
from fairbits.settings import setting

ROUNDING = 1e-12  # improvements below this are none


class Split(NamedTuple):
    """The best split of a node, and by how much it lowers the tree's impurity."""

    improvement: float
    feature: int
    threshold: float


class FairTreeClassifier(HardWordsMixin, ComparedClassifier):
    """Give each row the leaf of a fair decision tree (FARE, Jovanović et al. 2023).

    The tree splits first where that lowers the impurity most, (1 - gamma) Gini(Y) + gamma (1 - 1/K - Gini(S)): it seeks
    leaves that are pure in the label and mixed in the K groups. They are the words of a hard code, so every certificate
    of a code holds for them. The published method names a leaf by the median of its rows, proves a bound of its own
    (`benchmarks/fare.py`), and splits categories in an order; here the columns are encoded beforehand and split by
    thresholds.

    Parameters
    ----------
    gamma : weight of the groups; 0 is an ordinary tree
    max_words : leaves at most
    min_rows : rows of a leaf at least

    The other parameters are those of `ComparedClassifier`.
    """

    gamma: float = setting(0.5, at_least=0, at_most=1)
    max_words: int = setting(16, at_least=2, whole=True)
    min_rows: int = setting(100, at_least=1, whole=True)

    title: ClassVar[str] = "FARE"

    def train(self, x: np.ndarray, y: np.ndarray, s: np.ndarray, seed: int) -> None:
        known = np.hstack([np.eye(2)[y], np.eye(s.max() + 1)[s]])  # labels and groups of every row
        leaves = [np.arange(len(x))]
        self.splits_: list[tuple[int, int, float]] = []  # (leaf, feature, threshold): the right part is a new leaf
        waiting: list[tuple[float, int, Split]] = []
        self._consider(waiting, 0, x, known)
        while waiting and len(leaves) < self.max_words:
            _, leaf, split = heapq.heappop(waiting)
            rows = leaves[leaf]
            right = x[rows, split.feature] > split.threshold
            self.splits_.append((leaf, split.feature, split.threshold))
            leaves[leaf] = rows[~right]
            leaves.append(rows[right])
            for new in (leaf, len(leaves) - 1):
                self._consider(waiting, new, x[leaves[new]], known[leaves[new]])
        self.count_decoder(self._leaves(x), y, 2)

    @property
    def word_count(self) -> int:
        return max(2, len(self.splits_) + 1)

    def words(self, X: Any) -> np.ndarray:
        return self._leaves(self.read_rows(X))

    def _leaves(self, x: np.ndarray) -> np.ndarray:
        found = np.zeros(len(x), dtype=np.int64)
        for number, (leaf, feature, threshold) in enumerate(self.splits_):
            found[(found == leaf) & (x[:, feature] > threshold)] = number + 1
        return found

    def _consider(self, waiting: list, leaf: int, x: np.ndarray, known: np.ndarray) -> None:
        split = self.best_split(x, known)
        if split.improvement > ROUNDING:
            heapq.heappush(waiting, (-split.improvement, leaf, split))

    def best_split(self, x: np.ndarray, known: np.ndarray) -> Split:
        """Return the best split of rows with indicators of both labels and of the groups, (n, 2 + K)."""
        best, before = Split(0.0, 0, 0.0), self._impurity(known.sum(0)[None])[0]
        for feature in range(x.shape[1]):
            order = np.argsort(x[:, feature], kind="stable")
            values = x[order, feature]
            places = np.arange(self.min_rows - 1, len(x) - self.min_rows)  # last row of the left part
            places = places[values[places] < values[places + 1]]
            if not len(places):
                continue
            left = known[order].cumsum(0)
            after = self._impurity(left[places]) + self._impurity(left[-1] - left[places])
            least = int(after.argmin())
            if before - after[least] > best.improvement + ROUNDING:
                place = places[least]
                best = Split(float(before - after[least]), feature, float(values[place] + values[place + 1]) / 2)
        return best

    def _impurity(self, counts: np.ndarray) -> np.ndarray:
        """Return the impurity of nodes with these counts (nodes, 2 + K), times their rows."""
        rows = counts[:, :2].sum(1)
        label, group = (1 - ((part / rows[:, None]) ** 2).sum(1) for part in (counts[:, :2], counts[:, 2:]))
        return rows * ((1 - self.gamma) * label + self.gamma * (1 - 1 / (counts.shape[1] - 2) - group))
