"""The parts of the page without charts: the verdict, the data, what is promised and what is not."""

from typing import Any

from fairbits.report.page.parts import Section
from fairbits.report.text_tables import Table
from fairbits.report.wording import ASSUMPTIONS, Record, interval, listed, price, verdict

MOST_LISTED = 6  # groups in a line
WORDS = (
    ("code", "a few random bits drawn for each person; it is what may be handed on in place of the person's data"),
    ("one draw", "the code drawn once for a person; drawing again tells more"),
    (
        "gap",
        "how far the rates of a decision differ between two groups, 0 to 1; also called demographic-parity gap",
    ),
    ("information", "how much one thing helps to guess another, in bits; 0 is no help at all"),
    (
        "balanced accuracy",
        "the share recognised, averaged over the groups; of two groups, guessing reaches 0.5",
    ),
    (
        "calibration rows",
        "the rows kept apart from training and testing for the proof: 24 % of the table of fairbits fit",
    ),
    ("certificate", "limits that held-out rows prove for everybody who receives one draw, whatever they do with it"),
)


def opening(record: Record) -> Section:
    """Say the outcome, its key numbers, and what it is about."""
    text = [verdict(record)]
    if _has_scores(record):
        text.append(price(record))
    return Section(
        "verdict",
        _title(record),
        text=tuple(text),
        badge=_badge(record),
        numbers=_numbers(record),
        facts=_facts(record),
    )


def _has_scores(record: Record) -> bool:
    names = {model["name"] for model in record.get("alternatives") or []}
    task = (record.get("audit") or {}).get("task") or {}
    return {"unmitigated", "constant"} <= names and "one_draw_auc" in task


def _title(record: Record) -> str:
    task = record.get("task") or {}
    if task.get("label") and task.get("sensitive"):
        return f"{task['label']}, without {', '.join(task['sensitive'])}"
    return str(record.get("source") or "Audit")


def _badge(record: Record) -> str:
    if "certified" not in record:
        return "audit"
    if not record["certified"]:
        return "not certified"
    return "certified" if record["asked"]["gamma"] is None else "no limit asked for"


def _numbers(record: Record) -> tuple[tuple[str, str], ...]:
    audit, asked = record.get("audit") or {}, record.get("asked") or {}
    certificate, task = record.get("certificate") or audit.get("certificate"), audit.get("task") or {}
    found: list[tuple[str, str]] = []
    if asked.get("max_disparity") is not None:
        found.append((f"{asked['max_disparity']:g}", "limit asked for, on the gap of any decision"))
    if asked.get("max_information") is not None:
        found.append((f"{asked['max_information']:g}", "limit asked for, on the information, bits"))
    if certificate:
        what = "bound on the gap of any decision made from one draw"
        if certificate.get("promise"):
            what = "the kept model's own bound on it: a description, no promise"
        found.append((f"{certificate['total_variation']:.3f}", what))
    if "one_draw_accuracy" in task:
        what = f"accuracy of the prediction from one draw, test rows{interval(audit, 'one_draw_accuracy')}"
        found.append((f"{task['one_draw_accuracy']:.3f}", what))
    for model in record.get("alternatives") or []:
        if model["name"] == "unmitigated":
            found.append((f"{model['scores']['accuracy']:.3f}", "accuracy without protection"))
        if model["name"] == "constant":
            always = "accuracy of always saying the class most frequent in training"
            found.append((f"{model['scores']['accuracy']:.3f}", always))
    return tuple(found)


def _facts(record: Record) -> tuple[tuple[str, str], ...]:
    task, made, method = (record.get(name) or {} for name in ("task", "made", "method"))
    rows, sizes = task.get("rows"), task.get("group_sizes") or {}
    facts = {
        "table": record.get("source"),
        "date": made.get("date"),
        "label": _label(task),
        "sensitive columns": ", ".join(task.get("sensitive") or []),
        "groups": _group_sizes(sizes),
        "protected": _protected(task),
        "rows": listed(rows) if isinstance(rows, dict) else (f"{rows:,}" if rows else ""),
        "method": f"{method['name']}, gamma {method['gamma']:g}, {method['code_size']} bits" if method else "",
        "made with": listed({k: v for k, v in made.items() if k != "date"}),
    }
    return tuple((term, text) for term, text in facts.items() if text)


def _group_sizes(sizes: dict[str, int]) -> str:
    """List the groups, if they are few."""
    if len(sizes) > MOST_LISTED:
        least, most = min(sizes.values()), max(sizes.values())
        return f"{len(sizes)} groups of {least:,} to {most:,} rows, listed under 'The data and its caveats'"
    return "; ".join(f"{name}: {size:,} rows" for name, size in sizes.items())


def _label(task: dict[str, Any]) -> str:
    classes = task.get("classes") or []
    return f"{task['label']} ({', '.join(classes)})" if task.get("label") else ""


def _protected(task: dict[str, Any]) -> str:
    if len(task.get("sensitive") or []) < 2:
        return ""
    if task.get("groups") == "intersection":
        return "every combination of the sensitive columns"
    return "each sensitive column on its own, not their combinations"


def glossary() -> Section:
    """Explain the words the page uses."""
    return Section("words", "Words used here", facts=WORDS)


def data(record: Record) -> Section:
    """List what is to be known about the rows and how the columns were read."""
    task, audit = record.get("task") or {}, record.get("audit") or {}
    concerns = tuple(record["concerns"] if "concerns" in record else audit.get("concerns") or [])
    lists = (
        ("Mind", concerns),
        ("About the table", tuple(task.get("notes") or [])),
        ("Columns to predict from, as they were read", tuple(task.get("columns") or [])),
    )
    shown = tuple((title, points) for title, points in lists if points)
    sizes = tuple((name, f"{size:,}") for name, size in (task.get("group_sizes") or {}).items())
    tables = (Table("groups", "Groups of the whole table", ("group", "rows"), sizes),) if sizes else ()
    missing = "" if shown or tables else "The record holds nothing about the data."
    return Section("data", "The data and its caveats", tables=tables, lists=shown, missing=missing)


def promises(record: Record) -> Section:
    """Say what is promised, on which assumptions, and what is not."""
    title = "What is promised, and what is not"
    certificate = record.get("certificate") or (record.get("audit") or {}).get("certificate")
    if not certificate:
        return Section("promise", title, missing="Nothing is certified, so nothing is promised.")
    lists = (
        ("This rests on", ASSUMPTIONS),
        ("It does not cover", tuple(line[:1].upper() + line[1:] for line in certificate["does_not_cover"])),
    )
    return Section("promise", title, text=(*_refused(record), certificate["covers"]), lists=lists)


def _refused(record: Record) -> tuple[str, ...]:
    if record.get("certified", True):
        return ()
    return ("The limit that was asked for is not promised. What these rows do prove of the model in this folder:",)
