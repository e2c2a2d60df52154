"""report.html of the paper's experiments: their tables, and the figures that lie in the folder."""

import base64
from collections.abc import Iterable
from pathlib import Path

from fairbits.report.page.parts import Picture, Section
from fairbits.report.page.render import render
from fairbits.report.paper import paper_sections
from fairbits.report.paper.records import Record

TITLE = "The paper's experiments"


def paper_page(records: Iterable[Record], figures: Path) -> str:
    """Return the page of records of `fairbits reproduce`; a section's figure is the SVG of its name in a folder."""
    sections = [
        Section(f.name, f.title, tables=f.tables, pictures=_pictures(figures / f"{f.name}.svg", f.title))
        for f in paper_sections(records)
    ]
    opening = Section("opening", TITLE, missing="" if sections else "There are no records yet.")
    return render(TITLE, [opening, *sections], "records.jsonl")


def _pictures(file: Path, title: str) -> tuple[Picture, ...]:
    if not file.exists():
        return ()
    return (Picture(title, f"data:image/svg+xml;base64,{base64.b64encode(file.read_bytes()).decode()}"),)
