"""The folder on disk: a manifest with size and sha256 of every file, written whole or not at all."""

import hashlib
import os
import re
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from fairbits.modelfile.encoder_schema import State
from fairbits.modelfile.error import ModelFileError, said_of
from fairbits.modelfile.schema import Sha256
from fairbits.modelfile.strict_json import MAX_JSON, read_json, write_json

MANIFEST, MODEL, WEIGHTS = "manifest.json", "model.json", "weights.safetensors"
FORMAT, VERSION = "fairbits model", 1
MAX_MANIFEST, MAX_WEIGHTS = 2**12, 2**31  # bytes
BEGINNING = b'{\n "format": "fairbits model"'
# The last lines of a manifest seal the ones before, and are found without parsing any of it.
SEAL = re.compile(
    rb'(.*),\n "manifest": \{\n  "size": ([0-9]{1,4}),\n  "sha256": "([0-9a-f]{64})"\n \}\n\}\n', re.DOTALL
)


class FileEntry(State):
    size: Annotated[int, Field(ge=0, le=MAX_WEIGHTS)]
    sha256: Sha256


class FileEntries(State):
    model: Annotated[FileEntry, Field(alias=MODEL)]
    weights: Annotated[FileEntry | None, Field(alias=WEIGHTS)] = None


class Seal(State):
    size: int
    sha256: Sha256


class Manifest(State):
    format: Literal["fairbits model"]
    version: Literal[1]
    files: FileEntries
    manifest: Seal


# ---------------------------------------------------------------------- reading


def read_manifest(folder: Path) -> FileEntries:
    """Return what the manifest says of the other files, after its own size and sha256 are found to be right."""
    if not folder.is_dir():
        raise ModelFileError(f"{folder} is no folder; a model file is one, as fairbits.save writes it.")
    data = _read_file(folder / MANIFEST, MAX_MANIFEST)
    sealed = SEAL.fullmatch(data)
    if not data.startswith(BEGINNING) or not sealed:
        raise ModelFileError(f"{folder / MANIFEST} is not the whole manifest of a fairbits model.")
    head, size, digest = sealed.groups()
    if int(size) != len(head) or _sha256(head) != digest.decode():
        raise ModelFileError(f"{folder / MANIFEST} has been changed or damaged since it was written.")
    content = read_json(data, MANIFEST)
    version = content.get("version")
    if isinstance(version, int) and version > VERSION:
        raise ModelFileError(f"{folder} has format {version}, newer than {VERSION}: upgrade fairbits to read it.")
    with said_of(f"{folder / MANIFEST} is no manifest that can be read"):
        return Manifest.model_validate(content).files


def read_sealed(file: Path, entry: FileEntry | None, sizes: range) -> bytes:
    """Return the content of a file that has the size, one of those allowed, and the sha256 of its entry."""
    if entry is None:
        raise ModelFileError(f"{file} is not in the manifest, but needed for this model.")
    if entry.size not in sizes:
        raise ModelFileError(f"{file} has {entry.size} bytes; this model needs {sizes.start} to {sizes.stop - 1}.")
    data = _read_file(file, entry.size)
    if len(data) != entry.size or _sha256(data) != entry.sha256:
        raise ModelFileError(f"{file} is not the file in the manifest: cut off, changed or damaged since.")
    return data


def _read_file(file: Path, at_most: int) -> bytes:
    """Return the bytes of a regular file; its size is looked at before anything is read."""
    if file.is_symlink():
        raise ModelFileError(f"{file} is a link; the files of a model are files of its folder.")
    flags = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY", "O_CLOEXEC"))
    with said_of(f"{file} cannot be read"), open(os.open(file, flags), "rb") as opened:
        status = os.fstat(opened.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ModelFileError(f"{file} is not a regular file.")
        if status.st_size > at_most:
            raise ModelFileError(f"{file} has {status.st_size} bytes, more than the {at_most} it should have.")
        return opened.read(at_most)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# ---------------------------------------------------------------------- writing


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
            for name, data in {**files, MANIFEST: manifest(files)}.items():
                _write_file(part / name, data)
            _sync_folder(part)
            try:
                check(part)
            except ModelFileError as error:
                raise ModelFileError(str(error).replace(str(part), str(path))) from error
            _move(part, path)
        except BaseException:
            _remove(part)
            raise
        _sync_folder(path.parent)


def manifest(files: dict[str, bytes]) -> bytes:
    """Return the manifest of files: their sizes and digests, and at the end its own."""
    for name, data in files.items():
        if len(data) > (MAX_WEIGHTS if name == WEIGHTS else MAX_JSON):
            raise ModelFileError(f"{name} would have {len(data)} bytes, too many for a model file.")
    entries = {name: {"size": len(data), "sha256": _sha256(data)} for name, data in files.items()}
    content = {"format": FORMAT, "version": VERSION, "files": entries}
    head = write_json(content).removesuffix(b"\n}\n")
    return write_json({**content, "manifest": {"size": len(head), "sha256": _sha256(head)}})


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
    return not file.is_symlink() and file.is_file() and _read_file(file, MAX_MANIFEST).startswith(BEGINNING)


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
