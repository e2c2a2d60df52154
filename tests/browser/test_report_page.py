"""report.html of a real fit in a real browser, opened from the disk without a network."""

import json
import shutil
import sys

import pytest

from fairbits.commands import main
from fairbits.report.page import Section, render, write_report
from fairbits.report.wording import Table

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install 'fairbits[e2e]'")
pytestmark = pytest.mark.browser

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")
WIDTHS = (1280, 360)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Fit the shipped COMPAS table; a chart of each kind is in its report."""
    made = tmp_path_factory.mktemp("fit") / "compas"
    with pytest.MonkeyPatch.context() as patch:
        arguments = [
            "compas",
            "--sensitive",
            "race,sex",
            "--epochs",
            5,
            "--code-size",
            6,
            "--max-disparity",
            0.5,
            "--for",
            "codes",
            "--seed",
            0,
        ]
        patch.setattr(sys, "argv", ["fairbits", "fit", *map(str, arguments), "-o", str(made)])
        with pytest.raises(SystemExit) as ended:
            main()
    assert not ended.value.code
    return made


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("there is no chromium, chromium-browser or google-chrome on this machine")
    with playwright.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield opened
        opened.close()


class Visit:
    """A page with all it has asked for and complained about."""

    def __init__(self, browser, file, width, scheme="light"):
        size = {"width": width, "height": 900}
        context = browser.new_context(viewport=size, color_scheme=scheme, offline=True)
        self.page, self.requests, self.complaints = context.new_page(), [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda said: self.complaints.append(said.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.page.goto(file.as_uri())
        self.page.wait_for_function("[...document.querySelectorAll('.chart')].every(c => c.querySelector('svg'))")

    def evaluate(self, program):
        return self.page.evaluate(program)


@pytest.fixture(scope="module", params=[(w, s) for w in WIDTHS for s in ("light", "dark")], ids=str)
def visit(request, browser, folder):
    width, scheme = request.param
    return Visit(browser, folder / "report.html", width, scheme)


def test_only_the_file_itself_is_asked_for_and_nothing_goes_wrong(visit, folder):
    assert visit.requests == [(folder / "report.html").as_uri()]
    assert visit.complaints == []


def test_every_chart_is_drawn(visit, folder):
    sizes = visit.evaluate(
        "[...document.querySelectorAll('.chart')].map(c => [c.querySelectorAll('svg path').length,"
        " c.querySelector('svg').getBoundingClientRect().width, c.getBoundingClientRect().width])"
    )
    columns = len(json.loads((folder / "audit.json").read_text())["task"]["sensitive"])
    assert len(sizes) == 1 + 1 + 1 + columns
    for paths, width, room in sizes:
        assert paths > 5
        assert 0.9 * room <= width <= room + 1


def test_nothing_is_wider_than_the_page(visit):
    assert visit.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert (
        visit.evaluate(
            "[...document.querySelectorAll('p, li, dd, h1, h2, figure')]"
            ".filter(e => e.getBoundingClientRect().right > innerWidth + 1).length"
        )
        == 0
    )


def test_letters_contrast_with_what_is_behind_them(visit):
    colours = visit.evaluate(
        "[[getComputedStyle(document.querySelector('main p.lead')).color,"
        " getComputedStyle(document.querySelector('.chart svg text')).fill],"
        " getComputedStyle(document.body).backgroundColor]"
    )
    for colour in colours[0]:
        assert contrast(channels(colour), channels(colours[1])) >= 7


def channels(colour):
    return [int(part) for part in colour[4:-1].split(",")]


def contrast(a, b):
    def light(colour):
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (p / 255 for p in colour)]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((light(a), light(b)))
    return (high + 0.05) / (low + 0.05)


@pytest.fixture
def fresh(browser, folder):
    return Visit(browser, folder / "report.html", 1280)


def test_folds_are_closed_and_their_charts_fit_the_page_once_opened(fresh):
    folds = fresh.page.locator("details.fold")
    assert folds.count() == 3
    assert not fresh.evaluate("[...document.querySelectorAll('details.fold')].some(d => d.open)")
    fresh.page.set_viewport_size({"width": 500, "height": 900})
    folds.first.locator("summary").first.click()
    fresh.page.wait_for_timeout(300)
    assert fresh.page.locator("#bits-chart svg").is_visible()
    assert 300 < fresh.page.locator("#bits-chart svg").bounding_box()["width"] <= 500
    assert fresh.complaints == []


def test_the_chosen_model_is_named_and_left_of_the_limit(fresh):
    texts = fresh.page.locator("#frontier-chart svg text")
    (chosen,), (limit,) = ([t for t in texts.all() if t.text_content() == name] for name in ("this model", "limit 0.5"))
    assert chosen.bounding_box()["x"] < limit.bounding_box()["x"]


@pytest.mark.parametrize("chart", ["frontier-chart", "bits-chart", "scores-chart-0", "attacks-chart"])
def test_a_mark_under_the_pointer_says_its_numbers(fresh, chart):
    tooltip = fresh.page.locator("#vg-tooltip-element.visible")
    assert not tooltip.count()
    fresh.evaluate("for (const fold of document.querySelectorAll('details.fold')) fold.open = true")
    fresh.page.locator(f"#{chart}").scroll_into_view_if_needed()
    marks = fresh.page.locator(f"#{chart} svg .mark-symbol path, #{chart} svg .mark-rect path")
    for i in range(marks.count()):
        box = marks.nth(i).bounding_box()
        if box and box["width"]:
            fresh.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
            fresh.page.wait_for_timeout(60)
        if tooltip.count():
            break
    assert tooltip.locator("td.value").first.text_content()


def test_on_paper_everything_is_open(fresh):
    fresh.page.emulate_media(media="print")
    fresh.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert fresh.evaluate("[...document.querySelectorAll('details')].every(d => d.open)")
    assert fresh.page.locator("#frontier-chart svg").is_visible()
    fresh.evaluate("dispatchEvent(new Event('afterprint'))")
    assert not fresh.evaluate("[...document.querySelectorAll('details')].some(d => d.open)")


def test_names_that_are_programs_do_not_run(browser, folder, tmp_path):
    """Put HTML in every text of the record: nothing may run, and the page must stand."""
    evil = "</script><img src=x onerror=alert(1)><svg onload=alert(2)>'\"{{7*7}}" + "W" * 120

    def spoiled(part):
        if isinstance(part, dict):
            return {key: value if key == "name" else spoiled(value) for key, value in part.items()}  # of our models
        if isinstance(part, list):
            return [spoiled(value) for value in part]
        return part + evil if isinstance(part, str) else part

    record = json.loads((folder / "audit.json").read_text())
    del record["model"]  # it is not beside it
    (tmp_path / "audit.json").write_text(json.dumps(spoiled(record)))
    visit = Visit(browser, write_report(tmp_path), 360)
    assert visit.complaints == []
    assert len(visit.requests) == 1
    assert visit.evaluate("document.querySelectorAll('img, svg[onload]').length") == 0
    assert visit.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_click_on_a_head_sorts_the_rows_and_another_turns_them_round(browser, tmp_path):
    rows = (("b", "0.9 ± 0.1"), ("a", "–"), ("c", "10.2"), ("d", "-1.0"))
    section = Section("one", "One", (Table("t", "Sorted", ("method", "AUC ↑"), rows),))
    (tmp_path / "report.html").write_text(render("Sorted", [section], "records.jsonl", sortable=True))
    visit = Visit(browser, tmp_path / "report.html", WIDTHS[0])

    def click(name):
        visit.page.get_by_role("button", name=name).click()
        return visit.page.locator("tbody th").all_inner_texts()

    assert click("AUC")[:3] == ["c", "b", "d"]
    assert visit.page.locator("th[aria-sort]").get_attribute("aria-sort") == "descending"
    assert click("AUC")[-3:] == ["d", "b", "c"]
    assert click("method") == ["a", "b", "c", "d"]
    assert not visit.complaints
