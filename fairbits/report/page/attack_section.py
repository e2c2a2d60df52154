"""Attacks and proofs on one axis: what our probes reach and what nobody passes."""

from typing import Any

import altair as alt

from fairbits.report.page.chart_style import BLUE, CIRCLE, GREY, LEFTWARD, ORANGE, RIGHTWARD, TEXT, scale, specification
from fairbits.report.page.parts import Chart, Key, Section
from fairbits.report.text_tables import Table
from fairbits.report.wording import Record

TITLE = "Attacks and what nobody can do"
PROBES = {
    "logistic": "logistic regression",
    "boosting": "boosted trees",
    "forest": "random forest",
    "mlp": "neural network",
    "neighbours": "nearest neighbours",
}
VIEWS = {"theta": "the bits' chances"}
SHORT = {"boosting": "trees", "mlp": "network", "theta": "chances"}
TEXTS = (
    "We attack the model ourselves: classifiers try to tell a person's group from what is handed on. Their balanced "
    "accuracy, the mean over the groups of the share recognised, is a lower limit on what an attacker can do: a better "
    "attack may exist.",
    "The certificate is the upper limit, whatever the attacker tries. It comes from a proof and counts on the rows, "
    "not from attacks. The truth about the best attack lies between the two; each of them holds with the stated "
    "confidence.",
)
COVERED = (
    "The certificate is for one draw of the code per person. Several draws of the same person, or the chances of the "
    "bits themselves, tell more: the grey rows show it. Never hand those on."
)
STATISTICS = (
    "Lines are intervals at {confidence:.0%} for the probe as trained, on the half of the {rows:,} audited rows that "
    "it has not seen. 'Surely reached' is a one-sided bound at {confidence:.0%} for all probes of what is handed on "
    "together, valid at any number of rows; if it is no better than guessing, guessing is shown. The certificate is at "
    "{confidence:.0%}, from all audited rows. Each statement holds on its own, not all of them together. An interval "
    "may reach beyond the certificate: it knows half of the rows, and only what this probe does with them."
)
NUMBER_ROOM = 0.25  # of the axis: the width of a number beside its mark on a narrow screen
AGAIN = (
    "The proof once more, on rows that played no part in choosing the model; they are the calibration rows here. These "
    "bounds may lie above a limit that was asked for: its proof rests on the other calibration rows, and fewer rows "
    "leave more room for chance."
)
ATTACK = [
    alt.Tooltip("row:N", title="attack"),
    alt.Tooltip("value:Q", format=".3f", title="balanced accuracy"),
    alt.Tooltip("low:Q", format=".3f", title="interval from"),
    alt.Tooltip("high:Q", format=".3f", title="to"),
]
PROOF = [alt.Tooltip("what:N", title="statement"), alt.Tooltip("value:Q", format=".3f", title="balanced accuracy")]
KEYS = (
    Key("attack on what is handed on", BLUE, CIRCLE),
    Key("attack on more than is certified", GREY, CIRCLE),
    Key("proved", ORANGE, RIGHTWARD),
)


def attacks(record: Record) -> Section:
    """Draw a chart for every protected column."""
    audit = record.get("audit") or {}
    if not audit.get("probes"):
        return Section("attacks", TITLE, missing="The record holds no attacks.")
    charts = tuple(_column(i, adversary, audit) for i, adversary in enumerate(audit["adversaries"]))
    released = audit["probes"][0]["view"]
    covered = (COVERED,) if any(p["view"] != released for p in audit["probes"]) else ()
    notes = (*covered, STATISTICS.format(**audit), *_unavailable(audit))
    return Section("attacks", TITLE, text=TEXTS, charts=charts, tables=_bounds(record), notes=notes)


def _unavailable(audit: dict[str, Any]) -> tuple[str, ...]:
    return tuple(f"Not available, {name}: {reason}" for name, reason in (audit.get("unavailable") or {}).items())


def _column(number: int, adversary: dict[str, Any], audit: dict[str, Any]) -> Chart:
    name, at_most = adversary["column"], adversary["at_most"]
    probes = [probe for probe in audit["probes"] if probe["column"] == name]
    released, guessing = probes[0]["view"], adversary["chance"]
    rows = [_row(probe, probe["view"] == released) for probe in probes]
    ends = [{"row": "surely reached", "value": adversary["reached"], "what": "somebody reaches at least this"}]
    if at_most is not None:
        ends.append({"row": "nobody passes", "value": at_most, "what": "certificate: nobody does better"})
    title = f"How well can {name} be told from {released if released == 'one draw' else 'what is handed on'}?"
    said = " ".join(f"{end['row'].capitalize()}: {end['value']:.3f}." for end in ends)
    words = f"{title} {said} Guessing reaches {guessing:.3f}."
    drawn, numbers = _axis(rows, ends, guessing), _table(name, probes, ends)
    return Chart(f"attacks-chart-{number}", title, words, drawn, numbers, KEYS)


def _row(probe: dict[str, Any], released: bool) -> dict[str, Any]:
    name = f"{SHORT.get(probe['view'], probe['view'])}: {SHORT.get(probe['model'], probe['model'])}"
    return {
        "row": name,
        "released": released,
        "value": probe["balanced_accuracy"],
        "low": probe["balanced_accuracy_low"],
        "high": probe["balanced_accuracy_high"],
    }


def _axis(rows: list[dict[str, Any]], ends: list[dict[str, Any]], guessing: float) -> dict[str, Any]:
    """Draw intervals of the probes above one another, with guessing and the certificate as vertical lines."""
    order = [*(end["row"] for end in ends[::-1]), *(row["row"] for row in rows)]
    values = [guessing, *(end["value"] for end in ends), *(row[end] for row in rows for end in ("low", "high"))]
    low, high = min(values), max(values)
    high = max(high, max(end["value"] for end in ends) + NUMBER_ROOM * (high - low))
    x = alt.X("value:Q", title="balanced accuracy (dashed: guessing)", scale=scale(low, high))
    y = alt.Y("row:N", sort=order, title=None, axis=alt.Axis(labelLimit=170, grid=True))
    kinds = alt.Scale(domain=[True, False], range=[BLUE, GREY])
    marks: dict[str, Any] = {"y": y, "color": alt.Color("released:N", scale=kinds, legend=None), "tooltip": ATTACK}
    base, chance, certificate = map(_inline, (rows, [{"value": guessing}], ends[1:]))
    layers = alt.layer(
        chance.mark_rule(strokeDash=[3, 3], color=TEXT, opacity=0.6).encode(x=x),
        certificate.mark_rule(color=ORANGE, strokeWidth=2).encode(x=x),
        base.mark_rule(strokeWidth=3).encode(x="low:Q", x2="high:Q", **marks),
        base.mark_point(filled=True, size=70, opacity=1).encode(x=x, **marks),
        *_proofs(ends, x, y),
    )
    return specification(layers, 28 * len(order))


def _inline(rows: list[dict[str, Any]]) -> alt.Chart:
    return alt.Chart(alt.InlineData(rows))


def _proofs(ends: list[dict[str, Any]], x: alt.X, y: alt.Y) -> tuple[alt.Chart, alt.Chart]:
    """Point to what is proved, with its number."""
    shapes = alt.Scale(domain=[end["row"] for end in ends], range=[RIGHTWARD, LEFTWARD])
    base = _inline(ends)
    numbers = base.mark_text(align="left", dx=12, fontWeight="bold")
    points = base.mark_point(filled=True, size=100, opacity=1, color=ORANGE)
    return (
        numbers.encode(x=x, y=y, text=alt.Text("value:Q", format=".3f")),
        points.encode(x=x, y=y, shape=alt.Shape("row:N", scale=shapes, legend=None), tooltip=PROOF),
    )


def _table(name: str, probes: list[dict[str, Any]], ends: list[dict[str, Any]]) -> Table:
    head = ("attack on", "by", "balanced accuracy", "interval", "AUC", "interval", "p-value")
    rows = [
        (
            VIEWS.get(p["view"], p["view"]),
            PROBES.get(p["model"], p["model"]),
            f"{p['balanced_accuracy']:.3f}",
            f"{p['balanced_accuracy_low']:.3f} to {p['balanced_accuracy_high']:.3f}",
            f"{p['auc']:.3f}",
            f"{p['auc_low']:.3f} to {p['auc_high']:.3f}",
            f"{p['p_value']:.3f}",
        )
        for p in probes
    ]
    notes = tuple(f"{end['what'].capitalize()}: {end['value']:.3f}." for end in ends)
    more = "The p-value is of an AUC this large if nothing were told (permuted groups), for each attack on its own."
    return Table("attacks", f"Attacks on {name}", head, tuple(rows), (*notes, more))


def _bounds(record: Record) -> tuple[Table, ...]:
    """Return the certificates as tables: of the calibration rows and of the test rows."""
    audit = record.get("audit") or {}
    titles = (
        ("Upper bounds from the calibration rows", record.get("certificate"), ()),
        ("Upper bounds from the test rows", audit.get("certificate"), (AGAIN,) if "certificate" in record else ()),
    )
    return tuple(_bound_table(title, found, more) for title, found, more in titles if found)


def _bound_table(title: str, certificate: dict[str, Any], more: tuple[str, ...]) -> Table:
    head = (
        "column",
        "gap of any decision",
        "balanced accuracy of any attack",
        "information, bits",
        "rows",
        "smallest group",
    )
    rows = tuple(
        (
            b["column"] if b["label"] is None else f"{b['column']}, among rows with label {b['label']}",
            *(f"{b[name]:.3f}" for name in ("total_variation", "balanced_accuracy", "information")),
            f"{sum(b['rows'].values()):,}",
            f"{min(b['rows'].values()):,}",
        )
        for b in certificate["bounds"]
    )
    title = f"{title} ({certificate['confidence']:.0%} confidence)"
    return Table("bounds", title, head, rows, (*more, certificate["covers"]))
