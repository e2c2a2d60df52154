"""The sections of the page of a record: what each shows in words, charts and numbers."""

from dataclasses import replace
from typing import Any

import pandas as pd

from fairbits.certificate.certificate_record import at_least, at_most, percent
from fairbits.report import charts as draw
from fairbits.report import wording
from fairbits.report.page import Chart, Key, Section, number_table, section
from fairbits.report.wording import TEXTS, Record, Table, in_percent, interval, is_hard, kind, known_as, listed

OWN = "fairbits"
MARKS = {
    "passed": (draw.BLUE, draw.CIRCLE),
    "failed": (draw.GREY, draw.CIRCLE),
    "unprotected": (draw.PINK, draw.SQUARE),
    "logistic regression": (draw.OCHRE, draw.CROSS),
    "parity penalty": (draw.TEAL, draw.CROSS),
    "exponentiated gradient": (draw.PURPLE, draw.SQUARE),
}
BOUNDS = ("total_variation", "odds_disparity", "information")  # that a model was tested for
FRONT_KEY = Key("best possible, an estimate", draw.GREEN, dash="6 3")
ATTACK_KEYS = (
    Key("attack on what is released", draw.BLUE, draw.CIRCLE),
    Key("attack on more than is certified", draw.GREY, draw.CIRCLE),
    Key("proved bound", draw.ORANGE, draw.RIGHTWARD),
    Key("chance level", draw.TEXT, dash="1 0"),
)
ATTACK_HEAD = ("attack on", "by", "balanced accuracy", "interval", "AUC", "interval", "p-value")

WHOLE = "whole code"


def record_sections(record: Record) -> list[Section]:
    """Return the sections of a record; one that the record has nothing for says so."""
    parts = (opening, frontier, rates, attacks, guarantee, data)
    found = (part(record) for part in (learning_curves, bits, scores))
    folded = (replace(part, folded=True) for part in found if not part.missing)
    words = {term: text for term, text in TEXTS["words"]["facts"].items() if term != "draw" or not is_hard(record)}
    return [*(part(record) for part in parts), *folded, section("words", facts=tuple(words.items()), folded=True)]


def opening(record: Record) -> Section:
    """Say the outcome and the answers to the three questions, warn, and say what to file the page under."""
    badge = "audit"
    if "certified" in record:
        badge = "certified" if record["asked"]["gamma"] is None else "no limit requested"  # until version 0.2
        badge = record.get("verdict") or (badge if record["certified"] else "not certified")
    concerns = record["concerns"] if "concerns" in record else record["audit"].get("concerns") or []
    warnings = (f"Warning: {concern}" for concern in concerns)
    said = (wording.verdict(record), *wording.attempts(record), *wording.encoded_sensitive(record), *warnings)
    facts = tuple(wording.filed(record).items())
    return Section("verdict", wording.title(record), text=said, badge=badge, numbers=_numbers(record), facts=facts)


def _numbers(record: Record) -> tuple[tuple[str, str, str], ...]:
    """Return the three questions with the numbers that answer them."""
    audit, asked, texts, found = record["audit"], record.get("asked") or {}, TEXTS["numbers"], []
    certificate, task, decision = record.get("certificate"), audit.get("task") or {}, record.get("decision")
    certificate = certificate or audit.get("certificate")
    limits = [name for name in wording.LIMITS if asked.get(name) is not None]
    ask, own = TEXTS["questions"], f"{wording.own_scores(record)}accuracy"
    if certificate:
        name, bound = "bound", at_most(certificate["total_variation"])
        if limits and record.get("certified"):
            name, bound = limits[0], f"{asked[limits[0]]:g}"
        elif asked.get("max_disparity") is not None:
            name = "refused"
        words = {"release": TEXTS["release"][kind(record)], "confidence": percent(certificate["confidence"])}
        answer = "" if not limits else "yes, " if record.get("certified") else "not proved, "
        what = texts[name].format(**words, limit=asked.get("max_disparity"))
        found.append((ask["limit"], f"{answer}≤ {bound}", what))
    models = {model["name"]: model for model in record.get("alternatives") or [] if model["name"] != OWN}
    others = {name: model["scores"]["accuracy"] for name, model in models.items()}
    if own in task and others:
        within = (audit.get("intervals") or {}).get(own)
        words = {"plain": others["unprotected"], "constant": others["constant"]}
        words["plain_name"] = wording.model_name(models["unprotected"])
        words["interval"] = interval(*within) if within else "no interval"
        found.append((ask["price"], f"{task[own]:.3f}", texts["accuracy"].format(**words)))
    if decision and decision["ratios"]:
        worst = min(decision["ratios"], key=lambda ratio: ratio["shown"])
        who = {name: wording.group_name(worst, worst[name]) for name in ("worst", "best")}
        shown = " and ".join(f"{rate:.3f}" for rate in worst["between"])
        found.append((ask["rates"], shown, texts["rates"].format(**decision, **who)))
    return tuple(found)


def _facts(record: Record, task: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    made, method = (record.get(name) or {} for name in ("made", "method"))
    sensitive, rows = task.get("sensitive") or [], task.get("rows")
    protected = "intersection" if task.get("groups") == "intersection" else "each"
    facts: dict[str, Any] = {
        "label": f"{task['label']} ({', '.join(task.get('classes') or [])})" if task.get("label") else "",
        "sensitive columns": ", ".join(sensitive),
        "protected": TEXTS["protected"][protected] if len(sensitive) > 1 else "",
        "rows": listed(rows) if isinstance(rows, dict) else (f"{rows:,}" if rows else ""),
        "method": TEXTS["method"][kind(record)].format(**method) if method else "",
        "made with": listed({k: v for k, v in made.items() if k != "date"}),
    }
    return tuple((term, text) for term, text in facts.items() if text)


def frontier(record: Record) -> Section:
    """Draw the models of the record by what is proved of them and by their accuracy."""
    texts, release, asked = TEXTS["frontier"], TEXTS["release"][kind(record)], record.get("asked") or {}
    quantity, points = _points(record)
    comparable = quantity in ("", BOUNDS[0])  # to a disparity on the test rows
    shown = [p for p in points if comparable or p["proved"]]
    shown = [p for p in shown if p["method"] != "constant"]  # far below, it would flatten the rest
    if not any(point["chosen"] for point in points):
        return section("frontier")
    keys = tuple(Key(point["kind"], *MARKS[point["mark"]]) for point in {p["kind"]: p for p in shown}.values())
    best = [{**point, "bound": point["disparity"]} for point in (record.get("front") or [] if comparable else [])]
    limit = asked.get(wording.LIMITS[BOUNDS.index(quantity)] if quantity else "max_disparity")
    fields = [*texts["fields"], *([] if kind(record) == "class" else [texts["auc"]]), texts["leakage"]]
    axis = texts["axis"].get(quantity, texts["axis"]["proved" if quantity else "measured"])
    spec = draw.tradeoff_marks(shown, best, fields, (*keys, FRONT_KEY), axis, limit)
    rows = [*points, *({**dict.fromkeys(name for name, *_ in fields), "model": FRONT_KEY.label, **p} for p in best)]
    numbers = number_table(f"Scores; for fairbits, of {release}", fields, rows)
    chosen = next(point for point in points if point["chosen"])
    words = texts["words"].format(models=len(points), **chosen)
    chart = Chart("frontier-chart", texts["title"], words, spec, numbers, (*keys, *[FRONT_KEY] * bool(best)))
    said = {"what": texts["what"][kind(record)], "how": texts["how"]["proved" if quantity else "measured"]}
    of = "class" if kind(record) == "class" else "code"
    explained = (texts["marks"].format(**said), *[texts["front"][of]] * bool(best))
    choice = (texts["choice_class" if kind(record) == "class" else "choice"],) if record.get("tested") else ()
    estimate = texts["estimate"][of].format(others=texts["others"])
    compared = [TEXTS["rivals"]["notes"]] * any(point["method"] in TEXTS["rivals"]["names"] for point in points)
    notes = (
        *choice,
        texts["precision"].format(**in_percent(record["audit"])),
        estimate,
        texts["unprotected"],
        *compared,
    )
    price = [wording.price(record)] if record.get("task") else []
    return section("frontier", text=(*price, *explained), charts=(chart,), notes=notes)


def _points(record: Record) -> tuple[str, list[dict[str, Any]]]:
    """Return which of BOUNDS is proved, if any, and a row per model; a random code is scored on one draw."""
    found, tested, models = [], record.get("tested") or [], wording.models(record)
    names = tested[0] if len(tested) == sum(model["name"] == OWN for model in models) > 0 else {}  # fewer until 0.2
    of = next((f"{of}_{b}" for b in BOUNDS for of in ("code", "class") if f"shown_{of}_{b}" in names), "")
    for place, model in enumerate(models):  # those of the path come first, in the order of the tests
        scores, value, own = model["scores"], model["value"], model["name"] == OWN
        one_draw, chosen = "one_draw_" * ("one_draw_auc" in scores), bool(model.get("chosen"))
        proof = tested[place] if own and of else model.get("proved") or {}
        within = (model.get("intervals") or {}).get(f"{one_draw}accuracy")
        mark = ("passed" if not of or proof["passed"] else "failed") if own else model["name"]
        name = TEXTS["frontier"]["outcome"][mark] if own and of else wording.model_name(model)
        found.append(
            {
                "method": model["name"],
                "mark": mark,
                "kind": name,
                "model": name + " (chosen)" * chosen,
                "chosen": chosen,
                "faint": own and not chosen,
                "value": None if value is None else f"{value:g}",
                "bound": proof.get(of, scores["disparity"]),
                "proved": at_most(proof[of]) if of in proof else None,
                "shown": proof.get(f"shown_{of}"),
                "low": within and within[0],
                "high": within and within[1],
                "interval": within and interval(*within),
                "accuracy": scores[f"{one_draw}accuracy"],
                "auc": scores[f"{one_draw}auc"],
                "disparity": scores["disparity"],
                "leakage": scores.get("information"),
            }
        )
    return of.partition("_")[2], found


def rates(record: Record) -> Section:
    """Show the rates of the groups, and say who is worse off."""
    decision = record.get("decision")
    if not decision:
        return section("rates")
    table = wording.rate_table(decision)
    return section("rates", in_percent(decision), text=tuple(wording.worse_off(record)), tables=(table,), notes=())


def attacks(record: Record) -> Section:
    """Draw a chart for every protected column: what our attacks reach, and what no attack exceeds."""
    audit, texts = record["audit"], TEXTS["attacks"]
    if not audit.get("probes"):
        return section("attacks")
    chart = _attack_chart(audit["adversaries"], audit["probes"])
    covered = (texts["covered"],) if len({probe["view"] for probe in audit["probes"]}) > 1 else ()
    absent = (f"Not available, {name}: {reason}" for name, reason in (audit.get("unavailable") or {}).items())
    notes = (*covered, texts["statistics"].format(**in_percent(audit)), *absent)
    text = (*wording.adversaries(record), *texts["text"])
    return section("attacks", text=text, charts=(chart,), notes=notes)


def _attack_chart(adversaries: list[dict[str, Any]], probes: list[dict[str, Any]]) -> Chart:
    """Return one picture of all attacks and bounds, column by column."""
    texts, marks, rows, said = TEXTS["attacks"], [], [], []
    for found in adversaries:
        name, before = found["column"], f"{found['column']}, " * (len(adversaries) > 1)
        lines = {"chance": found["chance"], "most": found["at_most"]}
        for side, value, shown in (("at most", found["at_most"], at_most), ("at least", found["reached"], at_least)):
            if value is not None:
                row = f"{before}{texts['ends'][side]}"
                marks.append({"row": row, "side": side, "value": value, "shown": shown(value), **lines})
                said.append(f"{row[:1].upper()}{row[1:]}: {shown(value)}.")
        said.append(f"Chance{f' for {name}' * bool(before)}: {found['chance']:.3f}.")
        own = [probe for probe in probes if probe["column"] == name]
        for p in own:
            value, low, high = (p[f"balanced_accuracy{end}"] for end in ("", "_low", "_high"))
            view, model = (texts["short"].get(p[part], p[part]) for part in ("view", "model"))
            mark = {"row": f"{before}{view}: {model}", "released": p["view"] == own[0]["view"], "value": value}
            marks.append({**mark, "low": low, "high": high, **lines})
            auc = (f"{p['auc']:.3f}", interval(p["auc_low"], p["auc_high"]), f"{p['p_value']:.3f}")
            rows.append(
                (f"{before}{known_as(p['view'])}", known_as(p["model"]), f"{value:.3f}", interval(low, high), *auc)
            )
    words = " ".join([texts["title"], *said])
    numbers = Table("", "Attacks", ATTACK_HEAD, tuple(rows), (" ".join(said), texts["p_value"]))
    keys = ATTACK_KEYS if len({p["view"] for p in probes}) > 1 else (ATTACK_KEYS[0], *ATTACK_KEYS[2:])
    return Chart("attacks-chart", texts["title"], words, draw.attack_intervals(marks), numbers, keys)


def guarantee(record: Record) -> Section:
    """Say what is guaranteed, on which assumptions, and what is not."""
    certificate = record.get("certificate") or record["audit"].get("certificate")
    if not certificate:
        return section("guarantee")
    refused = () if record.get("certified", True) else (TEXTS["guarantee"]["refused"],)
    not_covered = tuple(line[:1].upper() + line[1:] for line in certificate["does_not_cover"])
    lists = (("Assumptions", tuple(wording.assumptions(record))), ("Not covered", not_covered))
    again = (TEXTS["attacks"]["again"],) if "certificate" in record else ()
    proved = (("calibration", record.get("certificate"), ()), ("test", record["audit"].get("certificate"), again))
    tables = [(wording.bound_table(f"Upper bounds from the {rows} rows", c), more) for rows, c, more in proved if c]
    shown = tuple(replace(table, notes=notes) for table, notes in tables)
    return section("guarantee", text=(*refused, certificate["covers"]), tables=shown, lists=lists)


def data(record: Record) -> Section:
    """List what to know about the rows and how the columns were read."""
    task = record.get("task") or {}
    lists = {"About the table": task.get("notes"), "Input columns, as they were read": task.get("columns")}
    shown = tuple((heading, tuple(points)) for heading, points in lists.items() if points)
    sizes = tuple((name, f"{size:,}") for name, size in (task.get("group_sizes") or {}).items())
    tables = (Table("", "Groups of the whole table", ("group", "rows"), sizes),) if sizes else ()
    return section("data", facts=_facts(record, task) if task else (), tables=tables, lists=shown)


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
        if len(history) > 1 and name in history[0]:  # a code that is trained in one go has no curve
            columns = {"training": name, "validation": f"validation_{name}"}
            rows = [{"epoch": e["epoch"] + 1, **{k: e.get(v) for k, v in columns.items()}} for e in history]
            words = f"{title} by epoch, on training and validation rows; {len(history)} epochs."
            spec = draw.learning_lines(rows, axis, keys, record.get("best_epoch"))
            numbers = number_table(f"{title}: {axis}", fields, rows)
            charts.append(Chart(f"learning-chart-{name}", title, words, spec, numbers, keys))
    charts += _plane_chart(record, keys)
    return section("learning", TEXTS["learning"][kind(record)], charts=tuple(charts))


def _plane_chart(record: Record, keys: tuple[Key, ...]) -> list[Chart]:
    """Draw the information plane: the information of the code about the label and its leakage, epoch by epoch."""
    history, texts = record.get("history") or [], TEXTS["learning"]["plane"]
    entropy = next((found["entropy"] for found in record.get("bits") or [] if found["role"] == "label"), None)
    needed = {f"{of}{name}" for of in ("", "validation_") for name in ("information", "cross_entropy")}
    if len(history) < 2 or entropy is None or not needed <= history[0].keys():
        return []
    rows = [
        {
            "rows": key.label,
            "epoch": e["epoch"] + 1,
            "leakage": e[f"{of}information"],
            "about": entropy - e[f"{of}cross_entropy"],
            "kept": of != "" and e["epoch"] == record.get("best_epoch"),
        }
        for key, of in zip(keys, ("", "validation_"), strict=True)
        for e in history
    ]
    fields = [
        ("rows", "rows", ""),
        ("epoch", "epoch", "d"),
        *((name, texts[name], ".4f") for name in ("leakage", "about")),
    ]
    words = texts["words"].format(epochs=len(history))
    spec, numbers = draw.plane_path(rows, fields, keys), number_table(texts["title"], fields, rows)
    return [Chart("learning-chart-plane", texts["title"], words, spec, numbers, keys)]
