"""The manifest: size and sha256 of every file and of itself, compared before anything else of a file is looked at."""

import hashlib
import os
import re
import stat
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


def manifest_of(files: dict[str, bytes]) -> bytes:
    """Return the manifest of files: their sizes and digests, and at the end its own."""
    for name, data in files.items():
        if len(data) > (MAX_WEIGHTS if name == WEIGHTS else MAX_JSON):
            raise ModelFileError(f"{name} would have {len(data)} bytes, too many for a model file.")
    entries = {name: {"size": len(data), "sha256": _sha256(data)} for name, data in files.items()}
    content = {"format": FORMAT, "version": VERSION, "files": entries}
    head = write_json(content).removesuffix(b"\n}\n")
    return write_json({**content, "manifest": {"size": len(head), "sha256": _sha256(head)}})


def read_manifest(folder: Path) -> FileEntries:
    """Return what the manifest says of the other files, after its own size and sha256 are found to be right."""
    if not folder.is_dir():
        raise ModelFileError(f"{folder} is no folder; a model file is one, as fairbits.save writes it.")
    data = read_file(folder / MANIFEST, MAX_MANIFEST)
    sealed = SEAL.fullmatch(data)
    if not data.startswith(BEGINNING) or not sealed:
        raise ModelFileError(f"{folder / MANIFEST} is not the whole manifest of a fairbits model.")
    head, size, digest = sealed.groups()
    if int(size) != len(head) or _sha256(head) != digest.decode():
        raise ModelFileError(f"{folder / MANIFEST} has been changed or damaged since it was written.")
    content = read_json(data, MANIFEST)
    version = content.get("version")
    if isinstance(version, int) and version > VERSION:
        newer = f"{str(version)[:20]}, newer than {VERSION}"
        raise ModelFileError(f"{folder} has format {newer}: upgrade fairbits to read it.")
    with said_of(f"{folder / MANIFEST} is no manifest that can be read"):
        return Manifest.model_validate(content).files


def read_sealed(file: Path, entry: FileEntry | None, sizes: range) -> bytes:
    """Return the content of a file that has the size, one of those allowed, and the sha256 of its entry."""
    if entry is None:
        raise ModelFileError(f"{file} is not in the manifest, but needed for this model.")
    if entry.size not in sizes:
        raise ModelFileError(f"{file} has {entry.size} bytes; this model needs {sizes.start} to {sizes.stop - 1}.")
    data = read_file(file, entry.size)
    if len(data) != entry.size or _sha256(data) != entry.sha256:
        raise ModelFileError(f"{file} is not the file in the manifest: cut off, changed or damaged since.")
    return data


def read_file(file: Path, at_most: int) -> bytes:
    """Return the bytes of a regular file; its size is looked at before anything is read."""
    if file.is_symlink():
        raise ModelFileError(f"{file} is a link; the files of a model are files of its folder.")
    flags = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY", "O_CLOEXEC"))
    with said_of(f"{file} cannot be read"), open(file, "rb", opener=lambda name, _: os.open(name, flags)) as opened:
        status = os.fstat(opened.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ModelFileError(f"{file} is not a regular file.")
        if status.st_size > at_most:
            raise ModelFileError(f"{file} has {status.st_size} bytes, more than the {at_most} it should have.")
        return opened.read(at_most)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
