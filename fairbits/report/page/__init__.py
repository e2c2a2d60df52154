"""report.html: the record of a fit or an audit as one page that works offline."""

from fairbits.report.page.attack_section import attacks
from fairbits.report.page.bit_heatmap import bits
from fairbits.report.page.page_template import render
from fairbits.report.page.scores_by_group import scores
from fairbits.report.page.statements import data, glossary, opening, promises
from fairbits.report.page.tradeoff_section import frontier
from fairbits.report.page.training_curves import information_plane, learning_curves
from fairbits.report.wording import Record

__all__ = ["page"]

PARTS = (opening, frontier, bits, scores, attacks, learning_curves, information_plane, data, promises)


def page(record: Record) -> str:
    """Return the page of a record; what the record lacks is said in its place."""
    sections = [part(record) for part in PARTS]
    return render(sections[0].title, [*sections, glossary()], "audit.json")
