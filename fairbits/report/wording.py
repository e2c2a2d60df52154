"""A record in words and tables: verdict, price, attacks, the summary of the command line and the model card."""

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairbits.rounding import at_least, at_most, percent

Record = dict[str, Any]

LIMITS = ("max_disparity", "max_odds_disparity", "max_information")  # that can be asked for
TEXTS = tomllib.loads((Path(__file__).parent / "texts.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Table:
    """Rows of text under a head; `name` is the label that LaTeX refers to, notes are sentences below."""

    name: str
    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def markdown(table: Table) -> str:
    r"""Return a table as Markdown.

    >>> print(markdown(Table("t", "Two methods", ("method", "AUC"), (("a|b", "0.7"),), ("One fold.",))))
    **Two methods**
    <BLANKLINE>
    | method | AUC |
    |---|---|
    | a\|b | 0.7 |
    <BLANKLINE>
    One fold.
    """
    head, *rows = (f"| {' | '.join(map(escaped, row))} |" for row in (table.head, *table.rows))
    lines = "\n".join([head, "|" + "---|" * len(table.head), *rows])
    return "\n\n".join([f"**{escaped(table.title)}**", lines, *map(escaped, table.notes)])


def escaped(text: str) -> str:
    r"""Return text for Markdown that can be no tag, code, link or cell, on one line.

    >>> escaped("<b>a|b</b>\n`c`")
    '&lt;b&gt;a\\|b&lt;/b&gt; \\`c\\`'
    """
    text = re.sub(r"&(?=#?\w+;)", "&amp;", " ".join(text.split())).replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`|\[\]])", r"\\\1", text)


def known_as(name: str) -> str:
    """Return what readers call a method or a part of the record."""
    return TEXTS["names"].get(name, name)


def _release(record: Record) -> dict[str, Any]:
    certificate = record.get("certificate") or record["audit"].get("certificate") or {}
    return certificate.get("release") or {}


def is_hard(record: Record) -> bool:
    """Return whether a person of this record always has the same code; if not, the code is drawn."""
    return bool(_release(record).get("hard"))


def kind(record: Record) -> str:
    """Return which text is about what this record releases: a "hard" or a "random" code, or the "class" alone."""
    if _release(record).get("decision"):
        return "class"
    return "hard" if is_hard(record) else "random"


def in_percent(record: Record) -> Record:
    """Return a record with its confidence as text."""
    return {**record, "confidence": percent(record["confidence"])}


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
    texts, audit, fitted = TEXTS["verdict"], record["audit"], "certified" in record
    if fitted and not record["certified"]:
        return texts["refused"].format(**record)
    certificate, start = (record if fitted else audit)["certificate"], texts["audit"].format(**audit)
    if certificate is None:
        return f"{start} {texts['uncertified']} {audit['unavailable'].get('certificate', 'there are no bounds.')}"
    disparity, release = at_most(certificate["total_variation"]), TEXTS["release"][kind(record)]
    if fitted and record["asked"]["gamma"] is None:
        several = sum(record["asked"].get(name) is not None for name in LIMITS) > 1
        words = {"leakage": at_most(certificate["information"], 4), "limits": "limits are" if several else "limit is"}
        label, labelled = (
            record["asked"].get("odds_label"),
            [b for b in certificate["bounds"] if b["label"] is not None],
        )
        within = [b["total_variation"] for b in labelled if label in (None, str(b["label"]))]
        words["within"] = texts["within"].format(within=at_most(max(within))) if within else ""
        name = "useless" if record.get("verdict") == "certified but not useful" else "certified"
        return texts[name].format(**in_percent(certificate), **words, disparity=disparity)
    start, release = (texts["fixed"], release) if fitted else (start, certificate["release_words"])
    proved = texts["proved"].format(confidence=percent(certificate["confidence"]), release=release, disparity=disparity)
    return f"{start} {proved}"


def price(record: Record) -> str:
    """Say what the protection costs on the test rows."""
    audit, task, texts, of = record["audit"], record["audit"]["task"], TEXTS["price"], own_scores(record)
    others = {model["name"]: model["scores"] for model in record["alternatives"]}
    words = {
        "label": record["task"]["label"],
        "release": TEXTS["release"][kind(record)],
        "accuracy": _with_interval(audit, task, f"{of}accuracy", f"{percent(audit['confidence'])} interval "),
        "auc": _with_interval(audit, task, f"{of}auc"),
        "plain": others["unprotected"],
    }
    useless = record.get("verdict") == "certified but not useful"
    idle = texts["useless" if useless else "constant"].format(**others["constant"])
    said, limit = [texts["scores"].format(rows=audit["rows"], **words), idle], record.get("useful_limit")
    if record.get("verdict", "no limit requested") != "no limit requested":
        said.append(texts["no_limit"] if limit is None else texts["limit"].format(limit=at_most(limit)))
    return " ".join(said)


def own_scores(record: Record) -> str:
    """Return how the scores of what is released begin: a random code is scored on one draw."""
    return "" if is_hard(record) else "one_draw_"


def _with_interval(scored: dict[str, Any], scores: dict[str, float], name: str, what: str = "") -> str:
    """Return a score, with its interval in brackets if there is one."""
    found = (scored.get("intervals") or {}).get(name)
    return f"{scores[name]:.3f}" + ("" if found is None else f" ({what}{interval(*found)})")


def adversaries(record: Record) -> list[str]:
    """Say for every sensitive column how well it can be guessed: by our attacks, and by any attack."""
    lines, texts = [], TEXTS["adversary"]
    for found in record["audit"]["adversaries"]:
        text = texts["found" if found["reached"] > found["chance"] else "none"]
        sure = f"{percent(record['audit']['confidence'])} confidence"
        words = {"by": known_as(found["by"]), "least": at_least(found["reached"]), "chance": found["chance"]}
        if found["at_most"] is not None:
            text, sure, words["most"] = text + texts["bound"], f"{sure} each", at_most(found["at_most"])
        lines.append(f"Attacks on {found['column']}: {text.format(**words)} ({sure}).")
    return lines


def assumptions(record: Record) -> list[str]:
    """Return what the guarantee rests on."""
    return [*TEXTS["guarantee"]["assumptions"], TEXTS["guarantee"][kind(record)]]


def encoded_sensitive(record: Record) -> list[str]:
    """Say when not to use a model that reads the sensitive columns."""
    used = (record.get("asked") or {}).get("encode_sensitive")
    return [TEXTS["encode_sensitive"]["warning"].format(columns=", ".join(record["task"]["sensitive"]))] if used else []


def summary(record: Record) -> str:
    """Return what `fairbits fit` prints at its end, for readers who have never heard of mutual information."""
    warnings = [f"Warning: {concern}" for concern in record["concerns"]]
    outcome = [verdict(record), "", price(record), *ratios(record), *adversaries(record), *encoded_sensitive(record)]
    outcome += warnings
    groups = f"Groups: {listed(record['task']['group_sizes'], '; ')}."
    return "\n".join([*outcome, "", f"{title(record)}.", groups, *record["task"]["notes"]])


def bound_table(heading: str, certificate: dict[str, Any], *notes: str) -> Table:
    """Return the bounds of a certificate: a line for each sensitive column, and for each label if there are labels."""
    rows = []
    for b in certificate["bounds"]:
        column = b["column"] if b["label"] is None else f"{b['column']}, among rows with label {b['label']}"
        limits = (at_most(b["total_variation"]), at_most(b["balanced_accuracy"]), at_most(b["information"], 4))
        rows.append((column, *limits, f"{sum(b['rows'].values()):,}", f"{min(b['rows'].values()):,}"))
    heading = f"{heading} ({percent(certificate['confidence'])} confidence)"
    return Table("bounds", heading, TEXTS["bounds"]["head"], tuple(rows), (*notes, certificate["covers"]))


def rate_table(decision: dict[str, Any]) -> Table:
    """Return how often every group gets a decision, with exact intervals, and the rates of errors if they are known."""
    texts, rows = TEXTS["rates"], []
    titles = {name: title for name, title in texts["head"].items() if name in decision["rates"][0]}
    for rate in decision["rates"]:
        cells = [str(rate[name]) for name in ("column", "group", "rows")]
        for name in list(titles)[3:]:
            shown = "-" if rate[name] is None else f"{rate[name]:.3f}"
            cells.append(f"{shown} ({interval(rate[f'{name}_low'], rate[f'{name}_high'])})")
        rows.append(tuple(cells))
    heading = texts["title"].format(**in_percent(decision))
    return Table("rates", heading, tuple(titles.values()), tuple(rows))


def ratios(record: Record) -> list[str]:
    """Say for every sensitive column of a certified decision how far apart the selection rates may be as a ratio."""
    found = record.get("decision")
    if not found:
        return []
    texts = TEXTS["rates"]
    said = [
        texts["ratio_to" if ratio.get("reference") else "ratio"].format(
            **found, **ratio, least=at_least(ratio["at_least"])
        )
        for ratio in found["ratios"]
    ]
    return [*said, texts["law"].format(**in_percent(found))]


def _score_table(record: Record) -> Table:
    """Return the scores of the chosen model, of a random one also averaged, beside those of models without a code."""
    audit, scores = record["audit"], TEXTS["card"]["scores"]
    own = {"scores": audit["task"], "intervals": audit.get("intervals")}
    models = {name: (own, of) for name, of in TEXTS["card"]["own"][kind(record)].items()}
    others = {model["name"]: (model, "") for model in record["alternatives"]}
    models |= {known_as(name): others[name] for name in ("unprotected", "logistic regression", "constant")}
    rows = tuple(
        (name, *(_with_interval(found, found["scores"], of + field) for field in scores))
        for name, (found, of) in models.items()
    )
    notes = tuple(note.format(**in_percent(audit)) for note in TEXTS["card"]["notes"])
    return Table("scores", "Scores on the test rows", ("", *scores.values()), rows, notes)


def model_card(record: Record) -> str:
    """Return the model card, Markdown."""
    task, certificate, method, made = (record[name] for name in ("task", "certificate", "method", "made"))
    calibration = (f"{b['column']}: {listed(b['rows'], '; ')}" for b in certificate["bounds"] if b["label"] is None)
    decision = record.get("decision")
    method_words = TEXTS["card"][kind(record)].format(**method, version=made["fairbits"])
    data = f"{record['source']}; rows: {listed(task['rows'])}. Groups: {listed(task['group_sizes'], '; ')}."
    parts = {
        f"# Model card: {escaped(title(record))}": escaped(verdict(record)),
        "## Warnings": _bullets(record["concerns"]),
        "## What it does": " ".join([method_words, *map(escaped, encoded_sensitive(record))]),
        "## Accuracy and fairness": markdown(_score_table(record)),
        "## Rates of the decision": "\n\n".join([markdown(rate_table(decision)), *ratios(record)]) if decision else "",
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
