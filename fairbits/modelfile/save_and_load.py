"""Save a fitted model to a folder of JSON and weights, and load it."""

import functools
import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from fairbits.modelfile.model_content import method_of
from fairbits.modelfile.pipeline_content import FileState, describe, plain
from fairbits.modelfile.sealed_folder import (
    MODEL,
    WEIGHTS,
    need,
    read_json,
    read_manifest,
    read_sealed,
    said_of,
    write_folder,
    write_json,
)
from fairbits.storage import versions


def save(model: Any, path: str | os.PathLike, *, overwrite: bool = False) -> None:
    """Write a fitted model to a folder of its own, without pickle.

    Weights are kept as safetensors and everything else as JSON, also the scikit-learn models of a `PosteriorEncoder`.
    The folder appears whole, after it has been read back, or not at all.

    The files keep settings, encoders, labels, groups, learning curves and weights; of a `CertifiedClassifier` also the
    guarantee and its certificate; of the training rows only a fingerprint of the whole table. By design they do not
    keep: `random_state` and the state of any generator (a loaded model draws fresh bits), single training rows or
    numbers that recognise them, earlier draws, `device` and `verbose`, and the parts of the network that only training
    needs.

    Parameters
    ----------
    model : a fitted method, a pipeline of encoders and a method, a `FairCodeClassifier`, a `CertifiedClassifier`, or an
        encoder
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
        return state.build(functools.partial(_read_weights, folder / WEIGHTS, entries))


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
