"""Save a fitted model to a folder of JSON and weights, and load it."""

import dataclasses
import math
import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
from sklearn.pipeline import Pipeline
from torch import Tensor

from fairbits.encoding import GroupEncoder, TableEncoder
from fairbits.estimators import CertifiedClassifier
from fairbits.modelfile.model_content import LEARNT, NOT_KEPT, FileState, known_method, method_of
from fairbits.modelfile.sealed_folder import (
    MODEL,
    WEIGHTS,
    ModelFileError,
    need,
    read_json,
    read_manifest,
    read_sealed,
    said_of,
    write_folder,
    write_json,
)
from fairbits.storage import versions

# What can be saved besides methods, and the attribute that a fitted one has.
FITTED = {Pipeline: "steps", TableEncoder: "features_", GroupEncoder: "levels_", CertifiedClassifier: "estimator_"}


def save(model: Any, path: str | os.PathLike, *, overwrite: bool = False) -> None:
    """Write a fitted model to a folder of its own, without pickle: weights as safetensors, everything else as JSON.

    The folder appears whole, after it has been read back, or not at all.

    The files keep settings, encoders, labels, groups, learning curves and weights; of a `CertifiedClassifier` also the
    guarantee and its certificate; of the training rows only a fingerprint of the whole table. By design they do not
    keep: `random_state` and the state of any generator (a loaded model draws fresh bits), single training rows or
    numbers that recognise them, earlier draws, `device` and `verbose`, and the parts of the network that only training
    needs.

    Parameters
    ----------
    model : a fitted method, a pipeline of `TableEncoder` and a method, a `CertifiedClassifier`, or an encoder
    path : the folder; it must not exist, or be empty
    overwrite : replace a model that is there; a folder with anything else in it is never replaced

    Examples
    --------
    >>> import tempfile
    >>> from fairbits import VanillaClassifier, load, save
    >>> from fairbits.datasets import make_shifted_bits
    >>> data = make_shifted_bits(200, random_state=0)
    >>> model = VanillaClassifier(max_epochs=20, random_state=0).fit(data.X, data.y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, f"{folder}/model")
    ...     bool((load(f"{folder}/model").predict_proba(data.X) == model.predict_proba(data.X)).all())
    True
    """
    path = Path(os.path.abspath(path))
    with said_of(f"This {type(model).__name__} cannot be saved"):
        content = {
            "created": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            "versions": {"python": platform.python_version(), **versions()},
            "model": plain(describe(model)),
        }
        files = {MODEL: write_json(content)}
        if (method := method_of(model)) is not None:
            weights = {name: t.detach().cpu().contiguous().clone() for name, t in method.net_.state_dict().items()}
            files[WEIGHTS] = safetensors.torch.save(weights)
    with said_of(f"{path} cannot be written"):
        write_folder(path, files, overwrite=overwrite, check=load)


def plain(value: Any) -> Any:
    """Return Python's own numbers, texts, lists and dicts for those of numpy, tuples and dataclasses.

    >>> plain({"sizes": (np.int64(3), 4), "rate": np.float64(0.5), "loss": math.nan})
    {'sizes': [3, 4], 'rate': 0.5, 'loss': 'nan'}
    """
    if dataclasses.is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value) if f.name not in NOT_KEPT}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list, np.ndarray)):
        return [plain(item) for item in value]
    value = value.item() if isinstance(value, np.generic) else value
    if value is not None and not isinstance(value, (bool, int, float, str)):
        raise ModelFileError(f"A model file holds numbers, texts and truth values, but not {str(value)[:80]!r}.")
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def describe(model: Any, where: str = "") -> dict[str, Any]:
    """Return what a file says of a fitted model: all but its weights."""
    kind = type(model)
    attribute = "net_" if kind is known_method(kind.__name__) else FITTED.get(kind)
    if attribute is None or (where and attribute not in ("net_", "features_")):
        inside = "; save its best_estimator_" if hasattr(model, "best_estimator_") else ""
        raise ModelFileError(
            f"A {kind.__name__} cannot be saved{where}{inside}. A model file holds fairbits' own methods, encoders and "
            "CertifiedClassifier, and pipelines of TableEncoder and a method."
        )
    if not hasattr(model, attribute):
        raise ModelFileError(f"This {kind.__name__} is not fitted.", remedy="Call fit first.")
    if kind is Pipeline:
        steps = [{"name": name, "model": describe(step, " in a pipeline")} for name, step in model.steps]
        return {"kind": "pipeline", "steps": steps}
    if kind is GroupEncoder:
        learnt = {name: getattr(model, f"{name}_") for name in ("levels", "cells", "sizes")}
        return {"kind": "groups", "parameters": model, **learnt}
    output = getattr(model, "_sklearn_output_config", {}).get("transform")
    if kind is TableEncoder:
        return {
            "kind": "table",
            "parameters": {**model.get_params(), "dtype": np.dtype(model.dtype).name},
            "feature_names_in": getattr(model, "feature_names_in_", None),
            "features": model.features_,
            "dropped": model.dropped_,
            "output": output,
        }
    parts = _certified_parts(model) if kind is CertifiedClassifier else _method_parts(model)
    return {**parts, "output": output}


def _method_parts(model: Any) -> dict[str, Any]:
    dtype = model.classes_.dtype
    name, width = ("str", dtype.itemsize // 4) if dtype.kind == "U" else (dtype.name, 0)
    return {
        "kind": "method",
        "name": type(model).__name__,
        "settings": model,
        **{name: getattr(model, f"{name}_") for name in LEARNT},
        "feature_names_in": getattr(model, "feature_names_in_", None),
        "classes": {"dtype": name, "width": width, "values": model.classes_},
        "groups": None if model.group_encoder_ is None else describe(model.group_encoder_),
        "fingerprint": model.training_rows_.fingerprint,
    }


def _certified_parts(model: CertifiedClassifier) -> dict[str, Any]:
    settings = model.get_params(deep=False)
    template = settings.pop("estimator")
    if template is not None:
        step, method = template.steps[-1] if isinstance(template, Pipeline) else (None, template)
        template = {"step": step, "gamma": method.gamma}
    return {
        "kind": "certified",
        **{name: value for name, value in settings.items() if name not in NOT_KEPT},
        "template": template,
        "chosen": describe(model.estimator_),
        "certificate": model.certificate_,
        "path": model.path_.to_dict("records"),
    }


def load(path: str | os.PathLike) -> Any:
    """Return the model that `save` wrote: it makes the same predictions, bit for bit, and draws fresh bits.

    Loading runs no code from the files. It compares the size and sha256 of every file with the manifest before it
    parses the file, and all shapes with the network's before it takes memory for weights; anything wrong raises a
    `ModelFileError` that says what. The digests find accidents, not forgeries: anyone who changes a model on purpose
    can write new digests, which gives another model but never runs code. Load models from people you trust.
    """
    folder = Path(path)
    entries, file = read_manifest(folder), folder / MODEL
    data = read_sealed(file, entries)
    read_json(data, str(file))  # refuses what pydantic would let pass: keys that occur twice, too many values
    with said_of(f"{file} does not describe a model that fairbits can build"):
        state = FileState.model_validate_json(data).model
        return state.build(lambda net: _read_weights(folder / WEIGHTS, entries, net))


def _read_weights(file: Path, entries: dict[str, Any], expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors of a file; names, shapes and types must be those expected ("meta" will do), numbers finite."""
    size = sum(t.numel() * t.element_size() for t in expected.values())
    data = read_sealed(file, entries, range(size + 8, size + sum(2 * len(name) + 256 for name in expected) + 256))
    with said_of(f"{file} cannot be read"):
        start = 8 + int.from_bytes(data[:8], "little")
        need(start <= len(data), "it is cut off, or not a safetensors file")
        for name in sorted(set(read_json(data[8:start], str(file))) ^ set(expected)):
            raise ValueError(f"{name[:80]!r} is missing, or not a part of the network in model.json")
        try:
            tensors = safetensors.torch.load(data)
        except (safetensors.SafetensorError, KeyError) as error:  # the latter for types that torch does not know
            raise ValueError(str(error)) from error
        for name, tensor in tensors.items():
            found, needed = ((list(t.shape), t.dtype) for t in (tensor, expected[name]))
            need(found == needed, f"{name!r} is {found}, but the network in model.json needs {needed}")
            need(bool(torch.isfinite(tensor).all()), f"{name!r} holds values that are infinite or not numbers")
    return {name: tensor.clone() for name, tensor in tensors.items()}
