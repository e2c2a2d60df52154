"""The manifest of a model's folder: size and sha256 of every file, compared before the file is parsed.

A manifest ends with its own digest. `fairbits fit` seals a model and audit.json, the record of the fit: each has the
digest of the other. This notices edits and mix-ups. It is no signature: anyone can compute digests.
"""

import hashlib
import json
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from fairbits.errors import InputError
from fairbits.storage import need, replace_file

MANIFEST, MODEL, WEIGHTS = "manifest.json", "model.json", "weights.safetensors"
SEALED = {MODEL, WEIGHTS}  # what a manifest may list
VERSION = 3  # since records are sealed; 2 came with PosteriorEncoder, and files of both older formats are still read
RECORD, INNER = "audit.json", "model"
RESTORE = "Restore the whole folder as `fairbits fit` wrote it, or run `fairbits fit` again."
BEGINNING = b'{\n "format": "fairbits model"'
MAX_MANIFEST, MAX_JSON = 2**12, 2**27  # bytes
MAX_VALUES = 2**20  # in one JSON file: each takes about 100 bytes of memory, however short its text


class ModelFileError(InputError):
    """A model cannot be saved, or a folder does not hold a complete and undamaged model."""


class Manifest(NamedTuple):
    """What a manifest says."""

    version: int
    files: dict[str, Any]  # the entry of each file
    record: dict[str, Any] | None = None  # the entry of the record that was written with the model

    @property
    def digest(self) -> str:
        """The sha256 of the model: of the entries of its files."""
        return hashlib.sha256(write_json(self.files)).hexdigest()


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


def _short(text: str, most: int = 300) -> str:
    line = " ".join(text[: 2 * most].split()).rstrip(".")
    return line if len(line) <= most else line[:most] + "..."


def write_json(value: Any) -> bytes:
    """Return a value as JSON for a file; numbers keep every digit, and no text in it can end or begin an HTML tag."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False, indent=1)
    return text.replace("<", "\\u003c").encode() + b"\n"


def read_json(data: bytes, name: str) -> dict[str, Any]:
    """Return the object in the file `name`: limited in size and depth, every key once.

    >>> read_json(b'{"a": [1, 2.5]}', "model.json")
    {'a': [1, 2.5]}
    """
    if len(data) > MAX_JSON or sum(map(data.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise ModelFileError(f"{name} has more than {MAX_VALUES} values or {MAX_JSON} bytes, too many for a model.")
    with said_of(f"{name} is not valid JSON"):
        value = json.loads(data.decode(), object_pairs_hook=_each_once)
        need(isinstance(value, dict), f"it holds a {type(value).__name__} where an object is expected")
        return value


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    need(len(dict(pairs)) == len(pairs), "a key occurs twice")
    return dict(pairs)


def entry_of(data: bytes) -> dict[str, int | str]:
    """Return what a manifest holds of a file."""
    return {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def manifest_of(entries: dict[str, Any], version: int = VERSION, record: dict[str, Any] | None = None) -> bytes:
    """Return the manifest of files, by their entries; it ends with its own."""
    content = {"format": "fairbits model", "version": version, "files": entries}
    content |= {} if record is None else {"record": record}
    return write_json({**content, "manifest": entry_of(write_json(content).removesuffix(b"\n}\n"))})


def read_manifest(folder: Path) -> Manifest:
    """Return what a manifest says that has not been changed since it was written."""
    if not folder.is_dir():
        raise ModelFileError(f"{folder} is not a folder; fairbits.save writes a model as a folder.")
    file = folder / MANIFEST
    data = read_file(file, range(MAX_MANIFEST + 1))
    if not data.startswith(BEGINNING):
        raise ModelFileError(f"{file} is not the manifest of a fairbits model.")
    content = read_json(data, str(file))
    version: Any = content.get("version")
    record = content.get("record")
    if isinstance(version, int) and version > VERSION:
        newer = f"{folder} has format {str(version)[:20]}; this version of fairbits reads up to {VERSION}."
        raise ModelFileError(newer, remedy="Upgrade fairbits to read it.")
    with said_of(f"{file} cannot be used"):
        entries: Any = content.get("files")
        known = isinstance(entries, dict) and entries.keys() <= SEALED and version in (1, 2, VERSION)
        whole = known and (record is None or version == VERSION) and data == manifest_of(entries, version, record)
        need(whole, "it has been changed or damaged since it was written")
        return Manifest(version, entries, record)


def read_sealed(file: Path, entries: dict[str, Any], sizes: range = range(MAX_JSON + 1)) -> bytes:
    """Return the content of a file if its size is one of those allowed, and size and sha256 are those of its entry."""
    if file.name not in entries:
        raise ModelFileError(f"{file} is not in the manifest, but this model needs it.")
    data = read_file(file, sizes)
    if entry_of(data) != entries[file.name]:
        raise ModelFileError(f"{file} does not match the manifest: it was cut off, changed or damaged.")
    return data


def read_file(file: Path, sizes: range) -> bytes:
    """Return the bytes of a regular file; its size is checked before anything is read."""
    if file.is_symlink():
        raise ModelFileError(f"{file} is a link; the files of a model must be regular files in its folder.")
    flags = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY", "O_CLOEXEC"))
    with said_of(f"{file} cannot be read"), open(file, "rb", opener=lambda name, _: os.open(name, flags)) as opened:
        status = os.fstat(opened.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ModelFileError(f"{file} is not a regular file.")
        if status.st_size not in sizes:
            needed = f"this model needs {sizes.start} to {sizes.stop - 1}"
            raise ModelFileError(f"{file} has {status.st_size} bytes; {needed}.")
        return opened.read(sizes.stop)


class BrokenSealError(InputError):
    """A record and the model beside it are not as one fit wrote them."""


def write_record(folder: Path, record: dict[str, Any]) -> dict[str, Any]:
    """Write the record of a fit beside its model, each with the digest of the other; return it as it was written."""
    manifest = read_manifest(folder / INNER)
    sealed = {**record, "model": manifest.digest}
    data = write_json(sealed)
    replace_file(folder / INNER / MANIFEST, manifest_of(manifest.files, record=entry_of(data)))
    replace_file(folder / RECORD, data)
    return sealed


def read_record(folder: Path) -> Any:
    """Return the record of a folder, None if there is none.

    Raise unless it is the one that was written with the model beside it. Versions 0.1 and 0.2 wrote no seal, and the
    record of an audit has no model.
    """
    file, inner = folder / RECORD, folder / INNER
    if not file.exists():
        return None
    data, record, named = file.read_bytes(), None, None
    with suppress(ValueError, RecursionError):
        record = json.loads(data)
        named = record.get("model") if isinstance(record, dict) else None
    if (inner / MANIFEST).exists():
        manifest = read_manifest(inner)
        for name in manifest.files:
            read_sealed(inner / name, manifest.files)
        if named not in (None, manifest.digest):
            raise BrokenSealError(f"{file} is about another model than the one in {inner}.", remedy=RESTORE)
        if (named is not None or manifest.version >= VERSION) and manifest.record != entry_of(data):
            problem = (
                f"{file} is not as `fairbits fit` wrote it with the model in {inner}: changed, cut off or replaced."
            )
            raise BrokenSealError(problem, remedy=RESTORE)
    elif named is not None:
        raise BrokenSealError(f"{file} is about a model, but {inner} holds none.", remedy=RESTORE)
    if record is None:
        raise InputError(f"{file} is damaged: it is not JSON.", remedy=RESTORE)
    return record


class ModelExistsError(ModelFileError):
    """The folder already holds a model, which `save` does not replace unless you ask for it."""

    def __init__(self, path: Any):
        self.path = path
        super().__init__(f"{path} already holds a model.", remedy="Pass overwrite=True to replace it.")


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
