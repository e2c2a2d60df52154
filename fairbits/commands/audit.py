"""`fairbits audit`: what a table, or the code of a model, reveals about sensitive columns."""

import json
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from fairbits.commands import terminal
from fairbits.errors import InputError
from fairbits.storage import file_errors, replace_file


def audit(
    file: Annotated[
        Path,
        Argument(
            metavar="FILE", help="CSV or Parquet file, or a folder of them, with scores, decisions, features or codes."
        ),
    ],
    sensitive: terminal.Sensitive = None,
    label: Annotated[str | None, Option(help="Label column: it scores a model, and is not audited.")] = None,
    model: Annotated[
        Path | None, Option(help="Audit this model on the rows of FILE.", autocompletion=terminal.complete_folder)
    ] = None,
    columns: Annotated[
        str | None,
        Option(help="Columns to audit, or patterns such as 'bit*', comma-separated.", show_default="all others"),
    ] = None,
    crossed: terminal.Crossed = False,
    person: terminal.Person = None,
    drop: terminal.Drop = None,
    full: Annotated[
        bool,
        Option(
            "--full", help="Also attack with a random forest, a neural network and nearest neighbours, on all rows."
        ),
    ] = False,
    confidence: terminal.Confidence = 0.95,
    output: Annotated[Path | None, Option("--output", "-o", help="JSON file to write.")] = None,
    separator: terminal.Separator = None,
    encoding: terminal.Encoding = None,
    as_json: terminal.AsJson = False,
) -> None:
    """Audit any table of scores, decisions or features, or a model."""
    from fairbits.report.wording import adversaries, rate_lines
    from fairbits.tables.file_formats import check_place
    from fairbits.tables.table_file import open_table

    protected = terminal.names(sensitive)
    if model is None and not protected:
        raise InputError("Name the sensitive columns with --sensitive.")
    if model is not None and (columns or drop or crossed):
        raise InputError("--columns, --drop and --crossed are for tables; a model knows its columns and groups.")
    with file_errors(file):
        if output is not None:
            check_place(output)
        if model is not None:
            from fairbits.tables.fitted_model import open_model  # needs torch, as do the checks of a model

            fitted = open_model(model)
        table = open_table(file, separator=separator, encoding=encoding)
    options: dict[str, Any] = {"label": label, "probes": "full" if full else "quick", "confidence": confidence}
    options["person"] = terminal.names(person)
    with terminal.waiting("training attacks that try to guess the groups"):
        if model is None:
            from fairbits.workflow.decision_checks import audit_table

            options |= {"columns": terminal.names(columns), "drop": terminal.names(drop), "crossed": crossed}
            audits, notes, rates = audit_table(table, protected, **options)
        else:
            from fairbits.workflow.model_checks import audit_model

            fitted.check_sensitive(protected)
            audits, notes, rates = audit_model(fitted, table, **options)
    found = {"audits": [one.to_dict() for one in audits], "rates": rates, "notes": notes}
    record = json.dumps(found, indent=1, default=str)
    if output is not None:
        with file_errors(output):
            replace_file(output, record + "\n")
    if as_json:
        print(record)
        return
    for one in audits:
        print(*adversaries({"audit": one.to_dict()}), "", one, "", sep="\n")
    rows = [*rate_lines(rates), ""] if rates else []
    print(*rows, *notes, *([f"Written to {output}."] if output is not None else []), sep="\n")
