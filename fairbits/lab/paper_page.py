"""report.html of the paper's experiments: their tables and figures, from the records."""

import base64
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import ValidationError

from fairbits.errors import InputError
from fairbits.lab.paper import paper_sections, write_paper
from fairbits.lab.paper.record_frames import Record
from fairbits.lab.run_settings import RUN
from fairbits.report.page.page_template import Picture, Section, render
from fairbits.storage import read_runs, replace_file

TITLE = "The paper's experiments"
MEASURED = {"reference": "test", "search": "test", "strengths": "scores", "plane": "epochs", "images": "accuracy"}
TEXTS = (
    "These numbers were measured, not proved: they are scores on rows that were left out of training. Differences "
    "smaller than the intervals may be chance. Numbers without an interval come from a single run.",
)
NOT_GUARANTEED = (
    "Nothing here is certified. A small disparity or little leakage on these rows does not guarantee the same on other "
    "rows; the commands fit and certify prove bounds.",
    "The expected prediction is an average over draws. Statements about one draw do not cover it.",
    "The tables are benchmarks with known faults (docs/datasets.md), not evidence about people.",
)


def write_lab_report(folder: Path, output: Path | None = None) -> list[Path]:
    """Make tables, figures and report.html again from the records of `fairbits reproduce`; return the files."""
    file, output = folder / "records.jsonl", output or folder
    records = list(read_runs(file))
    for record in records:
        if not _is_whole(record):
            raise InputError(f"{file} is damaged: a part of the record {record.get('hash')!r} is missing.")
    written, page = write_paper(records, output), output / "report.html"
    replace_file(page, paper_page(records, {file.stem: file for file in written if file.suffix == ".svg"}))
    return [*written, page]


def _is_whole(record: Record) -> bool:
    """Say whether a record has the settings of a run and the results that its kind has."""
    try:
        run = RUN.validate_python(record["run"])
        return "hash" in record and isinstance(record["result"][MEASURED[run.kind]], (dict, list, float))
    except (KeyError, TypeError, ValidationError):
        return False


def paper_page(records: Iterable[Record], figures: Mapping[str, Path]) -> str:
    """Return the page of records of `fairbits reproduce`; figures are SVG files by the name of their section."""
    records = list(records)
    sections = [_opening(records)]
    for found in paper_sections(records):
        shown = [figures[found.name]] if found.name in figures else []
        pictures = tuple(Picture(found.title, _embedded(file)) for file in shown)
        sections.append(Section(found.name, found.title, tables=found.tables, pictures=pictures))
    return render(TITLE, sections, "records.jsonl")


def _opening(records: list[Record]) -> Section:
    if not records:
        return Section("opening", TITLE, missing="There are no records yet.")
    kinds = Counter(record["run"]["kind"] for record in records)
    facts = (
        ("runs", ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))),
        ("data", ", ".join(sorted({record["run"].get("dataset", "images") for record in records}))),
        ("made", ", ".join(sorted({record["made"]["date"] for record in records if "made" in record}))),
    )
    shown = tuple((term, text) for term, text in facts if text)
    return Section("opening", TITLE, text=TEXTS, facts=shown, lists=(("What is not guaranteed", NOT_GUARANTEED),))


def _embedded(file: Path) -> str:
    svg = _smaller(file.read_text(encoding="utf-8"))
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


def _smaller(svg: str) -> str:
    """Leave out what an image does not show: words for screen readers (they read the tables) and digits of places.

    >>> _smaller('<text role="graphics-symbol" aria-label="a mark" x="1.23456">0.995</text>')
    '<text x="1.23">0.995</text>'
    """
    svg = re.sub(r' (?:role|aria-[a-z]+)="[^"]*"', "", svg)
    return re.sub(r"<[^>]+>", lambda tag: re.sub(r"(\.\d\d)\d+", r"\1", tag[0]), svg)
