"""`fairbits fit`: from a table to a folder with a model and what is known about it."""

import json
import os
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from fairbits.commands.arguments import SHIPPED
from fairbits.commands.data import shipped_frame
from fairbits.commands.failures import NOT_CERTIFIED
from fairbits.commands.plain_words import plain_words
from fairbits.commands.progress import stepping
from fairbits.errors import InputError, MissingExtraError
from fairbits.modelfile import save
from fairbits.report.report_folder import write_report
from fairbits.report.wording import model_card, summary
from fairbits.storage import replace_file
from fairbits.tables.table_file import read_file
from fairbits.tables.task import Task, make_task
from fairbits.workflow.fit_record import fit_record
from fairbits.workflow.fit_task import FitOptions, fit_task

STEPS = {
    "training": "training and certifying",
    "unmitigated": "training an unprotected network",
    "audit": "attacking the code on the test rows",
    "path": "training with other gammas to compare",
    "Parity": "training a rival, parity penalty",
    "HSIC": "training a rival, HSIC penalty",
    "references": "scoring all models",
    "plane": "training once more for the information plane",
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
    _check_place(output)
    torch.set_num_threads(1)  # on a busy machine threads wait for each other
    with Console(stderr=True).status("reading the table"):
        made = _task(table, label, sensitive, reading, task)
    console.print(f"{len(made.y):,} rows, {made.X.shape[1]} columns to predict {made.label} from.", highlight=False)
    with stepping(STEPS) as show:
        fit = fit_task(made, options, show)
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


def _check_place(output: Path) -> None:
    """Raise a ValueError unless a new folder can be written there: before the training, which takes its time."""
    if output.exists() and not output.is_dir():
        raise InputError(f"{output} is a file; name a folder with -o.")
    if output.exists() and any(output.iterdir()):
        raise InputError(f"{output} is not empty; name another folder with -o, or move that one away.")
    nearest = next(folder for folder in (output, *output.absolute().parents) if folder.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        raise InputError(f"No folder can be made in {nearest}; name another one with -o.")


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
        raise InputError("Say what to predict and what to forget: --label COLUMN --sensitive COLUMN[,COLUMN...].")
    read = read_file(table, **reading)
    return read.frame, read.notes, label, sensitive


def _in_plain_words(record: dict[str, Any]) -> dict[str, Any]:
    """Return the record with its sentences in the words of the command line: card and page are read by its users."""
    found, task = record["audit"], record["task"]
    return {
        **record,
        "task": {**task, "notes": [plain_words(note) for note in task["notes"]]},
        "concerns": [plain_words(concern) for concern in record["concerns"]],
        "refusal": None if record["refusal"] is None else plain_words(record["refusal"]),
        "audit": {**found, "concerns": [plain_words(concern) for concern in found["concerns"]]},
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
