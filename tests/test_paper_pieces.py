"""The table of the paper's pieces: its commands, records and tests exist, and its counts are right."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

import fairbits.lab

ROOT = Path(__file__).parent.parent
PLANS = Path(fairbits.lab.__file__).parent / "plans"
PAGE = (ROOT / "docs" / "reproduction.md").read_text()
SECTION = PAGE.split("## Every piece of the paper\n")[1].split("\n## ")[0]
ROWS = [[cell.strip() for cell in line.split("|")[1:-1]] for line in SECTION.splitlines() if re.match(r"\| \d", line)]
VERDICTS = ("holds", "holds in part", "does not hold", "not run yet")
MISSING = "no record yet"


def test_every_piece_has_a_verdict_and_the_counts_are_right():
    assert [row[0] for row in ROWS] == [str(n + 1) for n in range(len(ROWS))]
    verdicts = Counter(row[5] for row in ROWS)
    assert set(verdicts) <= set(VERDICTS)
    holds, part, fails, waits = (verdicts[name] for name in VERDICTS)
    text, waiting = " ".join(SECTION.split()), "1 is" if waits == 1 else f"{waits} are"
    assert text.startswith(f"{len(ROWS)} pieces of the paper can be checked")
    assert f"{holds} hold, {part} hold in part, {fails} do not hold and {waiting} not run yet" in text
    screen = " ".join(PAGE.split("\n## ")[0].split())
    assert f"Of {len(ROWS)} [pieces" in screen
    assert f"{holds} hold, {part} hold in part, {fails} do not hold and {waiting} not run yet" in screen
    titles = SECTION.split("### ")[1:]
    counted = [len(re.findall(r"^\| \d", title, re.MULTILINE)) for title in titles]
    said = [int(n) for n in re.findall(r"(\d+) (?:figures|parts|claims|equations|items|experiments)", text)]
    assert counted == said


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_its_command_and_its_record_exist(row):
    command, record, verdict = row[2], row[3], row[5]
    assert (record == MISSING) == (verdict == "not run yet")
    first, *more = re.findall(r"`([^`]+)`", command)
    if first.startswith("fairbits reproduce"):
        for name in (first.split()[2], *more):
            assert (PLANS / f"{name}.toml").exists(), name
        folders = re.findall(r"--searches (\S+)", first)
        assert all((ROOT / folder / "records.jsonl").exists() for folder in folders)
    else:
        tool, *path = first.split()
        assert tool in {"python", "pytest", "make"}
        if tool == "make":
            assert f"\n{path[0]}:" in (ROOT / "Makefile").read_text()
        else:
            assert (ROOT / path[0]).exists(), path
    link = re.search(r"\]\((.+)\)", record)
    assert link or record in {MISSING, "a test"}, record
    if link and "results" in link[1]:
        assert (ROOT / "docs" / link[1]).parent.joinpath("records.jsonl").exists()


def test_the_records_are_named_with_their_commits():
    section = PAGE.split("\n## Records\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| \[([\w-]+)\].*\| (.*) \|$", section, re.MULTILINE)
    assert len(rows) > 5
    for folder, commits in rows:
        lines = (ROOT / "results" / folder / "records.jsonl").read_text().splitlines()
        made = {json.loads(line)["made"]["commit"] for line in lines}
        assert set(commits.split(", ")) <= set(made), folder
