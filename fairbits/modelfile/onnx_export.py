"""Fitted models as ONNX files, for programs without torch; the noise of a code comes from outside."""

import contextlib
import copy
import json
import logging
import warnings
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted
from torch import Tensor, nn

import fairbits
from fairbits.encoding import TableEncoder
from fairbits.errors import InputError
from fairbits.estimators import CodeClassifier, InvariantClassifier
from fairbits.nn import CodeNet
from fairbits.storage import replace_file

OPSET = 18  # of the ONNX operators
EXAMPLE_ROWS = 3  # to trace by; a single one torch may take for a constant
NOISE = (
    "Uniform numbers in [0, 1), independent for every row and every bit, drawn afresh at every run from a "
    "cryptographic source such as os.urandom (24 random bits times 2^-24 fit in float32) and forgotten after it. Who "
    "knows the noise, or chooses it, learns more than is said about the bits."
)
ONE_DRAW = (
    "What is said about the bits, such as a certificate, holds for one draw per person and what is made of it. Run the "
    "encoder once per person and hand on the bits, not the encoder: with it anybody computes the chances of the bits."
)
FUNCTION_OF_THE_ROW = "The probabilities are a function of the row: nothing said about a drawn code covers them."
RECIPE = (
    "Each column gives these numbers, in this order; those of all columns stand side by side, as float32. "
    "number: (value - center) / scale, unless scale is 0, with fill for a missing or infinite value; then, if "
    "indicator, 1 if the value is missing or infinite and 0 if not. "
    "date: seconds since 1970 in UTC, or the seconds of a duration; then like a number. "
    "category: for each of categories 1 if the value's text is the same and 0 if not (whole numbers are written "
    "without a point, truth values True and False); then, if other, 1 for a text not among them; then, if missing, 1 "
    "for a missing value. "
    "dropped: nothing."
)


def export_onnx(model: Any, folder: str | Path) -> Path:
    """Write a fitted model as ONNX files and `export.json`, which describes them, and return their folder.

    A method with a code becomes two files:

    - ``encoder.onnx``: x (n, features) float32, or images (n, channels, height, width) in the type of the fit, and
      noise (n, code_size) float32 -> bits (n, code_size) uint8, one draw per row;
    - ``head.onnx``: bits -> probabilities (n, classes) float32, what `decode` says to a drawn code.

    The noise is the caller's: uniform in [0, 1), fresh for every row, bit and run, from a cryptographic source, and
    secret. There is no random generator and no seed in the files. The encoder does not return theta, the chances of the
    bits, because theta is a function of the row and no certificate covers it; for the same reason the averaged
    `predict_proba` is not exported. That guards against mistakes, not against people: who has ``encoder.onnx`` can
    compute theta for rows they have. Receivers need the bits, ``head.onnx`` and the classes. Noise of 24 bits, all that
    float32 holds, moves the chance of a bit by less than 6e-8.

    Any other method becomes one file, ``model.onnx``: x -> probabilities, as `predict_proba` gives them.

    A `TableEncoder` in front of the method is not in the files: what it has learnt, and how to encode a row with it, is
    in ``export.json`` under "table". ``examples/onnx_consumer.py`` does so, with numpy and onnxruntime alone. Rows must
    be complete: where `transform` refuses a missing number, the files compute something.

    Parameters
    ----------
    model : a fitted method of fairbits, also behind a `TableEncoder` in a pipeline, or as chosen by
        `CertifiedClassifier`, `TunedClassifier` or scikit-learn's searches
    folder : made if need be; files of an earlier export are replaced
    """
    encoder, estimator = _fitted_parts(model)
    for library in ("onnx", "onnxscript"):
        if find_spec(library) is None:
            raise ImportError(f"{library} is not installed: pip install 'fairbits[export]'")
    files = _files(estimator)
    description = _description(estimator, encoder, list(files))
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        replace_file(folder / name, content)
    replace_file(folder / "export.json", json.dumps(description, indent=1, default=str, allow_nan=False) + "\n")
    return folder


# ---------------------------------------------------------------------- what is exported


def _fitted_parts(model: Any) -> tuple[TableEncoder | None, InvariantClassifier]:
    """Return the table encoder, if there is one, and the method behind it."""
    if isinstance(model, BaseEstimator):
        check_is_fitted(model)
    *front, estimator = steps = _steps(model)
    encoded = len(front) == 1 and isinstance(front[0], TableEncoder)
    if not isinstance(estimator, InvariantClassifier) or (front and not encoded):
        found = " -> ".join(type(step).__name__ for step in steps)
        raise TypeError(
            f"export_onnx cannot export {found}: pass a fitted method of fairbits, alone or behind a TableEncoder in a "
            "pipeline. What other steps do to the rows is not exported; export the last step, as model[-1], and apply "
            "them yourself."
        )
    check_is_fitted(estimator)
    return (front[0] if encoded else None), estimator


def _steps(model: Any) -> list[Any]:
    """Return the steps of a pipeline, inside a choice among models too, or the model itself."""
    if isinstance(model, Pipeline):
        return [inner for _, step in model.steps for inner in _steps(step)]
    for name in ("estimator_", "best_estimator_"):
        if hasattr(model, name):
            return _steps(getattr(model, name))
    return [model]


class _Encoder(nn.Module):
    """Rows and noise to one drawn code; theta stays inside."""

    def __init__(self, net: CodeNet):
        super().__init__()
        self.net = net

    def forward(self, x: Tensor, noise: Tensor) -> Tensor:
        return (noise < self.net.theta(x)).to(torch.uint8)


class _Head(nn.Module):
    """A drawn code to class probabilities."""

    def __init__(self, net: CodeNet):
        super().__init__()
        self.head = net.head

    def forward(self, bits: Tensor) -> Tensor:
        return torch.softmax(self.head(bits.float()), -1)


class _Model(nn.Module):
    """Rows to class probabilities, by a method without a code."""

    def __init__(self, estimator: InvariantClassifier, net: nn.Module):
        super().__init__()
        self.estimator, self.net = estimator, net

    def forward(self, x: Tensor) -> Tensor:
        return self.estimator.probabilities(self.net, x)


def _files(estimator: InvariantClassifier) -> dict[str, bytes]:
    """Return the ONNX files of a fitted method: name -> content."""
    net = copy.deepcopy(estimator.net_).cpu()
    x = torch.zeros(EXAMPLE_ROWS, *estimator.input_shape_, dtype=getattr(torch, estimator.input_dtype_))
    said = {"fairbits": fairbits.__version__, "method": type(estimator).__name__}
    if not isinstance(estimator, CodeClassifier):
        said["probabilities"] = FUNCTION_OF_THE_ROW
        return {"model.onnx": _onnx(_Model(estimator, net), {"x": x}, "probabilities", said)}
    said["bits"] = ONE_DRAW
    noise, bits = (torch.zeros(EXAMPLE_ROWS, estimator.code_size, dtype=kind) for kind in (torch.float32, torch.uint8))
    return {
        "encoder.onnx": _onnx(_Encoder(net), {"x": x, "noise": noise}, "bits", {**said, "noise": NOISE}),
        "head.onnx": _onnx(_Head(net), {"bits": bits}, "probabilities", said),
    }


# ---------------------------------------------------------------------- how it is written


def _onnx(module: nn.Module, inputs: dict[str, Tensor], output: str, said: dict[str, str]) -> bytes:
    """Return a module as a checked ONNX file for any number of rows, with texts among its properties."""
    import onnx

    rows = torch.export.Dim("n")
    with _quiet():
        program: Any = torch.onnx.export(
            module.eval(),
            tuple(inputs.values()),
            input_names=list(inputs),
            output_names=[output],
            dynamic_shapes={name: {0: rows} for name in inputs},
            opset_version=OPSET,
            dynamo=True,
            verbose=False,
        )
    proto = program.model_proto
    _strip(proto.graph)
    _check_rows_are_free(proto.graph)
    onnx.helper.set_model_props(proto, said)
    onnx.checker.check_model(proto, full_check=True)
    return proto.SerializeToString(deterministic=True)


def _check_rows_are_free(graph: Any) -> None:
    """Raise if the exporter has fixed the number of rows to that of its example, which it does without a word."""
    for value in (*graph.input, *graph.output):
        rows = value.type.tensor_type.shape.dim[0]
        if not rows.dim_param:
            raise InputError(
                f"The file would take {rows.dim_value} rows and no other number: something in the network made a plain "
                "number of the rows' count. Write x.shape[0] there, not len(x)."
            )


def _strip(graph: Any) -> None:
    """Drop what the exporter noted about each node: Python code, with the paths of this machine."""
    graph.ClearField("value_info")
    for part in (graph, *graph.node, *graph.input, *graph.output):
        part.ClearField("metadata_props")


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence what torch's exporter says about its own insides, and about torchvision not being there."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            for category in (FutureWarning, DeprecationWarning):
                warnings.simplefilter("ignore", category)
            warnings.filterwarnings(
                "ignore", "# The axis name: n will not be used"
            )  # two inputs share it, as they should
            yield
    finally:
        logger.setLevel(level)


def _description(estimator: InvariantClassifier, encoder: TableEncoder | None, files: Sequence[str]) -> dict[str, Any]:
    """Return what `export.json` says: files, inputs, names of features, bits and classes, how to encode a table."""
    described = {
        "fairbits": fairbits.__version__,
        "method": type(estimator).__name__,
        "files": list(files),
        "x": {
            "shape": ["n", *estimator.input_shape_],
            "dtype": estimator.input_dtype_,
            "names": _feature_names(estimator, encoder),
        },
        "table": None if encoder is None else {"recipe": RECIPE, "columns": _columns(encoder)},
        "classes": estimator.classes_.tolist(),
    }
    if not isinstance(estimator, CodeClassifier):
        return {**described, "notes": [FUNCTION_OF_THE_ROW]}
    noise = {"shape": ["n", estimator.code_size], "dtype": "float32", "values": NOISE}
    return {**described, "noise": noise, "bits": list(estimator.get_feature_names_out()), "notes": [ONE_DRAW]}


def _feature_names(estimator: InvariantClassifier, encoder: TableEncoder | None) -> list[str] | None:
    """Name the numbers of x, as x0, x1, ... if nobody else did; pixels have no names."""
    if len(estimator.input_shape_) > 1:
        return None
    names = _check_feature_names_in(estimator) if encoder is None else encoder.get_feature_names_out()
    return [str(name) for name in names]


def _columns(encoder: TableEncoder) -> list[dict[str, Any]]:
    """Return what a table encoder has learnt about each column of its input, in the words of the recipe."""
    names, features = _check_feature_names_in(encoder), encoder.state()["features"]
    return [{"name": str(name), **(f or {"kind": "dropped"})} for name, f in zip(names, features, strict=True)]
