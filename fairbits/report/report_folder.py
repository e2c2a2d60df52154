"""`report.html` of a folder, from the records that lie in it."""

import json
from pathlib import Path
from typing import Any

from fairbits.errors import InputError, MissingExtraError
from fairbits.storage import replace_file

FORMAT = 1  # of audit.json
NAME = "report.html"


def write_report(folder: Path, output: Path | None = None) -> Path:
    """Make report.html again from the audit.json of `fairbits fit`; return the file.

    Parameters
    ----------
    output : folder to write to, by default that of the records
    """
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder}.")
    if (folder / "audit.json").exists():
        text = _fit_page(read_record(folder / "audit.json"))
    else:
        raise InputError(
            f"{folder} holds no audit.json and no records.jsonl; name a folder that `fairbits fit` or `fairbits "
            "reproduce` has written."
        )
    file = (output or folder) / NAME
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_file(file, text)
    return file


def read_record(file: Path) -> dict[str, Any]:
    """Return the record of a file; raise a ValueError for one that is damaged or of another format."""
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:  # of JSON, and of bytes that are no text
        raise InputError(f"{file} is damaged: it is not JSON. Run `fairbits fit` again.") from None
    if not isinstance(record, dict) or "format" not in record:
        raise InputError(f"{file} is not a record of fairbits: it has no format number.")
    if record["format"] != FORMAT:
        raise InputError(
            f"{file} has format {record['format']!r}; this version of fairbits reads format {FORMAT}. Use the version "
            "that wrote it, or run `fairbits fit` again."
        )
    return record


def _fit_page(record: dict[str, Any]) -> str:
    try:
        from fairbits.report.page import page
    except ImportError:
        raise MissingExtraError(NAME, "report") from None
    try:
        return page(record)
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise InputError(f"audit.json is damaged: a part of it is missing or of another kind ({error!r}).") from None
