"""Do jobs in this process, in several processes, on a Dask cluster that is there already, or in runs apart."""

import multiprocessing
import os
import re
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, Self

from fairbits.errors import InputError, MissingExtraError

POLL_SECONDS = 1.0
CLUSTER_SECONDS = 10  # to wait for the scheduler of a cluster
Work = Callable[[Any], Any]  # job -> result; a function of a module, so that another process finds it
Watch = Callable[[list[Any], list[Any], int], None]  # (waiting, running, finished)
Keep = Callable[[Any, Any, float], None]  # (job, result, seconds), in this process, as jobs end


class Shard(NamedTuple):
    """Number `place` of `runs` of one command, from 0, each with every N-th part; they know nothing of each other.

    >>> [number for number in range(7) if Shard.of("1/3").has(number)]
    [1, 4]
    """

    place: int
    runs: int

    @classmethod
    def of(cls, text: str) -> Self:
        """Read a text such as 0/3."""
        found = re.fullmatch(r"(\d+)/(\d+)", text.strip())
        place, runs = (int(found[1]), int(found[2])) if found else (0, 0)
        if not 0 <= place < runs:
            problem = "must be a place and a count, from 0/3 to 2/3 for three runs."
            raise InputError(problem, argument="shard", value=text)
        return cls(place, runs)

    def has(self, number: int) -> bool:
        """Return whether a part is of this run."""
        return number % self.runs == self.place


def do_jobs(
    jobs: Sequence[Any],
    work: Work,
    keep: Keep,
    *,
    workers: int | None = None,
    cluster: str | None = None,
    watch: Watch = lambda *_: None,
) -> None:
    """Do every job and keep its result.

    Parameters
    ----------
    workers : processes; None does the jobs in this one
    cluster : address of the scheduler of a Dask cluster, such as tcp://10.0.0.1:8786, in place of processes
    watch : called about once a second with the waiting jobs, the running jobs and the number of finished ones
    """
    if cluster is not None:
        _on_cluster(list(jobs), work, keep, cluster, watch)
    elif workers is not None:
        _in_processes(list(jobs), work, keep, workers, watch)
    else:
        for done, job in enumerate(jobs):
            watch(list(jobs[done + 1 :]), [job], done)
            keep(job, *_timed(work, job))


def _in_processes(jobs: list[Any], work: Work, keep: Keep, workers: int, watch: Watch) -> None:
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
            problem = "A worker process was killed, most likely because memory ran out. Finished work is kept."
            raise InputError(problem, remedy="Start again to continue, with fewer workers if needed.") from None
        except BaseException:
            hold.close()  # a fit does not hear of the pool's shutdown
            raise


def _on_cluster(jobs: list[Any], work: Work, keep: Keep, address: str, watch: Watch) -> None:
    """Do jobs on a Dask cluster; it does a job again whose worker has died."""
    try:
        from distributed import Client, as_completed
    except ImportError:
        raise MissingExtraError("A Dask cluster", "distributed") from None
    remedy = "Start again when a scheduler is there: finished work is kept."
    try:
        client = Client(address, timeout=CLUSTER_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        problem = f"No Dask scheduler answers ({type(error).__name__})."
        raise InputError(problem, argument="cluster", value=address, remedy="Check its address.") from None
    with client:
        running = {client.submit(_timed, work, job, pure=False): job for job in jobs}
        try:
            for done, future in enumerate(as_completed(list(running), loop=client.loop), 1):
                keep(running.pop(future), *future.result())
                watch([], list(running.values()), done)
        except (CancelledError, OSError) as error:
            problem = f"The Dask scheduler {address} is gone ({type(error).__name__})."
            raise InputError(problem, remedy=remedy) from None
        except BaseException:
            client.cancel(list(running))
            raise


def _timed(work: Work, job: Any) -> tuple[Any, float]:
    started = time.perf_counter()
    return work(job), time.perf_counter() - started


def _end_with(stop: Connection) -> None:
    """End this worker, in the middle of a fit, when the parent closes its end of a pipe or is gone itself."""

    def end() -> None:
        stop.poll(None)
        os._exit(1)

    threading.Thread(target=end, daemon=True).start()
