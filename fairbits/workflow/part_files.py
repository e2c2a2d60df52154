"""Codes or classes of a large table as Parquet parts in a folder, in order: each is written once, by any worker."""

import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from fairbits.errors import InputError
from fairbits.storage import file_errors, replace_file
from fairbits.tables.file_formats import write_table
from fairbits.tables.fitted_model import FittedModel, RowReader, open_model
from fairbits.tables.table_file import Table, TableFile, TablePart
from fairbits.workers import Shard, do_jobs
from fairbits.workflow.released_columns import Columns, made_columns

FORMAT, RUN = 1, "_run.json"  # readers of folders skip names that begin with _
Progress = Callable[[int, int, int], None]  # (parts done, all parts, rows done)


class PartJob(NamedTuple):
    """A part of a table to write: for any worker that sees the folders."""

    model: str
    part: TablePart
    file: str
    columns: Columns
    keep: tuple[str, ...]
    reading: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True)
class PartFolder:
    """A folder of parts, and what they are of: a run that was killed goes on with the parts that are missing."""

    path: Path
    run: dict[str, Any]

    def open(self) -> None:
        """Make the folder, or raise InputError if it holds something else."""
        file = self.path / RUN
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"{self.path} is a file.", remedy="Name a folder with -o.")
        if file.exists():
            if _read_run(file) != self.run:
                problem = f"{self.path} holds parts of another table, model or options."
                raise InputError(problem, remedy="Name another folder with -o, or move that one away.")
            return
        if self.path.exists() and any(name for name in self.path.iterdir() if not name.name.startswith(".part.")):
            raise InputError(f"{self.path} is not empty.", remedy="Name another folder with -o, or move that one away.")
        self.path.mkdir(parents=True, exist_ok=True)
        replace_file(file, _written_run(self.run))

    def file(self, number: int) -> Path:
        """Return the place of a part."""
        return self.path / f"part-{number:06d}.parquet"

    @property
    def missing(self) -> list[int]:
        """Return the parts that are not there."""
        return [number for number in range(self.run["parts"]) if not self.file(number).exists()]


class PartsDone(NamedTuple):
    """What a run has done: rows and parts of this run, parts that were there, and parts that other shards have left."""

    reader: RowReader
    parts: int
    before: int
    missing: int


def write_parts(
    model: FittedModel,
    table: Table,
    output: Path,
    columns: Columns,
    keep: Sequence[str] = (),
    *,
    shard: Shard | None = None,
    workers: int = 1,
    cluster: str | None = None,
    progress: Progress = lambda *_: None,
) -> PartsDone:
    """Write the parts of a table that are missing, of a shard or all; notes are in the reader that is returned."""
    reader, parts = RowReader(model, table), table.parts()
    table.check_columns(keep)
    run = {"format": FORMAT, "model": model.method.fingerprint, "parts": len(parts), "table": table.state()}
    folder = PartFolder(output, run | {"keep": list(keep), "columns": columns.to_dict()})
    with file_errors(output):
        folder.open()
        own = [number for number in range(len(parts)) if shard is None or shard.has(number)]
        missing = [number for number in folder.missing if number in set(own)]
    if cluster is not None:  # its workers have working directories of their own
        output = output.absolute()
    jobs = [
        PartJob(
            str(model.place.absolute()),
            parts[number]._replace(path=str(Path(parts[number].path).absolute())),
            str(folder.file(number).absolute()),
            columns,
            tuple(keep),
            tuple(table.reading.items()),
        )
        for number in missing
    ]
    done = 0

    def keep_result(_: PartJob, counts: dict[str, Any], __: float) -> None:
        nonlocal done
        done += 1
        reader.add_counts(counts)
        progress(done, len(jobs), reader.rows)

    do_jobs(jobs, write_part, keep_result, workers=workers if workers > 1 else None, cluster=cluster)
    table.check_unchanged()
    return PartsDone(reader, len(jobs), len(own) - len(jobs), len(folder.missing))


def write_part(job: PartJob) -> dict[str, Any]:
    """Write a part, whole or not at all; return what its reader has counted."""
    import torch

    torch.set_num_threads(1)  # on a busy machine threads wait for each other
    model, part = _opened(job.model), job.part
    reader = RowReader(model, TableFile(part.path, groups=(part.first, part.last), **dict(job.reading)))
    pieces = (
        pd.concat([piece.more[list(job.keep)].reset_index(drop=True), made_columns(model, piece, job.columns)], axis=1)
        for piece in reader.pieces(verbatim=list(dict.fromkeys([*job.keep, *job.columns.person])))
    )
    write_table(Path(job.file), pieces)
    reader.finish()
    return reader.counts()


def merge_folders(output: Path, folders: Sequence[Path]) -> int:
    """Copy the parts of shards into one folder, which is as if there had been no shards; return how many parts."""
    runs = [_read_run(folder / RUN) for folder in folders]
    for folder, run in zip(folders, runs, strict=True):
        if run != runs[0]:
            problem = f"{folders[0]} and {folder} hold parts of different tables, models or options."
            raise InputError(problem, remedy="Merge the shards of one run.")
    found = [PartFolder(folder, runs[0]) for folder in folders]
    places = [[one.file(n) for one in found if one.file(n).exists()] for n in range(runs[0]["parts"])]
    if missing := [n for n, files in enumerate(places) if not files]:
        problem = f"{len(missing):,} of {len(places):,} parts are missing, the first is number {missing[0]:,}."
        raise InputError(problem, remedy="Run the shards that have not ended, then merge again.")
    merged = PartFolder(output, runs[0])
    with file_errors(output):
        merged.open()
        for number in merged.missing:
            part = output / f".part.{os.getpid()}.{number}"
            shutil.copyfile(places[number][0], part)
            os.replace(part, merged.file(number))
    return len(places)


@lru_cache(1)
def _opened(folder: str) -> FittedModel:
    return open_model(Path(folder))


def _written_run(run: dict[str, Any]) -> str:
    return json.dumps(run, indent=1) + "\n"


def _read_run(file: Path) -> dict[str, Any]:
    if not file.exists():
        problem = f"There is no {file}: {file.parent} holds no parts of `fairbits transform` or `fairbits predict`."
        raise InputError(problem, remedy="Name the folder that it wrote.")
    try:
        run = json.loads(file.read_bytes())
        if run["format"] != FORMAT or not isinstance(run["parts"], int):
            raise ValueError("another format")
        return run
    except (ValueError, TypeError, KeyError):
        raise InputError(f"{file} is damaged.", remedy="Move the folder away and run the command again.") from None
