"""`fairbits certify`: what new rows prove of a model, and whether they contradict what was said of it."""

import json
from pathlib import Path
from typing import Any

from rich.console import Console

from fairbits.commands.failures import CONTRADICTED as CONTRADICTED_CODE
from fairbits.commands.failures import NOT_CERTIFIED
from fairbits.commands.plain_words import plain_words
from fairbits.tables.fitted_model import open_model
from fairbits.tables.table_file import TableFile
from fairbits.workflow.recertify import CONTRADICTED, NOT_FRESH, recertified_words, recertify


def run_certify(
    model: Path,
    table: Path,
    sensitive: list[str],
    *,
    confidence: float,
    draws: int,
    reading: dict[str, Any],
    as_json: bool,
) -> None:
    """Certify, print, and end with the exit code of the verdict."""
    fitted = open_model(model)
    fitted.check_sensitive(sensitive)
    with Console(stderr=True).status("certifying"):
        found = recertify(fitted, TableFile(table, **reading), confidence=confidence, draws=draws)
    print(json.dumps(found.to_dict(), default=str) if as_json else plain_words(recertified_words(found)))
    code = {CONTRADICTED: CONTRADICTED_CODE, NOT_FRESH: NOT_CERTIFIED}.get(found.verdict, 0)
    if code:
        raise SystemExit(code)
