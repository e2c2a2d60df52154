"""Export fitted models as ONNX files, for programs without torch; the caller supplies the noise of a code."""

import contextlib
import copy
import json
import logging
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

import fairbits
from fairbits.encoding import TableEncoder
from fairbits.errors import InputError, InputTypeError, MissingExtraError
from fairbits.estimators import CodeClassifier, InvariantClassifier
from fairbits.estimators.posterior import PosteriorEncoder
from fairbits.modelfile.posterior_graph import behind_trees, posterior_inputs
from fairbits.storage import replace_file

Encoder = TableEncoder | PosteriorEncoder
OPSET = 18

NOISE = (
    "Uniform numbers in [0, 1), independent for every row and every bit. Draw them again for every run from a "
    "cryptographic source such as os.urandom (24 random bits times 2^-24 fit in float32), and delete them afterwards. "
    "Anyone who knows or chooses the noise learns more than the certificate allows."
)
ONE_DRAW = (
    "A certificate covers one draw per person and anything computed from it. Run the encoder once per person and "
    "share the bits, not the encoder: anyone who has the encoder can compute the probabilities of the bits."
)
HARD_CODE = (
    "A row has one code, however often you run the encoder. A certificate covers the bits and anything computed from "
    "them. Share the bits, not the encoder: anyone who has it can compute the probabilities behind the bits."
)
FUNCTION_OF_THE_ROW = "The probabilities are a function of the row; no certificate of a drawn code covers them."
RECIPE = (
    "Turn each column into the numbers below, in this order, and put those of all columns side by side as float32. "
    "number: (value - center) / scale, with fill in place of a missing or infinite value; nothing if scale is 0. Then, "
    "if indicator is true, 1 for a missing or infinite value and 0 for any other. "
    "date: take the seconds since 1970 in UTC, or the seconds of a duration, and continue as for a number. "
    "category: for each of categories, 1 if it equals the text of the value and 0 if not (write whole numbers without "
    "a decimal point, and truth values as True and False). Then, if other is true, 1 for a text that is not among "
    "them and 0 for any other value. Then, if missing is true, 1 for a missing value and 0 for any other. "
    "dropped: nothing."
)
LEVELS = (
    "One float64 for each column that is not dropped, in this order. number: the value, NaN for a missing or infinite "
    "one. date: the seconds, as above. category: the place of the text among categories, from 0; for any other text, "
    "the number of categories if other is true; NaN in all other cases."
)


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
    sensitive columns, and learners of yours, are not exported.

    Parameters
    ----------
    model : a fitted method of fairbits, alone, behind a `TableEncoder` or a `PosteriorEncoder` in a pipeline, a
        `FairCodeClassifier`, or as chosen by `CertifiedClassifier`, `TunedClassifier` or scikit-learn's searches
    folder : created if needed; files of an earlier export are replaced
    """
    *front, estimator = steps = _fitted_steps(model)
    encoder = front[0] if front else None
    if not isinstance(estimator, InvariantClassifier) or len(front) > 1 or not isinstance(encoder, Encoder | None):
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
        raise InputError(problem, remedy="Keep the model by fairbits.save, and compute the codes in Python.")


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
        table = {"recipe": RECIPE, "columns": [{"name": n, **f} for n, f in zip(names, learnt, strict=True)]}
        if isinstance(encoder, PosteriorEncoder) and any(learner.sees == "levels" for learner in encoder.learners_):
            kept = [name for name, feature in zip(names, read.features_, strict=True) if feature is not None]
            levels = {"shape": ["n", len(kept)], "dtype": "float64", "names": kept, "recipe": LEVELS}
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
    if not isinstance(estimator, CodeClassifier):
        return {**described, "notes": [FUNCTION_OF_THE_ROW]}
    described["bits"] = list(estimator.get_feature_names_out())
    if estimator.is_hard:
        return {**described, "notes": [HARD_CODE]}
    noise = {"shape": ["n", estimator.code_size], "dtype": "float32", "values": NOISE}
    return {**described, "noise": noise, "notes": [ONE_DRAW]}


def _onnx_files(estimator: Any, encoder: PosteriorEncoder | None) -> dict[str, bytes]:
    """Return the ONNX files of a fitted method, behind an encoder of estimates if there is one: name -> content."""
    net: Any = copy.deepcopy(estimator.net_).cpu()
    # Three rows to trace with: torch may take a single row for a constant.
    rows = torch.zeros(3, *estimator.input_shape_, dtype=getattr(torch, estimator.input_dtype_))
    features, inputs = posterior_inputs(encoder) if encoder else (lambda x, _: x, {"x": rows})
    about = {"fairbits": fairbits.__version__, "method": type(estimator).__name__}
    if not isinstance(estimator, CodeClassifier):
        whole = traced(lambda x, scores=None: estimator.probabilities(net, features(x, scores)), net=net)
        model = as_onnx(whole, inputs, "probabilities", encoder)
        return {"model.onnx": _file(model, {**about, "probabilities": FUNCTION_OF_THE_ROW})}
    bits = torch.zeros(3, estimator.code_size)
    head = traced(lambda bits: torch.softmax(net.head(bits.float()), -1), head=net.head)
    if estimator.is_hard:
        about["bits"], noise = HARD_CODE, {}
        code = traced(lambda x, scores=None: (net.theta(features(x, scores)) > 0.5).to(torch.uint8), net=net)
    else:
        about["bits"], noise = ONE_DRAW, {"noise": NOISE}
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
