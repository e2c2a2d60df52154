"""The estimates of a PosteriorEncoder as an ONNX graph that computes in double precision, as scikit-learn does."""

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

import fairbits
from fairbits.errors import InputError
from fairbits.estimators.learners import SMALLEST
from fairbits.estimators.posterior import PosteriorEncoder

AT_MOST, AMONG = 0, 6  # ONNX's numbers of the tests value <= split and value in set
NOTHING = -1.0  # no level has this number; onnxruntime refuses an empty set


def check_exported(encoder: PosteriorEncoder) -> None:
    """Raise unless the encoder has the learners that become a graph."""
    if isinstance(encoder.estimators, str):
        return
    raise InputError(
        "export_onnx writes the default estimators of a PosteriorEncoder alone, and this one has classifiers of yours.",
        remedy="Fit with estimators='default', or export the last step and compute its inputs in Python.",
    )


def estimates_model(encoder: PosteriorEncoder, features: str, **versions: int) -> Any:
    """Return an ONNX model from x, the encoded columns, and levels, where trees read them, to the encoder's features.

    Parameters
    ----------
    encoder : fitted, with the default estimators
    features : the name of the output
    versions : of the model's IR and of the operators
    """
    import onnx

    graph = _Graph()
    widths = {"x": len(encoder.table_encoder_.get_feature_names_out())}
    views = {"numbers": graph.add("Cast", "x", to=onnx.TensorProto.DOUBLE), "levels": "levels"}
    if any(learner.sees == "levels" for learner in encoder.learners_):
        widths["levels"] = sum(feature is not None for feature in encoder.table_encoder_.features_)
    parts: list[str] = []
    for learner, models in zip(encoder.learners_, encoder.models_, strict=True):
        parts += graph.log_ratios(models, views[learner.sees], len(encoder.classes_))
    centred = graph.add("Sub", graph.add("Concat", *parts, axis=1), graph.constant(encoder.mean_))
    scaled = graph.add("Cast", graph.add("Div", centred, graph.constant(encoder.scale_)), to=onnx.TensorProto.FLOAT)
    last = [scaled, "x"] if encoder.columns else [scaled]
    graph.nodes.append(onnx.helper.make_node("Concat", last, [features], axis=1))
    kinds = {"x": onnx.TensorProto.FLOAT, "levels": onnx.TensorProto.DOUBLE}
    inputs = [onnx.helper.make_tensor_value_info(name, kinds[name], ["n", width]) for name, width in widths.items()]
    n_features = len(encoder.get_feature_names_out())
    output = onnx.helper.make_tensor_value_info(features, onnx.TensorProto.FLOAT, ["n", n_features])
    whole = onnx.helper.make_graph(graph.nodes, "posterior", inputs, [output], graph.constants)
    opsets = [("", versions["opset_version"]), ("ai.onnx.ml", 5)]
    return onnx.helper.make_model(
        whole,
        ir_version=versions["ir_version"],
        opset_imports=[onnx.helper.make_opsetid(*opset) for opset in opsets],
        producer_name="fairbits",
        producer_version=fairbits.__version__,
    )


class _Graph:
    """Nodes and constants of a graph; what a node returns is called by a number of its own."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, values: Any) -> str:
        import onnx

        name = f"constant_{len(self.constants)}"
        self.constants.append(onnx.numpy_helper.from_array(np.asarray(values), name))
        return name

    def add(self, kind: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        import onnx

        name = f"estimate_{len(self.nodes)}"
        self.nodes.append(onnx.helper.make_node(kind, inputs, [name], domain=domain, **attributes))
        return name

    def log_ratios(self, models: list[Any], view: str, n_classes: int) -> list[str]:
        """Add what `PosteriorEncoder` computes of one learner: of the classes, then of groups given each label."""
        of_label, *of_groups = models
        parts = [self.ratios(of_label, view)]
        last = self.constant(np.array([2]))
        for model in of_groups:
            told = [self.beside(view, row[1:]) for row in np.eye(n_classes)]
            each = [self.add("Unsqueeze", self.ratios(model, rows), last) for rows in told]
            parts.append(self.add("Flatten", self.add("Concat", *each, axis=2), axis=1))  # by group, then by label
        return parts

    def beside(self, view: str, values: np.ndarray) -> str:
        """Add the same values beside every row."""
        rows = self.add("Concat", self.add("Shape", view, start=0, end=1), self.constant(np.array([1])), axis=0)
        return self.add("Concat", view, self.add("Expand", self.constant(values[None, :]), rows), axis=1)

    def ratios(self, model: Any, view: str) -> str:
        """Add log p - log p of the first class, of every other one."""
        score = self.linear(model, view) if isinstance(model, LogisticRegression) else self.trees(model, view)
        if len(model.classes_) == 2:
            first, others = self.add("Sigmoid", self.add("Neg", score)), self.add("Sigmoid", score)
        else:
            probabilities = self.add("Softmax", score, axis=1)
            sizes = self.constant(np.array([1, len(model.classes_) - 1]))
            first, others = (f"{probabilities}_{part}" for part in ("first", "others"))
            self.add_split(probabilities, sizes, [first, others])
        floor = self.constant(np.float64(SMALLEST))
        logs = [self.add("Log", self.add("Max", part, floor)) for part in (others, first)]
        return self.add("Sub", *logs)

    def add_split(self, values: str, sizes: str, names: list[str]) -> None:
        import onnx

        self.nodes.append(onnx.helper.make_node("Split", [values, sizes], names, axis=1))

    def linear(self, model: Any, view: str) -> str:
        product = self.add("MatMul", view, self.constant(model.coef_.T.astype(np.float64)))
        return self.add("Add", product, self.constant(model.intercept_.astype(np.float64)))

    def trees(self, model: Any, view: str) -> str:
        """Add boosted trees: the sum of their leaves for every class."""
        found = tree_attributes(model)
        total = self.add("TreeEnsemble", view, domain="ai.onnx.ml", **found)
        return self.add("Add", total, self.constant(model._baseline_prediction.reshape(1, -1)))


def tree_attributes(model: Any) -> dict[str, Any]:
    """Return the attributes of ONNX's TreeEnsemble for scikit-learn's boosted trees, which have no public form."""
    import onnx

    order, known = np.arange(model.n_features_in_), []
    if model._preprocessor is not None:  # it puts the categories first
        order = np.concatenate([np.flatnonzero(model.is_categorical_), np.flatnonzero(~model.is_categorical_)])
        known = model._preprocessor.named_transformers_["encoder"].categories_
    nodes: dict[str, list[Any]] = {name: [] for name in ("modes", "splits", "featureids", "missing_value_tracks_true")}
    nodes |= {f"{side}{what}": [] for side in ("true", "false") for what in ("nodeids", "leafs")}
    sets: list[float] = []
    weights: list[float] = []
    targets: list[int] = []
    roots: list[int] = []
    for target, tree in ((k, tree) for trees in model._predictors for k, tree in enumerate(trees)):
        leaf = tree.nodes["is_leaf"] != 0
        inner = leaf if leaf.all() else ~leaf  # a tree of one leaf gets a node whose branches both end there
        place = np.where(leaf, len(weights) + np.cumsum(leaf) - 1, len(nodes["modes"]) + np.cumsum(inner) - 1)
        roots.append(len(nodes["modes"]))
        for node in tree.nodes[inner]:
            column = int(node["feature_idx"])
            among = bool(node["is_categorical"])
            nodes["modes"].append(AMONG if among else AT_MOST)
            nodes["splits"].append(0.0 if among else float(node["num_threshold"]))
            nodes["featureids"].append(int(order[column]))
            nodes["missing_value_tracks_true"].append(int(node["missing_go_to_left"]))
            if among:
                sets += [*_members(tree.raw_left_cat_bitsets[node["bitset_idx"]], known[column]), np.nan]
            for side, child in (("true", node["left"]), ("false", node["right"])):
                nodes[f"{side}nodeids"].append(int(place[child]))
                nodes[f"{side}leafs"].append(int(leaf[child]))
        weights += tree.nodes["value"][leaf].tolist()
        targets += [target] * int(leaf.sum())
    tensors = {"nodes_modes": np.array(nodes.pop("modes"), np.uint8), "nodes_splits": np.array(nodes.pop("splits"))}
    tensors |= {"leaf_weights": np.array(weights), **({"membership_values": np.array(sets)} if sets else {})}
    return {
        **{name: onnx.numpy_helper.from_array(values, name) for name, values in tensors.items()},
        **{f"nodes_{name}": values for name, values in nodes.items()},
        "leaf_targetids": targets,
        "tree_roots": roots,
        "n_targets": model.n_trees_per_iteration_,
        "aggregate_function": 1,  # the sum
        "post_transform": 0,
    }


def _members(bits: np.ndarray, categories: np.ndarray) -> list[float]:
    """Return the levels in a set of 256 bits; the encoder of the trees has numbered the levels that it saw."""
    numbers = np.flatnonzero(np.unpackbits(bits.astype("<u4").view(np.uint8), bitorder="little"))
    return [float(categories[number]) for number in numbers] or [NOTHING]
