"""Boosted trees of scikit-learn on many rows: the same numbers, to the last bit, in a third of the time.

A tree asks one question after another, and each answer decides which comes next, which keeps a processor waiting. Here
a table answers all questions about a column at once: for each interval between its thresholds (or each category) and
each tree it has the leaves that are still open, as the bits of a number. Of the leaves that all columns leave open, the
first is the row's (Lucchese et al., QuickScorer, SIGIR 2015).
"""

from functools import lru_cache
from typing import Any

import numpy as np

FEWEST_ROWS = 20_000  # with fewer, making the tables takes longer than they save
MOST_LEAVES, MOST_TREES = 32, 1_000  # bits of a number; more trees leave the processor's cache
BLOCK_ROWS = 512
CATEGORIES = 256


def tree_probabilities(model: Any, rows: np.ndarray) -> np.ndarray:
    """Return what `model.predict_proba(rows)` does, of a `HistGradientBoostingClassifier` that is not fitted again."""
    tables = _leaf_tables(model) if len(rows) >= FEWEST_ROWS else None
    if tables is None:
        return model.predict_proba(rows)
    return model._loss.predict_proba(tables.scores(model._preprocess_X(rows, reset=False)))


@lru_cache(8)  # models are the same if they are one object
def _leaf_tables(model: Any) -> "LeafTables | None":
    trees = [tree for iteration in model._predictors for tree in iteration]
    few = max(tree.get_n_leaf_nodes() for tree in trees) <= MOST_LEAVES and len(trees) <= MOST_TREES
    return LeafTables(model, trees) if few else None


class LeafTables:
    """The trees of a fitted model as one table for each column of its rows."""

    def __init__(self, model: Any, trees: list[Any]):
        by_category = model._is_categorical_remapped  # None: there are no categories
        n_columns, nodes = model.n_features_in_, np.concatenate([tree.nodes for tree in trees])
        self._by_category = np.zeros(n_columns, bool) if by_category is None else by_category
        asked = [nodes[(nodes["is_leaf"] == 0) & (nodes["feature_idx"] == column)] for column in range(n_columns)]
        self._cuts = [np.unique(own["num_threshold"]) for own in asked]
        sizes = np.where(self._by_category, CATEGORIES, [len(cuts) + 1 for cuts in self._cuts]) + 1  # the last: missing
        self._open = [np.full((size, len(trees)), 2**MOST_LEAVES - 1, np.uint32) for size in sizes]
        self._values, self._baseline = np.zeros((len(trees), MOST_LEAVES)), model._baseline_prediction.ravel()
        known, places = model._bin_mapper.make_known_categories_bitsets()
        for number, tree in enumerate(trees):
            leaves: list[float] = []
            splits: list[tuple[Any, int]] = []
            _walk(tree.nodes, 0, leaves, splits)
            self._values[number, : len(leaves)] = leaves
            for node, left in splits:
                column = node["feature_idx"]
                if node["is_categorical"]:
                    goes_left, is_known = _members(tree.raw_left_cat_bitsets[node["bitset_idx"]]), known[places[column]]
                    goes_left |= ~_members(is_known) & bool(node["missing_go_to_left"])
                else:
                    cuts = self._cuts[column]
                    goes_left = np.arange(len(cuts) + 1) <= np.searchsorted(cuts, node["num_threshold"])
                closed = ~np.append(goes_left, node["missing_go_to_left"] != 0)
                self._open[column][closed, number] &= np.uint32(~left & (2**MOST_LEAVES - 1))
        self._asked = [column for column in range(n_columns) if len(asked[column])]

    def _places(self, column: int, x: np.ndarray) -> np.ndarray:
        """Return the row of a column's table for each value.  (n,)"""
        missing = len(self._open[column]) - 1
        if self._by_category[column]:
            return np.where(x >= 0, x, missing).astype(np.int64)
        return np.where(np.isnan(x), missing, np.searchsorted(self._cuts[column], x))

    def scores(self, X: np.ndarray) -> np.ndarray:
        """Return the sums of leaves, as the model itself adds them up.  (n, scores)"""
        n_trees, n_scores, found = len(self._values), len(self._baseline), np.empty((len(X), len(self._baseline)))
        places = {column: self._places(column, X[:, column]) for column in self._asked}
        first_leaf = np.arange(n_trees) * MOST_LEAVES - 127  # a float of 2^k has the exponent k + 127
        for start in range(0, len(X), BLOCK_ROWS):
            block = slice(start, min(start + BLOCK_ROWS, len(X)))
            still = np.full((block.stop - start, n_trees), 2**MOST_LEAVES - 1, np.uint32)
            for column, own in places.items():
                still &= self._open[column].take(own[block], axis=0)
            still &= ~still + np.uint32(1)  # the lowest bit that is set
            leaf = (still.astype(np.float32).view(np.int32) >> 23) + first_leaf
            values = self._values.ravel().take(leaf)
            for score in range(n_scores):  # one after another, in the order of the trees
                own = values[:, score::n_scores]
                own[:, 0] += self._baseline[score]
                found[block, score] = own.cumsum(axis=1)[:, -1]
        return found


def _walk(nodes: np.ndarray, place: int, leaves: list[float], splits: list[tuple[Any, int]]) -> int:
    """Collect the leaves below a node from left to right, and its splits; return the leaves as bits."""
    node = nodes[place]
    if node["is_leaf"]:
        leaves.append(node["value"])
        return 1 << (len(leaves) - 1)
    left = _walk(nodes, node["left"], leaves, splits)
    splits.append((node, left))
    return left | _walk(nodes, node["right"], leaves, splits)


def _members(bits: np.ndarray) -> np.ndarray:
    """Return which categories are in a set.  (256,) bool"""
    return np.unpackbits(bits.astype("<u4").view(np.uint8), bitorder="little").astype(bool)
