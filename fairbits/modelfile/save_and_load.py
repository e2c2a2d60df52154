"""Save a fitted model as a folder that appears whole or not at all, and load it."""

import os
import platform
import secrets
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from torch import Tensor

from fairbits.modelfile.model_state import FileState, method_of, state_of
from fairbits.modelfile.sealed_files import (
    BEGINNING,
    MANIFEST,
    MAX_JSON,
    MAX_MANIFEST,
    MODEL,
    WEIGHTS,
    ModelExistsError,
    ModelFileError,
    manifest_of,
    read_file,
    read_json,
    read_manifest,
    read_sealed,
    said_of,
    write_json,
)
from fairbits.modelfile.weights import file_sizes, read_weights, write_weights
from fairbits.storage import replace_file, versions


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
        state = FileState(
            created=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            versions={"python": platform.python_version(), **versions()},
            model=state_of(model),
        )
        files = {MODEL: write_json(state.model_dump())}
        method = method_of(model)
        if method is not None:
            files[WEIGHTS] = write_weights(method.net_.state_dict())
    with said_of(f"{path} cannot be written"):
        _check_place(path, overwrite)
        _write_folder(path, {**files, MANIFEST: manifest_of(files)})


def load(path: str | os.PathLike) -> Any:
    """Return the model that `save` wrote: it makes the same predictions, bit for bit, and draws fresh bits.

    Loading runs no code from the files. It compares the size and sha256 of every file with the manifest before it
    parses the file, and all shapes with the network's before it takes memory for weights; anything wrong raises a
    `ModelFileError` that says what. The digests find accidents, not forgeries: anyone who changes a model on purpose
    can write new digests, which gives another model but never runs code. Load models from people you trust.
    """
    folder = Path(path)
    entries = read_manifest(folder)

    def weights(expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
        data = read_sealed(folder / WEIGHTS, entries.weights, file_sizes(expected))
        return read_weights(data, expected, str(folder / WEIGHTS))

    content = read_json(read_sealed(folder / MODEL, entries.model, range(MAX_JSON + 1)), str(folder / MODEL))
    with said_of(f"{folder / MODEL} does not describe a model that fairbits can build"):
        return FileState.model_validate(content).model.build(weights)


def _check_place(path: Path, overwrite: bool) -> None:
    """Raise unless the path is free, or holds nothing but a model that may be replaced."""
    if not os.path.lexists(path) or (path.is_dir() and not path.is_symlink() and not any(path.iterdir())):
        return
    file = path / MANIFEST
    regular = not path.is_symlink() and not file.is_symlink() and file.is_file()
    if not regular or not read_file(file, MAX_MANIFEST).startswith(BEGINNING):
        raise ModelFileError(f"{path} exists and is not a model.", remedy="Choose another place.")
    others = sorted({file.name for file in path.iterdir()} - {MANIFEST, MODEL, WEIGHTS})
    if others:
        problem = f"{path} also holds {others[0]!r}, which is not part of the model."
        raise ModelFileError(problem, remedy="Move it, or choose another place.")
    if not overwrite:
        raise ModelExistsError(path)


def _write_folder(path: Path, files: dict[str, bytes]) -> None:
    """Write files to a new folder, load it once, and move it to its place.

    There is never half a model at that place. Replacing one takes two renames; if the machine stops between them, both
    models are complete in folders next to it, called .part....
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".part.{path.name}.{secrets.token_hex(4)}")
    part.mkdir()
    try:
        for name, data in files.items():
            replace_file(part / name, data)
        _sync_folder(part)
        try:
            load(part)
        except ModelFileError as error:
            raise ModelFileError(error.problem.replace(str(part), str(path)), remedy=error.remedy) from error
        _move(part, path)
    except BaseException:
        _remove(part)
        raise
    _sync_folder(path.parent)


def _move(part: Path, path: Path) -> None:
    aside = part.with_name(part.name + ".old")
    replaced = path.is_dir()
    if replaced:
        os.rename(path, aside)
    try:
        os.rename(part, path)
    except BaseException:
        if replaced:
            os.rename(aside, path)
        raise
    _remove(aside)


def _remove(folder: Path) -> None:
    """Delete the model files of a folder, and the folder if nothing else is in it."""
    with suppress(OSError):
        for name in (MANIFEST, MODEL, WEIGHTS):
            (folder / name).unlink(missing_ok=True)
        folder.rmdir()


def _sync_folder(folder: Path) -> None:
    """Write the names in a folder to the disk, where the system can."""
    if os.name == "posix":
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
