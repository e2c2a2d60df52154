"""The paper's tables and figures, and the page that shows them, from records alone."""

import base64
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fairbits.errors import InputError, MissingExtraError
from fairbits.lab.paper.arena_tables import arena, arena_charts
from fairbits.lab.paper.biased_images import accuracy_charts, biased_mnist, sample_images
from fairbits.lab.paper.domain_shift import domains
from fairbits.lab.paper.information_paths import plane, plane_charts
from fairbits.lab.paper.latex_tables import latex
from fairbits.lab.paper.method_frontiers import overview, within_limits
from fairbits.lab.paper.paired_comparisons import comparisons
from fairbits.lab.paper.record_frames import NOTES, Record, in_order, of_kind
from fairbits.lab.paper.refitted_methods import informativeness, informativeness_charts, refits
from fairbits.lab.paper.strength_paths import complexity, stability, strength_charts
from fairbits.lab.paper.tuned_methods import (
    representation,
    representation_charts,
    tradeoff,
    tradeoff_charts,
    tuned_charts,
)
from fairbits.lab.run_records import read_runs
from fairbits.lab.run_settings import RUN
from fairbits.report.page import Section, render
from fairbits.report.wording import markdown
from fairbits.storage import replace_file

__all__ = ["can_draw", "paper_charts", "paper_sections", "write_lab_report", "write_paper"]

PARTS = (
    arena,
    overview,
    tradeoff,
    within_limits,
    comparisons,
    refits,
    representation,
    informativeness,
    stability,
    complexity,
    plane,
    biased_mnist,
    domains,
)
CHARTS = (
    arena_charts,
    tuned_charts,
    tradeoff_charts,
    representation_charts,
    informativeness_charts,
    strength_charts,
    plane_charts,
    accuracy_charts,
)
MEASURED = {
    "strengths": "scores",
    "plane": "epochs",
    "arena": "points",
    "images": "accuracy",
    "domain": "scores",
}  # the others have the scores of a test
LATEX_HEAD = "% Needs \\usepackage{booktabs} and \\usepackage{graphicx}."
TITLE = "The paper's experiments"


def write_lab_report(folder: Path, output: Path | None = None) -> list[Path]:
    """Make tables, figures and report.html again from the records of `fairbits reproduce`; return the files."""
    if not can_draw():
        raise MissingExtraError("report.html", "report")
    file, output = folder / "records.jsonl", output or folder
    records = list(read_runs(file))
    for record in records:
        if not _is_whole(record):
            raise InputError(f"{file} is damaged: a part of the record {record.get('hash')!r} is missing.")
    written = write_paper(records, output)
    figures, sections = {file.stem: file for file in written if file.suffix == ".svg"}, [_opening(records)]
    for section in paper_sections(records):
        shown = section.name in figures
        sections.append(replace(section, picture=_embedded(figures[section.name])) if shown else section)
    replace_file(output / "report.html", render(TITLE, sections, "records.jsonl", sortable=True))
    return [*written, output / "report.html"]


def write_paper(records: Iterable[Record], output: Path) -> list[Path]:
    """Write tables.md, tables.tex and the figures for which there are records; return the files.

    The same records give the same bytes, whatever their order and whenever they were made. Without the packages of the
    extra "report" there are no figures, and a sentence on stderr says so.
    """
    output.mkdir(parents=True, exist_ok=True)
    records = in_order(records)
    sections, figures = paper_sections(records), _figures(records, output)
    drawn = {file.name for file in figures}
    blocks = [f"# {TITLE}" if sections else "No records yet."]
    for section in sections:
        blocks += [f"## {section.title}", *map(markdown, section.tables)]
        if f"{section.name}.png" in drawn:
            blocks.append(f"![{section.title}]({section.name}.png)")
    files = [output / "tables.md", output / "tables.tex"]
    replace_file(files[0], "\n\n".join(blocks) + "\n")
    replace_file(files[1], "\n\n".join([LATEX_HEAD, *(latex(table) for s in sections for table in s.tables)]) + "\n")
    return [*files, *figures]


def paper_sections(records: Iterable[Record]) -> list[Section]:
    """Return the tables for which there are records."""
    records = in_order(records)
    return [section for part in PARTS for section in part(records)]


def paper_charts(records: Iterable[Record]) -> Iterator[tuple[str, Any]]:
    """Yield the charts that records alone give, each under the name of its section."""
    records = in_order(records)
    for charts in CHARTS:
        yield from charts(records)


def _figures(records: list[Record], output: Path) -> list[Path]:
    if not can_draw():
        print("No figures: install fairbits with the extra 'report' to draw them.", file=sys.stderr)
        return []
    from fairbits.report.charts import save_chart

    files = [file for name, chart in paper_charts(records) for file in save_chart(chart, output, name)]
    return [*files, *(sample_images(output) if of_kind(records, "images") else [])]


def can_draw() -> bool:
    """Say whether the packages of the extra "report" are installed."""
    return all(find_spec(name) for name in ("altair", "jinja2", "vl_convert"))


def _is_whole(record: Record) -> bool:
    """Say whether a record has the settings of a run and the results that its kind has."""
    try:
        run = RUN.validate_python(record["run"])
        return "hash" in record and isinstance(record["result"][MEASURED.get(run.kind, "test")], (dict, list, float))
    except (KeyError, TypeError, ValidationError):
        return False


def _opening(records: list[Record]) -> Section:
    if not records:
        return Section("opening", TITLE, missing="There are no records yet.")
    kinds = Counter(record["run"]["kind"] for record in records)
    facts = {
        "runs": [f"{kind} {count}" for kind, count in sorted(kinds.items())],
        "data": sorted({record["run"].get("dataset", "images") for record in records}),
        "made": sorted({record["made"]["date"] for record in records if "made" in record}),
    }
    shown = tuple((term, ", ".join(texts)) for term, texts in facts.items() if texts)
    lists = (("What is not guaranteed", NOTES["page"]["not_guaranteed"]),)
    return Section("opening", TITLE, text=(NOTES["page"]["text"],), facts=shown, lists=lists)


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
