"""What a page is made of; the template knows these and no records."""

from dataclasses import dataclass
from typing import Any

from fairbits.report.text_tables import Table


@dataclass(frozen=True)
class Key:
    """What a mark of a chart means: a symbol, or a line with its dashes."""

    label: str
    colour: str
    symbol: str = ""  # an SVG path within -1 and 1
    dash: str = ""


@dataclass(frozen=True)
class Chart:
    """A drawing for the browser, with what it shows in words and in numbers."""

    name: str  # its id in the page
    title: str
    words: str  # for who cannot see it
    spec: dict[str, Any]
    numbers: Table
    key: tuple[Key, ...] = ()


@dataclass(frozen=True)
class Picture:
    """A finished image, inside the page."""

    title: str
    source: str  # a data URI


@dataclass(frozen=True)
class Slider:
    """A choice among models on a path: a text for each place, the place to start at, and what can be on the y-axis."""

    label: str
    places: tuple[str, ...]
    start: int
    scores: tuple[str, ...]


@dataclass(frozen=True)
class Section:
    """A heading with everything below it; parts that are empty are not shown."""

    name: str
    title: str
    text: tuple[str, ...] = ()
    badge: str = ""
    numbers: tuple[tuple[str, str], ...] = ()  # a number and what it is
    facts: tuple[tuple[str, str], ...] = ()  # a term and what there is to say
    slider: Slider | None = None
    charts: tuple[Chart, ...] = ()
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()
    lists: tuple[tuple[str, tuple[str, ...]], ...] = ()  # a heading and its points
    notes: tuple[str, ...] = ()  # small print
    missing: str = ""  # why there is nothing to show
