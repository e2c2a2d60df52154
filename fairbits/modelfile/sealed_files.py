"""Files that are checked before anything in them is used: strict types, JSON of limited size, and a manifest.

The manifest holds size and sha256 of every file and of itself; they are compared before a file is parsed.
"""

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fairbits.errors import InputError

MANIFEST, MODEL, WEIGHTS = "manifest.json", "model.json", "weights.safetensors"
FORMAT, VERSION = "fairbits model", 1
MAX_MANIFEST, MAX_WEIGHTS = 2**12, 2**31  # bytes
BEGINNING = b'{\n "format": "fairbits model"'
# The last lines seal the lines before them; they are found without parsing.
SEAL = re.compile(
    rb'(.*),\n "manifest": \{\n  "size": ([0-9]{1,4}),\n  "sha256": "([0-9a-f]{64})"\n \}\n\}\n', re.DOTALL
)
MAX_JSON = 2**25  # bytes
MAX_VALUES = 2**20  # in one JSON file: each takes about 100 bytes of memory, however short its text

Count = Annotated[int, Field(ge=0, lt=2**53)]
Size = Annotated[int, Field(ge=1, lt=2**53)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class State(BaseModel):
    """A part of a file: no other keys, no other types, finite numbers."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class ModelFileError(InputError):
    """A model cannot be saved, or a folder does not hold a complete and undamaged model."""


class ModelExistsError(ModelFileError):
    """The folder already holds a model, which `save` does not replace unless you ask for it."""

    def __init__(self, path: Any):
        self.path = path
        super().__init__(f"{path} already holds a model.", remedy="Pass overwrite=True to replace it.")


@contextmanager
def said_of(what: str) -> Iterator[None]:
    """Turn every error that damaged values can cause into a ModelFileError of one sentence that begins with `what`."""
    try:
        yield
    except ModelFileError:
        raise
    except ValidationError as error:
        # A value that fits none of several types has a complaint for each; the others say more than "wrong type".
        complaints = error.errors(include_url=False, include_context=False, include_input=False)
        first = min(complaints, key=lambda complaint: complaint["type"].endswith("_type"))
        place = ".".join(_short(str(part), 40) for part in first["loc"])
        said = f"{place}: " * bool(place) + _short(first["msg"].removeprefix("Value error, "))
        raise ModelFileError(f"{what}: {said}.") from error
    except (OSError, ValueError, TypeError, ArithmeticError, RuntimeError, MemoryError) as error:
        said = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise ModelFileError(f"{what}: {_short(said)}.") from error


def need(holds: bool, otherwise: str) -> None:
    """Raise a ValueError, for `said_of` to complete, unless a condition holds."""
    if not holds:
        raise ValueError(otherwise)


def _short(text: str, most: int = 300) -> str:
    line = " ".join(text[: 2 * most].split()).rstrip(".")
    return line if len(line) <= most else line[:most] + "..."


def write_json(value: Any) -> bytes:
    """Return a value as JSON for a file; numbers keep every digit."""
    return json.dumps(value, allow_nan=False, ensure_ascii=False, indent=1).encode() + b"\n"


def read_json(data: bytes, name: str) -> dict[str, Any]:
    """Return the object in the file `name`: limited in size and depth, every key once, no NaN.

    >>> read_json(b'{"a": [1, 2.5]}', "model.json")
    {'a': [1, 2.5]}
    """
    if len(data) > MAX_JSON or sum(map(data.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise ModelFileError(f"{name} has more than {MAX_VALUES} values or {MAX_JSON} bytes, too many for a model.")
    try:
        value = json.loads(data.decode(), object_pairs_hook=_each_once, parse_constant=_no_constant)
    except RecursionError:
        raise ModelFileError(f"{name} is nested too deeply for a model.") from None
    except ValueError as error:
        raise ModelFileError(f"{name} is not valid JSON: {_short(str(error), 200)}.") from None
    if not isinstance(value, dict):
        raise ModelFileError(f"{name} holds a {type(value).__name__} where an object is expected.")
    return value


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    need(len(found) == len(pairs), "a key occurs twice")
    return found


def _no_constant(text: str) -> None:
    raise ValueError(f"{text} is not a number in JSON")


class FileEntry(State):
    size: Annotated[int, Field(ge=0, le=MAX_WEIGHTS)]
    sha256: Sha256


class FileEntries(State):
    model: Annotated[FileEntry, Field(alias=MODEL)]
    weights: Annotated[FileEntry | None, Field(alias=WEIGHTS)] = None


class Manifest(State):
    format: Literal["fairbits model"]
    version: Literal[1]
    files: FileEntries
    manifest: FileEntry


def manifest_of(files: dict[str, bytes]) -> bytes:
    """Return the manifest of files: their sizes and digests, and at the end its own."""
    for name, data in files.items():
        if len(data) > (MAX_WEIGHTS if name == WEIGHTS else MAX_JSON):
            raise ModelFileError(f"{name} would have {len(data)} bytes, too many for a model file.")
    content = {"format": FORMAT, "version": VERSION, "files": {name: _entry(data) for name, data in files.items()}}
    head = write_json(content).removesuffix(b"\n}\n")
    return write_json({**content, "manifest": _entry(head)})


def _entry(data: bytes) -> dict[str, int | str]:
    return {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def read_manifest(folder: Path) -> FileEntries:
    """Return the manifest's entries, after checking its own size and sha256."""
    if not folder.is_dir():
        raise ModelFileError(f"{folder} is not a folder; fairbits.save writes a model as a folder.")
    file = folder / MANIFEST
    data = read_file(file, MAX_MANIFEST)
    sealed = SEAL.fullmatch(data)
    if not data.startswith(BEGINNING) or not sealed:
        raise ModelFileError(f"{file} is not the whole manifest of a fairbits model.")
    head, size, digest = sealed.groups()
    if _entry(head) != {"size": int(size), "sha256": digest.decode()}:
        raise ModelFileError(f"{file} has been changed or damaged since it was written.")
    content = read_json(data, str(file))
    version = content.get("version")
    if isinstance(version, int) and version > VERSION:
        newer = f"{folder} has format {str(version)[:20]}; this version of fairbits reads format {VERSION}."
        raise ModelFileError(newer, remedy="Upgrade fairbits to read it.")
    with said_of(f"{file} is not a valid manifest"):
        return Manifest.model_validate(content).files


def read_sealed(file: Path, entry: FileEntry | None, sizes: range) -> bytes:
    """Return the content of a file if its size is one of those allowed, and size and sha256 are those of its entry."""
    if entry is None:
        raise ModelFileError(f"{file} is not in the manifest, but this model needs it.")
    if entry.size not in sizes:
        raise ModelFileError(f"{file} has {entry.size} bytes; this model needs {sizes.start} to {sizes.stop - 1}.")
    data = read_file(file, entry.size)
    if _entry(data) != entry.model_dump():
        raise ModelFileError(f"{file} does not match the manifest: it was cut off, changed or damaged.")
    return data


def read_file(file: Path, at_most: int) -> bytes:
    """Return the bytes of a regular file; its size is checked before anything is read."""
    if file.is_symlink():
        raise ModelFileError(f"{file} is a link; the files of a model must be regular files in its folder.")
    flags = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY", "O_CLOEXEC"))
    with said_of(f"{file} cannot be read"), open(file, "rb", opener=lambda name, _: os.open(name, flags)) as opened:
        status = os.fstat(opened.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ModelFileError(f"{file} is not a regular file.")
        if status.st_size > at_most:
            raise ModelFileError(f"{file} has {status.st_size} bytes; at most {at_most} are expected.")
        return opened.read(at_most)
