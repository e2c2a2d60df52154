"""The model card of a fit, Markdown."""

from collections.abc import Iterable

from fairbits.report.wording import (
    TEXTS,
    Record,
    Table,
    adversaries,
    assumptions,
    attempts,
    bound_table,
    encoded_sensitive,
    escaped,
    filed,
    in_percent,
    kind,
    known_as,
    listed,
    markdown,
    rate_table,
    title,
    verdict,
    with_interval,
    worse_off,
)


def _score_table(record: Record) -> Table:
    """Return the scores of the chosen model, of a random one also averaged, beside those of models without a code."""
    audit, scores = record["audit"], TEXTS["card"]["scores"]
    own = {"scores": audit["task"], "intervals": audit.get("intervals")}
    models = {name: (own, of) for name, of in TEXTS["card"]["own"][kind(record)].items()}
    others = {model["name"]: (model, "") for model in record["alternatives"]}
    models |= {known_as(name): others[name] for name in ("unprotected", "logistic regression", "constant")}
    rows = tuple(
        (name, *(with_interval(found, found["scores"], of + field) for field in scores))
        for name, (found, of) in models.items()
    )
    notes = tuple(note.format(**in_percent(audit)) for note in TEXTS["card"]["notes"])
    return Table("scores", "Scores on the test rows", ("", *scores.values()), rows, notes)


def model_card(record: Record) -> str:
    """Return the model card, Markdown."""
    task, certificate, method, made = (record[name] for name in ("task", "certificate", "method", "made"))
    calibration = (f"{b['column']}: {listed(b['rows'], '; ')}" for b in certificate["bounds"] if b["label"] is None)
    decision, worse = record["decision"], map(escaped, worse_off(record))
    method_words = TEXTS["card"][kind(record)].format(**method, version=made["fairbits"])
    data = f"{record['source']}; rows: {listed(task['rows'])}. Groups: {listed(task['group_sizes'], '; ')}."
    parts = {
        f"# Model card: {escaped(title(record))}": escaped(" ".join([verdict(record), *attempts(record)])),
        "Filed:": _bullets(f"{name}: {value}" for name, value in filed(record).items()),
        "## Warnings": _bullets(record["concerns"]),
        "## What it does": " ".join([method_words, *map(escaped, encoded_sensitive(record))]),
        "## Accuracy and fairness": markdown(_score_table(record)),
        "## Who gets what": "\n\n".join([markdown(rate_table(decision)), *worse]),
        "## Attacks": _bullets(adversaries(record)),
        "## Certificate": markdown(bound_table("Upper bounds from the calibration rows", certificate)),
        "Calibration rows per group:": _bullets(calibration),
        "Assumptions:": _bullets(assumptions(record)),
        "Not covered:": _bullets(certificate["does_not_cover"]),
        "## Data": "\n\n".join(filter(None, [escaped(data), _bullets(task["notes"])])),
        "Input columns:": _bullets(task["columns"]),
    }
    shown = [f"{heading}\n\n{content}\n" for heading, content in parts.items() if content]
    versions = listed({name: version for name, version in made.items() if name != "date"})
    return "\n".join([*shown, f"Made on {made['date']} with {versions}.\n"])


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {escaped(line)}" for line in lines)
