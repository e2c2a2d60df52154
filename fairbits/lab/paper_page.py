"""report.html of the paper's experiments: their tables and figures, from the records."""

import base64
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from fairbits.errors import InputError
from fairbits.lab.paper import paper_sections, write_paper
from fairbits.lab.paper.charts import paper_charts
from fairbits.lab.paper.record_frames import Record, in_order
from fairbits.report.charts import svg_of
from fairbits.report.page.page_template import Picture, Section, render
from fairbits.storage import read_runs, replace_file

TITLE = "The paper's experiments"
TEXTS = (
    "What is below was measured, not proved: scores on rows that were left out of training. Differences smaller than "
    "the intervals may be chance; where a run was made once, nothing says how much of it is.",
)
NOT_PROMISED = (
    "Nothing here is certified. A small gap or little information on these rows is no promise about others; the "
    "commands fit and certify prove bounds.",
    "Scores of the expected prediction are of an average over draws. What is said about one draw does not cover it.",
    "The tables are benchmarks with known faults (docs/datasets.md), not evidence about people.",
)


def write_lab_report(folder: Path, output: Path | None = None) -> list[Path]:
    """Make tables, figures and report.html again from the records of `fairbits reproduce`; return the files."""
    records, output = list(read_runs(folder / "records.jsonl")), output or folder
    try:
        page = paper_page(records, folder)
        files = [*write_paper(records, output), output / "report.html"]
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise InputError(f"records.jsonl is damaged: a part of it is missing or of another kind ({error!r}).") from None
    replace_file(files[-1], page)
    return files


def paper_page(records: Iterable[Record], folder: Path) -> str:
    """Return the page of records of `fairbits reproduce`; sample images, which are no records, lie in the folder."""
    records = list(records)
    drawn = {name: svg_of(chart) for name, chart in paper_charts(in_order(records))}
    found = paper_sections(records)
    pictures = [_pictures(f.title, drawn.get(f.name) or _found(folder, f.name)) for f in found]
    sections = [Section(f.name, f.title, tables=f.tables, pictures=p) for f, p in zip(found, pictures, strict=True)]
    return render(TITLE, [_opening(records), *sections], "records.jsonl")


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
    return Section("opening", TITLE, text=TEXTS, facts=shown, lists=(("What is not promised", NOT_PROMISED),))


def _found(folder: Path, name: str) -> str:
    file = folder / f"{name}.svg"
    return file.read_text(encoding="utf-8") if file.exists() else ""


def _pictures(title: str, svg: str) -> tuple[Picture, ...]:
    if not svg:
        return ()
    return (Picture(title, f"data:image/svg+xml;base64,{base64.b64encode(_smaller(svg).encode()).decode()}"),)


def _smaller(svg: str) -> str:
    """Leave out what an image does not show: words for screen readers, who have the tables, and digits of places.

    >>> _smaller('<text role="graphics-symbol" aria-label="a mark" x="1.23456">0.995</text>')
    '<text x="1.23">0.995</text>'
    """
    svg = re.sub(r' (?:role|aria-[a-z]+)="[^"]*"', "", svg)
    return re.sub(r"<[^>]+>", lambda tag: re.sub(r"(\.\d\d)\d+", r"\1", tag[0]), svg)
