"""The files of a report: report.html, a page that needs nothing else, and the model card, Markdown.

Only making a page needs the extra "report".
"""

import base64
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from fairbits.errors import InputError, MissingExtraError
from fairbits.report import wording
from fairbits.report.wording import TEXTS, Record, Table, title
from fairbits.storage import replace_file

FORMAT = 2  # of audit.json
NAME = "report.html"
AGAIN = "Run `fairbits fit` again."


class Key(NamedTuple):
    """What a mark of a chart means: a symbol, or a line with its dashes."""

    label: str
    colour: str
    symbol: str = ""  # an SVG path within -1 and 1
    dash: str = ""


class Chart(NamedTuple):
    """A drawing for the browser, with what it shows in words and in numbers."""

    name: str  # its id in the page
    title: str
    words: str  # for readers who cannot see it
    spec: dict[str, Any]
    numbers: Table
    key: tuple[Key, ...] = ()


@dataclass(frozen=True)
class Section:
    """A heading with everything below it; parts that are empty are not shown."""

    name: str
    title: str
    tables: tuple[Table, ...] = ()
    text: tuple[str, ...] = ()
    badge: str = ""
    numbers: tuple[tuple[str, str, str], ...] = ()  # a question, the number that answers it, and what that is
    facts: tuple[tuple[str, str], ...] = ()  # a term and its explanation
    charts: tuple[Chart, ...] = ()
    picture: str = ""  # a finished image, as a data URI
    lists: tuple[tuple[str, tuple[str, ...]], ...] = ()  # a heading and its points
    notes: tuple[str, ...] = ()  # small print
    missing: str = ""  # why there is nothing to show
    folded: bool = False  # closed until a reader opens it


def section(name: str, values: dict[str, Any] | None = None, **parts: Any) -> Section:
    """Return a section with the texts of texts.toml, filled in; without parts, one that says why it is empty."""
    found = TEXTS[name]
    if not any(parts.values()):
        return Section(name, found["title"], missing=found["missing"])
    written = {part: tuple(t.format(**values or {}) for t in found.get(part, ())) for part in ("text", "notes")}
    return Section(name, found["title"], **(written | parts))


def number_table(heading: str, fields: Sequence[Any], rows: list[dict[str, Any]]) -> Table:
    """Return fields (name, title, format) of rows as a table."""
    cells = (("" if row[name] is None else format(row[name], form) for name, _, form in fields) for row in rows)
    return Table("", heading, tuple(head for _, head, _ in fields), tuple(map(tuple, cells)))


def write_report(folder: Path, output: Path | None = None) -> Path:
    """Make report.html from the audit.json of a folder, in the same or another folder, and return the file."""
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder}.", remedy="Name one that `fairbits fit` wrote.")
    from fairbits.modelfile.manifest import RECORD, read_record  # here, as a page is made without torch

    file, record = folder / RECORD, read_record(folder)
    if not file.exists():
        remedy = "Name a folder that `fairbits fit` or `fairbits reproduce` wrote."
        raise InputError(f"{folder} holds no {RECORD} and no records.jsonl.", remedy=remedy)
    if not isinstance(record, dict) or "format" not in record:
        raise InputError(f"{file} is not a record of fairbits: it has no format number.")
    if record["format"] != FORMAT:
        problem = f"{file} has format {record['format']!r}; this version of fairbits reads format {FORMAT}."
        raise InputError(problem, remedy="Use the version that wrote it, or run `fairbits fit` again.")
    try:
        text = record_page(record)
    except ImportError:
        raise MissingExtraError(NAME, "report") from None
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        problem = f"audit.json is damaged: a part of it is missing or of another kind ({error!r})."
        raise InputError(problem, remedy=AGAIN) from None
    file = (output or folder) / NAME
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_file(file, text)
    return file


def record_page(record: Record) -> str:
    """Return the page of a record; what the record lacks is said in its place."""
    from fairbits.report.sections import record_sections

    return render(title(record), record_sections(record), "audit.json")


def render(title: str, sections: list[Section], origin: str, *, sortable: bool = False) -> str:
    """Return the page: everything but our own files is escaped, and the browser may load and run nothing else."""
    from jinja2 import Environment
    from markupsafe import Markup

    names = ("style.css", "charts.js", "sort.js", "template.html.j2")
    own = {name: (Path(__file__).parent / name).read_text(encoding="utf-8") for name in names}
    charts = any(section.charts for section in sections)
    scripts = ([_vega(), own["charts.js"]] if charts else []) + ([own["sort.js"]] if sortable else [])
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    # Vega compiles its expressions to functions, so the page has to allow it to evaluate them.
    allowed = " ".join([*(f"'sha256-{digest}'" for digest in digests), *["'unsafe-eval'"] * charts]) or "'none'"
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    safe: dict[str, Any] = {
        "css": Markup(own["style.css"]),
        "scripts": list(map(Markup, scripts)),
        "allowed": Markup(allowed),
    }
    safe["charts"] = charts
    template = environment.from_string(own["template.html.j2"])
    return template.render(title=title, sections=sections, origin=origin, **safe)


@cache
def _vega() -> str:
    """Return Vega, Vega-Lite and Vega-Embed, the same for all charts of a page."""
    import vl_convert

    library = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    if "</script" in library.lower() or "<!--" in library:
        raise RuntimeError("The JavaScript of this version of vl-convert-python cannot be embedded in a page.")
    return library


def _score_table(record: Record) -> Table:
    """Return the scores of the chosen model, of a random one also averaged, beside those of models without a code."""
    audit, scores = record["audit"], TEXTS["card"]["scores"]
    own = {"scores": audit["task"], "intervals": audit.get("intervals")}
    models = {name: (own, of) for name, of in TEXTS["card"]["own"][wording.kind(record)].items()}
    others = {model["name"]: model for model in wording.models(record)}
    references = (others[name] for name in ("unprotected", "logistic regression", "constant") if name in others)
    models |= {wording.model_name(model): (model, "") for model in references}
    rows = tuple(
        (name, *(wording.with_interval(found, found["scores"], of + field) for field in scores))
        for name, (found, of) in models.items()
    )
    notes = tuple(note.format(**wording.in_percent(audit)) for note in TEXTS["card"]["notes"])
    return Table("scores", "Scores on the test rows", ("", *scores.values()), rows, notes)


def model_card(record: Record) -> str:
    """Return the model card, Markdown."""
    task, certificate, method, made = (record[name] for name in ("task", "certificate", "method", "made"))
    calibration = (
        f"{b['column']}: {wording.listed(b['rows'], '; ')}" for b in certificate["bounds"] if b["label"] is None
    )
    decision, worse = record["decision"], map(wording.escaped, wording.worse_off(record))
    method_words = TEXTS["card"][wording.kind(record)].format(**method, version=made["fairbits"])
    rows, groups = wording.listed(task["rows"]), wording.listed(task["group_sizes"], "; ")
    data = f"{record['source']}; rows: {rows}. Groups: {groups}."
    parts = {
        f"# Model card: {wording.escaped(wording.title(record))}": wording.escaped(
            " ".join([wording.verdict(record), *wording.attempts(record)])
        ),
        "Filed:": _bullets(f"{name}: {value}" for name, value in wording.filed(record).items()),
        "## Warnings": _bullets(record["concerns"]),
        "## What it does": " ".join([method_words, *map(wording.escaped, wording.encoded_sensitive(record))]),
        "## Accuracy and fairness": wording.markdown(_score_table(record)),
        "## Who gets what": "\n\n".join([wording.markdown(wording.rate_table(decision)), *worse]),
        "## Attacks": _bullets(wording.adversaries(record)),
        "## Certificate": wording.markdown(wording.bound_table("Upper bounds from the calibration rows", certificate)),
        "Calibration rows per group:": _bullets(calibration),
        "Assumptions:": _bullets(wording.assumptions(record)),
        "Not covered:": _bullets(certificate["does_not_cover"]),
        "## Data": "\n\n".join(filter(None, [wording.escaped(data), _bullets(task["notes"])])),
        "Input columns:": _bullets(task["columns"]),
    }
    shown = [f"{heading}\n\n{content}\n" for heading, content in parts.items() if content]
    versions = wording.listed({name: version for name, version in made.items() if name != "date"})
    return "\n".join([*shown, f"Made on {made['date']} with {versions}.\n"])


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {wording.escaped(line)}" for line in lines)
