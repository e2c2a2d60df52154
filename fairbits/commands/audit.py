"""`fairbits audit`: what a table, or the code of a model, reveals about sensitive columns."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from fairbits.commands import arguments
from fairbits.commands.progress import waiting
from fairbits.errors import InputError
from fairbits.storage import file_errors


def audit(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="CSV or Parquet file with scores, decisions, features or codes."),
    ],
    sensitive: arguments.Sensitive = None,
    label: Annotated[
        str | None, typer.Option(help="Label column, which is not audited; a model is scored on it.")
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(help="Audit this model on the rows of FILE.", autocompletion=arguments.complete_folder),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(help="Columns to audit, or patterns such as 'bit*', comma-separated.", show_default="all others"),
    ] = None,
    drop: arguments.Drop = None,
    full: Annotated[
        bool, typer.Option("--full", help="Also attack with a forest, a network and neighbours, on all rows.")
    ] = False,
    confidence: arguments.Confidence = 0.95,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="JSON file to write.")] = None,
    separator: arguments.Separator = None,
    encoding: arguments.Encoding = None,
    as_json: arguments.AsJson = False,
) -> None:
    """Audit any table of scores, decisions or features, or a model."""
    from fairbits.report.wording import adversaries
    from fairbits.storage import replace_file
    from fairbits.tables.fitted_model import open_model
    from fairbits.tables.table_file import TableFile
    from fairbits.tables.table_writer import check_place
    from fairbits.workflow.table_audit import audit_model, audit_table

    protected = arguments.names(sensitive)
    if model is None and not protected:
        raise InputError("Name the sensitive columns with --sensitive.")
    if model is not None and (columns or drop):
        raise InputError("--columns and --drop are for tables; a model knows which columns it reads.")
    with file_errors(file):
        if output is not None:
            check_place(output)
        fitted = None if model is None else open_model(model)
        table = TableFile(file, separator=separator, encoding=encoding)
    options: dict[str, Any] = {"label": label, "probes": "full" if full else "quick", "confidence": confidence}
    with waiting("training attacks that try to guess the groups"):
        if fitted is None:
            chosen: dict[str, Any] = {"columns": arguments.names(columns), "drop": arguments.names(drop)}
            found = audit_table(table, protected, **chosen, **options)
        else:
            fitted.check_sensitive(protected)
            found = audit_model(fitted, table, **options)
    record = json.dumps(found.to_dict(), indent=1, default=str)
    if output is not None:
        with file_errors(output):
            replace_file(output, record + "\n")
    if as_json:
        print(record)
        return
    for one in found.audits:
        print(*adversaries({"audit": one.to_dict()}), "", one, "", sep="\n")
    print(*found.notes, *([f"Written to {output}."] if output is not None else []), sep="\n")
