"""Run what has no record yet, on several processes, and show how far it is."""

import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from fairbits.errors import InputError
from fairbits.lab.run_folder import Folder
from fairbits.lab.run_settings import RUN

POLL_SECONDS = 1.0
Watch = Callable[[list[Any], list[Any], int], None]  # (waiting, running, finished)
Track = Callable[[dict[str, Any]], None]  # (record)


def reproduce(
    runs: list[Any],
    folder: Folder,
    *,
    workers: int = 1,
    watch: Watch | None = None,
    track: Track | None = None,
) -> list[dict[str, Any]]:
    """Run those of the runs that have no record, and return the records of all, in the order of the runs.

    Safe to interrupt anywhere: a search goes on from its last batch of trials. `watch` is called about once a second,
    `track` with every new record.
    """
    with folder.locked():
        done = folder.read()
        missing = [run for run in runs if run.hash not in done]
        if missing:
            _check_methods(missing)
            _work(missing, folder, min(workers, len(missing)), watch or _nothing, track or _nothing)
        done = folder.read()
    return [done[run.hash] for run in runs]


def _check_methods(runs: list[Any]) -> None:
    """Make every estimator once, so that a wrong name or setting is told before hours of work."""
    from fairbits.lab.runs import estimator_of

    for run in runs:
        if hasattr(run, "method"):
            estimator_of(run.method)


def _nothing(*_: Any) -> None:
    """Watch and track nothing."""


def _work(missing: list[Any], folder: Folder, workers: int, watch: Watch, track: Track) -> None:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_die_with_parent) as pool:
        running: dict[Future, Any] = {}
        waiting, finished = list(missing), 0
        try:
            while waiting or running:
                while waiting and len(running) < workers:
                    run = waiting.pop(0)
                    running[pool.submit(_timed, RUN.dump_python(run, mode="json"), folder.trials)] = run
                for future in wait(running, POLL_SECONDS, FIRST_COMPLETED).done:
                    result, seconds = future.result()
                    track(folder.add(running.pop(future), result, seconds))
                    finished += 1
                watch(waiting, list(running.values()), finished)
        except BrokenProcessPool:
            raise InputError(
                "A worker process was ended from outside, most likely for want of memory. What is finished is kept; "
                "the same command goes on from there, with fewer --workers if need be."
            ) from None
        except BaseException:
            for process in list(pool._processes.values()):  # a fit does not hear of a shutdown
                process.kill()
            raise


def _timed(run: dict[str, Any], trials: Path) -> tuple[dict[str, Any], float]:
    """Execute a run in a worker process."""
    import torch

    from fairbits.lab.runs import execute

    settings = RUN.validate_python(run)
    torch.set_num_threads(settings.threads)
    started = time.perf_counter()
    return execute(settings, trials), time.perf_counter() - started


def _die_with_parent() -> None:
    """End this worker when its parent is gone: else it would go on writing where the next one writes."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def end() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=end, daemon=True).start()
