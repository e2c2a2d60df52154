"""Records that survive a crash: one JSON object per line, appended whole, read without the line a crash has torn."""

import importlib.metadata
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fairbits.errors import InputError

RUNS_FORMAT = 1  # of the records of experiments; one of another format is neither read nor overwritten


def read_records(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a file, none if it does not exist; a torn line is left out."""
    if not file.exists():
        return
    for line in file.read_bytes().split(b"\n"):
        try:
            record = json.loads(line)
        except ValueError:  # torn, or no text at all
            continue
        if isinstance(record, dict):
            yield record


def read_runs(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of experiments; raise a ValueError at one of another format."""
    for record in read_records(file):
        if record.get("format") != RUNS_FORMAT:
            raise InputError(
                f"{file} holds records of format {record.get('format')!r}; this version of fairbits writes format "
                f"{RUNS_FORMAT}. Name another folder, or move this one away: nothing was changed."
            )
        yield record


def append_record(file: Path, record: dict[str, Any]) -> None:
    """Add a record in a line of its own, also after one that a crash has torn; it is on the disk on return."""
    line = json.dumps(record, allow_nan=False).encode() + b"\n"
    with file.open("ab+") as lines:
        if lines.tell() and _last_byte(lines) != b"\n":
            line = b"\n" + line
        lines.write(line)
        lines.flush()
        os.fsync(lines.fileno())


def replace_file(file: Path, content: str | bytes) -> None:
    """Write a file that appears whole or not at all."""
    part = file.with_name(f".part.{os.getpid()}.{file.name}")
    part.write_bytes(content.encode() if isinstance(content, str) else content)
    os.replace(part, file)


def versions(*more: str) -> dict[str, str]:
    """Return the versions of the packages that results depend on.

    >>> sorted(versions())
    ['fairbits', 'numpy', 'scikit-learn', 'torch']
    """
    return {name: importlib.metadata.version(name) for name in ("fairbits", "torch", "scikit-learn", "numpy", *more)}


def commit() -> str:
    """Return the commit of the code that is loaded, marked if the code was changed since; "" outside of a checkout."""
    if not _git("ls-files", "__init__.py"):  # the package may lie within somebody else's repository
        return ""
    changed = _git("status", "--porcelain", "--untracked-files=no", ".")
    return _git("rev-parse", "--short", "HEAD") + "-dirty" * bool(changed)


def _git(*arguments: str) -> str:
    here = Path(__file__).parent
    try:
        return subprocess.run(["git", *arguments], capture_output=True, text=True, check=False, cwd=here).stdout.strip()
    except OSError:  # there is no git
        return ""


def _last_byte(lines: Any) -> bytes:
    lines.seek(-1, os.SEEK_END)
    return lines.read(1)
