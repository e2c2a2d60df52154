"""`report.html` of a folder, from the records that lie in it."""

import json
from pathlib import Path
from typing import Any

from fairbits.records import read_runs, replace_file

FORMAT = 1  # of audit.json
NAME = "report.html"


class MissingExtraError(ValueError):
    """The packages that draw are not installed."""


def write_report(folder: Path, output: Path | None = None) -> Path:
    """Make report.html anew from audit.json, or from the records of `fairbits reproduce`; return the file.

    Parameters
    ----------
    output : folder to write to, by default that of the records
    """
    if not folder.is_dir():
        raise ValueError(f"There is no folder {folder}.")
    if (folder / "audit.json").exists():
        text = _fit_page(read_record(folder / "audit.json"))
    elif (folder / "records.jsonl").exists():
        text = _paper_page(list(read_runs(folder / "records.jsonl")), folder)
    else:
        raise ValueError(
            f"{folder} holds no audit.json and no records.jsonl; name a folder that `fairbits fit` or `fairbits "
            "reproduce` has written."
        )
    file = (output or folder) / NAME
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_file(file, text)
    return file


def write_tables(folder: Path, output: Path | None = None) -> list[Path]:
    """Make the tables and figures of the records of `fairbits reproduce` anew, if there are any; return the files."""
    from fairbits.report.paper import write_paper

    if (folder / "audit.json").exists():
        return []
    return write_paper(read_runs(folder / "records.jsonl"), output or folder)


def read_record(file: Path) -> dict[str, Any]:
    """Return the record of a file; raise a ValueError for one that is damaged or of another format."""
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:  # of JSON, and of bytes that are no text
        raise ValueError(f"{file} is damaged: it is not JSON. Run `fairbits fit` again.") from None
    if not isinstance(record, dict) or "format" not in record:
        raise ValueError(f"{file} is not a record of fairbits: it has no format number.")
    if record["format"] != FORMAT:
        raise ValueError(
            f"{file} has format {record['format']!r}; this version of fairbits reads format {FORMAT}. Use the version "
            "that wrote it, or run `fairbits fit` again."
        )
    return record


def _fit_page(record: dict[str, Any]) -> str:
    try:
        from fairbits.report.page import page
    except ImportError:
        raise MissingExtraError(f"pip install 'fairbits[report]' for {NAME}") from None
    try:
        return page(record)
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"audit.json is damaged: a part of it is missing or of another kind ({error!r}).") from None


def _paper_page(records: list[dict[str, Any]], folder: Path) -> str:
    try:
        from fairbits.report.page.paper import paper_page
    except ImportError:
        raise MissingExtraError(f"pip install 'fairbits[report]' for {NAME}") from None
    try:
        return paper_page(records, folder)
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"records.jsonl is damaged: a part of it is missing or of another kind ({error!r}).") from None
