"""Files that survive a crash: records of one JSON object per line, and files that are replaced as a whole."""

import importlib.metadata
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from fairbits.errors import InputError

RUNS_FORMAT = 1  # of the records of experiments; records of another format are neither read nor overwritten


def read_records(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a file, none if it does not exist; skip a line that a crash cut off."""
    for line in file.read_bytes().split(b"\n") if file.exists() else ():
        try:
            record = json.loads(line)
        except ValueError:  # cut off, or not text
            continue
        if isinstance(record, dict):
            yield record


def read_runs(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of experiments; raise an InputError at one of another format."""
    for record in read_records(file):
        if record.get("format") != RUNS_FORMAT:
            raise InputError(
                f"{file} holds records of format {record.get('format')!r}; this fairbits writes format {RUNS_FORMAT}.",
                remedy="Name another folder, or move this one away. Nothing was changed.",
            )
        yield record


def append_record(file: Path, record: dict[str, Any]) -> None:
    """Add a record as a line of its own, also after a line that a crash cut off; it is on the disk on return."""
    line = json.dumps(record, allow_nan=False).encode() + b"\n"
    with file.open("ab+") as lines:
        if lines.tell():
            lines.seek(-1, os.SEEK_END)
            line = line if lines.read(1) == b"\n" else b"\n" + line
        _write_through(lines, line)


def replace_file(file: Path, content: str | bytes) -> None:
    """Write a file that appears whole or not at all; it is on the disk on return."""
    part = file.with_name(f".part.{os.getpid()}.{file.name}")
    try:
        with part.open("wb") as opened:
            _write_through(opened, content.encode() if isinstance(content, str) else content)
        os.replace(part, file)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _write_through(opened: BinaryIO, data: bytes) -> None:
    opened.write(data)
    opened.flush()
    os.fsync(opened.fileno())


def versions(*more: str) -> dict[str, str]:
    """Return the versions of the packages that results depend on.

    >>> sorted(versions())
    ['fairbits', 'numpy', 'scikit-learn', 'torch']
    """
    return {name: importlib.metadata.version(name) for name in ("fairbits", "torch", "scikit-learn", "numpy", *more)}


def commit() -> str:
    """Return the commit of the code that is loaded, with -dirty if the code was changed; "" outside a checkout."""
    if not _git("ls-files", "__init__.py"):  # the package may lie within somebody else's repository
        return ""
    changed = _git("status", "--porcelain", "--untracked-files=no", ".")
    return _git("rev-parse", "--short", "HEAD") + "-dirty" * bool(changed)


def _git(*arguments: str) -> str:
    here = Path(__file__).parent
    try:
        return subprocess.run(["git", *arguments], capture_output=True, text=True, check=False, cwd=here).stdout.strip()
    except OSError:  # git is not installed
        return ""


@contextmanager
def file_errors(path: Path) -> Iterator[None]:
    """Turn trouble with a file or folder that the user named into an InputError."""
    try:
        yield
    except BrokenPipeError:  # of stdout
        raise
    except OSError as error:
        raise InputError(f"{error.filename or path}: {error.strerror}." if error.strerror else str(error)) from error
