"""Do jobs once: whatever has its record is not run again, several processes work, and killing it loses nothing.

A job is a model of settings; their hash is its name. Its record is one line of `records.jsonl`.
"""

import contextlib
import datetime
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from fairbits.errors import InputError
from fairbits.lab.run_records import RUNS_FORMAT, append_record, commit, read_records, read_runs
from fairbits.lab.run_settings import Settings
from fairbits.storage import locked, versions

COMMIT = commit()  # at the start: later commits are not the code that runs
OPTIONAL = ("optuna",) if find_spec("optuna") else ()  # results depend on its version, too
POLL_SECONDS = 1.0
Record = dict[str, Any]
Work = Callable[[Any], dict[str, Any]]  # job -> result; a function of a module, so that another process finds it
Watch = Callable[[list[Any], list[Any], int], None]  # (waiting, running, finished)


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

    def add(self, job: Settings, result: dict[str, Any], seconds: float) -> Record:
        """Keep the result of a job and return its record."""
        date = datetime.date.today().isoformat()
        record = {
            "format": RUNS_FORMAT,
            "hash": job.hash,
            "run": job.model_dump(mode="json"),
            "result": result,
            "made": {"date": date, "commit": COMMIT, **versions(*OPTIONAL), "seconds": round(seconds, 1)},
        }
        append_record(self.file, record)
        return record

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
    watch: Watch | None = None,
    track: Callable[[Record], None] | None = None,
) -> list[Record]:
    """Do the jobs that have no record, and return the records of all, in the order of the jobs.

    Parameters
    ----------
    workers : processes
    watch : called about once a second with the waiting jobs, the running jobs and the number of finished ones
    track : called with every new record
    """
    with folder.locked():
        done = folder.read()
        missing = [job for job in jobs if job.hash not in done]

        def keep(job: Any, result: dict[str, Any], seconds: float) -> None:
            done[job.hash] = folder.add(job, result, seconds)
            if track is not None:
                track(done[job.hash])

        if missing:
            _do(missing, work, min(workers, len(missing)), watch or (lambda *_: None), keep)
    return [done[job.hash] for job in jobs]


def _do(jobs: list[Any], work: Work, workers: int, watch: Watch, keep: Callable[[Any, dict, float], None]) -> None:
    context = multiprocessing.get_context("spawn")
    stop, hold = context.Pipe(duplex=False)
    running: dict[Future, Any] = {}
    waiting = list(jobs)
    with ProcessPoolExecutor(workers, context, initializer=_end_with, initargs=(stop,)) as pool:
        try:
            while waiting or running:
                while waiting and len(running) < workers:
                    job = waiting.pop(0)
                    running[pool.submit(_timed, work, job)] = job
                for future in wait(running, POLL_SECONDS, FIRST_COMPLETED).done:
                    keep(running.pop(future), *future.result())
                watch(waiting, list(running.values()), len(jobs) - len(waiting) - len(running))
        except BrokenProcessPool:
            problem = (
                "A worker process was ended from outside, most likely because memory ran out. Finished work is kept."
            )
            raise InputError(problem, remedy="Start again to continue, with fewer workers if needed.") from None
        except BaseException:
            hold.close()  # a fit does not hear of the pool's shutdown
            raise


def _timed(work: Work, job: Any) -> tuple[dict[str, Any], float]:
    started = time.perf_counter()
    return work(job), time.perf_counter() - started


def _end_with(stop: Connection) -> None:
    """End this worker, in the middle of a fit, when the parent closes its end of a pipe or is gone itself."""

    def end() -> None:
        stop.poll(None)
        os._exit(1)

    threading.Thread(target=end, daemon=True).start()
