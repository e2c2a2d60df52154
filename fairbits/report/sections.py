"""The sections of the page of a record: what each shows in words, charts and numbers."""

import math
from typing import Any

import pandas as pd

from fairbits.report import charts as draw
from fairbits.report import wording
from fairbits.report.page import Chart, Key, Section
from fairbits.report.wording import TEXTS, Record, Table, in_percent, interval, is_hard, kind, known_as, listed
from fairbits.rounding import at_least, at_most

MOST_LISTED = 6  # groups in a line
OWN, WHOLE = "fairbits", "whole code"
MARKS = {
    OWN: (draw.BLUE, draw.CIRCLE),
    "unprotected": (draw.PINK, draw.SQUARE),
    "logistic regression": (draw.OCHRE, draw.CROSS),
}
FRONT_KEY = Key("best possible, an estimate", draw.GREEN, dash="6 3")
ATTACK_KEYS = (
    Key("attack on what is released", draw.BLUE, draw.CIRCLE),
    Key("attack on more than is certified", draw.GREY, draw.CIRCLE),
    Key("proved bound", draw.ORANGE, draw.RIGHTWARD),
    Key("guessing", draw.TEXT, dash="3 3"),
)
ATTACK_HEAD = ("attack on", "by", "balanced accuracy", "interval", "AUC", "interval", "p-value")


def record_sections(record: Record) -> list[Section]:
    """Return the sections of a record; one that the record has nothing for says so."""
    parts = (opening, frontier, attacks, guarantee, data, bits, scores, learning_curves)
    words = {term: text for term, text in TEXTS["words"]["facts"].items() if term != "draw" or not is_hard(record)}
    return [*(part(record) for part in parts), section("words", facts=tuple(words.items()))]


def section(name: str, values: dict[str, Any] | None = None, **parts: Any) -> Section:
    """Return a section with the texts of texts.toml, filled in; without parts, one that says why it is empty."""
    found = TEXTS[name]
    if not any(parts.values()):
        return Section(name, found["title"], missing=found["missing"])
    written = {part: tuple(t.format(**values or {}) for t in found.get(part, ())) for part in ("text", "notes")}
    return Section(name, found["title"], **(written | parts))


def opening(record: Record) -> Section:
    """Say the outcome, its price, attacks and warnings, the key numbers, and what was fitted."""
    badge, fitted = "audit", record.get("task") and record.get("alternatives")
    if "certified" in record:
        badge = "certified" if record["asked"]["gamma"] is None else "no limit requested"  # until version 0.2
        badge = record.get("verdict") or (badge if record["certified"] else "not certified")
    concerns = record["concerns"] if "concerns" in record else record["audit"].get("concerns") or []
    warnings = (f"Warning: {concern}" for concern in concerns)
    said = (wording.verdict(record), *([wording.price(record)] if fitted else []), *wording.adversaries(record))
    said += (*wording.ratios(record), *wording.encoded_sensitive(record), *warnings)
    parts: dict[str, Any] = {"text": said, "numbers": _numbers(record), "facts": _facts(record)}
    return Section("verdict", wording.title(record), badge=badge, **parts)


def _numbers(record: Record) -> tuple[tuple[str, str], ...]:
    audit, asked, release = record["audit"], record.get("asked") or {}, TEXTS["release"][kind(record)]
    words = {name: text.format(release=release) for name, text in TEXTS["numbers"].items()}
    certificate, task = record.get("certificate") or audit.get("certificate"), audit.get("task") or {}
    found = [(f"{asked[name]:g}", words[name]) for name in wording.LIMITS if asked.get(name) is not None]
    if certificate:
        what = words["estimate" if certificate.get("promise") else "bound"]
        found.append((at_most(certificate["total_variation"]), what))
    if (own := f"{wording.own_scores(record)}accuracy") in task:
        known = (audit.get("intervals") or {}).get(own)
        found.append((f"{task[own]:.3f}", words["accuracy"] + (f" ({interval(*known)})" if known else "")))
    others = (model for model in record.get("alternatives") or [] if model["name"] in ("unprotected", "constant"))
    return (*found, *((f"{model['scores']['accuracy']:.3f}", words[model["name"]]) for model in others))


def _facts(record: Record) -> tuple[tuple[str, str], ...]:
    task, made, method = (record.get(name) or {} for name in ("task", "made", "method"))
    sensitive, sizes, rows = task.get("sensitive") or [], task.get("group_sizes") or {}, task.get("rows")
    groups = "; ".join(f"{name}: {size:,} rows" for name, size in sizes.items())
    if len(sizes) > MOST_LISTED:
        smallest, largest = min(sizes.values()), max(sizes.values())
        groups = f"{len(sizes)} groups of {smallest:,} to {largest:,} rows, listed under '{TEXTS['data']['title']}'"
    protected = "intersection" if task.get("groups") == "intersection" else "each"
    facts: dict[str, Any] = {
        "table": record.get("source"),
        "date": made.get("date"),
        "label": f"{task['label']} ({', '.join(task.get('classes') or [])})" if task.get("label") else "",
        "sensitive columns": ", ".join(sensitive),
        "groups": groups,
        "protected": TEXTS["protected"][protected] if len(sensitive) > 1 else "",
        "rows": listed(rows) if isinstance(rows, dict) else (f"{rows:,}" if rows else ""),
        "method": TEXTS["method"][kind(record)].format(**method) if method else "",
        "made with": listed({k: v for k, v in made.items() if k != "date"}),
    }
    return tuple((term, text) for term, text in facts.items() if text)


def frontier(record: Record) -> Section:
    """Draw the models of the record, with a slider over the path that the model was chosen from."""
    points, texts, release = _points(record), TEXTS["frontier"], TEXTS["release"][kind(record)]
    path = [point for point in points if point["method"] == OWN]  # they come first
    if not path:
        return section("frontier")
    start = {point["chosen"]: point["place"] for point in path}[True]
    shown = [point for point in points if point["method"] != "constant"]  # far below, it would flatten the rest
    kinds = {p["kind"]: MARKS.get(p["method"], (draw.GREY, draw.CROSS)) for p in shown}
    keys = tuple(Key(kind, *mark) for kind, mark in kinds.items())
    limit = (record.get("asked") or {}).get("max_disparity")
    front, varied = record.get("front") or [], record["method"]["varied"]
    spec = draw.tradeoff_marks(shown, front, texts["fields"], (*keys, FRONT_KEY), start, limit)
    best = [{"model": FRONT_KEY.label, "value": "", "leakage": None, **point} for point in front]
    numbers = _number_table(f"Scores on the test rows; for fairbits, of {release}", texts["fields"], [*points, *best])
    words = texts["words"].format(models=len(points), **path[start])
    chart = Chart("frontier-chart", texts["title"], words, spec, numbers, (*keys, FRONT_KEY))
    tested = record.get("tested")
    outcomes = [f" {texts[point['outcome']]}" if tested else "" for point in path]
    said = [texts["place"].format(**p, varied=known_as(varied), who=" (the chosen model)" * p["chosen"]) for p in path]
    places = tuple(map("".join, zip(said, outcomes, strict=True)))
    choice = "choice_class" if kind(record) == "class" else "choice"
    slider, chosen_by = (places, start, texts["varied"][varied]), (texts[choice],) if tested else ()
    notes = (*chosen_by, _precision(record["audit"]), texts["estimate"])
    return section("frontier", {"varied": known_as(varied)}, slider=slider, charts=(chart,), notes=notes)


def _outcome(tested: list[dict[str, Any]], place: int) -> str:
    """Return whether a model of the path passed, was the first to fail, or came after that."""
    passed = sum(row["passed"] for row in tested)
    return "passed" if place < passed else "failed" if place == passed < len(tested) else "untested"


def _points(record: Record) -> list[dict[str, Any]]:
    """Return a row per model; a random code is scored on one draw."""
    found, tested, models = [], record.get("tested") or [], record.get("alternatives") or []
    for place, model in enumerate(models):  # those of the path come first, in the order of the tests
        scores, value, name = model["scores"], model["value"], known_as(model["name"])
        one_draw, chosen = "one_draw_" * ("one_draw_auc" in scores), bool(model.get("chosen"))
        point = {"method": model["name"], "kind": name, "model": name + " (chosen)" * chosen, "chosen": chosen}
        point |= {"strength": value, "value": "none" if value is None else f"{value:g}"}
        point["outcome"] = _outcome(tested, place)
        point |= {"accuracy": scores[f"{one_draw}accuracy"], "auc": scores[f"{one_draw}auc"]}
        found.append(point | {"disparity": scores["disparity"], "leakage": scores.get("information")})
    found.sort(key=lambda p: ([*MARKS, p["method"]].index(p["method"]), p["strength"] or 0))
    return [{**point, "place": place} for place, point in enumerate(found)]


def _precision(audit: dict[str, Any]) -> str:
    """Say how far chance moves the marks: 95 % half-widths at most, from the test rows alone."""
    widest = max(sum(1 / n for n in sorted(found["rows"].values())[:2]) for found in audit["leakage"])
    accuracy, disparity = 0.98 / math.sqrt(audit["rows"]), 0.98 * math.sqrt(widest)
    return TEXTS["frontier"]["precision"].format(rows=audit["rows"], accuracy=accuracy, disparity=disparity)


def _number_table(heading: str, fields: tuple[draw.Field, ...], rows: list[draw.Row]) -> Table:
    cells = (("" if row[name] is None else format(row[name], form) for name, _, form in fields) for row in rows)
    return Table("", heading, tuple(head for _, head, _ in fields), tuple(map(tuple, cells)))


def attacks(record: Record) -> Section:
    """Draw a chart for every protected column: what our attacks reach, and what no attack exceeds."""
    audit, texts = record["audit"], TEXTS["attacks"]
    if not audit.get("probes"):
        return section("attacks")
    charts = tuple(_attack_chart(i, found, audit["probes"]) for i, found in enumerate(audit["adversaries"]))
    again = (texts["again"],) if "certificate" in record else ()
    proved = (("calibration", record.get("certificate"), ()), ("test", audit.get("certificate"), again))
    tables = [wording.bound_table(f"Upper bounds from the {rows} rows", c, *more) for rows, c, more in proved if c]
    covered = (texts["covered"],) if len({probe["view"] for probe in audit["probes"]}) > 1 else ()
    absent = (f"Not available, {name}: {reason}" for name, reason in (audit.get("unavailable") or {}).items())
    notes = (*covered, texts["statistics"].format(**in_percent(audit)), *absent)
    return section("attacks", charts=charts, tables=tuple(tables), notes=notes)


def _attack_chart(number: int, adversary: dict[str, Any], probes: list[dict[str, Any]]) -> Chart:
    name, guessing, short = adversary["column"], adversary["chance"], TEXTS["attacks"]["short"]
    probes = [probe for probe in probes if probe["column"] == name]
    released, marks, rows = probes[0]["view"], [], []
    for p in probes:
        value, low, high = (p[f"balanced_accuracy{end}"] for end in ("", "_low", "_high"))
        row = f"{short.get(p['view'], p['view'])}: {short.get(p['model'], p['model'])}"
        marks.append({"row": row, "released": p["view"] == released, "value": value, "low": low, "high": high})
        auc = (f"{p['auc']:.3f}", interval(p["auc_low"], p["auc_high"]), f"{p['p_value']:.3f}")
        rows.append((known_as(p["view"]), known_as(p["model"]), f"{value:.3f}", interval(low, high), *auc))
    reached, most = adversary["reached"], adversary["at_most"]
    proved = [{"row": "best attack, at least", "value": reached, "shown": at_least(reached)}]
    if most is not None:
        proved.append({"row": "any attack, at most", "value": most, "shown": at_most(most)})
    release = {"one draw": "one draw", "code": "the code"}.get(released, "what is released")
    title = f"How well can {name} be guessed from {release}?"
    said = [f"{bound['row'].capitalize()}: {bound['shown']}." for bound in proved]
    words = " ".join([title, *said, f"Guessing: {guessing:.3f}."])
    notes = (*said, TEXTS["attacks"]["p_value"])
    numbers = Table("", f"Attacks on {name}", ATTACK_HEAD, tuple(rows), notes)
    spec = draw.attack_intervals(marks, proved, guessing)
    keys = ATTACK_KEYS if len({p["view"] for p in probes}) > 1 else (ATTACK_KEYS[0], *ATTACK_KEYS[2:])
    return Chart(f"attacks-chart-{number}", title, words, spec, numbers, keys)


def guarantee(record: Record) -> Section:
    """Say what is guaranteed, on which assumptions, and what is not."""
    certificate = record.get("certificate") or record["audit"].get("certificate")
    if not certificate:
        return section("guarantee")
    refused = () if record.get("certified", True) else (TEXTS["guarantee"]["refused"],)
    not_covered = tuple(line[:1].upper() + line[1:] for line in certificate["does_not_cover"])
    lists = (("Assumptions", tuple(wording.assumptions(record))), ("Not covered", not_covered))
    rates = (wording.rate_table(record["decision"]),) if record.get("decision") else ()
    return section("guarantee", text=(*refused, certificate["covers"]), tables=rates, lists=lists)


def data(record: Record) -> Section:
    """List what to know about the rows and how the columns were read."""
    task = record.get("task") or {}
    lists = {"About the table": task.get("notes"), "Input columns, as they were read": task.get("columns")}
    shown = tuple((heading, tuple(points)) for heading, points in lists.items() if points)
    sizes = tuple((name, f"{size:,}") for name, size in (task.get("group_sizes") or {}).items())
    tables = (Table("", "Groups of the whole table", ("group", "rows"), sizes),) if sizes else ()
    return section("data", tables=tables, lists=shown)


def bits(record: Record) -> Section:
    """Draw a heat map of bits by columns."""
    found = list(record.get("bits") or [])
    named = {column["about"] for column in found}
    for leak in record["audit"].get("leakage") or []:
        if leak["column"] not in named and leak["each_bit"] is not None and leak["joint"] is not None:
            found.append({**leak, "about": leak["column"], "role": "sensitive", "each": leak["each_bit"]})
    if not found:
        return section("bits")
    shown = pd.DataFrame(  # a row for each bit and one for all
        {c["about"] + " (label)" * (c["role"] == "label"): [*c["each"], c["joint"]] for c in found},
        index=[*(f"bit {i}" for i in range(len(found[0]["each"]))), WHOLE],
    )
    numbers = shown.copy()
    numbers.loc["sum of the single bits (bounds nothing)"] = [sum(c["each"]) for c in found]
    numbers.loc[f"{WHOLE}, from held-out halves"] = [c["lower"] for c in found]
    numbers.loc["maximum (entropy)"] = [c["entropy"] for c in found]
    cells = tuple((str(part), *(f"{value:.6f}" for value in values)) for part, *values in numbers.itertuples())
    release = TEXTS["release"][kind(record)]
    table = Table("", f"Information in {release} on the test rows, bits", ("", *shown), cells)
    said = "; ".join(f"{value:.4f} bits about {name}" for name, value in shown.loc[WHOLE].items())
    words = f"Heat map of the information in every bit. The whole code holds {said}."
    chart = Chart("bits-chart", TEXTS["bits"]["title"], words, draw.heat_map(shown, WHOLE), table)
    return section("bits", {"release": release}, charts=(chart,))


def scores(record: Record) -> Section:
    """Draw how the predicted probabilities are distributed in the groups of every sensitive column."""
    columns: dict[str, dict[str, list[int]]] = {}
    for found in record.get("scores_by_group") or []:
        columns.setdefault(found["column"], {})[found["group"]] = found["counts"]
    task = record.get("task") or {}
    words = {"label": task.get("label", "the label"), "positive": (task.get("classes") or ["the last class"])[-1]}
    words |= TEXTS["scores"][kind(record)]
    return section("scores", words, charts=tuple(_score_chart(i, *column) for i, column in enumerate(columns.items())))


def _score_chart(number: int, name: str, counts: dict[str, list[int]]) -> Chart:
    frame = pd.DataFrame(dict(sorted(counts.items(), key=lambda group: -sum(group[1]))))  # a row for each bin
    bins, sizes = len(frame), frame.sum()
    means = frame.mul((frame.index + 0.5) / bins, axis=0).sum() / sizes.clip(lower=1)
    shown = frame.iloc[:, : len(draw.SERIES)]
    keys = draw.line_keys([f"{group} ({sizes[group]:,} rows)" for group in shown])
    spec = draw.score_steps(shown, keys)
    most = f" (the {shown.shape[1]} largest groups)" if frame.shape[1] > shown.shape[1] else ""
    words = f"Share of rows by score for {'; '.join(f'{group}, mean {means[group]:.3f}' for group in shown)}."
    rows = [
        (f"{i / bins:.2f} to {(i + 1) / bins:.2f}", *(f"{count:,}" for count in row))
        for i, *row in frame[frame.any(axis=1)].itertuples()
    ]
    rows += [("all rows", *(f"{size:,}" for size in sizes)), ("mean score", *(f"{mean:.3f}" for mean in means))]
    note = "Mean scores use the middle of each bin."
    table = Table("", f"Test rows by score and {name}", ("score", *frame), tuple(rows), (note,))
    return Chart(f"scores-chart-{number}", f"Scores by {name}{most}", words, spec, table, keys)


def learning_curves(record: Record) -> Section:
    """Draw error and leakage by epoch."""
    history, keys, charts = record.get("history") or [], draw.line_keys(["training", "validation"]), []
    fields = (("epoch", "epoch", "d"), *((key.label, key.label, ".4f") for key in keys))
    for name, (title, axis) in TEXTS["learning"]["curves"].items():
        if history and name in history[0]:
            columns = {"training": name, "validation": f"validation_{name}"}
            rows = [{"epoch": e["epoch"] + 1, **{k: e.get(v) for k, v in columns.items()}} for e in history]
            words = f"{title} by epoch, on training and validation rows; {len(history)} epochs."
            spec = draw.learning_lines(rows, axis, keys, record.get("best_epoch"))
            numbers = _number_table(f"{title}: {axis}", fields, rows)
            charts.append(Chart(f"learning-chart-{name}", title, words, spec, numbers, keys))
    return section("learning", TEXTS["learning"][kind(record)], charts=tuple(charts))
