"""The folder on disk: written whole or not at all."""

import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from fairbits.modelfile.error import ModelFileError, said_of
from fairbits.modelfile.manifest import BEGINNING, MANIFEST, MAX_MANIFEST, MODEL, WEIGHTS, manifest_of, read_file


def write_folder(path: Path, files: dict[str, bytes], *, overwrite: bool, check: Callable[[Path], object]) -> None:
    """Write files and their manifest as a new folder, let `check` read it, and move it to its place.

    At no moment is there half a model under that name. To replace one takes two renames; should the machine stop
    between them, both models are whole in folders beside, called .part....
    """
    with said_of(f"{path} cannot be written"):
        _check_place(path, overwrite)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".part.{path.name}.{secrets.token_hex(4)}")
        part.mkdir()
        try:
            for name, data in {**files, MANIFEST: manifest_of(files)}.items():
                _write_file(part / name, data)
            _sync_folder(part)
            _read_back(part, path, check)
            _move(part, path)
        except BaseException:
            _remove(part)
            raise
        _sync_folder(path.parent)


def _check_place(path: Path, overwrite: bool) -> None:
    """Raise unless the path is free, or a model may be replaced there."""
    if not os.path.lexists(path) or (path.is_dir() and not path.is_symlink() and not any(path.iterdir())):
        return
    if path.is_symlink() or not path.is_dir() or not _holds_model(path):
        raise ModelFileError(f"{path} exists and is no model file; choose another place.")
    others = sorted({file.name for file in path.iterdir()} - {MANIFEST, MODEL, WEIGHTS})
    if others:
        raise ModelFileError(f"{path} also holds {others[0]!r}, which is not the model's; move it, or save elsewhere.")
    if not overwrite:
        raise ModelFileError(f"{path} holds a model already; pass overwrite=True to replace it.")


def _holds_model(path: Path) -> bool:
    """Say whether a folder has a manifest that begins like one of ours."""
    file = path / MANIFEST
    return not file.is_symlink() and file.is_file() and read_file(file, MAX_MANIFEST).startswith(BEGINNING)


def _read_back(part: Path, path: Path, check: Callable[[Path], object]) -> None:
    try:
        check(part)
    except ModelFileError as error:
        raise ModelFileError(str(error).replace(str(part), str(path))) from error


def _move(part: Path, path: Path) -> None:
    if not path.is_dir():
        return os.rename(part, path)
    aside = part.with_name(part.name + ".old")
    os.rename(path, aside)
    try:
        os.rename(part, path)
    except BaseException:
        os.rename(aside, path)
        raise
    return _remove(aside)


def _remove(folder: Path) -> None:
    """Delete a folder of model files, as far as it can be; anything else in it is left, and the folder with it."""
    with suppress(OSError):
        for name in (MANIFEST, MODEL, WEIGHTS):
            (folder / name).unlink(missing_ok=True)
        folder.rmdir()


def _write_file(file: Path, data: bytes) -> None:
    with file.open("xb") as opened:
        opened.write(data)
        opened.flush()
        os.fsync(opened.fileno())


def _sync_folder(folder: Path) -> None:
    """Put the names of a folder on the disk, where the system can."""
    if os.name == "posix":
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
