"""`fairbits fit`: from a table to a folder with a model, its certificate and a report."""

import json
import os
import secrets
from enum import StrEnum
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Console
from typer import Argument, Option

from fairbits.commands import terminal
from fairbits.commands.data import shipped_frame
from fairbits.errors import InputError, MissingExtraError
from fairbits.storage import file_errors, replace_file
from fairbits.workflow.option_words import WORDS

if TYPE_CHECKING:
    from fairbits.tables.task import Task


class Purpose(StrEnum):
    """What a model is for, and so what of it must keep the limits."""

    decisions = "decisions"
    codes = "codes"


PROMISES = {Purpose.decisions: "class", Purpose.codes: "code"}


def fit(
    table: Annotated[
        str,
        Argument(
            help="CSV or Parquet file, a folder of them, or compas, adult or bank.",
            autocompletion=terminal.complete_table,
        ),
    ],
    label: Annotated[str | None, Option(help="Column to predict.")] = None,
    sensitive: terminal.Sensitive = None,
    purpose: Annotated[
        Purpose | None,
        Option(
            "--for",
            help="What the limits apply to: decisions of the model, or codes to share and everything made from them.",
            show_default="decisions; with --encode-sensitive or --gamma, codes",
        ),
    ] = None,
    output: Annotated[Path, Option("--output", "-o", help="Folder to write.")] = Path("fairbits-model"),
    max_disparity: Annotated[
        float | None,
        Option(help="Limit on the disparity, the difference in rates.", show_default="0.1 if no limit"),
    ] = None,
    max_information: Annotated[float | None, Option(help="Limit on the leakage about the groups, in bits.")] = None,
    max_odds_disparity: Annotated[
        float | None, Option(help="Limit on the disparity among people with the same label (equalised odds).")
    ] = None,
    odds_label: Annotated[
        str | None,
        Option(help="Apply --max-odds-disparity to this label alone; for equal opportunity, the favourable one."),
    ] = None,
    gamma: Annotated[
        float | None,
        Option(min=0, max=1, help="Weight of the protection, instead of a limit: trains the paper's random code."),
    ] = None,
    encode_sensitive: Annotated[
        bool,
        Option(
            "--encode-sensitive",
            help="Let the model read the sensitive columns, also later: more accurate codes to share. Do not use it "
            "for decisions about people where using these columns is unlawful.",
        ),
    ] = False,
    code_size: Annotated[
        int | None, Option(min=1, max=16, help="Bits per row.", show_default="4, with --gamma 12")
    ] = None,
    favourable: Annotated[
        str | None,
        Option(help="The favourable class, whose rates are shown.", show_default="the last in sorted order"),
    ] = None,
    compare: Annotated[
        bool, Option("--compare", help="Also train other methods and show what they reach; takes longer.")
    ] = False,
    owner: Annotated[str | None, Option(help="Who is responsible for the model, for report and card.")] = None,
    intended: Annotated[str | None, Option("--purpose", help="What the model is for, in a sentence.")] = None,
    approved_by: Annotated[str | None, Option(help="Who approved the model.")] = None,
    seed: Annotated[
        int | None, Option(min=0, max=2**31 - 1, help="Seed of the split and the training.", show_default="random")
    ] = None,
    person: terminal.Person = None,
    drop: terminal.Drop = None,
    bins: terminal.Bins = 4,
    crossed: terminal.Crossed = False,
    merge_small: terminal.MergeSmall = None,
    reference: terminal.Reference = None,
    calibration_share: terminal.CalibrationShare = 0.24,
    confidence: terminal.Confidence = 0.95,
    fit_rows: Annotated[
        int, Option(min=10_000, help="Of a larger table, this many rows train and test; all others certify.")
    ] = 500_000,
    epochs: Annotated[
        int | None,
        Option(
            min=1, help="Maximum epochs; with --gamma, more if the table is small.", show_default="400, with --gamma 40"
        ),
    ] = None,
    separator: terminal.Separator = None,
    encoding: terminal.Encoding = None,
    as_json: terminal.AsJson = False,
) -> None:
    """Fit a model whose decisions, or codes to share, differ little between groups, and certify it.

    Exit code 3: no model could be certified, and the safest one was written. Exit code 5: the certified model is no
    better than one class for everybody.
    """
    from fairbits.workflow.decision_checks import check_reference
    from fairbits.workflow.planning import check_limits
    from fairbits.workflow.rival_models import uncompared

    asked: dict[str, Any] = {"max_disparity": max_disparity, "max_information": max_information, "gamma": gamma}
    asked["max_odds_disparity"] = max_odds_disparity
    if all(value is None for value in asked.values()):
        asked["max_disparity"] = 0.1
    settings: dict[str, Any] = {"code_size": code_size, "max_epochs": epochs, "encode_sensitive": encode_sensitive}
    if purpose is None:
        purpose = Purpose.codes if encode_sensitive or gamma is not None else Purpose.decisions
    promise = None if gamma is not None and purpose == Purpose.codes else PROMISES[purpose]
    settings |= {"odds_label": odds_label, "promise": promise, "favourable": favourable, "reference": reference}
    settings |= {"confidence": confidence, "compare": compare}
    seed = secrets.randbelow(2**31) if seed is None else seed
    with file_errors(output):
        _check_place(output)
    with terminal.waiting("reading the table"):
        read: dict[str, Any] = {"separator": separator, "encoding": encoding}
        columns: dict[str, Any] = {"drop": terminal.names(drop), "person": terminal.names(person)}
        columns |= {"n_bins": bins, "crossed": crossed, "merge_small": merge_small}
        columns |= {"calibration_share": calibration_share, "seed": seed, "fit_rows": fit_rows}
        task = read_task(table, label, terminal.names(sensitive), read, columns)
        check_reference(reference, task.s)
        if gamma is None:
            check_limits(task, SimpleNamespace(**asked, **settings))
        task.notes.extend(uncompared(task) if compare else [])
    import torch  # takes seconds: what is impossible has been refused by now

    from fairbits.modelfile import save
    from fairbits.modelfile.manifest import write_record
    from fairbits.report.page import model_card, write_report
    from fairbits.report.wording import summary
    from fairbits.workflow.fit_records import attempt_number, fit_record
    from fairbits.workflow.fit_task import FitOptions, fit_task

    options = FitOptions(**asked, **settings)
    torch.set_num_threads(1)  # on a busy machine threads wait for each other
    console = Console(stderr=as_json, highlight=False, markup=False)
    several = "s" * (task.X.shape[1] > 1)
    console.print(f"{len(task.y):,} rows, {task.X.shape[1]} column{several} to predict {task.label} from.")
    for note in task.notes:  # before the training, which takes a while: some of them ask
        console.print(f"- {note}")
    with terminal.advancing() as show:

        def on_step(place: int, count: int, name: str, share: float) -> None:
            show(place + share, count, f"step {place + 1} of {count}, {WORDS['steps'][name]}")

        fitted = fit_task(task, options, on_step, seed=seed)
    record = fit_record(fitted, task, Path(table).name)
    record |= {"seed": seed, "table_hash": task.table_hash, "attempt": attempt_number(output, task.table_hash)}
    record["filed"] = {"owner": owner, "purpose": intended, "approved_by": approved_by}
    with file_errors(output):
        output.mkdir(parents=True, exist_ok=True)
        save(fitted.released, output / "model")
        record = write_record(output, record)
        replace_file(output / "model_card.md", model_card(record))
        try:
            written = write_report(output)
            page = f", {written.name}.\nOpen {written} in a browser."
        except MissingExtraError as missing:
            page = f". {missing}"
    if as_json:
        print(json.dumps(record))
    else:
        for line in f"{summary(record)}\n\nWritten to {output}: model, audit.json, model_card.md{page}".splitlines():
            console.print(line, soft_wrap=line.startswith("  "))  # rows of a table stay whole
    if code := {"not certified": terminal.NOT_CERTIFIED, "certified but not useful": terminal.NOT_USEFUL}.get(
        record["verdict"]
    ):
        raise SystemExit(code)


def _check_place(output: Path) -> None:
    """Raise an InputError unless a new folder can be written there: before the training, which takes a while."""
    if output.exists() and not output.is_dir():
        raise InputError(f"{output} is a file; name a folder with -o.")
    if output.exists() and any(output.iterdir()):
        raise InputError(f"{output} is not empty; name another folder with -o, or move that one away.")
    nearest = next(folder for folder in (output, *output.absolute().parents) if folder.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        raise InputError(f"Cannot make a folder in {nearest}; name another one with -o.")


def read_task(
    table: str,
    label: str | None,
    sensitive: list[str],
    read: dict[str, Any],
    columns: dict[str, Any],
) -> "Task":
    """Return the task of a table; `read` says how to read it, `columns` what becomes of its columns."""
    from fairbits.tables.task import task_of_frame, task_of_table

    fit_rows = columns.pop("fit_rows", None)
    if table in list(terminal.ShippedTable) and not Path(table).is_file():
        frame, data = shipped_frame(table)
        return task_of_frame(
            frame, list(data.caveats), label or data.target_name, sensitive or [str(data.s.name)], columns
        )
    from fairbits.tables.table_file import missing_table, open_table

    if near := missing_table(table, [*map(str, terminal.ShippedTable)]):
        raise InputError(f"There is no file {table}. {near}")
    with file_errors(Path(table)):
        file = open_table(table, **read)
        if label is None or not sensitive:
            which = {"the column to predict with --label": label, "the sensitive columns with --sensitive": sensitive}
            missing = " and ".join(what for what, given in which.items() if not given)
            raise InputError(f"Name {missing}. The columns of {table} are {', '.join(file.names[:30])}.")
        return task_of_table(file, label, sensitive, columns, fit_rows)
