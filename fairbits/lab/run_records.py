"""Records of experiments, which survive a crash: one JSON object per line, made at a known commit."""

import datetime
import json
import os
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fairbits.errors import InputError
from fairbits.lab.run_settings import Settings
from fairbits.storage import versions

RUNS_FORMAT = 1  # records of another format are neither read nor overwritten
OPTIONAL = ("optuna",) if find_spec("optuna") else ()  # results depend on its version, too
Record = dict[str, Any]


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


def record_of(job: Settings, result: dict[str, Any], seconds: float) -> Record:
    """Return the record of a job that took so many seconds."""
    date = datetime.date.today().isoformat()
    return {
        "format": RUNS_FORMAT,
        "hash": job.hash,
        "run": job.model_dump(mode="json"),
        "result": result,
        "made": {"date": date, "commit": COMMIT, **versions(*OPTIONAL), "seconds": round(seconds, 1)},
    }


def append_record(file: Path, record: dict[str, Any]) -> None:
    """Add a record as a line of its own, also after a line that a crash cut off; it is on the disk on return."""
    line = json.dumps(record, allow_nan=False).encode() + b"\n"
    with file.open("ab+") as lines:
        if lines.tell():
            lines.seek(-1, os.SEEK_END)
            line = line if lines.read(1) == b"\n" else b"\n" + line
        lines.write(line)
        lines.flush()
        os.fsync(lines.fileno())


def commit() -> str:
    """Return the commit of the code that is loaded, with -dirty if that or a benchmark was changed; "" outside one."""
    if not _git("ls-files", "__init__.py"):  # the package may lie within somebody else's repository
        return ""
    changed = _git("status", "--porcelain", ".", "../benchmarks")  # also new files
    return _git("rev-parse", "--short", "HEAD") + "-dirty" * bool(changed)


def _git(*arguments: str) -> str:
    package = Path(__file__).parents[1]
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False, cwd=package)
    except OSError:  # git is not installed
        return ""
    return done.stdout.strip()


COMMIT = commit()  # at the start: later commits are not the code that runs
