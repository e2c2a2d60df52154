"""A record in words and tables: verdict, price, rates, attacks, and the summary of the command line."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairbits.certificate.certificate_record import at_least, at_most, percent

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


def model_name(model: dict[str, Any]) -> str:
    """Return what readers call one of the alternatives; its learners are part of that."""
    return known_as(", ".join([model["name"], *(model.get("learners") or [])]))


def models(record: Record) -> list[dict[str, Any]]:
    """Return the models of a record; not logistic regression, where the model without protection is just that."""
    found = record.get("alternatives") or []
    twice = any(model["name"] == "unprotected" and model.get("learners") == ["linear"] for model in found)
    return [model for model in found if not (twice and model["name"] == "logistic regression")]


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
        label, bounds = record["asked"].get("odds_label"), certificate["bounds"]
        labelled = [b for b in bounds if b["label"] is not None and label in (None, str(b["label"]))]
        within = [b["total_variation"] for b in labelled]
        words["within"] = texts["within"].format(within=at_most(max(within))) if within else ""
        name = "useless" if record.get("verdict") == "certified but not useful" else "certified"
        return texts[name].format(**in_percent(certificate), **words, disparity=disparity)
    start, release = (texts["fixed"], release) if fitted else (start, certificate["release_words"])
    proved = texts["proved"].format(confidence=percent(certificate["confidence"]), release=release, disparity=disparity)
    return f"{start} {proved}"


def price(record: Record) -> str:
    """Say what the protection costs on the test rows."""
    audit, task, texts, of = record["audit"], record["audit"]["task"], TEXTS["price"], own_scores(record)
    models = {model["name"]: model for model in record["alternatives"]}
    others = {name: model["scores"] for name, model in models.items()}
    unprotected = model_name(models["unprotected"])
    words = {
        "label": record["task"]["label"],
        "release": TEXTS["release"][kind(record)],
        "accuracy": with_interval(audit, task, f"{of}accuracy", f"{percent(audit['confidence'])} interval "),
        "auc": with_interval(audit, task, f"{of}auc"),
        "plain": others["unprotected"],
        "plain_name": unprotected[:1].upper() + unprotected[1:],
    }
    useless = record.get("verdict") == "certified but not useful"
    idle = texts["useless" if useless else "constant"].format(**others["constant"])
    scores = texts["class" if kind(record) == "class" else "scores"]  # nobody receives a score of a decision
    said, limit = [scores.format(rows=audit["rows"], **words), idle], record.get("useful_limit")
    if record.get("verdict", "no limit requested") != "no limit requested":
        passed = useless and limit is not None and limit <= max(record["asked"].get(name) or 0 for name in LIMITS)
        name = "no_limit" if limit is None else "passed" if passed else "limit"
        said.append(texts[name].format(limit=limit and at_most(limit)))
    return " ".join(said)


def rivals(record: Record) -> list[str]:
    """Return the scores of the chosen model beside those of other methods, if these were asked for."""
    texts, own = TEXTS["rivals"], {"class_total_variation": record["certificate"]["total_variation"]}
    rows = [tuple(texts["head"])]
    for model in record["alternatives"]:
        if model.get("chosen") or model["name"] in texts["names"]:
            name, proved = model_name(model), model.get("proved") or {}
            name, proved = ("this model", own) if model.get("chosen") else (name, proved)
            scores = (f"{model['scores'][score]:.3f}" for score in ("accuracy", "disparity"))
            bound = at_most(proved["class_total_variation"]) if proved else "-"
            rows.append((name, f"{model['value']:g}", *scores, bound))
    lines = [texts["title"].format(**record["audit"]), *(f"  {line}" for line in aligned(rows)), texts["notes"]]
    return ["", *lines] if len(rows) > 2 else []


def aligned(rows: list[tuple[str, ...]]) -> list[str]:
    """Return rows of cells as lines: the first column to the left, the others to the right."""
    wide = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return [f"{row[0]:<{wide[0]}}  " + "  ".join(map(str.rjust, row[1:], wide[1:])) for row in rows]


def own_scores(record: Record) -> str:
    """Return how the scores of what is released begin: a random code is scored on one draw."""
    return "" if is_hard(record) else "one_draw_"


def with_interval(scored: dict[str, Any], scores: dict[str, float], name: str, what: str = "") -> str:
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
    """Return what `fairbits fit` prints at its end: is it within the limit, what does it cost, and who gets what."""
    decision, warnings = record.get("decision"), [f"Warning: {concern}" for concern in record["concerns"]]
    outcome = [verdict(record), *attempts(record), "", price(record), *rivals(record), ""]
    outcome += [*rate_lines(decision), *worse_off(record), ""] if decision else []
    return "\n".join([*outcome, *adversaries(record), *encoded_sensitive(record), *warnings, "", f"{title(record)}."])


def attempts(record: Record) -> list[str]:
    """Say whether another split may end in another verdict, and what another attempt does to the guarantee."""
    attempt, error = record.get("attempt") or 1, 1 - record.get("audit", {}).get("confidence", 1)
    shares = {"most": percent(min(attempt * error, 1)), "one": percent(error)}
    other = record.get("other_verdict")
    share = "some" if other is None else f"about {other:.0%} of"  # records of version 0.2 have no figure
    said = [TEXTS["attempts"]["borderline"].format(share=share)] if record.get("borderline") else []
    return said + ([TEXTS["attempts"]["again"].format(attempt=attempt, **shares)] if attempt > 1 else [])


def filed(record: Record) -> dict[str, str]:
    """Return what to file the page or the card under."""
    facts = {name.replace("_", " "): value for name, value in (record.get("filed") or {}).items()}
    facts |= {"table": record.get("source"), "hash of the table": record.get("table_hash")}
    facts |= {"date": (record.get("made") or {}).get("date"), "seed": record.get("seed")}
    facts["attempt"] = record.get("attempt")
    return {name: str(value) for name, value in facts.items() if value not in (None, "")}


def bound_table(heading: str, certificate: dict[str, Any], *notes: str) -> Table:
    """Return the bounds of a certificate: a line for each sensitive column, and for each label if there are labels."""
    rows = []
    for b in certificate["bounds"]:
        column = b["column"] if b["label"] is None else f"{b['column']}, among rows with label {b['label']}"
        limits = (at_most(b["total_variation"]), at_most(b["balanced_accuracy"]), at_most(b["information"], 4))
        rows.append((column, *limits, f"{sum(b['rows'].values()):,}", f"{min(b['rows'].values()):,}"))
    heading = f"{heading} ({percent(certificate['confidence'])} confidence)"
    return Table("bounds", heading, TEXTS["bounds"]["head"], tuple(rows), (*notes, certificate["covers"]))


def group_name(rate: dict[str, Any], group: str) -> str:
    """Return a group without the names of the columns that are crossed.

    >>> group_name({"column": "race x sex"}, "race=Black, sex=Female")
    'Black, Female'
    """
    for name in rate["column"].split(" x "):
        group = re.sub(rf"(^|, ){re.escape(name)}=", r"\1", group)
    return group


def rate_table(decision: dict[str, Any], digits: int = 3, between: str = " to ") -> Table:
    """Return the rates of the groups, with exact intervals; those of labels and errors if they are known."""
    texts, rows = TEXTS["rates"], []
    titles = {name: title for name, title in texts["head"].items() if name in next(iter(decision["rates"]), {})}
    several = len({rate["column"] for rate in decision["rates"]}) > 1
    for rate in decision["rates"]:
        group = f"{rate['column']}: " * several + group_name(rate, rate["group"])
        cells = {"group": group, "rows": f"{rate['rows']:,}"}
        for name in list(titles)[2:]:
            low, high = at_least(rate[f"{name}_low"], digits), rate[f"{name}_high"]
            within = f"{low} or more" if high is None else f"{low}{between}{at_most(high, digits)}"
            cells[name] = f"{'-' if rate[name] is None else format(rate[name], f'.{digits}f')} ({within})"
        cells |= {"ratio": "1 (reference)"} if rate.get("reference") else {}
        rows.append(tuple(cells.values()))
    known = in_percent(decision)
    notes = tuple(note.format(**known) for note in texts["notes"]) if "base" in titles else ()
    return Table("rates", texts["table"].format(**known), tuple(titles.values()), tuple(rows), notes + hidden(decision))


def hidden(decision: dict[str, Any]) -> tuple[str, ...]:
    """Name the groups that are too small to show their rates."""
    names = "; ".join(f"{group['column']}: {group_name(group, group['group'])}" for group in decision.get("hidden", ()))
    return (TEXTS["rates"]["hidden"].format(groups=names),) if names else ()


def rate_lines(decision: dict[str, Any]) -> list[str]:
    """Return the rates as lines of text, with the intervals of the selection rate alone."""
    if not decision["rates"]:
        return [*hidden(decision)]
    table, texts = rate_table(decision, 2, "-"), TEXTS["rates"]
    shown = table.head.index(texts["head"]["selected"])
    short = {texts["head"][name]: title for name, title in texts["short"].items()}
    column = decision["rates"][0]["column"]
    lines = [[column, *(short.get(title, title) for title in table.head[1:])]]
    for rate, cells in zip(decision["rates"], table.rows, strict=True):
        if rate["column"] != column:
            column = rate["column"]
            lines.append([column, *[""] * (len(cells) - 1)])
        bare = [cell if place == shown else cell.partition(" (")[0] for place, cell in enumerate(cells)]
        lines.append([f"  {group_name(rate, rate['group'])}", *bare[1:]])
    shown_lines = (f"  {line}".rstrip() for line in aligned([tuple(line) for line in lines]))
    return [f"{table.title}:", *shown_lines, *hidden(decision)]


def worse_off(record: Record) -> list[str]:
    """Say which class the rates are of, and for every sensitive column which group gets it least."""
    found, texts = record["decision"], TEXTS["rates"]
    asked, lines = record.get("asked") or {}, []
    named = asked.get("favourable") or asked.get("odds_label")
    limit = asked.get("max_disparity") if record.get("certified") else None
    lines.append(texts["chosen" if named else "default"].format(**found))
    for ratio in found["ratios"]:
        differs = "worse" if named else "less"  # who is worse off depends on which class is the favourable one
        text = texts[differs if ratio["chance"] <= 1 - found["confidence"] else "equal"]
        text += texts["ratio_to" if ratio.get("reference") else "ratio"]
        apart = ratio["between"][1] - ratio["between"][0]
        text += texts["above"] if limit is not None and apart > limit else ""
        who = {name: group_name(ratio, ratio[name]) for name in ("worst", "best")}
        known = found | ratio | who | {"least": at_least(ratio["at_least"]), "apart": apart, "limit": limit}
        known["sure"] = percent(found["confidence"])
        lines.append(text.format(**known))
    return [*lines, *filter(None, [texts["of"][kind(record)]])]
