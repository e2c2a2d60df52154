"""The sums of a shard in a file, and the certificate of all shards together."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairbits.errors import InputError
from fairbits.storage import file_errors, replace_file
from fairbits.tables.fitted_model import FittedModel, RowReader, open_model
from fairbits.tables.table_file import Table, open_table
from fairbits.workers import Shard
from fairbits.workflow.recertified import Recertified, limiting_label
from fairbits.workflow.summed_checks import RowSums, recertify_sums, sum_jobs, summed_up

FORMAT = 1
COMMON = ("format", "model", "folder", "table", "path", "reading", "confidence", "label", "shards")


def write_sums(
    model: FittedModel,
    table: Table,
    output: Path,
    shard: Shard,
    *,
    confidence: float,
    label: str | None = None,
    **how: Any,
) -> int:
    """Sum up the parts of a shard and write the sums to a file; return how many rows these are."""
    jobs = [job for job in sum_jobs(model, table, label) if shard.has(job.number)]
    sums, reader = summed_up(model, table, jobs, label=label, **how)
    content = {"format": FORMAT, "model": model.method.fingerprint, "folder": str(model.place), "table": table.state()}
    content |= {"path": str(table.path), "reading": table.reading, "confidence": confidence, "label": label}
    content |= {"shards": shard.runs, "shard": shard.place, "sums": sums.to_dict(), "counts": reader.counts()}
    with file_errors(output):
        replace_file(output, json.dumps(content) + "\n")
    return sums.rows


def merged_sums(files: Sequence[Path]) -> Recertified:
    """Return the certificate of all shards of a run."""
    contents = [_read(file) for file in files]
    first = contents[0]
    for file, content in zip(files, contents, strict=True):
        if any(content[name] != first[name] for name in COMMON):
            problem = f"{files[0]} and {file} are of different models, tables or options."
            raise InputError(problem, remedy="Merge the shards of one run.")
    there = sorted(content["shard"] for content in contents)
    if there != list(range(first["shards"])):
        lacking = sorted(set(range(first["shards"])) - set(there))
        problem = f"Shard {lacking[0]}/{first['shards']} is missing." if lacking else "A shard is named twice."
        raise InputError(problem, remedy="Name every shard once.")
    with file_errors(Path(first["folder"])):
        model, table = open_model(Path(first["folder"])), open_table(first["path"], **first["reading"])
    if model.method.fingerprint != first["model"]:
        raise InputError(f"The model in {first['folder']} is another one than that of {files[0]}.")
    sums = RowSums.nothing(model, limiting_label(model, table, first["label"]))
    reader = RowReader(model, table, groups=True)
    for content, file in sorted(zip(contents, files, strict=True), key=lambda pair: pair[0]["shard"]):
        sums.read(content["sums"], file)
        reader.add_counts(content["counts"])
    return recertify_sums(model, sums, reader, first["confidence"])


def _read(file: Path) -> dict[str, Any]:
    with file_errors(file):
        text = file.read_bytes()
    try:
        content = json.loads(text)
        if content["format"] != FORMAT or {*COMMON, "shard", "sums", "counts"} - set(content):
            raise ValueError("another format")
        return content
    except (ValueError, TypeError, KeyError):
        remedy = "Name the files that `fairbits certify --shard` wrote."
        raise InputError(f"{file} holds no sums of a shard, or it is damaged.", remedy=remedy) from None
