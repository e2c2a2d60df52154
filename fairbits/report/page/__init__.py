"""report.html: the record of a fit or an audit as one page that works offline."""

from typing import Any

from fairbits.report.page.curve_sections import information_plane, learning_curves, scores
from fairbits.report.page.leakage_sections import attacks, bits
from fairbits.report.page.page_template import Section, render, section
from fairbits.report.page.tradeoff_section import frontier
from fairbits.report.text_tables import Table
from fairbits.report.wording import (
    ASSUMPTIONS,
    TEXTS,
    Record,
    adversaries,
    at_most,
    interval,
    listed,
    price,
    title,
    verdict,
)

__all__ = ["page"]

MOST_LISTED = 6  # groups in a line


def page(record: Record) -> str:
    """Return the page of a record; what the record lacks is said in its place."""
    parts = (opening, frontier, attacks, guarantee, data, bits, scores, learning_curves, information_plane)
    glossary = section("words", facts=tuple(TEXTS["words"]["facts"].items()))
    return render(title(record), [*(part(record) for part in parts), glossary], "audit.json")


def opening(record: Record) -> Section:
    """Say the outcome, its price, attacks and warnings, the key numbers, and what was fitted."""
    badge = "audit"
    if "certified" in record:
        badge = "certified" if record["asked"]["gamma"] is None else "no limit requested"
        badge = badge if record["certified"] else "not certified"
    names = {model["name"] for model in record.get("alternatives") or []}
    scored = record.get("task") and {"unmitigated", "constant"} <= names
    concerns = record["concerns"] if "concerns" in record else record["audit"].get("concerns") or []
    warnings = (f"Warning: {concern}" for concern in concerns)
    text = (verdict(record), *([price(record)] if scored else []), *adversaries(record), *warnings)
    return Section("verdict", title(record), text=text, badge=badge, numbers=_numbers(record), facts=_facts(record))


def _numbers(record: Record) -> tuple[tuple[str, str], ...]:
    audit, asked = record.get("audit") or {}, record.get("asked") or {}
    certificate, task = record.get("certificate") or audit.get("certificate"), audit.get("task") or {}
    found: list[tuple[str, str]] = []
    if asked.get("max_disparity") is not None:
        found.append((f"{asked['max_disparity']:g}", "limit on the disparity of any decision"))
    if asked.get("max_information") is not None:
        found.append((f"{asked['max_information']:g}", "limit on the leakage, bits"))
    if certificate:
        what = "bound on the disparity of any decision made from one draw"
        if certificate.get("promise"):
            what = "disparity of the chosen model, at most: an estimate, not guaranteed"
        found.append((at_most(certificate["total_variation"]), what))
    if "one_draw_accuracy" in task:
        known = (audit.get("intervals") or {}).get("one_draw_accuracy")
        what = "accuracy of one draw on the test rows" + (f" ({interval(*known)})" if known else "")
        found.append((f"{task['one_draw_accuracy']:.3f}", what))
    others = {
        "unmitigated": "accuracy without protection",
        "constant": "accuracy of always predicting the majority class of the training rows",
    }
    for model in record.get("alternatives") or []:
        if model["name"] in others:
            found.append((f"{model['scores']['accuracy']:.3f}", others[model["name"]]))
    return tuple(found)


def _facts(record: Record) -> tuple[tuple[str, str], ...]:
    task, made, method = (record.get(name) or {} for name in ("task", "made", "method"))
    sensitive, sizes, rows = task.get("sensitive") or [], task.get("group_sizes") or {}, task.get("rows")
    groups = "; ".join(f"{name}: {size:,} rows" for name, size in sizes.items())
    if len(sizes) > MOST_LISTED:
        smallest, largest = min(sizes.values()), max(sizes.values())
        groups = f"{len(sizes)} groups of {smallest:,} to {largest:,} rows, listed under '{TEXTS['data']['title']}'"
    protected = {"intersection": "every combination of the sensitive columns"}
    each = "each sensitive column on its own, not their combinations"
    facts: dict[str, Any] = {
        "table": record.get("source"),
        "date": made.get("date"),
        "label": f"{task['label']} ({', '.join(task.get('classes') or [])})" if task.get("label") else "",
        "sensitive columns": ", ".join(sensitive),
        "groups": groups,
        "protected": protected.get(task.get("groups", ""), each) if len(sensitive) > 1 else "",
        "rows": listed(rows) if isinstance(rows, dict) else (f"{rows:,}" if rows else ""),
        "method": f"{method['name']}, gamma {method['gamma']:g}, {method['code_size']} bits" if method else "",
        "made with": listed({k: v for k, v in made.items() if k != "date"}),
    }
    return tuple((term, text) for term, text in facts.items() if text)


def guarantee(record: Record) -> Section:
    """Say what is guaranteed, on which assumptions, and what is not."""
    certificate = record.get("certificate") or (record.get("audit") or {}).get("certificate")
    if not certificate:
        return section("guarantee")
    refused = () if record.get("certified", True) else (TEXTS["guarantee"]["refused"],)
    not_covered = tuple(line[:1].upper() + line[1:] for line in certificate["does_not_cover"])
    lists = (("Assumptions", ASSUMPTIONS), ("Not covered", not_covered))
    return section("guarantee", text=(*refused, certificate["covers"]), lists=lists)


def data(record: Record) -> Section:
    """List what to know about the rows and how the columns were read."""
    task = record.get("task") or {}
    lists = {"About the table": task.get("notes"), "Input columns, as they were read": task.get("columns")}
    shown = tuple((heading, tuple(points)) for heading, points in lists.items() if points)
    sizes = tuple((name, f"{size:,}") for name, size in (task.get("group_sizes") or {}).items())
    tables = (Table("", "Groups of the whole table", ("group", "rows"), sizes),) if sizes else ()
    return section("data", tables=tables, lists=shown) if shown or tables else section("data")
