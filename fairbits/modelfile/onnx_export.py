"""Export fitted models as ONNX files, for programs without torch; the caller supplies the noise of a code.

The estimates of a PosteriorEncoder are in double precision, as scikit-learn computes them: its trees become nodes of an
ONNX graph, which gives their scores; torch exports everything else.
"""

import contextlib
import copy
import json
import logging
import tomllib
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

import fairbits
from fairbits.certificate.released_code import need_certified_code
from fairbits.encoding import TableEncoder
from fairbits.errors import InputError, InputTypeError, MissingExtraError
from fairbits.estimators.base import TrainedClassifier
from fairbits.estimators.codes import TrainedCode
from fairbits.estimators.posterior import SMALLEST, PosteriorEncoder
from fairbits.modelfile.boosted_trees import categories_of, trees_of
from fairbits.storage import replace_file

Encoder = TableEncoder | PosteriorEncoder
OPSET = 18
AT_MOST, AMONG = 0, 6  # ONNX's numbers of the tests value <= split and value in set
NOTHING = -1.0  # no level has this number; onnxruntime refuses an empty set
TEXTS = tomllib.loads((Path(__file__).parent / "onnx_texts.toml").read_text(encoding="utf-8"))


def export_onnx(model: Any, folder: str | Path) -> Path:
    """Write a fitted model as ONNX files and `export.json`, which describes them, and return their folder.

    A method with a code becomes two files:

    - ``encoder.onnx``: x (n, features) float32, or images (n, channels, height, width) in the type of the fit, and, of
      a random code, noise (n, code_size) float32 -> bits (n, code_size) uint8, one code per row;
    - ``head.onnx``: bits -> probabilities (n, classes) float32, as `decode` gives them.

    You supply the noise: uniform in [0, 1), fresh for every row, bit and run, from a cryptographic source, and secret;
    the files hold no random generator and no seed. The 24 bits of a float32 change the probability of a bit by less
    than 6e-8. Neither theta, the probabilities of the bits, nor the averaged `predict_proba` is exported: they are
    functions of the row, which no certificate covers. This prevents mistakes, not attacks: anyone who has
    ``encoder.onnx`` can compute theta for rows they have. Recipients need only the bits, ``head.onnx`` and the classes.

    Any other method becomes one file, ``model.onnx``: x -> probabilities, as `predict_proba` gives them.

    A `TableEncoder` in front of the method is not in these files. ``export.json`` describes under "table" what it
    learnt and how to encode a row; ``examples/onnx_consumer.py`` does that with numpy and onnxruntime alone. Rows must
    be complete: where `transform` refuses a missing number, the files compute something.

    The default learners of a `PosteriorEncoder` are within ``encoder.onnx``. It takes the encoded columns as x, and as
    levels (n, columns) float64 what trees read; ``export.json`` says how to write both. Encoders that read the
    sensitive columns, learners of yours, and a `CertifiedClassifier` that guarantees its class alone are not exported.

    Parameters
    ----------
    model : a fitted method of fairbits, alone, behind a `TableEncoder` or a `PosteriorEncoder` in a pipeline, a
        `FairCodeClassifier`, or as chosen by `CertifiedClassifier`, `TunedClassifier` or scikit-learn's searches
    folder : created if needed; files of an earlier export are replaced
    """
    need_certified_code(model)
    *front, estimator = steps = _fitted_steps(model)
    encoder = front[0] if front else None
    if not isinstance(estimator, TrainedClassifier) or len(front) > 1 or not isinstance(encoder, Encoder | None):
        raise InputTypeError(
            f"export_onnx cannot export {' -> '.join(type(step).__name__ for step in steps)}: it exports a fitted "
            "method of fairbits, alone or behind a TableEncoder or PosteriorEncoder in a pipeline, and no other steps.",
            remedy="Export the last step, model[-1], and apply the other steps yourself.",
        )
    _check_encoder(encoder)
    for library in ("onnx", "onnxscript"):
        if find_spec(library) is None:
            raise MissingExtraError(f"export_onnx uses {library} and", "export")
    files = _onnx_files(estimator, encoder if isinstance(encoder, PosteriorEncoder) else None)
    description = json.dumps(_description(estimator, encoder, list(files)), indent=1, default=str, allow_nan=False)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in {**files, "export.json": f"{description}\n".encode()}.items():
        replace_file(folder / name, content)
    return folder


def _check_encoder(encoder: Encoder | None) -> None:
    if isinstance(encoder, PosteriorEncoder) and not isinstance(encoder.estimators, str):
        problem = "export_onnx writes the default estimators of a PosteriorEncoder alone"
        remedy = "Fit with estimators='default', or export the last step and compute its inputs in Python."
        raise InputError(f"{problem}, and this one has classifiers of yours.", remedy=remedy)
    if encoder is not None and encoder.encode_sensitive:
        problem = "export_onnx does not write encoders that read the sensitive columns (encode_sensitive=True)."
        raise InputError(problem, remedy="Keep the model with fairbits.save, and compute the codes in Python.")


def _fitted_steps(model: Any) -> list[Any]:
    """Return the model, the steps of a pipeline, or those of the model that a search has chosen."""
    if isinstance(model, BaseEstimator):
        check_is_fitted(model)
    if isinstance(model, Pipeline):
        return [inner for _, step in model.steps for inner in _fitted_steps(step)]
    chosen = getattr(model, "estimator_", getattr(model, "best_estimator_", None))
    return [model] if chosen is None else _fitted_steps(chosen)


def _description(estimator: Any, encoder: Encoder | None, files: list[str]) -> dict[str, Any]:
    """Return the content of `export.json`."""
    read = encoder.table_encoder_ if isinstance(encoder, PosteriorEncoder) else encoder
    first: Any = estimator if read is None else read
    names = list(map(str, getattr(first, "feature_names_in_", [f"x{i}" for i in range(first.n_features_in_)])))
    shape, table, levels = ["n", *estimator.input_shape_], None, None
    if read is not None:
        learnt = [{"kind": "dropped"} if feature is None else asdict(feature) for feature in read.features_]
        table = {"recipe": TEXTS["recipe"], "columns": [{"name": n, **f} for n, f in zip(names, learnt, strict=True)]}
        if isinstance(encoder, PosteriorEncoder) and any(learner.sees == "levels" for learner in encoder.learners_):
            kept = [name for name, feature in zip(names, read.features_, strict=True) if feature is not None]
            levels = {"shape": ["n", len(kept)], "dtype": "float64", "names": kept, "recipe": TEXTS["levels"]}
        names = list(map(str, read.get_feature_names_out()))
        shape = ["n", len(names)]
    described = {
        "fairbits": fairbits.__version__,
        "method": type(estimator).__name__,
        "files": files,
        "x": {"shape": shape, "dtype": estimator.input_dtype_, "names": names if len(shape) == 2 else None},
        "levels": levels,
        "table": table,
        "classes": estimator.classes_.tolist(),
    }
    if not isinstance(estimator, TrainedCode):
        return {**described, "notes": [TEXTS["function_of_the_row"]]}
    described["bits"] = list(estimator.get_feature_names_out())
    if estimator.is_hard:
        return {**described, "notes": [TEXTS["hard_code"]]}
    noise = {"shape": ["n", estimator.code_size], "dtype": "float32", "values": TEXTS["noise"]}
    return {**described, "noise": noise, "notes": [TEXTS["one_draw"]]}


def _onnx_files(estimator: Any, encoder: PosteriorEncoder | None) -> dict[str, bytes]:
    """Return the ONNX files of a fitted method, behind an encoder of estimates if there is one: name -> content."""
    net: Any = copy.deepcopy(estimator.net_).cpu()
    # Three rows to trace with: torch may take a single row for a constant.
    rows = torch.zeros(3, *estimator.input_shape_, dtype=getattr(torch, estimator.input_dtype_))
    features, inputs = posterior_inputs(encoder) if encoder else (lambda x, _: x, {"x": rows})
    about = {"fairbits": fairbits.__version__, "method": type(estimator).__name__}
    if not isinstance(estimator, TrainedCode):
        whole = traced(lambda x, scores=None: estimator.probabilities(net, features(x, scores)), net=net)
        model = as_onnx(whole, inputs, "probabilities", encoder)
        return {"model.onnx": _file(model, {**about, "probabilities": TEXTS["function_of_the_row"]})}
    bits = torch.zeros(3, estimator.code_size)
    head = traced(lambda bits: torch.softmax(net.head(bits.float()), -1), head=net.head)
    if estimator.is_hard:
        about["bits"], noise = TEXTS["hard_code"], {}
        code = traced(lambda x, scores=None: (net.theta(features(x, scores)) > 0.5).to(torch.uint8), net=net)
    else:
        about["bits"], noise = TEXTS["one_draw"], {"noise": TEXTS["noise"]}
        inputs = {"x": inputs["x"], "noise": bits, **inputs}  # in this order
        code = traced(lambda x, u, scores=None: (u < net.theta(features(x, scores))).to(torch.uint8), net=net)
    return {
        "encoder.onnx": _file(as_onnx(code, inputs, "bits", encoder), about | noise),
        "head.onnx": _file(as_onnx(head, {"bits": bits.to(torch.uint8)}, "probabilities"), about),
    }


def traced(function: Callable[..., Tensor], **parts: nn.Module) -> nn.Module:
    """Return a function of tensors as a module with the parts of a network that it uses: no others are exported."""
    module: Any = nn.ModuleDict(parts)
    module.forward = function
    return module.eval()


def as_onnx(module: nn.Module, inputs: dict[str, Tensor], output: str, encoder: PosteriorEncoder | None = None) -> Any:
    """Return a module as an ONNX model for any number of rows, behind the trees of an encoder if it takes scores."""
    rows = torch.export.Dim("n")
    options: dict[str, Any] = {"opset_version": OPSET, "dynamo": True, "verbose": False}
    options |= {"input_names": list(inputs), "output_names": [output]}
    options |= {"dynamic_shapes": tuple({0: rows} for _ in inputs)}
    with _quiet():
        program: Any = torch.onnx.export(module, tuple(inputs.values()), **options)
    proto = program.model_proto  # a new copy at every access
    graph = proto.graph
    graph.ClearField("value_info")
    for part in (graph, *graph.node, *graph.input, *graph.output):
        part.ClearField("metadata_props")  # Python code, with the paths of this machine
    for dimension in (value.type.tensor_type.shape.dim[0] for value in (*graph.input, *graph.output)):
        if not dimension.dim_param:  # the exporter says nothing about it
            where = "somewhere the network turns the number of rows into a plain number"
            problem = f"The file would take {dimension.dim_value} rows and no other number: {where}."
            raise InputError(problem, remedy="Write x.shape[0] there, not len(x).")
    return behind_trees(encoder, proto) if encoder and "scores" in inputs else proto


def _file(model: Any, about: dict[str, str]) -> bytes:
    """Return a checked model as a file, with texts among its properties."""
    import onnx

    onnx.helper.set_model_props(model, about)
    onnx.checker.check_model(model, full_check=True)
    return model.SerializeToString(deterministic=True)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence what torch's exporter says about its own internals, and about torchvision not being installed."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logger.setLevel(level)


def posterior_inputs(encoder: PosteriorEncoder) -> tuple[Callable[[Tensor, Any], Tensor], dict[str, Tensor]]:
    """Return the function from encoded columns and the scores of trees to features, and three rows of what it takes."""
    mean, scale = torch.from_numpy(encoder.mean_), torch.from_numpy(encoder.scale_)
    models = [[_weight_and_bias(model, row) for row in told] for model, told in _told(encoder)]
    joint = joint_probabilities(encoder)

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
                logs = _shares(score + bias).clamp(min=SMALLEST).log()
                ratios.append(logs[:, 1:] - logs[:, :1])
            parts.append(torch.stack(ratios, -1).flatten(1))  # by class or group, then by label
        estimates = torch.cat(parts, 1)
        if encoder.features == "probabilities":
            return joint(estimates)
        scaled = ((estimates - mean) / scale).float()
        return torch.cat([scaled, x], 1) if encoder.has_columns_ else scaled

    inputs = {"x": torch.zeros(3, len(encoder.table_encoder_.get_feature_names_out()))}
    n_scores = sum(len(bias) for model in models for weight, bias in model if weight is None)
    if n_scores:
        inputs["scores"] = torch.zeros(3, n_scores, dtype=torch.float64)
    return features, inputs


def joint_probabilities(encoder: Any) -> Callable[[Tensor], Tensor]:
    """Return the function from the log-ratios of all learners to p(y,s|x), by the encoder's blends."""
    label, *groups = encoder._by_target(np.arange(len(encoder.mean_))[None])  # places of the ratios
    places = [label[0], *(given[0, :, y] for given in groups for y in range(given.shape[2]))]
    blends = [encoder.blends_[0], *(blend for blend in encoder.blends_[1:] for _ in encoder.classes_)]
    known = [(torch.from_numpy(p), *_weight_and_bias(b, np.zeros(0))) for p, b in zip(places, blends, strict=True)]

    def joint(estimates: Tensor) -> Tensor:
        found = [_shares(estimates[:, place] @ weight + bias) for place, weight, bias in known]  # type: ignore[operator]
        n_classes = found[0].shape[1]
        given = [torch.stack(found[1 + i : 1 + i + n_classes], 1) for i in range(0, len(found) - 1, n_classes)]
        every = torch.cat(given, 2) if given else torch.ones_like(found[0])[:, :, None]
        return (found[0][:, :, None] * every).flatten(1).float()

    return joint


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


def _shares(score: Tensor) -> Tensor:
    """Return the probability of every class; two classes have one score."""
    return torch.softmax(score, 1) if score.shape[1] > 1 else torch.sigmoid(torch.cat([-score, score], 1))


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
