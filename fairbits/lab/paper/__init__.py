"""The paper's tables and figures, from records alone."""

import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from fairbits.lab.paper.image_tables import biased_mnist
from fairbits.lab.paper.limit_tables import within_limits
from fairbits.lab.paper.overview_table import overview
from fairbits.lab.paper.plane_tables import plane
from fairbits.lab.paper.record_frames import Record, in_order
from fairbits.lab.paper.representation_tables import representation
from fairbits.lab.paper.stability_tables import complexity, stability
from fairbits.lab.paper.tradeoff_tables import tradeoff
from fairbits.report.text_tables import Section, latex, markdown
from fairbits.storage import replace_file

__all__ = ["paper_sections", "write_paper"]

PARTS = (overview, tradeoff, within_limits, representation, stability, complexity, plane, biased_mnist)
LATEX_HEAD = "% Needs \\usepackage{booktabs} and \\usepackage{graphicx}."


def write_paper(records: Iterable[Record], output: Path) -> list[Path]:
    """Write tables.md, tables.tex and the figures for which there are records; return the files.

    The same records give the same bytes, whatever their order and whenever they were made. Without the packages of the
    extra "report" there are no figures, and a sentence on stderr says so.
    """
    output.mkdir(parents=True, exist_ok=True)
    records = in_order(records)
    sections, figures = paper_sections(records), _figures(records, output)
    files = [output / "tables.md", output / "tables.tex"]
    replace_file(files[0], _markdown(sections, {file.name for file in figures}))
    replace_file(files[1], "\n\n".join([LATEX_HEAD, *(latex(table) for s in sections for table in s.tables)]) + "\n")
    return [*files, *figures]


def paper_sections(records: Iterable[Record]) -> list[Section]:
    """Return the tables for which there are records."""
    records = in_order(records)
    return [section for part in PARTS for section in part(records)]


def _figures(records: list[Record], output: Path) -> list[Path]:
    if not all(find_spec(name) for name in ("altair", "vl_convert")):  # what draws, and what it saves files with
        print("No figures: install fairbits with the extra 'report' to draw them.", file=sys.stderr)
        return []
    from fairbits.lab.paper.charts import write_charts

    return write_charts(records, output)


def _markdown(sections: list[Section], figures: set[str]) -> str:
    blocks = ["# The paper's experiments" if sections else "No records yet."]
    for section in sections:
        blocks += [f"## {section.title}", *map(markdown, section.tables)]
        if f"{section.name}.png" in figures:
            blocks.append(f"![{section.title}]({section.name}.png)")
    return "\n\n".join(blocks) + "\n"
