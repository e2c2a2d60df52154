"""The README's Python runs as it stands, its links lead somewhere, its numbers are in the records."""

import re
from pathlib import Path

import pytest

from benchmarks import results
from benchmarks.jobs import key, read

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("code", BLOCKS, ids=lambda code: code.splitlines()[0])
def test_block_runs(code, capsys):
    exec(compile(code, "README.md", "exec"), {})


def test_the_first_block_is_short_and_says_something():
    lines = [line for line in BLOCKS[0].splitlines() if line.strip()]
    assert len(lines) <= 12
    assert "print" in BLOCKS[0]


@pytest.mark.parametrize("target", re.findall(r"\]\(([^)#]+)\)", README))
def test_links_lead_somewhere(target):
    assert (ROOT / target).exists()


def test_the_numbers_are_those_of_the_records():
    done = read(results.FOLDER)
    records = [done[key(job)] for job in results.jobs()]
    table = results.tables(records)
    assert [line for line in table if line.startswith("|")] == [
        line
        for line in README.split("## Measured")[1].split("## What it cannot do")[0].splitlines()
        if line.startswith("|")
    ]
    assert all(results.limits(records).values())


def test_the_proof_quotes_its_table():
    """Every number of the section on proof stands in the table that `make proof` writes."""
    text = README.split("## Proof")[1].split("## What is in it")[0].split("From `make proof`")[1]
    table = (ROOT / "results" / "proof" / "table.md").read_text()
    quoted = set(re.findall(r"\*\*(0\.\d+)\*\*|AUC of (0\.\d+)|columns\n?(0\.\d+)", text))
    numbers = [next(filter(None, found)) for found in quoted]
    assert len(numbers) >= 3
    written = [float(n) for n in re.findall(r"0\.\d+", table)]
    assert all(any(round(w, len(n) - 2) == float(n) for w in written) for n in numbers)
