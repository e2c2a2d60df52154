"""Save and load."""

import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
import torch
from torch import Tensor

import fairbits
from fairbits.modelfile.error import said_of
from fairbits.modelfile.manifest import MODEL, WEIGHTS, read_manifest, read_sealed
from fairbits.modelfile.model_state import method_of, model_state, restored_model
from fairbits.modelfile.safe_folder import write_folder
from fairbits.modelfile.schema import FileState
from fairbits.modelfile.strict_json import MAX_JSON, read_json, write_json
from fairbits.modelfile.weights import file_sizes, read_weights, write_weights


def save(model: Any, path: str | os.PathLike, *, overwrite: bool = False) -> None:
    """Write a fitted model to a folder of its own, without pickle: weights as safetensors, all else as JSON.

    The folder appears whole, after what was written has been read back, or not at all.

    Kept are settings, encoders, labels, groups, learning curves, weights and, of a `CertifiedClassifier`, the promise
    and its certificate; of the training rows a fingerprint of the whole table. Not kept, by design: `random_state` and
    the state of any generator (a loaded model draws fresh bits), single training rows or numbers that recognise them,
    what was drawn before, `device` and `verbose`, and what only training needs of the network.

    Parameters
    ----------
    model : a fitted method, a pipeline of `TableEncoder` and a method, a `CertifiedClassifier`, or an encoder
    path : the folder; it must not exist, or be empty
    overwrite : whether a model that is there may be replaced; a folder that holds anything else never is

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
    with said_of(f"This {type(model).__name__} cannot be saved"):
        state = FileState(
            created=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}", versions=_versions(), model=model_state(model)
        )
        files = {MODEL: write_json(state.model_dump())}
        method = method_of(model)
        if method is not None:
            files[WEIGHTS] = write_weights(method.net_.state_dict())
    write_folder(Path(os.path.abspath(path)), files, overwrite=overwrite, check=load)


def load(path: str | os.PathLike) -> Any:
    """Return the model that `save` wrote: it predicts the same, bit for bit, and draws fresh bits.

    Loading runs no code from the file. Size and sha256 of every file are compared with the manifest before anything of
    it is parsed, and shapes with the network's before memory is taken for weights; whatever is wrong raises a
    `ModelFileError` that says so. The digests find accidents, not forgers: who changes a model on purpose can write new
    ones, and gets no further than another model. Load models of people you trust to have trained them well.
    """
    folder = Path(path)
    entries = read_manifest(folder)

    def weights(expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
        data = read_sealed(folder / WEIGHTS, entries.weights, file_sizes(expected))
        return read_weights(data, expected, str(folder / WEIGHTS))

    content = read_json(read_sealed(folder / MODEL, entries.model, range(MAX_JSON + 1)), str(folder / MODEL))
    with said_of(f"{folder / MODEL} describes no model that can be built"):
        return restored_model(FileState.model_validate(content).model, weights)


def _versions() -> dict[str, str]:
    """Return the versions that may explain a difference."""
    modules = {"fairbits": fairbits, "numpy": np, "scikit-learn": sklearn, "torch": torch}
    return {"python": platform.python_version(), **{name: str(m.__version__) for name, m in modules.items()}}
