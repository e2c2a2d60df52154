"""`fairbits audit`: what the columns of a table, or the code of a model, tell about sensitive columns."""

import json
from pathlib import Path
from typing import Any

from rich.console import Console

from fairbits.commands.plain_words import plain_words
from fairbits.errors import InputError
from fairbits.report.wording import adversaries
from fairbits.storage import replace_file
from fairbits.tables.fitted_model import open_model
from fairbits.tables.table_file import TableFile
from fairbits.tables.table_writer import check_place
from fairbits.workflow.table_audit import Audits, audit_model, audit_table


def run_audit(
    file: Path,
    sensitive: list[str],
    *,
    label: str | None,
    model: Path | None,
    columns: list[str],
    drop: list[str],
    full: bool,
    confidence: float,
    output: Path | None,
    reading: dict[str, Any],
    as_json: bool,
) -> None:
    """Audit, print, and write the record if asked for."""
    if output is not None:
        check_place(output)
    options: dict[str, Any] = {"label": label, "probes": "full" if full else "quick", "confidence": confidence}
    with Console(stderr=True).status("training probes that try to tell the groups apart"):
        found = _audits(file, sensitive, model, columns, drop, options, reading)
    record = json.dumps(found.to_dict(), indent=1, default=str)
    if output is not None:
        replace_file(output, record + "\n")
    if as_json:
        print(record)
        return
    for one in found.audits:
        print(*adversaries({"audit": one.to_dict()}), "", plain_words(str(one)), "", sep="\n")
    print(*map(plain_words, found.notes), *([f"Written to {output}."] if output is not None else []), sep="\n")


def _audits(
    file: Path,
    sensitive: list[str],
    model: Path | None,
    columns: list[str],
    drop: list[str],
    options: dict[str, Any],
    reading: dict[str, Any],
) -> Audits:
    if model is None:
        if not sensitive:
            raise InputError("Say which columns must not be told: --sensitive COLUMN[,COLUMN...].")
        return audit_table(TableFile(file, **reading), sensitive, columns=columns, drop=drop, **options)
    if columns or drop:
        raise InputError("--columns and --drop are for a table on its own; a model knows what it reads.")
    fitted = open_model(model)
    fitted.check_sensitive(sensitive)
    return audit_model(fitted, TableFile(file, **reading), **options)
