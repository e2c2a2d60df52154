"""The paper's tables and figures, from records alone."""

import sys
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fairbits.lab.paper.biased_images import biased_mnist, sample_images
from fairbits.lab.paper.forest_views import representation, representation_charts
from fairbits.lab.paper.information_paths import plane, plane_charts
from fairbits.lab.paper.method_frontiers import overview, within_limits
from fairbits.lab.paper.record_frames import Record, in_order, of_kind
from fairbits.lab.paper.strength_paths import complexity, stability, strength_charts
from fairbits.lab.paper.tuned_methods import tradeoff, tradeoff_charts
from fairbits.report.text_tables import Section, latex, markdown
from fairbits.storage import replace_file

__all__ = ["paper_charts", "paper_sections", "write_paper"]

PARTS = (overview, tradeoff, within_limits, representation, stability, complexity, plane, biased_mnist)
CHARTS = (tradeoff_charts, representation_charts, strength_charts, plane_charts)
LATEX_HEAD = "% Needs \\usepackage{booktabs} and \\usepackage{graphicx}."


def write_paper(records: Iterable[Record], output: Path) -> list[Path]:
    """Write tables.md, tables.tex and the figures for which there are records; return the files.

    The same records give the same bytes, whatever their order and whenever they were made. Without the packages of the
    extra "report" there are no figures, and a sentence on stderr says so.
    """
    output.mkdir(parents=True, exist_ok=True)
    records = in_order(records)
    sections, figures = paper_sections(records), _figures(records, output)
    drawn = {file.name for file in figures}
    blocks = ["# The paper's experiments" if sections else "No records yet."]
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
    if not all(find_spec(name) for name in ("altair", "vl_convert")):  # what draws, and what it saves files with
        print("No figures: install fairbits with the extra 'report' to draw them.", file=sys.stderr)
        return []
    from fairbits.report.charts import save_chart

    files = [file for name, chart in paper_charts(records) for file in save_chart(chart, output, name)]
    return [*files, *(sample_images(output) if of_kind(records, "images") else [])]
