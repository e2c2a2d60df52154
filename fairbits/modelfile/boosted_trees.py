"""Boosted trees of scikit-learn as plain arrays: for a file, to build them again, and for ONNX.

They have no public form. scikit-learn does not look where a branch of a tree leads, so `boosted_model` looks first.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper
from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

from fairbits.storage import need

# What predictions need of a node; its branches count from the root of the tree.
FIELDS = {"value": "<f8", "num_threshold": "<f8", "feature_idx": "<i4", "left": "<u4", "right": "<u4"}
FIELDS |= {"missing_go_to_left": "u1", "is_leaf": "u1", "is_categorical": "u1"}
NODE = np.dtype(list(FIELDS.items()))
SET = np.dtype(("<u4", 8))  # one bit for each of up to 256 categories
MAX_CATEGORIES, MAX_CELLS = 256, 2**23


class Trees(NamedTuple):
    """All trees of a model, one after the other: those of the first iteration, of the second, and so on."""

    sizes: np.ndarray  # (trees,) nodes of each tree
    nodes: np.ndarray  # (nodes,) of type NODE
    sets: np.ndarray  # (sets, 8) the categories that go to the left, of each node that asks for categories

    @property
    def roots(self) -> np.ndarray:
        """The place of each tree's first node among all nodes.  (trees,)"""
        return np.cumsum(self.sizes) - self.sizes


def trees_of(model: Any) -> Trees:
    """Return the trees of a fitted model."""
    trees = [tree for iteration in model._predictors for tree in iteration]
    sizes = np.array([len(tree.nodes) for tree in trees])
    nodes = np.concatenate([tree.nodes[list(FIELDS)] for tree in trees]).astype(NODE)
    by_set = [tree.nodes["bitset_idx"][tree.nodes["is_categorical"] != 0] for tree in trees]
    sets = [tree.raw_left_cat_bitsets[own] for tree, own in zip(trees, by_set, strict=True)]
    return Trees(sizes, nodes, np.concatenate(sets))


def categories_of(model: Any) -> list[np.ndarray | None]:
    """Return what each column of a fitted model may hold, None for numbers."""
    known: list[np.ndarray | None] = [None] * model.n_features_in_
    if model._preprocessor is not None:
        found = model._preprocessor.named_transformers_["encoder"].categories_
        for column, values in zip(np.flatnonzero(model.is_categorical_), found, strict=True):
            missing = len(values) > 0 and values[-1] != values[-1]  # NaN is the last; trees know it anyway
            known[column] = values[:-1] if missing else values
    return known


def boosted_model(trees: Trees, classes: np.ndarray, baseline: np.ndarray, categories: list[Any], names: Any) -> Any:
    """Return scikit-learn's model of these trees, which are checked; two classes have one baseline, others one each."""
    model: Any = HistGradientBoostingClassifier(categorical_features=[known is not None for known in categories])
    _, known = model._preprocess_X(_rows_with(categories, names), reset=True)
    model._encode_y(classes)
    model._loss = model._get_loss(sample_weight=None)
    model._baseline_prediction = baseline.reshape(1, model.n_trees_per_iteration_)
    categorical = np.zeros(len(categories), bool) if known is None else model._is_categorical_remapped
    model._bin_mapper = _BinMapper()
    model._bin_mapper.bin_thresholds_, model._bin_mapper.is_categorical_ = known, categorical.astype(np.uint8)
    step = model.n_trees_per_iteration_
    _check(trees, step, categorical)
    predictors = list(_predictors(trees))
    model._predictors = [predictors[first : first + step] for first in range(0, len(predictors), step)]
    return model


def _predictors(trees: Trees) -> Iterator[TreePredictor]:
    """Yield each tree as scikit-learn has it."""
    n_sets = 0
    for own in np.split(trees.nodes, trees.roots[1:]):
        nodes, by_set = np.zeros(len(own), PREDICTOR_RECORD_DTYPE), own["is_categorical"] != 0
        for name in FIELDS:
            nodes[name] = own[name]
        nodes["bitset_idx"][by_set] = np.arange(by_set.sum())
        sets = trees.sets[n_sets : n_sets + by_set.sum()].astype(np.uint32)
        n_sets += len(sets)
        yield TreePredictor(nodes, sets[:0], sets)


def _rows_with(categories: list[Any], names: Any) -> Any:
    """Return rows in which every category of every column occurs."""
    n_rows = max((len(known) for known in categories if known), default=1)
    few = n_rows <= MAX_CATEGORIES and n_rows * len(categories) <= MAX_CELLS
    need(few, f"boosted trees cannot have {n_rows} categories in {len(categories)} columns")
    columns = []
    for known in categories:
        values = [0.0] if known is None else known or [np.nan]
        texts = any(value is None or isinstance(value, str) for value in values)
        several = np.resize(np.array(values, dtype=object if texts else None), n_rows)
        columns.append(pd.Series(several, dtype=several.dtype))  # texts stay objects
    return np.column_stack(columns) if names is None else pd.DataFrame(dict(zip(names, columns, strict=True)))


def _check(trees: Trees, n_scores: int, categorical: np.ndarray) -> None:
    """Raise unless branches lead on within their tree, and splits ask for columns and sets that there are."""
    sizes, nodes, n_nodes = trees.sizes, trees.nodes, len(trees.nodes)
    whole = len(sizes) > 0 == len(sizes) % n_scores and sizes.min() > 0 and sizes.max() <= n_nodes == sizes.sum()
    need(bool(whole), "the trees have more or fewer nodes than they should")
    need(bool(np.isfinite(nodes["value"]).all()), "a leaf of a tree holds a value that is infinite or not a number")
    place, last = np.arange(n_nodes) - np.repeat(trees.roots, sizes), np.repeat(sizes, sizes) - 1
    split = nodes["is_leaf"] == 0
    onward = all((~split | ((place < nodes[side]) & (nodes[side] <= last))).all() for side in ("left", "right"))
    need(onward, "a branch of a tree leads nowhere, or back")
    reached = np.concatenate([(nodes[side] + np.repeat(trees.roots, sizes))[split] for side in ("left", "right")])
    need(len(np.unique(reached)) == len(reached), "two branches of a tree lead to the same place")
    column, by_set = nodes["feature_idx"], nodes["is_categorical"] != 0
    need(bool(((column >= 0) & (column < len(categorical))).all()), "a tree uses a column that does not exist")
    inside = categorical[column[by_set]].all() and by_set.sum() == len(trees.sets)
    need(bool(inside), "a tree uses a set of categories that does not exist")
