"""The estimates of a PosteriorEncoder for ONNX, in double precision as scikit-learn computes them.

Trees become nodes of an ONNX graph, which gives their scores; torch exports everything else.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from fairbits.estimators.learners import SMALLEST
from fairbits.estimators.posterior import PosteriorEncoder
from fairbits.modelfile.boosted_trees import categories_of, trees_of

AT_MOST, AMONG = 0, 6  # ONNX's numbers of the tests value <= split and value in set
NOTHING = -1.0  # no level has this number; onnxruntime refuses an empty set


def posterior_inputs(encoder: PosteriorEncoder) -> tuple[Callable[[Tensor, Any], Tensor], dict[str, Tensor]]:
    """Return the function from encoded columns and the scores of trees to features, and three rows of what it takes."""
    mean, scale = torch.from_numpy(encoder.mean_), torch.from_numpy(encoder.scale_)
    models = [[_weight_and_bias(model, row) for row in told] for model, told in _told(encoder)]

    def features(x: Tensor, scores: Any) -> Tensor:
        parts, place = [], 0
        for model in models:
            ratios = []
            for weight, bias in model:
                if weight is None:
                    score = scores[:, place : place + len(bias)]
                    place += len(bias)
                else:
                    score = x.double() @ weight
                ratios.append(_log_ratios(score + bias))
            parts.append(torch.stack(ratios, -1).flatten(1))  # by class or group, then by label
        scaled = ((torch.cat(parts, 1) - mean) / scale).float()
        return torch.cat([scaled, x], 1) if encoder.has_columns_ else scaled

    inputs = {"x": torch.zeros(3, len(encoder.table_encoder_.get_feature_names_out()))}
    n_scores = sum(len(bias) for model in models for weight, bias in model if weight is None)
    if n_scores:
        inputs["scores"] = torch.zeros(3, n_scores, dtype=torch.float64)
    return features, inputs


def _told(encoder: Any) -> Iterator[tuple[Any, np.ndarray]]:
    """Yield all models, each with the columns that it sees beside a row: none, or those of every label in turn."""
    labels = np.eye(len(encoder.classes_))[:, 1:]
    for of_label, *of_groups in encoder.models_:
        yield of_label, labels[:1, :0]
        yield from ((model, labels) for model in of_groups)


def _weight_and_bias(model: Any, told: np.ndarray) -> tuple[Tensor | None, Tensor]:
    """Return what turns a row into scores, given the columns beside it; trees have no weight."""
    if not isinstance(model, LogisticRegression):
        return None, torch.from_numpy(model._baseline_prediction[0])
    weight, beside = np.split(model.coef_.astype(np.float64), [model.n_features_in_ - len(told)], axis=1)
    return torch.from_numpy(weight.T.copy()), torch.from_numpy(model.intercept_ + beside @ told)


def _log_ratios(score: Tensor) -> Tensor:
    """Return log p - log p of the first class, of every other one; two classes have one score."""
    p = torch.softmax(score, 1) if score.shape[1] > 1 else torch.sigmoid(torch.cat([-score, score], 1))
    logs = p.clamp(min=SMALLEST).log()
    return logs[:, 1:] - logs[:, :1]


def behind_trees(encoder: PosteriorEncoder, network: Any) -> Any:
    """Return the ONNX model of a network that takes scores of trees with the trees in front, which take levels."""
    import onnx

    pairs = [(model, row) for model, told in _told(encoder) for row in told]
    boosted = [(model, row) for model, row in pairs if not isinstance(model, LogisticRegression)]
    names = [f"trees_{number}" for number in range(len(boosted))]
    nodes = [
        onnx.helper.make_node("TreeEnsemble", ["levels"], [name], domain="ai.onnx.ml", **tree_attributes(model, row))
        for name, (model, row) in zip(names, boosted, strict=True)
    ]
    nodes.append(onnx.helper.make_node("Concat", names, ["tree_scores"], axis=1))
    n_levels = sum(feature is not None for feature in encoder.table_encoder_.features_)
    widths = {"levels": n_levels, "tree_scores": sum(model.n_trees_per_iteration_ for model, _ in boosted)}
    ends = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.DOUBLE, ["n", w]) for n, w in widths.items()]
    graph = onnx.helper.make_graph(nodes, "trees", ends[:1], ends[1:])
    opsets = [*network.opset_import, onnx.helper.make_opsetid("ai.onnx.ml", 5)]
    trees = onnx.helper.make_model(graph, ir_version=network.ir_version, opset_imports=opsets)
    return onnx.compose.merge_models(trees, network, io_map=[("tree_scores", "scores")])


def tree_attributes(model: Any, told: Any = ()) -> dict[str, Any]:
    """Return the attributes of ONNX's TreeEnsemble for boosted trees, given the values of their last columns."""
    import onnx

    trees, known = trees_of(model), categories_of(model)
    order = np.argsort([categories is None for categories in known], kind="stable")  # trees see categories first
    leaf = trees.nodes["is_leaf"] != 0
    inner = ~leaf
    inner[trees.roots] = True  # a tree of one leaf gets a node whose branches both end there
    place = np.where(leaf, np.cumsum(leaf), np.cumsum(inner)) - 1  # leaves and other nodes are numbered apart
    splits = trees.nodes[inner]
    column, by_set, threshold = order[splits["feature_idx"]], splits["is_categorical"] != 0, splits["num_threshold"]
    values = np.array([*[np.nan] * (len(order) - len(told)), *told])[column]
    fixed, to_left = ~np.isnan(values), values <= threshold  # where the label is given, its splits have one branch
    threshold = np.where(fixed, np.where(to_left, np.inf, -np.inf), np.where(by_set, 0.0, threshold))
    tensors = {"nodes_modes": np.where(by_set, AMONG, AT_MOST).astype(np.uint8), "nodes_splits": threshold}
    tensors |= {"leaf_weights": trees.nodes["value"][leaf]}
    if by_set.any():
        tensors["membership_values"] = _members([known[place] for place in column[by_set]], trees.sets)
    numbers = {
        "tree_roots": (np.cumsum(inner) - 1)[trees.roots],
        "leaf_targetids": np.repeat(np.arange(len(trees.sizes)) % model.n_trees_per_iteration_, trees.sizes)[leaf],
        "nodes_featureids": np.where(fixed, 0, column),
        "nodes_missing_value_tracks_true": np.where(fixed, to_left, splits["missing_go_to_left"]),
    }
    for side, branch in (("true", "left"), ("false", "right")):
        child = (np.repeat(trees.roots, trees.sizes) + trees.nodes[branch])[inner]
        numbers |= {f"nodes_{side}nodeids": place[child], f"nodes_{side}leafs": leaf[child].astype(int)}
    return {
        **{name: onnx.numpy_helper.from_array(array, name) for name, array in tensors.items()},
        **{name: array.tolist() for name, array in numbers.items()},
        "n_targets": model.n_trees_per_iteration_,
        "aggregate_function": 1,  # the sum
        "post_transform": 0,
    }


def _members(categories: list[Any], sets: np.ndarray) -> np.ndarray:
    """Return the levels in each set, with NaN after each set."""
    found: list[float] = []
    for levels, bits in zip(categories, sets, strict=True):
        numbers = np.flatnonzero(np.unpackbits(bits.astype("<u4").view(np.uint8), bitorder="little"))
        found += [*(levels[numbers].tolist() or [NOTHING]), np.nan]
    return np.array(found)
