"""Jobs whose outcomes are kept: one JSON line each, in a folder of records; what has its line is not run again."""

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from fairbits.storage import append_record, commit, read_records, versions

OUTCOME = ("scores", "result", "made_by")  # what a record has beyond its job


MADE_BY = {"commit": commit(), **versions()}  # at the start: commits made during a long run are not what runs


def key(job: dict[str, Any]) -> str:
    """Return what identifies a job, or the job of a record.

    >>> key({"seed": 0, "dataset": "adult", "scores": [0.9]})
    '{"dataset": "adult", "seed": 0}'
    """
    return json.dumps({name: value for name, value in job.items() if name not in OUTCOME}, sort_keys=True)


def read(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the records by job; a line that a crash has torn is left out."""
    records = (record for file in sorted(folder.glob("*.jsonl")) for record in read_records(file))
    return {key(record): record for record in records}


def run_missing(
    wanted: list[dict[str, Any]],
    run: Callable[[dict[str, Any]], dict[str, Any]],
    folder: Path,
    *,
    file_by: str,
    progress: Callable[[list[dict[str, Any]]], Iterable[dict[str, Any]]] = iter,
) -> dict[str, dict[str, Any]]:
    """Run the jobs that have no record, add their records to the folder, and return all records by job.

    Parameters
    ----------
    run : returns what the record holds beyond the job, scores or result
    file_by : the job's field after which its file is named
    progress : goes through the missing jobs and shows how far it is
    """
    folder.mkdir(parents=True, exist_ok=True)
    done = read(folder)
    for job in progress([job for job in wanted if key(job) not in done]):
        record = {**job, **run(job), "made_by": MADE_BY}
        append_record(folder / f"{job[file_by]}.jsonl", record)
        done[key(job)] = record
    return done


def publish(folder: Path, lines: list[str], limits: dict[str, bool]) -> None:
    """Write and print the table, and exit with an error that names the limits that do not hold."""
    table = "\n".join(lines)
    (folder / "table.md").write_text(table + "\n")
    print(table)
    missed = [name for name, holds in limits.items() if not holds]
    sys.exit(f"not reached: {'; '.join(missed)}" if missed else 0)
