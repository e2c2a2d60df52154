"""The README's Python runs as it stands, its links lead somewhere, its numbers are in the records."""

import re
import tomllib
from pathlib import Path

import pytest
from battery import few_rows, few_trees

from benchmarks import results, rows_needed
from benchmarks.outcomes import outcomes

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
OF_FEW_ROWS = ("fairbits.estimators.VanishedClassWarning", "fairbits.certificate.SmallGroupWarning")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize("code", BLOCKS, ids=lambda code: code.splitlines()[0])
def test_block_runs(code, capsys):
    exec(compile(code, "README.md", "exec"), {})


@pytest.mark.filterwarnings(*(f"ignore::{warning}" for warning in OF_FEW_ROWS))
@pytest.mark.parametrize("code", BLOCKS, ids=lambda code: code.splitlines()[0])
def test_block_runs_on_fewer_rows(code, capsys):
    code = code.replace("max_disparity=0.08", "max_disparity=0.5, path=(0.15, 0.3, 0.5)")  # what so few rows can prove
    with few_rows("load_adult", 16), few_trees():
        exec(compile(code, "README.md", "exec"), {})


def test_the_first_block_is_short_and_says_something():
    lines = [line for line in BLOCKS[0].splitlines() if line.strip()]
    assert len(lines) <= 12
    assert "print" in BLOCKS[0]


@pytest.mark.parametrize("target", re.findall(r"\]\(([^)#]+)\)", README))
def test_links_lead_somewhere(target):
    assert (ROOT / target).exists()


def test_a_package_registry_gets_no_links_to_files():
    hook = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["metadata"]["hooks"]
    text = README
    for change in hook["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(change["pattern"], change["replacement"], text)
    assert re.findall(r"\]\([^)]*\)", README)
    assert re.findall(r"\]\((?!https?://)[^)]*\)", text) == []
    assert "the concepts, without formulas" in text


@pytest.mark.parametrize("page", ["README.md", "docs/concepts.md"])
def test_the_rows_that_a_limit_needs_are_those_of_the_command(page):
    lines = (ROOT / page).read_text().splitlines()
    for rows in rows_needed.ROWS[:3]:  # more rows take seconds
        cells = " | ".join(rows_needed.cell(rows, share) for share in rows_needed.SHARES)
        assert f"| {rows:,} | {cells} |" in lines


def test_the_numbers_are_those_of_the_records():
    done = outcomes(results.FOLDER)
    records = [done[job.hash] for job in results.jobs()]
    table = [line for line in results.tables(records) if line.startswith("|")]
    shown = (ROOT / "docs" / "measured.md").read_text().split("## Rows against")[0].splitlines()
    assert table == [line for line in shown if line.startswith("|")]
    assert all(results.limits(records).values())


@pytest.mark.parametrize(
    ("command", "source"),
    [
        ("`make proof`", "results/proof/table.md"),
        ("`make table`", "results/core/table.md"),
        ("`fairbits reproduce biased-mnist`", "docs/reproduction.md"),
        ("`python -m benchmarks.scale`", "results/scale/table.md"),
    ],
)
def test_the_results_quote_their_tables(command, source):
    """Every number that the README's results name fairbits for stands in what the command writes."""
    rows = README.split("## Results")[1].split("## Limits")[0].splitlines()
    cells = [row.split("|")[2] for row in rows if command in row]
    numbers = [n for cell in cells for n in re.findall(r"[\d,]*\d(?:\.\d+)?", cell)]
    written = [float(n.replace(",", "")) for n in re.findall(r"\d[\d,]*(?:\.\d+)?", (ROOT / source).read_text())]
    assert numbers
    for n in numbers:
        digits = len(n.partition(".")[2])
        assert any(round(w, digits) == float(n.replace(",", "")) for w in written), n


@pytest.mark.parametrize("command", ["codes", "proof"])
def test_the_certificate_quotes_its_tables(command):
    """Every number that the section on the certificate has from a command stands in the table that it writes."""
    text = README.split("## The certificate")[1].split("## Results")[0].split(f"From `make {command}`")[1]
    numbers = set(re.findall(r"\b0\.\d+", text.split("From `make")[0]))
    assert len(numbers) >= 3
    written = [float(n) for n in re.findall(r"0\.\d+", (ROOT / "results" / command / "table.md").read_text())]
    for n in numbers:
        assert min(abs(w - float(n)) for w in written) <= 0.5001 * 10.0 ** -(len(n) - 2), n
