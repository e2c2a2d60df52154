"""Do jobs once: whatever has its record is not run again, several processes work, and killing it loses nothing.

A job is a model of settings; their hash is its name. Its record is one line of `records.jsonl`.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from fairbits.lab.run_records import OPTIONAL, Record, append_record, read_records, read_runs, record_of
from fairbits.lab.shared_records import SharedRecords
from fairbits.storage import locked, versions
from fairbits.workers import Watch, Work, do_jobs

OTHERS_SECONDS = 5.0  # after which one looks again for jobs that another worker has claimed


class Folder:
    """The records of finished jobs, and the trials of searches.

    A record holds the job's settings, their hash and its result. Its date, versions and duration are in "made", which
    no table reads.
    """

    def __init__(self, path: Path):
        self.path, self.file, self.trials = path, path / "records.jsonl", path / "trials"

    def read(self) -> dict[str, Record]:
        """Return the records by hash; a line that a crash has torn is left out."""
        return {record["hash"]: record for record in read_runs(self.file)}

    def other_versions(self) -> dict[str, int]:
        """Count, by package, the records that were made with another version than the installed one."""
        made = [record["made"] for record in self.read().values()]
        counts = {name: sum(m.get(name) != version for m in made) for name, version in versions(*OPTIONAL).items()}
        return {name: count for name, count in counts.items() if count}

    def torn_lines(self) -> int:
        """Count the lines that cannot be read."""
        lines = self.file.read_bytes().split(b"\n") if self.file.exists() else []
        return sum(bool(line.strip()) for line in lines) - sum(1 for _ in read_records(self.file))

    def progress(self, run: Any) -> list[dict[str, Any]]:
        """Return the trials that the run's search has finished."""
        batches = read_records(self.trials / f"{run.trials_hash}.jsonl")
        return [trial for batch in batches for trial in batch.get("batch", [])]

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep a second process out of the folder, which is made if it does not exist."""
        self.path.mkdir(parents=True, exist_ok=True)
        busy, remedy = f"Another process is at work in {self.path}.", "Wait until it ends, or choose another folder."
        with locked(self.path / ".lock", busy, remedy):
            yield


def reproduce(runs: Sequence[Any], folder: Folder, **options: Any) -> list[Record]:
    """Execute the runs of a plan that have no record, and return the records of all; options are those of `finish`.

    You can interrupt it at any time: a search resumes after its last batch of trials.
    """
    done = folder.read()
    missing = [run for run in runs if run.hash not in done]
    if not missing:
        return [done[run.hash] for run in runs]
    from fairbits.lab.run_parts import estimator_of
    from fairbits.lab.runs import execute

    for run in missing:  # make every estimator once: a wrong name or setting shows now, not after hours of work
        if hasattr(run, "method"):
            estimator_of(run.method)
    folder.trials.mkdir(parents=True, exist_ok=True)
    return finish(runs, partial(execute, trials=folder.trials), folder, **options)


def finish(
    jobs: Sequence[Any],
    work: Work,
    folder: Folder,
    *,
    workers: int = 1,
    cluster: str | None = None,
    storage: str | None = None,
    watch: Watch = lambda *_: None,
    track: Callable[[Record], None] | None = None,
) -> list[Record]:
    """Do the jobs that have no record, and return the records of all, in the order of the jobs.

    Parameters
    ----------
    workers, cluster, watch : as for `do_jobs`
    storage : address of a PostgreSQL database, in which all who work on a folder of this name share their records
    track : called with every new record
    """
    with folder.locked():
        done = folder.read()
        shared = None if storage is None else SharedRecords(storage, folder.path.name)
        if shared is not None:
            shared.add(done.values())

        def keep(job: Any, result: Any, seconds: float) -> None:
            record = record_of(job, result, seconds) if shared is None else result
            if record is None:  # another worker is at it
                return
            append_record(folder.file, record)
            done[job.hash] = record
            if track is not None:
                track(record)

        while missing := [job for job in jobs if job.hash not in done]:
            own = work if shared is None else partial(shared.do, work)
            do_jobs(missing, own, keep, workers=min(workers, len(missing)), cluster=cluster, watch=watch)
            if any(job.hash not in done for job in missing):
                time.sleep(OTHERS_SECONDS)
    return [done[job.hash] for job in jobs]
