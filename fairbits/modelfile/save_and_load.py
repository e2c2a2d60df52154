"""Save a fitted model to a folder of JSON and weights, and load it.

The folder appears whole or not at all, and its files are checked by the manifest before anything in them is used.
"""

import functools
import os
import platform
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from fairbits.modelfile.certified_content import SAVED, FileState
from fairbits.modelfile.manifest import (
    BEGINNING,
    MANIFEST,
    MAX_MANIFEST,
    MODEL,
    SEALED,
    WEIGHTS,
    ModelFileError,
    entry_of,
    manifest_of,
    read_file,
    read_json,
    read_manifest,
    read_sealed,
    said_of,
    write_json,
)
from fairbits.modelfile.model_content import describe, method_of, plain
from fairbits.storage import need, replace_file, versions


class ModelExistsError(ModelFileError):
    """The folder already holds a model, which `save` does not replace unless you ask for it."""

    def __init__(self, path: Any):
        self.path = path
        super().__init__(f"{path} already holds a model.", remedy="Pass overwrite=True to replace it.")


def read_weights(file: Path, entries: dict[str, Any], expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
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


def _check_place(path: Path, overwrite: bool) -> None:
    """Raise unless the path is free, or holds nothing but a model that may be replaced."""
    if not os.path.lexists(path) or (path.is_dir() and not path.is_symlink() and not any(path.iterdir())):
        return
    file = path / MANIFEST
    regular = not path.is_symlink() and not file.is_symlink() and file.is_file()
    if not regular or not read_file(file, range(MAX_MANIFEST + 1)).startswith(BEGINNING):
        raise ModelFileError(f"{path} exists and is not a model.", remedy="Choose another place.")
    others = sorted({file.name for file in path.iterdir()} - SEALED - {MANIFEST})
    if others:
        problem = f"{path} also holds {others[0]!r}, which is not part of the model."
        raise ModelFileError(problem, remedy="Move it, or choose another place.")
    if not overwrite:
        raise ModelExistsError(path)


def write_folder(path: Path, files: dict[str, bytes], *, overwrite: bool, check: Callable[[Path], Any]) -> None:
    """Write files and their manifest to a new folder, check it, and move it to its place.

    There is never half a model at that place. Replacing one takes two renames; if the machine stops between them, both
    models are complete in folders next to it, called .part....
    """
    _check_place(path, overwrite)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".part.{path.name}.{secrets.token_hex(4)}")
    aside = part.with_name(f"{part.name}.old")
    part.mkdir()
    try:
        manifest = manifest_of({name: entry_of(data) for name, data in files.items()})
        for name, data in {**files, MANIFEST: manifest}.items():
            replace_file(part / name, data)
        sync_folder(part)
        try:
            check(part)
        except ModelFileError as error:
            raise ModelFileError(error.problem.replace(str(part), str(path)), remedy=error.remedy) from error
        if path.is_dir():
            os.rename(path, aside)
        os.rename(part, path)
    except BaseException:
        if aside.is_dir():
            os.rename(aside, path)
        _remove(part)
        raise
    _remove(aside)
    sync_folder(path.parent)


def _remove(folder: Path) -> None:
    """Delete the model files of a folder, and the folder if nothing else is in it."""
    with suppress(OSError):
        for name in (MANIFEST, *SEALED):
            (folder / name).unlink(missing_ok=True)
        folder.rmdir()


def sync_folder(folder: Path) -> None:
    """Write the names in a folder to the disk, where the system can."""
    if os.name == "posix":
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


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
            "model": plain(describe(model, SAVED)),
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
    entries, file = read_manifest(folder).files, folder / MODEL
    data = read_sealed(file, entries)
    read_json(data, str(file))  # refuses what pydantic would let pass: keys that occur twice, too many values
    with said_of(f"{file} does not describe a model that fairbits can build"):
        state = FileState.model_validate_json(data).model
        return state.build(functools.partial(read_weights, folder / WEIGHTS, entries))
