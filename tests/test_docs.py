"""The pages of docs/: names are real, links lead somewhere, Python runs, the list of names is whole."""

import re
import runpy
from importlib import import_module
from pathlib import Path

import pytest
import torch
from battery import ESTIMATORS, few_rows, few_trees

from fairbits.information import joint_information, weigh_groups

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
RUN_ELSEWHERE = {"datasets.md"}  # it downloads; the tests of the datasets call the same functions
PLACES = r"(?:fairbits|tests|examples|benchmarks|scripts|docs|results)/"


def words(file: Path) -> str:
    """Return a page without its blocks of code."""
    return FENCE.sub("", file.read_text())


def blocks(file: Path) -> list[str]:
    return [code for language, code in FENCE.findall(file.read_text()) if language == "python"]


def resolve(dotted: str) -> object:
    """Return what a dotted name stands for: the longest part of it that is a module, then attributes."""
    names = dotted.split(".")
    for end in range(len(names), 0, -1):
        try:
            found: object = import_module(".".join(names[:end]))
        except ModuleNotFoundError as error:
            if error.name is None or not dotted.startswith(error.name):
                raise
            continue
        for name in names[end:]:
            found = getattr(found, name)
        return found
    raise AssertionError(dotted)


def anchors(file: Path) -> set[str]:
    """Return the anchors of a page's headings, made as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", words(file), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("file", PAGES, ids=lambda f: f.name)
def test_names_are_real(file):
    for dotted in re.findall(r"`(fairbits(?:\.\w+)+)[`(]", words(file)):
        resolve(dotted)
    for path in re.findall(rf"`(?:python )?({PLACES}[\w./-]+)`", words(file)):
        assert (ROOT / path).exists(), path


@pytest.mark.parametrize("file", [*PAGES, ROOT / "README.md"], ids=lambda f: f.name)
def test_links_lead_somewhere(file):
    for target in re.findall(r"\]\(([^)\s]+)\)", words(file)):
        if not target.startswith(("http:", "https:")):
            path, _, anchor = target.partition("#")
            other = (file.parent / path).resolve() if path else file
            assert other.exists(), target
            assert not anchor or anchor in anchors(other), target


def test_the_reading_order_names_every_page():
    listed = re.findall(r"\]\((\w[\w-]*\.md)\)", (ROOT / "docs" / "README.md").read_text())
    assert sorted(listed) == sorted(file.name for file in PAGES if file.name != "README.md")


def test_the_site_has_a_place_for_every_page():
    """Sphinx, which is not installed here, would warn of a page without one."""
    conf, index = ((ROOT / "docs" / name).read_text() for name in ("conf.py", "index.rst"))
    placed = set(re.findall(r'"(?:\.\./)?([\w-]+)"', conf) + re.findall(r"<([\w-]+)>", index))
    assert {file.stem for file in PAGES} - {"README"} <= placed


with_python = pytest.mark.parametrize(
    "file", [f for f in PAGES if blocks(f) and f.name not in RUN_ELSEWHERE], ids=lambda file: file.name
)


def run(file: Path, changes: dict[str, str]) -> None:
    """Run the blocks of a page one after the other, as a reader would type them but for these changes."""
    names: dict[str, object] = {"__name__": file.stem}
    for code in blocks(file):
        for old, new in changes.items():
            code = code.replace(old, new)
        exec(compile(code, file.name, "exec"), names)


@pytest.mark.slow
@with_python
def test_python_runs(file, capsys):
    run(file, {})


@with_python
def test_python_runs_on_fewer_rows(file, capsys):
    """Few rows prove a larger limit."""
    with few_rows("load_compas", 6), few_trees():
        run(file, {"max_disparity=0.2": "max_disparity=0.9", "patience=10": "patience=1, min_steps=20"})


def test_a_method_takes_twenty_lines_and_measures_what_it_says(capsys):
    """Near fair coins, two bits have no moments but singles and pairs: there the measure is the information."""
    code = blocks(ROOT / "docs" / "extending.md")[0]
    assert len([line for line in code.splitlines() if line.strip()]) <= 20
    names: dict = {"__name__": "extending"}
    exec(compile(code, "extending.md", "exec"), names)
    theta = 0.5 + 0.05 * torch.rand(400, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    groups = weigh_groups((theta[:, 0] > theta[:, 1]).long(), n_groups=2, dtype=torch.float64)
    measured = names["PairMomentsClassifier"]().leakage(theta, groups, noise=None)
    torch.testing.assert_close(measured, joint_information(theta, groups), rtol=0.01, atol=0)


def test_every_public_method_is_described():
    page = words(ROOT / "docs" / "methods.md")
    assert not [method.__name__ for method in ESTIMATORS if method.__name__ not in page]


def test_the_list_of_names_is_up_to_date():
    made = runpy.run_path(str(ROOT / "scripts" / "api_page.py"))
    assert made["PAGE"].read_text() == made["page"](), "run: python scripts/api_page.py"


def test_the_reproduction_quotes_its_tables():
    """The overview is that of the published folder, and every number with an interval stands in a table of the page."""
    page = (ROOT / "docs" / "reproduction.md").read_text()
    linked = set(re.findall(r"\]\(\.\./(results/[^/)]+/tables\.md)\)", page))
    every = "\n".join((ROOT / name).read_text() for name in linked)
    (folder,) = set(re.findall(r"\]\(\.\./(results/\d{4}-\d\d-\d\d_[0-9a-f]+)/tables\.md\)", page))
    tables = (ROOT / folder / "tables.md").read_text()
    overview = re.findall(r"^\|.*$", tables.split("## All datasets")[1].split("\n## ")[0], re.MULTILINE)
    assert len(overview) > 10
    assert "\n".join(overview) in page
    quoted = re.findall(r"[+-]?\d\.\d+ ± \d\.\d+", page)
    assert len(quoted) > 100
    assert [number for number in quoted if number not in every] == []
