"""Nothing of single people is in what `fairbits fit` writes or prints, and no name in it can run."""

import contextlib
import io
import json

import numpy as np
import pandas as pd
import pytest
from conftest import fit
from people import population

OLDEST, YOUNGEST, FIRST_BORN, LAST_BORN = "117.25", "7.09375", "1919-02-03", "2019-12-31"
RARE = "lighthouse keeper"
PENSION = "48151623.42"
SCRIPT = "<script>alert(1)</script>"
PRINTED = "what is printed"
COLUMN = "a|b`c`\n<img src=x onerror=alert(2)>"


def people():
    """Return people with an oldest one, rare values, and names that are HTML, Markdown and formulas."""
    table, rng = population(600, 0), np.random.default_rng(0)
    table["age"] = rng.integers(20, 70, 600).astype(float)
    table.loc[[3, 4], "age"] = float(OLDEST), float(YOUNGEST)
    born = pd.Timestamp("1950-01-01") + pd.to_timedelta(rng.integers(0, 20_000, 600), "D")
    table["born"] = born.strftime("%Y-%m-%d")
    table.loc[[5, 6, 8, 9], "born"] = FIRST_BORN, LAST_BORN, LAST_BORN, LAST_BORN
    table.loc[table.index % 70 == 0, "job"] = RARE  # nine rows
    table["pension"] = np.where(table.index == 7, PENSION, "")
    table["sex"] = table["sex"].map({"F": SCRIPT, "M": "=cmd|' /C calc'!A0"})
    return table.rename(columns={"height": COLUMN})


MORE = {"random": ["--gamma", "0.5"], "hard": ["--max-disparity", "0.9", "--encode-sensitive"]}


@pytest.fixture(scope="module", params=["random", pytest.param("hard", marks=pytest.mark.slow)])
def written(request, tmp_path_factory):
    """Return the content of every file that a fit writes, and what it prints."""
    folder, printed = tmp_path_factory.mktemp("personal"), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        fit(folder, *MORE[request.param], "--code-size", "3", table=people(), sensitive="age,born,sex")
    files = {str(file.relative_to(folder / "m")): file.read_bytes() for file in (folder / "m").rglob("*.*")}
    return {**files, PRINTED: " ".join(printed.getvalue().split()).encode()}


def holding(contents, *texts):
    """Return the files that hold one of these texts, byte by byte, also as JSON spells them."""
    spelt = {spelling.encode() for text in texts for spelling in (text, json.dumps(text)[1:-1])}
    return sorted(name for name, data in contents.items() if any(text in data for text in spelt))


def test_all_that_is_written_is_looked_at(written):
    inner = [f"model/{name}" for name in ("manifest.json", "model.json", "weights.safetensors")]
    shown = {"audit.json", "model_card.md", "report.html", PRINTED}
    assert written.keys() == {*shown, *inner}
    assert holding(written, "and over") == sorted({*shown, "model/model.json"})


def test_the_ends_of_sensitive_columns_are_nowhere(written):
    days = [(pd.Timestamp(day) - pd.Timestamp("1970-01-01")).days for day in (FIRST_BORN, LAST_BORN)]
    assert holding(written, OLDEST, YOUNGEST, FIRST_BORN, LAST_BORN, *(f"{day}.0" for day in days)) == []


def test_rare_values_are_nowhere(written):
    assert holding(written, RARE, PENSION, PENSION.split(".")[0]) == []
    assert b'"clerk"' in written["model/model.json"]


def test_no_file_has_a_name_that_can_run(written):
    files = {name: data for name, data in written.items() if name != PRINTED}
    assert holding(files, SCRIPT, "<script>alert", "<img src=x") == []
    card = written["model_card.md"].decode()
    assert "a\\|b\\`c\\` &lt;img src=x onerror=alert(2)&gt;: number" in card
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in card
    (rows,) = (b["rows"] for b in json.loads(written["audit.json"])["certificate"]["bounds"] if b["column"] == "sex")
    assert SCRIPT in rows  # data stay as they are


def test_groups_of_numbers_are_listed_in_order(written):
    first, *others = json.loads(written["audit.json"])["certificate"]["bounds"][0]["rows"]
    edges = [float(name.split()[0]) for name in others]
    assert first == f"under {edges[0]:g}"
    assert edges == sorted(edges)
