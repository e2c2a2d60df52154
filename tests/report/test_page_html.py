"""The page of a record: whole, offline, escaped, readable, and plain about what it lacks."""

import base64
import copy
import hashlib
import json
import re
import xml.etree.ElementTree as ElementTree
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path

import altair as alt
import numpy as np
import pytest
from battery import one_quickly
from fit_records import EVIL, GROUP, audit_record, small_record
from paper_records import draw_no_pixels, everything
from scipy.stats import binomtest

from fairbits.lab.paper import paper_sections, write_lab_report
from fairbits.lab.run_records import append_record
from fairbits.report import charts as looks
from fairbits.report.page import model_card, record_page
from fairbits.report.wording import summary, worse_off

SECTIONS = ["verdict", "frontier", "rates", "attacks", "guarantee", "data", "bits", "scores", "words"]
CSS = (Path(looks.__file__).parent / "style.css").read_text()


class Parsed(HTMLParser):
    """Elements with their attributes, texts, and the contents of scripts, as a browser sees them."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.elements, self.texts, self.scripts, self.inside = [], [], [], None
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self.inside = tag if tag in ("script", "style") else None
        if tag == "script":
            self.scripts.append((dict(attributes), ""))

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside == "script":
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        elif self.inside is None:
            self.texts.append(data)

    def having(self, tag, **attributes):
        return [a for t, a in self.elements if t == tag and attributes.items() <= a.items()]

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())

    @property
    def specs(self):
        return {a["data-chart"]: json.loads(text) for a, text in self.scripts if a.get("class") == "spec"}


@pytest.fixture(scope="module")
def record():
    return small_record()


@pytest.fixture(scope="module")
def random():
    """Return the record of a random code."""
    return small_record(gamma=0.5)


@pytest.fixture(scope="module")
def decided():
    """Return the record of a model whose decisions are certified."""
    return small_record(max_disparity=0.9, promise="class")


@pytest.fixture(scope="module")
def html(record):
    return record_page(record)


@pytest.fixture(scope="module")
def parsed(html):
    return Parsed(html)


@pytest.fixture(scope="module")
def parsed_random(random):
    return Parsed(record_page(random))


def test_the_page_is_small_and_in_order(html, parsed):
    assert len(html.encode()) < 1.5e6
    assert [a["id"] for a in parsed.having("section")] == SECTIONS
    assert len(parsed.having("h1")) == 1
    assert "Not in this report" not in parsed.text


def test_the_same_record_gives_the_same_page(record, html):
    assert record_page(copy.deepcopy(record)) == html


def test_nothing_is_loaded_from_anywhere(parsed):
    for tag, attributes in parsed.elements:
        for name in ("src", "href", "srcset", "data", "action", "poster"):
            assert attributes.get(name, "data:").startswith("data:"), (tag, attributes)
    assert "url(" not in CSS
    assert "@import" not in CSS
    (policy,) = [a["content"] for a in parsed.having("meta") if "http-equiv" in a]
    assert policy.startswith("default-src 'none'; img-src data:;")


def test_the_browser_runs_the_two_scripts_of_the_page_and_no_other(parsed):
    (policy,) = [a["content"] for a in parsed.having("meta") if "http-equiv" in a]
    run = [text for attributes, text in parsed.scripts if "type" not in attributes]
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in run]
    assert len(run) == 2
    assert re.findall(r"'sha256-([^']+)'", policy) == digests
    assert "unsafe-inline" not in policy.split("script-src")[1]


def test_names_cannot_become_elements(html, parsed):
    assert not parsed.having("img")
    assert not parsed.having("b")
    assert not parsed.having("i")
    assert not [a for _, a in parsed.elements if any(name.startswith("on") for name in a)]
    assert html.count("</script") == len(parsed.scripts)
    assert EVIL in parsed.text
    assert GROUP in parsed.text
    assert GROUP in json.dumps(parsed.specs["scores-chart-0"], ensure_ascii=False).replace('\\"', '"')


def test_names_are_data_of_charts_and_never_programs(parsed):
    """Expressions and field names of a chart are evaluated: only ours may stand there."""

    def programs(spec):
        if isinstance(spec, dict):
            for key, value in spec.items():
                if key in ("expr", "filter", "calculate", "test", "field", "signal"):
                    yield str(value)
                elif key not in ("values", "datasets", "title", "domain", "sort"):
                    yield from programs(value)
        elif isinstance(spec, list):
            for part in spec:
                yield from programs(part)

    found = [text for spec in parsed.specs.values() for text in programs(spec)]
    assert len(found) > 50
    assert not [text for text in found if "img" in text or "onclick" in text]


def test_every_chart_has_words_and_numbers(html, parsed):
    charts = [a for t, a in parsed.elements if t == "div" and a.get("class") == "chart"]
    assert {c["id"] for c in charts} == set(parsed.specs)
    assert len(charts) == 1 + 1 + 1 + 2
    for chart in charts:
        assert chart["role"] == "img"
        assert len(chart["aria-label"]) > 20
    figures = html.split("<figure>")[1:]
    assert len(figures) == len(charts)
    assert all("<details>" in f and f.count("<tr>") >= 2 for f in (f.split("</figure>")[0] for f in figures))
    assert all(spec["width"] == "container" for spec in parsed.specs.values())


def test_every_chart_is_vega_lite(parsed, parsed_random):
    for spec in (*parsed.specs.values(), *parsed_random.specs.values()):
        alt.LayerChart.validate(spec)


def rounded(value, direction):
    return Decimal(value).quantize(Decimal("0.001"), direction)


def test_the_page_says_what_the_record_says(record, parsed):
    task, certificate = record["audit"]["task"], record["certificate"]
    for number in (
        f"accuracy {task['accuracy']:.3f}",
        f"{rounded(certificate['bounds'][0]['balanced_accuracy'], 'ROUND_CEILING')}",
        f"Best attack, at least: {rounded(record['audit']['adversaries'][0]['reached'], 'ROUND_FLOOR')}",
        f"Any attack, at most: {rounded(record['audit']['adversaries'][0]['at_most'], 'ROUND_CEILING')}",
        f"{record['bits'][0]['joint']:.6f}",
        f"{record['front'][-1]['auc']:.3f}",
        record["made"]["date"],
    ):
        words = parsed.text + " ".join(a.get("aria-label", "") for _, a in parsed.elements)
        assert number in words, number
    for line in (*certificate["does_not_cover"], *record["task"]["notes"], *record["task"]["columns"]):
        assert line[1:] in parsed.text


def drawn_points(parsed):
    """Return the models of the main chart, and the limit that is drawn in it."""
    tables = [rows for rows in parsed.specs["frontier-chart"]["datasets"].values() if rows]
    points = next(rows for rows in tables if "kind" in rows[0])
    return points, [rows[0]["bound"] for rows in tables if list(rows[0]) == ["bound"]]


def test_models_are_drawn_by_what_is_proved_of_them(record, parsed):
    points, limits = drawn_points(parsed)
    own = [model for model in record["alternatives"] if model["name"] == "fairbits"]
    assert len(points) == len(own) + 1  # and the model without protection, which is logistic regression here
    boosted = copy.deepcopy(record)
    next(m for m in boosted["alternatives"] if m["name"] == "unprotected")["learners"] = ["linear", "boosted"]
    assert len(drawn_points(Parsed(record_page(boosted)))[0]) == len(own) + 2
    assert "logistic regression |" in model_card(boosted)
    assert limits == [record["asked"]["max_disparity"]]
    for point, model, tested in zip(points, own, record["tested"], strict=False):
        assert point["bound"] == tested["code_total_variation"] > point["shown"] == tested["shown_code_total_variation"]
        assert point["kind"] == ("fairbits, passed" if tested["passed"] else "fairbits, not passed")
        assert point["chosen"] == model["chosen"]
        right = round(model["scores"]["accuracy"] * record["audit"]["rows"])
        exact = binomtest(right, record["audit"]["rows"]).proportion_ci(0.95, method="exact")
        assert (point["low"], point["high"]) == pytest.approx((exact.low, exact.high))
    for point in points[len(own) :]:  # a score has no code to certify
        assert point["shown"] is None
        assert point["proved"] is None


def test_references_are_certified_where_decisions_are(decided):
    points, _ = drawn_points(Parsed(record_page(decided)))
    proved = {model["name"]: model["proved"] for model in decided["alternatives"]}
    for point in points:
        assert point["proved"] is not None
        assert point["bound"] > point["shown"]
        if point["method"] != "fairbits":
            assert point["bound"] == proved[point["method"]]["class_total_variation"]


@pytest.mark.parametrize("earlier", ["random", "tested until the first failure", "no tests"])
def test_without_proofs_the_measured_disparity_is_drawn(record, random, earlier):
    if earlier == "random":
        record = random
    record = {**record, "tested": record["tested"][:1] if earlier.startswith("tested") else []}
    points, _ = drawn_points(parsed := Parsed(record_page(record)))
    assert [p["bound"] for p in points] == [m["scores"]["disparity"] for m in record["alternatives"][: len(points)]]
    assert not any(point["shown"] for point in points)
    assert "It is measured on the test rows" in parsed.text


@pytest.mark.parametrize("name", ["record", "random", "decided"])
def test_rates_are_those_of_the_groups(request, name):
    """Also of codes: of the class that is predicted from them."""
    record = request.getfixturevalue(name)
    decision = record["decision"]
    text = Parsed(record_page(record)).text.split("Who gets what? ")[2]
    assert {rate["column"] for rate in decision["rates"]} == {EVIL, "age", f"{EVIL} x age"}
    for rate in decision["rates"]:
        assert rate["base_low"] <= rate["base"] <= rate["base_high"]
        for cell in ("selected", "accuracy"):
            assert f"{rate[cell]:.3f}" in text
    assert "Rates are of 'yes', the last class in sorted order" in text
    for card in (model_card(record), summary(record)):
        assert "selected" in card or "selection rate" in card
        assert "ates are of 'yes'" in " ".join(card.split())


def test_who_is_worse_off_is_said_and_chance_is_not_taken_for_it(decided):
    ratio = {**decided["decision"]["ratios"][0], "worst": "b", "best": "a", "between": [0.2, 0.3]}
    for chance, words in (
        (0.001, "b is worse off than a: it gets 'yes' at a rate of 0.200 against 0.300."),
        (0.3, "no significant difference"),
    ):
        changed = {**decided["decision"], "ratios": [{**ratio, "chance": chance}]}
        asked = decided["asked"] | {"favourable": "yes"}
        lines = worse_off({**decided, "decision": changed, "asked": asked})
        assert words in lines[1]
        assert ("worse off" in lines[1]) == (chance < 0.05)
        unnamed = worse_off({**decided, "decision": changed, "asked": asked | {"favourable": None}})
        assert "worse off" not in unnamed[1]
        assert ("b gets 'yes' less often" in unnamed[1]) == (chance < 0.05)


def test_test_rows_that_differ_more_than_a_certified_limit_are_explained(decided):
    ratio = {**decided["decision"]["ratios"][0], "worst": "b", "best": "a", "between": [0.2, 0.3]}
    changed = {**decided, "decision": {**decided["decision"], "ratios": [ratio]}}
    for limit, certified in ((0.09, True), (0.11, True), (0.09, False), (None, True)):
        said = worse_off(changed | {"certified": certified, "asked": decided["asked"] | {"max_disparity": limit}})[1]
        explained = "differ by 0.100, more than the certified limit of 0.09. Chance can" in said
        assert explained == (certified and limit == 0.09)


def test_attempts_and_what_to_file_are_said(record):
    filed = {"owner": "Ann", "purpose": "to test", "approved_by": None}
    changed = {**record, "attempt": 3, "seed": 7, "table_hash": "f00", "filed": filed}
    for text in (Parsed(record_page(changed)).text, model_card(changed), summary(changed)):
        assert "This is attempt 3 on this table." in text
        assert "at most 15% instead of 5%" in text
    for text in (Parsed(record_page(changed)).text, model_card(changed).replace(":", "")):
        for words in ("owner Ann", "purpose to test", "seed 7", "hash of the table f00"):
            assert words in text
        assert "approved" not in text
    assert "This is attempt" not in summary({**changed, "attempt": 1})
    near = {**record, "borderline": True, "other_verdict": 0.3}
    assert "about 30% of other random splits" in summary(near)
    assert "borderline: some other random splits" in summary({**near, "other_verdict": None})
    assert "borderline" not in summary({**near, "borderline": False})


def test_training_is_folded_away(parsed, parsed_random):
    for page, curves in ((parsed, []), (parsed_random, ["learning"])):  # a linear code has no curve
        names = [a["id"] for a in page.having("section", **{"class": "folded"})]
        assert names == [*curves, "bits", "scores", "words"]
        assert len(page.having("details", **{"class": "fold"})) == len(names)


def test_the_information_plane_is_that_of_the_epochs(random, parsed_random):
    entropy = next(found["entropy"] for found in random["bits"] if found["role"] == "label")
    (rows,) = parsed_random.specs["learning-chart-plane"]["datasets"].values()
    assert len(rows) == 2 * len(random["history"])
    for row, epoch in zip(rows[len(random["history"]) :], random["history"], strict=True):
        assert row["leakage"] == epoch["validation_information"]
        assert row["about"] == pytest.approx(entropy - epoch["validation_cross_entropy"])
    assert [row["epoch"] - 1 for row in rows if row["kept"]] == [random["best_epoch"]]
    without = {**random, "bits": []}
    assert "learning-chart-plane" not in Parsed(record_page(without)).specs


def test_only_random_codes_are_drawn(parsed, parsed_random):
    hard, drawn = parsed.text, parsed_random.text
    assert not re.search(r"\bdraws?\b|\bdrawn\b|random code", hard.replace("the random code whose bits", ""))
    for words in (
        "one draw of the code predicts paid",
        "Several draws of the same person",
        "is drawn once",
        "16 draws",
    ):
        assert words in drawn
        assert words not in hard
    assert "the code predicts paid" in hard
    assert "The certificate covers these scores" in hard
    assert "not this score" in drawn


def test_the_verdicts(record):
    old = {name: part for name, part in record.items() if name != "verdict"}  # until version 0.2
    refused = {**old, "certified": False, "refusal": "No model could be certified."}
    fixed = {**old, "asked": {**record["asked"], "gamma": 0.5, "max_disparity": None}}
    useless = {**record, "verdict": "certified but not useful", "useful_limit": 0.9321}
    badges = ["certified", "not certified", "no limit requested", "certified but not useful"]
    pages = [Parsed(record_page(changed)) for changed in (old, refused, fixed, useless)]
    for found, badge in zip(pages, badges, strict=True):
        assert f"{badge} " in found.text
        assert found.having("p", **{"class": f"badge {badge.replace(' ', '-')}"})
    assert "Not certified. No model could be certified." in pages[1].text
    said = pages[3].text
    assert "but not useful: the rates of any decision made from" in said
    assert "the smallest limit at which a useful model passes is about 0.933." in said
    said = Parsed(record_page({**useless, "useful_limit": 0.4321})).text
    assert "Another model that passed, with a proved disparity of 0.433, is better on these test rows." in said
    assert "the smallest limit" not in said


@pytest.mark.parametrize(
    ("part", "section"),
    [
        ("alternatives", "frontier"),
        ("decision", "rates"),
        ("scores_by_group", None),
        ("history", None),
        ("front", None),
        ("certificate", None),
        ("task", "data"),
        ("tested", None),
        ("best_epoch", None),
    ],
)
@pytest.mark.parametrize("value", one_quickly(["gone", "empty"]))
def test_a_missing_part_is_said(record, part, section, value):
    changed = {k: v for k, v in record.items() if k != part or value != "gone"}
    if value != "gone":
        changed[part] = type(record[part])()
    if part == "certificate":
        changed = {k: v for k, v in changed.items() if k not in ("certified", "refusal")}
    text = record_page(changed)
    assert text.count("Not in this report") == (section is not None)
    if section:
        assert "Not in this report" in text.split(f'id="{section}"')[1].split("</section>")[0]


def test_what_the_audit_minds_of_its_few_rows_is_not_said_of_the_fit(record):
    audit = {**record["audit"], "concerns": ["Group 'c' has 7 calibration rows"]}
    text = Parsed(record_page({**record, "audit": audit, "concerns": ["Too few epochs."]})).text
    assert "Too few epochs." in text
    assert "7 calibration rows" not in text


def test_audits_of_other_representations_have_a_page():
    rng = np.random.default_rng(0)
    groups = rng.choice(["a", "b"], 400)
    code = Parsed(record_page(audit_record((rng.random((400, 3)) < 0.5).astype(int), groups)))
    assert "Audit of the representation on 400 rows. At 95% confidence" in code.text
    assert set(code.specs) == {"bits-chart", "attacks-chart"}
    real = Parsed(record_page(audit_record(rng.normal(size=(400, 3)), groups)))
    assert "Nothing is certified" in real.text
    assert set(real.specs) == {"attacks-chart"}
    assert real.text.count("Not in this report") == 4


@pytest.mark.slow
def test_the_papers_experiments_have_a_page(tmp_path, monkeypatch):
    draw_no_pixels(monkeypatch)
    for found in everything():
        append_record(tmp_path / "records.jsonl", found)
    sections = paper_sections(everything())
    (tmp_path / f"{sections[0].name}.svg").write_text("<svg>of other records</svg>")
    files = write_lab_report(tmp_path)
    drawn, html = {file.stem for file in files if file.suffix == ".svg"}, files[-1].read_text(encoding="utf-8")
    found = Parsed(html)
    assert [a["id"] for a in found.having("section")] == ["opening", *(s.name for s in sections)]
    assert len(found.having("img")) == len(drawn & {s.name for s in sections}) > 3
    for image in found.having("img"):
        kind, content = image["src"].split(",")
        assert kind == "data:image/svg+xml;base64"
        svg = base64.b64decode(content).decode()
        assert ElementTree.fromstring(svg).tag.endswith("svg")
        assert "of other records" not in svg
    for words in ("Nothing here is certified", "runs", *{r["run"].get("dataset", "images") for r in everything()}):
        assert words in found.text
    for table in (table for section in sections for table in section.tables):
        for cell in (table.title, *table.head, *(cell for row in table.rows for cell in row), *table.notes):
            assert " ".join(cell.split()) in found.text
    own = (Path(looks.__file__).parent / "sort.js").read_text(encoding="utf-8")
    assert [script for _, script in found.scripts] == [own]
    assert len(html) < 1.5e6


# ------------------------------------------------------------------ contrast


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a, b):
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def schemes():
    """Return the CSS variables of the light and of the dark page."""
    light, dark = (dict(re.findall(r"--([\w-]+): (#\w{6})", part)) for part in CSS.split("@media screen")[:2])
    return [light, {**light, **dark}]


def test_contrast_is_that_of_its_formula():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("scheme", schemes(), ids=["light", "dark"])
def test_letters_can_be_read(scheme):
    for front in ("text", "soft", "link"):
        for back in ("page", "panel"):
            assert contrast(scheme[front], scheme[back]) >= 4.5, (front, back)
    for name in ("good", "bad", "plain"):
        assert contrast(scheme[name], scheme[f"{name}-panel"]) >= 4.5
        assert contrast(scheme[name], scheme["page"]) >= 4.5


def test_marks_stand_out_from_both_pages():
    for colour in looks.SERIES:
        assert min(contrast(colour, scheme["page"]) for scheme in schemes()) >= 3


def test_numbers_in_the_heat_map_can_be_read():
    ends = [[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in (looks.PALE, looks.DARK)]
    for share in np.linspace(0, 1, 201):
        cell = "#" + "".join(f"{round(a + share * (b - a)):02x}" for a, b in zip(*ends, strict=True))
        assert contrast(cell, looks.ON_DARK if share > looks.SWITCH else looks.ON_PALE) >= 4.5, share
