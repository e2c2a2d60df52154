"""A record in words: the verdict, the summary of the command line, the model card."""

from typing import Any

Record = dict[str, Any]
ASSUMPTIONS = (
    "The rows that prove it are a random sample of the people on whom the code is used; another place, time or "
    "selection is another distribution.",
    "Each person's code is drawn once, with fresh randomness that nobody else knows.",
    "The sensitive columns are recorded correctly, and mean the same thing later. Nothing is said about columns that "
    "were not named as sensitive.",
    "The rows are independent of each other: not several rows of one person, or of one household.",
    "The rows that prove it played no part in training. Where they also chose among models, they did so along an "
    "order fixed before, up to the first failure.",
    "Each fit is a try of its own: who asks the same rows for one limit after another until one is proved has as many "
    "chances of error.",
)


SCORES = (
    "In brackets: intervals at {confidence:.0%} confidence for each model as it is, from {rows:,} test rows (AUC by "
    "DeLong, accuracy by Wilson), each on its own. GPA, AUDC and the gap are the largest differences between two "
    "groups and have none: on few rows chance alone makes them larger than 0."
)


def verdict(record: Record) -> str:
    """Say in one or two sentences what was promised, or that nothing could be."""
    if "certified" not in record:
        return _audited(record["audit"])
    certificate = record["certificate"]
    gap, confidence = certificate["total_variation"], f"{certificate['confidence']:.0%}"
    if not record["certified"]:
        return f"Not certified. {record['refusal']}"
    if record["asked"]["gamma"] is not None:
        return (
            f"No limit was asked for. Held-out rows prove, at {confidence} confidence: the rates of any decision made "
            f"from one draw of the code differ between two groups by at most {gap:.3f}."
        )
    return (
        f"Certified at {confidence} confidence: {certificate['promise']} The rows that chose the model put it at a gap "
        f"of {gap:.3f} and {certificate['information']:.4f} bits at most, which describes it and is no second promise."
    )


def _audited(audit: dict[str, Any]) -> str:
    """Say what is proved of a representation that somebody else has made."""
    start, certificate = f"Audit of {audit['subject']} on {audit['rows']:,} rows.", audit["certificate"]
    if certificate is None:
        reason = audit["unavailable"].get("certificate", "there is nothing to prove it from.")
        return f"{start} Nothing is certified: {reason}"
    return (
        f"{start} They prove, at {certificate['confidence']:.0%} confidence: the rates of any decision made from "
        f"{certificate['release_words']} differ between two groups by at most {certificate['total_variation']:.3f}."
    )


def price(record: Record) -> str:
    """Say what the protection costs on the test rows."""
    task, plain = record["audit"]["task"], _alternative(record, "unmitigated")
    constant = _alternative(record, "constant")
    idle = task["one_draw_accuracy"] <= constant["accuracy"]
    return (
        f"On {record['audit']['rows']:,} test rows the prediction from one draw has accuracy "
        f"{task['one_draw_accuracy']:.3f}{interval(record['audit'], 'one_draw_accuracy')} and AUC "
        f"{task['one_draw_auc']:.3f}{interval(record['audit'], 'one_draw_auc')}; an unprotected network has "
        f"{plain['accuracy']:.3f} and {plain['auc']:.3f}; always saying the class most frequent in training is right "
        f"in {constant['accuracy']:.3f}."
        + " By accuracy, one draw is no better than that." * idle
        + f" In brackets: intervals at {record['audit']['confidence']:.0%}." * bool(record["audit"].get("intervals"))
    )


def interval(scored: dict[str, Any], name: str) -> str:
    """Return the confidence interval of a score in brackets, nothing if there is none."""
    found = (scored.get("intervals") or {}).get(name)
    return "" if found is None else f" ({found[0]:.3f} to {found[1]:.3f})"


def adversaries(record: Record) -> list[str]:
    """Say for every sensitive column how well it can be told from one draw: reached, and proved impossible."""
    lines, sure = [], f"{record['audit']['confidence']:.0%} confidence"
    for found in record["audit"]["adversaries"]:
        most = "" if found["at_most"] is None else f"; these rows prove that nobody passes {found['at_most']:.3f}"
        guess = f"a guess reaches {found['chance']:.3f}"
        if found["reached"] > found["chance"]:
            said = (
                f"our best attack ({found['by']}) surely tells the groups apart with a balanced accuracy of at least "
            )
            said += f"{found['reached']:.3f} ({guess})"
        else:
            said = f"none of our attacks surely tells the groups apart ({guess})"
        lines.append(f"{found['column']}: {said}{most} ({sure}{' each' if most else ''}).")
    return lines


def summary(record: Record) -> str:
    """Return the end of `fairbits fit`: a few lines for people who have never heard of mutual information."""
    task = record["task"]
    sizes = "; ".join(f"{group} {n:,}" for group, n in task["group_sizes"].items())
    lines = [
        verdict(record),
        "",
        price(record),
        *adversaries(record),
        "",
        f"Predicts {task['label']}, forgets {', '.join(task['sensitive'])} ({sizes}).",
        *task["notes"],
        *(f"Mind: {concern}" for concern in record["concerns"]),
    ]
    return "\n".join(lines)


def model_card(record: Record) -> str:
    """Return the model card, Markdown."""
    task, certificate, method = record["task"], record["certificate"], record["method"]
    parts = [
        f"# Model card: {task['label']} without {', '.join(task['sensitive'])}",
        verdict(record),
        "## What it does",
        f"`{method['name']}` of fairbits {record['made']['fairbits']}, gamma {method['gamma']:g}. Every row becomes "
        f"{method['code_size']} random bits; the class is predicted from them. The bits may be handed on: what is said "
        "below holds for whoever receives one draw of them per person.",
        "## Data",
        f"{record['source']}; rows: {listed(task['rows'])}. Groups: {listed(task['group_sizes'])}.",
        _bullets(task["notes"]),
        "Columns:",
        _bullets(task["columns"]),
        "## Scores on the test rows",
        _scores(record),
        "## What others can learn from one draw",
        _bullets(adversaries(record)),
        "## Certificate",
        _bounds(certificate),
        certificate["covers"],
        "This rests on:",
        _bullets(list(ASSUMPTIONS)),
        "It does not cover:",
        _bullets(certificate["does_not_cover"]),
        *(["## Mind", _bullets(record["concerns"])] if record["concerns"] else []),
        f"Made on {record['made']['date']} with {listed({k: v for k, v in record['made'].items() if k != 'date'})}.",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _alternative(record: Record, name: str) -> dict[str, float]:
    return _model(record, name)["scores"]


def _model(record: Record, name: str) -> dict[str, Any]:
    return next(found for found in record["alternatives"] if found["name"] == name)


def listed(values: dict[str, Any]) -> str:
    """Return names and values in a line.

    >>> listed({"train": 3444, "torch": "2.13"})
    'train 3,444, torch 2.13'
    """
    return ", ".join(
        f"{name} {value:,}" if isinstance(value, int) else f"{name} {value}" for name, value in values.items()
    )


def _bullets(lines: list[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _scores(record: Record) -> str:
    """Return a table of the chosen model, averaged and from one draw, beside what it was measured against."""
    audit, fields = record["audit"], ("auc", "accuracy", "gpa", "audc", "discrimination")
    own = {"scores": audit["task"], "intervals": audit.get("intervals")}
    rows = {"this model, one draw": (own, "one_draw_"), "this model, averaged over draws (not covered)": (own, "")}
    rows |= {name: (_model(record, name), "") for name in ("unmitigated", "logistic regression", "constant")}
    lines = ["| | AUC | accuracy | GPA | AUDC | gap of predicted classes |", "|---|---|---|---|---|---|"]
    for name, (found, of) in rows.items():
        cells = (f"{found['scores'][of + field]:.3f}{interval(found, of + field)}" for field in fields)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", SCORES.format(**audit)])


def _bounds(certificate: dict[str, Any]) -> str:
    lines = [
        "| column | gap of any decision | balanced accuracy of any attack | information, bits | rows |",
        "|---|---|---|---|---|",
    ]
    for b in certificate["bounds"]:
        where = b["column"] if b["label"] is None else f"{b['column']} among {b['label']}"
        lines.append(
            f"| {where} | at most {b['total_variation']:.4f} | at most {b['balanced_accuracy']:.4f} | "
            f"at most {b['information']:.4f} | {listed(b['rows'])} |"
        )
    return "\n".join(lines)
