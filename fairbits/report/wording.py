"""A record in words: verdict, price, attacks, the summary of the command line and the model card."""

import math
import tomllib
from pathlib import Path
from typing import Any

from fairbits.report.text_tables import Table, markdown

Record = dict[str, Any]


def _read(value: Any) -> Any:
    """Return texts without the line breaks of their file."""
    if isinstance(value, dict):
        return {name: _read(part) for name, part in value.items()}
    return tuple(map(_read, value)) if isinstance(value, list) else " ".join(value.split())


TEXTS = _read(tomllib.loads((Path(__file__).parent / "texts.toml").read_text(encoding="utf-8")))
NAMES = TEXTS["names"]
ASSUMPTIONS = TEXTS["guarantee"]["assumptions"]
SCORES = {
    "auc": "AUC",
    "accuracy": "accuracy",
    "gpa": "GPA",
    "audc": "AUDC",
    "discrimination": "disparity of the predicted class",
}


def at_most(bound: float, digits: int = 3) -> str:
    """Return an upper bound as text, rounded up.

    >>> at_most(0.0492), at_most(0.2)
    ('0.050', '0.200')
    """
    return f"{math.ceil(round(bound * 10**digits, 6)) / 10**digits:.{digits}f}"


def at_least(bound: float, digits: int = 3) -> str:
    """Return a lower bound as text, rounded down.

    >>> at_least(0.0499)
    '0.049'
    """
    return f"{math.floor(round(bound * 10**digits, 6)) / 10**digits:.{digits}f}"


def interval(low: float, high: float) -> str:
    """Return an interval as text, rounded outwards.

    >>> interval(0.8234, 0.8431)
    '0.823 to 0.844'
    """
    return f"{at_least(low)} to {at_most(high)}"


def listed(values: dict[str, Any], between: str = ", ") -> str:
    """Return names and values in a line.

    >>> listed({"train": 3444, "torch": "2.13"})
    'train 3,444, torch 2.13'
    """
    return between.join(f"{name} {v:,}" if isinstance(v, int) else f"{name} {v}" for name, v in values.items())


def title(record: Record) -> str:
    """Say what is predicted and what is protected; the source of an audit."""
    task = record.get("task") or {}
    if task.get("label") and task.get("sensitive"):
        return f"Predicting {task['label']}; protected: {', '.join(task['sensitive'])}"
    return str(record.get("source") or "Audit")


def verdict(record: Record) -> str:
    """Say in one or two sentences what is guaranteed, or that nothing is."""
    if "certified" not in record:
        audit = record["audit"]
        start, certificate = f"Audit of {audit['subject']} on {audit['rows']:,} rows.", audit["certificate"]
        if certificate is None:
            return f"{start} Nothing is certified: {audit['unavailable'].get('certificate', 'there are no bounds.')}"
        return f"{start} {_proved(certificate, certificate['release_words'])}"
    if not record["certified"]:
        return f"Not certified. {record['refusal']}"
    certificate = record["certificate"]
    if record["asked"]["gamma"] is not None:
        return f"No limit was requested. {_proved(certificate, 'one draw of the code')}"
    two = None not in (record["asked"]["max_disparity"], record["asked"]["max_information"])
    return (
        f"Certified at {certificate['confidence']:.0%} confidence: {certificate['promise']} The chosen model's own "
        f"estimate is a disparity of at most {at_most(certificate['total_variation'])} and a leakage of at most "
        f"{at_most(certificate['information'], 4)} bits; only the {'limits are' if two else 'limit is'} guaranteed."
    )


def _proved(certificate: dict[str, Any], release: str) -> str:
    return (
        f"At {certificate['confidence']:.0%} confidence, the rates of any decision made from {release} differ between "
        f"two groups by at most {at_most(certificate['total_variation'])}."
    )


def price(record: Record) -> str:
    """Say what the protection costs on the test rows."""
    audit, plain, constant = record["audit"], _model(record, "unmitigated"), _model(record, "constant")
    sure = f"{audit['confidence']:.0%} interval "
    accuracy = f"{audit['task']['one_draw_accuracy']:.3f}{_brackets(audit, 'one_draw_accuracy', sure)}"
    auc = f"{audit['task']['one_draw_auc']:.3f}{_brackets(audit, 'one_draw_auc')}"
    least, idle = constant["scores"]["accuracy"], "Always predicting the majority class: accuracy {:.3f}."
    if audit["task"]["one_draw_accuracy"] <= least:
        idle = "Warning: always predicting the majority class is at least as accurate ({:.3f})."
    return (
        f"On {audit['rows']:,} test rows, one draw predicts {record['task']['label']} with accuracy {accuracy} and AUC "
        f"{auc}. Without protection: {plain['scores']['accuracy']:.3f} and {plain['scores']['auc']:.3f}. "
        f"{idle.format(least)}"
    )


def _model(record: Record, name: str) -> dict[str, Any]:
    return next(found for found in record["alternatives"] if found["name"] == name)


def _brackets(scored: dict[str, Any], name: str, what: str = "") -> str:
    """Return the interval of a score in brackets, nothing if there is none."""
    found = (scored.get("intervals") or {}).get(name)
    return "" if found is None else f" ({what}{interval(*found)})"


def adversaries(record: Record) -> list[str]:
    """Say for every sensitive column how well it can be guessed: by our attacks, and by any attack."""
    lines = []
    for found in record["audit"]["adversaries"]:
        text = f"none of ours is better than chance, a balanced accuracy of {found['chance']:.3f}"
        if found["reached"] > found["chance"]:
            text = (
                f"our best ({NAMES.get(found['by'], found['by'])}) guesses the group with a balanced accuracy of at "
                f"least {at_least(found['reached'])}, chance with {found['chance']:.3f}"
            )
        sure = f"{record['audit']['confidence']:.0%} confidence"
        if found["at_most"] is not None:
            text, sure = f"{text}; no attack can exceed {at_most(found['at_most'])}", f"{sure} each"
        lines.append(f"Attacks on {found['column']}: {text} ({sure}).")
    return lines


def summary(record: Record) -> str:
    """Return what `fairbits fit` prints at its end, for readers who have never heard of mutual information."""
    lines = [
        verdict(record),
        "",
        price(record),
        *adversaries(record),
        *(f"Warning: {concern}" for concern in record["concerns"]),
        "",
        f"{title(record)}.",
        f"Groups: {listed(record['task']['group_sizes'], '; ')}.",
        *record["task"]["notes"],
    ]
    return "\n".join(lines)


def bound_table(heading: str, certificate: dict[str, Any], *notes: str) -> Table:
    """Return the bounds of a certificate: a line for each sensitive column, and for each label if there are labels."""
    head = (
        "column",
        "disparity of any decision, at most",
        "balanced accuracy of any attack, at most",
        "leakage in bits, at most",
        "rows",
        "smallest group",
    )
    rows = tuple(
        (
            b["column"] if b["label"] is None else f"{b['column']}, among rows with label {b['label']}",
            at_most(b["total_variation"]),
            at_most(b["balanced_accuracy"]),
            at_most(b["information"], 4),
            f"{sum(b['rows'].values()):,}",
            f"{min(b['rows'].values()):,}",
        )
        for b in certificate["bounds"]
    )
    heading = f"{heading} ({certificate['confidence']:.0%} confidence)"
    return Table("bounds", heading, head, rows, (*notes, certificate["covers"]))


def _score_table(record: Record) -> Table:
    """Return the scores of the chosen model, of one draw and averaged, beside those of the models without a code."""
    audit = record["audit"]
    own = {"scores": audit["task"], "intervals": audit.get("intervals")}
    models = {"this model, one draw": (own, "one_draw_"), "this model, averaged over draws (not covered)": (own, "")}
    models |= {
        NAMES.get(name, name): (_model(record, name), "") for name in ("unmitigated", "logistic regression", "constant")
    }
    rows = tuple(
        (name, *(f"{found['scores'][of + field]:.3f}{_brackets(found, of + field)}" for field in SCORES))
        for name, (found, of) in models.items()
    )
    notes = tuple(note.format(**audit) for note in TEXTS["card"]["scores"])
    return Table("scores", "Scores on the test rows", ("", *SCORES.values()), rows, notes)


def model_card(record: Record) -> str:
    """Return the model card, Markdown."""
    task, certificate, method, made = (record[name] for name in ("task", "certificate", "method", "made"))
    calibration = (f"{b['column']}: {listed(b['rows'], '; ')}" for b in certificate["bounds"] if b["label"] is None)
    parts = [
        f"# Model card: {title(record)}",
        verdict(record),
        *(["## Warnings", _bullets(record["concerns"])] if record["concerns"] else []),
        "## What it does",
        TEXTS["card"]["method"].format(**method, version=made["fairbits"]),
        "## Accuracy and fairness",
        markdown(_score_table(record)),
        "## Attacks",
        _bullets(adversaries(record)),
        "## Certificate",
        markdown(bound_table("Upper bounds from the calibration rows", certificate)),
        "Calibration rows per group:",
        _bullets(calibration),
        "Assumptions:",
        _bullets(ASSUMPTIONS),
        "Not covered:",
        _bullets(certificate["does_not_cover"]),
        "## Data",
        f"{record['source']}; rows: {listed(task['rows'])}. Groups: {listed(task['group_sizes'], '; ')}.",
        _bullets(task["notes"]),
        "Input columns:",
        _bullets(task["columns"]),
        f"Made on {made['date']} with {listed({k: v for k, v in made.items() if k != 'date'})}.",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _bullets(lines: Any) -> str:
    return "\n".join(f"- {line}" for line in lines)
