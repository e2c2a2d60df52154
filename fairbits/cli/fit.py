"""`fairbits fit`: from a table to a folder with a model and what is known about it."""

import json
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from fairbits.cli.arguments import SHIPPED
from fairbits.cli.data import shipped_frame
from fairbits.cli.failures import NOT_CERTIFIED
from fairbits.cli.plain_words import plain_words
from fairbits.modelfile import save
from fairbits.records import replace_file
from fairbits.report.folder import MissingExtraError, write_report
from fairbits.report.words import model_card, summary
from fairbits.workflow.files import read_file
from fairbits.workflow.fit import FitOptions, fit_task
from fairbits.workflow.record import fit_record
from fairbits.workflow.task import Task, make_task

STAGES = {
    "training": "training a path of models and certifying them",
    "alternatives": "training the models to compare with",
    "audit": "attacking the code on the test rows",
}


def run_fit(
    table: str,
    label: str | None,
    sensitive: list[str],
    output: Path,
    options: FitOptions,
    *,
    reading: dict[str, Any],
    task: dict[str, Any],
    as_json: bool,
) -> None:
    """Read, fit, write the folder, and say the outcome in words (or as JSON)."""
    console = Console(stderr=as_json)
    if output.exists() and any(output.iterdir()):
        raise ValueError(f"{output} is not empty; name another folder with -o, or move that one away.")
    torch.set_num_threads(1)  # on a busy machine threads wait for each other
    made = _task(table, label, sensitive, reading, task)
    console.print(f"{len(made.y):,} rows, {made.X.shape[1]} columns to predict {made.label} from.", highlight=False)
    with console.status("reading") as status:
        fit = fit_task(made, options, lambda stage: status.update(STAGES[stage]))
    record = _in_plain_words(fit_record(fit, made, options, Path(table).name))
    _write(output, fit.model, record)
    page = _page(output)
    if as_json:
        print(json.dumps(record))
    else:
        console.print(summary(record), highlight=False, markup=False)
        console.print(f"\nWritten to {output}: model, audit.json, model_card.md{page}", highlight=False, markup=False)
    if not fit.certified:
        raise SystemExit(NOT_CERTIFIED)


def _task(
    table: str, label: str | None, sensitive: list[str], reading: dict[str, Any], options: dict[str, Any]
) -> Task:
    """Read and return what to learn; the table as it was read is not kept, it may be large."""
    frame, notes, label, sensitive = _read(table, label, sensitive, reading)
    task = make_task(frame, label, sensitive, **options)
    task.notes[:0] = notes
    return task


def _read(table: str, label: str | None, sensitive: list[str], reading: dict[str, Any]) -> tuple:
    """Return the table, what was said in reading it, and the names of label and sensitive columns."""
    if table in SHIPPED and not Path(table).is_file():
        frame, data = shipped_frame(table)
        return frame, list(data.caveats), label or data.target_name, sensitive or [data.s.name]
    if label is None or not sensitive:
        raise ValueError("Say what to predict and what to forget: --label COLUMN --sensitive COLUMN[,COLUMN...].")
    read = read_file(table, **reading)
    return read.frame, read.notes, label, sensitive


def _in_plain_words(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record whose sentences, and so those of the report and the model card, know the command line only."""
    task, refusal = record["task"], record["refusal"]
    return {
        **record,
        "task": {**task, "notes": [plain_words(note) for note in task["notes"]]},
        "refusal": None if refusal is None else plain_words(refusal),
        "concerns": [plain_words(concern) for concern in record["concerns"]],
    }


def _write(output: Path, model: Any, record: dict[str, Any]) -> None:
    output.mkdir(parents=True, exist_ok=True)
    save(model, output / "model")
    replace_file(output / "audit.json", json.dumps(record, indent=1, allow_nan=False) + "\n")
    replace_file(output / "model_card.md", model_card(record))


def _page(output: Path) -> str:
    """Write report.html where the packages for it are there; return the end of the sentence that says what is."""
    try:
        return f", {write_report(output).name}"
    except MissingExtraError as advice:
        return f". {advice}."
