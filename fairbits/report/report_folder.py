"""`report.html` of a folder, from the record in it."""

import json
from pathlib import Path
from typing import Any

from fairbits.errors import InputError, MissingExtraError
from fairbits.storage import replace_file

FORMAT = 1  # of audit.json
NAME = "report.html"
AGAIN = "Run `fairbits fit` again."


def write_report(folder: Path, output: Path | None = None) -> Path:
    """Make report.html from the audit.json of `fairbits fit` and return the file.

    Parameters
    ----------
    output : folder to write to, by default that of the record
    """
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder}.")
    if not (folder / "audit.json").exists():
        raise InputError(
            f"{folder} holds no audit.json and no records.jsonl.",
            remedy="Name a folder that `fairbits fit` or `fairbits reproduce` wrote.",
        )
    record = read_record(folder / "audit.json")
    try:
        from fairbits.report.page import page
    except ImportError:
        raise MissingExtraError(NAME, "report") from None
    try:
        text = page(record)
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        problem = f"audit.json is damaged: a part of it is missing or of another kind ({error!r})."
        raise InputError(problem, remedy=AGAIN) from None
    file = (output or folder) / NAME
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_file(file, text)
    return file


def read_record(file: Path) -> dict[str, Any]:
    """Return the record of a file; raise an InputError if it is damaged or of another format."""
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:  # of JSON, and of bytes that are no text
        raise InputError(f"{file} is damaged: it is not JSON.", remedy=AGAIN) from None
    if not isinstance(record, dict) or "format" not in record:
        raise InputError(f"{file} is not a record of fairbits: it has no format number.")
    if record["format"] != FORMAT:
        raise InputError(
            f"{file} has format {record['format']!r}; this version of fairbits reads format {FORMAT}.",
            remedy="Use the version that wrote it, or run `fairbits fit` again.",
        )
    return record
