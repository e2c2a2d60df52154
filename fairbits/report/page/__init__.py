"""report.html: the record of a fit or an audit as one page that works offline."""

from fairbits.report.page.attacks import attacks
from fairbits.report.page.bits import bits
from fairbits.report.page.frontier import frontier
from fairbits.report.page.render import render
from fairbits.report.page.scores import scores
from fairbits.report.page.statements import data, glossary, opening, promises
from fairbits.report.page.training import information_plane, learning_curves
from fairbits.report.words import Record

__all__ = ["page"]

PARTS = (opening, frontier, bits, scores, attacks, learning_curves, information_plane, data, promises)


def page(record: Record) -> str:
    """Return the page of a record; what the record lacks is said in its place."""
    sections = [part(record) for part in PARTS]
    return render(sections[0].title, [*sections, glossary()], "audit.json")
