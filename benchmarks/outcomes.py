"""What benchmarks share: jobs for the lab's harness, tables, and limits that results are held against."""

import argparse
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from pydantic import ConfigDict
from rich.console import Console
from rich.progress import Progress
from threadpoolctl import threadpool_limits

from fairbits.lab.harness import Folder, Work, finish
from fairbits.lab.run_settings import Settings

RESULTS = Path(__file__).parent.parent / "results"


class Job(Settings):
    """One thing to run; its settings are whatever the benchmark needs.

    >>> Job(dataset="adult", seed=0).hash == Job(seed=0, dataset="adult").hash != Job(dataset="adult", seed=1).hash
    True
    """

    model_config = ConfigDict(extra="allow")


def outcome(record: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a record's job, beside its "result" and how it was "made"."""
    return {**record["run"], "result": record["result"], "made": record["made"]}


def outcomes(folder: Path) -> dict[str, dict[str, Any]]:
    """Return all outcomes of a folder, by the hash of their jobs."""
    return {name: outcome(record) for name, record in Folder(folder).read().items()}


def outcomes_of(jobs: list[Job], work: Work, folder: Path, *, workers: int = 1) -> list[dict[str, Any]]:
    """Run the jobs that have no record in the folder, and return the outcomes of all."""
    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("running")

        def watch(waiting: list[Job], running: list[Job], finished: int) -> None:
            progress.update(bar, total=len(waiting) + len(running) + finished, completed=finished)

        return [outcome(record) for record in finish(jobs, work, Folder(folder), workers=workers, watch=watch)]


def arguments(about: str, names: str = "", kind: type = str) -> argparse.Namespace:
    """Read the command line: what to run, such as datasets, and the number of worker processes."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    if names:
        parser.add_argument("names", metavar=names, nargs="*", type=kind)
    parser.add_argument("--workers", type=int, default=1, help="processes that work at the same time")
    return parser.parse_args()


def quietly(work: Work, job: Any) -> dict[str, Any]:
    """Return the result of a job, computed on one thread and without warnings."""
    torch.set_num_threads(1)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return work(job)


def run_and_publish(about: str, jobs: Callable, work: Work, folder: Path, tables: Callable) -> None:
    """Run the jobs named on the command line that have no record, then write the tables of all records."""
    given = arguments(about, "NAME")
    outcomes_of(jobs(given.names), partial(quietly, work), folder, workers=given.workers)
    publish(folder, tables(list(outcomes(folder).values())), {})


def table_lines(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table in Markdown."""
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


def publish(folder: Path, lines: list[str], limits: dict[str, bool]) -> None:
    """Write and print the table, and exit with an error that names the limits that do not hold."""
    table = "\n".join(lines)
    (folder / "table.md").write_text(table + "\n")
    print(table)
    missed = [name for name, holds in limits.items() if not holds]
    sys.exit(f"not reached: {'; '.join(missed)}" if missed else 0)
