"""Files that are written as a whole, what is wrong with files, and the versions that results depend on."""

import importlib.metadata
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from fairbits.errors import InputError


@contextmanager
def whole_file(file: Path) -> Iterator[BinaryIO]:
    """Open a file that appears whole or not at all; it is on the disk at the end."""
    part = file.with_name(f".part.{os.getpid()}.{file.name}")
    try:
        with part.open("wb") as opened:
            yield opened
            opened.flush()
            os.fsync(opened.fileno())
        os.replace(part, file)
    finally:
        part.unlink(missing_ok=True)


def replace_file(file: Path, content: str | bytes) -> None:
    """Write a `whole_file` at once."""
    with whole_file(file) as opened:
        opened.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def locked(file: Path, busy: str, remedy: str) -> Iterator[None]:
    """Keep a second process out by a lock on a file, which is made and stays; raise InputError if one is at work."""
    with file.open("w") as lock:
        with suppress(ImportError):  # this system has no such locks: nothing keeps a second one out
            import fcntl

            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise InputError(busy, remedy=remedy) from None
        yield


def versions(*more: str) -> dict[str, str]:
    """Return the versions of the packages that results depend on.

    >>> sorted(versions())
    ['fairbits', 'numpy', 'scikit-learn', 'torch']
    """
    return {name: importlib.metadata.version(name) for name in ("fairbits", "torch", "scikit-learn", "numpy", *more)}


@contextmanager
def file_errors(path: Path) -> Iterator[None]:
    """Turn trouble with a file or folder that the user named into an InputError."""
    try:
        yield
    except BrokenPipeError:  # of stdout
        raise
    except OSError as error:
        raise InputError(f"{error.filename or path}: {error.strerror}." if error.strerror else str(error)) from error


def need(holds: bool, otherwise: str) -> None:
    """Raise a ValueError, for the reader of a file to complete, unless a condition holds."""
    if not holds:
        raise ValueError(otherwise)
