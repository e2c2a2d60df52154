"""From the parts of a page to one HTML file that needs nothing else."""

import base64
import hashlib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import vl_convert
from jinja2 import Environment
from markupsafe import Markup

from fairbits.report.text_tables import Table
from fairbits.report.wording import TEXTS

HERE = Path(__file__).parent


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
    words: str  # for readers who cannot see it
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
    """A choice among the models of a path: a text for each, the one to start at, and the scores to choose from."""

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
    facts: tuple[tuple[str, str], ...] = ()  # a term and its explanation
    slider: Slider | None = None
    charts: tuple[Chart, ...] = ()
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()
    lists: tuple[tuple[str, tuple[str, ...]], ...] = ()  # a heading and its points
    notes: tuple[str, ...] = ()  # small print
    missing: str = ""  # why there is nothing to show


def section(name: str, values: dict[str, Any] | None = None, **parts: Any) -> Section:
    """Return a section with the title, text and notes of texts.toml; without parts, one that says why it is empty.

    Parameters
    ----------
    values : what the texts fill in
    """
    found = TEXTS[name]
    if not parts:
        return Section(name, found["title"], missing=found["missing"])
    written = {part: tuple(t.format(**values or {}) for t in found.get(part, ())) for part in ("text", "notes")}
    return Section(name, found["title"], **(written | parts))


def render(title: str, sections: list[Section], origin: str) -> str:
    """Return the page: everything but our own files is escaped, and the browser may load and run nothing else."""
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["script_json"] = _script_json
    scripts = [_library(), _read("charts.js")] if any(section.charts for section in sections) else []
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    # Vega compiles its expressions to functions, so the page has to allow it to evaluate them.
    allowed = " ".join([*(f"'sha256-{digest}'" for digest in digests), "'unsafe-eval'"]) if scripts else "'none'"
    return environment.from_string(_read("template.html.j2")).render(
        title=title,
        sections=sections,
        origin=origin,
        css=Markup(_read("style.css")),
        scripts=[Markup(script) for script in scripts],
        allowed=Markup(allowed),
    )


def _read(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


@cache
def _library() -> str:
    """Return Vega, Vega-Lite and Vega-Embed, the same for all charts of a page."""
    library = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    if "</script" in library.lower() or "<!--" in library:
        raise RuntimeError("The JavaScript of this version of vl-convert-python cannot be embedded in a page.")
    return library


def _script_json(value: Any) -> Markup:
    r"""Return JSON in which nothing ends the script element that it stands in.

    >>> _script_json({"name": "</script>"})
    Markup('{"name":"\\u003c/script\\u003e"}')
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))
