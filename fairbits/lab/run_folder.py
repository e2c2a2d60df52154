"""The folder of results: finished runs in one file, the trials of searches in others; safe to kill anywhere."""

import contextlib
import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fairbits.errors import InputError
from fairbits.lab.run_settings import RUN
from fairbits.storage import RUNS_FORMAT, append_record, commit, read_records, read_runs, versions

COMMIT = commit()  # at the start: commits made during a long run are not what runs


class Folder:
    """The records of finished runs.

    A record holds the run's settings, their hash and its numbers; when, by what and how long it was made is in
    "made", which no table reads.
    """

    def __init__(self, path: Path):
        self.path, self.file, self.trials = path, path / "records.jsonl", path / "trials"

    def read(self) -> dict[str, dict[str, Any]]:
        """Return the records by the hash of their run; a line that a crash has torn is left out."""
        return {record["hash"]: record for record in read_runs(self.file)}

    def other_versions(self) -> dict[str, int]:
        """Count the records made with another version of a package than is installed now, by package."""
        made = [record["made"] for record in self.read().values()]
        counts = {name: sum(m.get(name) != version for m in made) for name, version in versions("optuna").items()}
        return {name: count for name, count in counts.items() if count}

    def torn_lines(self) -> int:
        """Count the lines that cannot be read."""
        lines = self.file.read_bytes().split(b"\n") if self.file.exists() else []
        return sum(bool(line.strip()) for line in lines) - sum(1 for _ in read_records(self.file))

    def add(self, run: Any, result: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Keep the result of a run and return its record."""
        self.path.mkdir(parents=True, exist_ok=True)
        record = {
            "format": RUNS_FORMAT,
            "hash": run.hash,
            "run": RUN.dump_python(run, mode="json"),
            "result": result,
            "made": {**made_by(), "seconds": round(seconds, 1)},
        }
        append_record(self.file, record)
        return record

    def progress(self, run: Any) -> list[dict[str, Any]]:
        """Return the trials that the run's search has finished."""
        batches = read_records(self.trials / f"{run.trials_hash}.jsonl")
        return [trial for batch in batches for trial in batch.get("batch", [])]

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep a second process out of the folder."""
        self.trials.mkdir(parents=True, exist_ok=True)
        with (self.path / ".lock").open("w") as lock:
            _lock(lock, self.path)
            yield


def _lock(lock: Any, path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # not on this system: who starts two at once is on their own
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise InputError(f"Another process is at work in {path}; wait for it or name another folder.") from None


def made_by() -> dict[str, str]:
    """Return the date, and the versions of what runs."""
    return {"date": datetime.date.today().isoformat(), "commit": COMMIT, **versions("optuna")}
