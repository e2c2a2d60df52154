"""`fairbits certify`: a model's certificate on new rows."""

import json
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from fairbits.commands import terminal
from fairbits.storage import file_errors


def certify(
    model: terminal.ModelPath,
    table: Annotated[
        Path, Argument(metavar="TABLE", help="CSV or Parquet file with rows that were not used in the fit.")
    ],
    sensitive: terminal.Sensitive = None,
    confidence: terminal.Confidence = 0.95,
    draws: Annotated[int, Option(min=1, max=16, help="Random codes: how many of a person a recipient gets.")] = 1,
    separator: terminal.Separator = None,
    encoding: terminal.Encoding = None,
    as_json: terminal.AsJson = False,
) -> None:
    """Check a model's certificate on new data.

    Exit code 4: the rows contradict the certificate. Exit code 3: the rows were used in the fit and prove nothing.
    """
    from fairbits.tables.fitted_model import open_model
    from fairbits.tables.table_file import TableFile
    from fairbits.workflow.table_checks import CONTRADICTED, NOT_FRESH, recertify

    with file_errors(table):
        fitted = open_model(model)
        fitted.check_sensitive(terminal.names(sensitive))
        rows = TableFile(table, separator=separator, encoding=encoding)
    with terminal.waiting("certifying"):
        found = recertify(fitted, rows, confidence=confidence, draws=draws)
    print(json.dumps(found.to_dict(), default=str) if as_json else found)
    code = {CONTRADICTED: terminal.CONTRADICTED, NOT_FRESH: terminal.NOT_CERTIFIED}.get(found.verdict)
    if code is not None:
        raise SystemExit(code)
