"""From sections to one HTML file that needs nothing else."""

import base64
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import vl_convert
from jinja2 import Environment
from markupsafe import Markup

from fairbits.report.page.parts import Section

HERE = Path(__file__).parent


def render(title: str, sections: list[Section], origin: str) -> str:
    """Return the page; what is no constant of ours is escaped, and the browser is told to load and run nothing else."""
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["script_json"] = _script_json
    drawn = any(section.charts for section in sections)
    scripts = [_library(), _read("charts.js")] if drawn else ["", ""]
    return environment.from_string(_read("template.html.j2")).render(
        title=title,
        sections=sections,
        origin=origin,
        css=Markup(_read("style.css")),
        library=Markup(scripts[0]),
        program=Markup(scripts[1]),
        # Vega makes functions of its own expressions, so it has to be allowed to evaluate.
        allowed=Markup(" ".join([*map(_digest, scripts), "'unsafe-eval'"]) if drawn else "'none'"),
    )


def _read(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


@cache
def _library() -> str:
    """Return Vega, Vega-Lite and Vega-Embed, the same for all charts of a page."""
    library = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    if "</script" in library.lower() or "<!--" in library:
        raise RuntimeError("The JavaScript of vl-convert-python cannot stand in a page; use another version of it.")
    return library


def _script_json(value: Any) -> Markup:
    """Return JSON in which nothing ends the script element that it stands in.

    >>> _script_json({"name": "</script>"})
    Markup('{"name":"\\\\u003c/script\\\\u003e"}')
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _digest(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
