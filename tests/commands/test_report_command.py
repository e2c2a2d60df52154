"""`fairbits report`: a page from the records in a folder, or a sentence."""

import json
import sys

import pytest
from paper_records import everything, scores, search

from fairbits.commands import main
from fairbits.lab.run_records import append_record
from fairbits.report.page import FORMAT

AUDIT = {
    "subject": "the representation",
    "rows": 10,
    "confidence": 0.95,
    "task": None,
    "leakage": [],
    "certificate": None,
    "probes": [],
    "adversaries": [],
    "unavailable": {},
    "concerns": [],
}


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["fairbits", "report", *map(str, arguments)])
    try:
        main()
    except SystemExit as stopped:
        return stopped.code or 0
    return 0


def test_a_page_is_made_from_the_record_alone(tmp_path, monkeypatch, capsys):
    (tmp_path / "audit.json").write_text(json.dumps({"format": FORMAT, "source": "t.csv", "audit": AUDIT}))
    assert run(monkeypatch, tmp_path) == 0
    assert "report.html" in capsys.readouterr().out
    assert "Audit of the representation on 10 rows" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert sorted(f.name for f in tmp_path.iterdir()) == ["audit.json", "report.html"]
    assert run(monkeypatch, tmp_path, "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"output": str(tmp_path / "report.html")}


def test_tables_and_figures_are_made_from_the_records_alone(tmp_path, monkeypatch, capsys):
    append_record(tmp_path / "records.jsonl", search("BinaryMI", 0, scores(0.7, 0.1)))
    assert run(monkeypatch, tmp_path, "-o", tmp_path / "again") == 0
    assert "tables.md" in capsys.readouterr().out
    assert [f.name for f in tmp_path.iterdir() if f.is_file()] == ["records.jsonl"]
    assert {"report.html", "tables.md", "tables.tex", "compas-tradeoff.svg"} <= {
        f.name for f in (tmp_path / "again").iterdir()
    }


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "holds no audit.json and no records.jsonl"),
        ({"audit.json": b"{"}, "is damaged: it is not JSON"),
        ({"audit.json": b"\xff\xfe\x00"}, "is damaged: it is not JSON"),
        ({"audit.json": b"[1]"}, "is not a record of fairbits"),
        ({"audit.json": b'{"format": 99}'}, "has format 99; this version of fairbits reads format 2"),
        ({"audit.json": b'{"format": 2}'}, "is damaged: a part of it is missing"),
        ({"audit.json": b'{"format": 2, "audit": {"probes": 3}}'}, "is damaged: a part of it is missing"),
        ({"records.jsonl": b'{"format": 1}\n'}, "records.jsonl is damaged"),
        ({"records.jsonl": b'{"format": 99}\n'}, "records.jsonl holds records of format 99"),
    ],
)
def test_a_folder_without_a_record_gets_a_sentence(tmp_path, monkeypatch, capsys, files, words):
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    assert run(monkeypatch, tmp_path) == 1
    error = capsys.readouterr().err
    assert words in error
    assert "Traceback" not in error
    assert not (tmp_path / "report.html").exists()


def test_no_folder_gets_a_sentence(tmp_path, monkeypatch, capsys):
    assert run(monkeypatch, tmp_path / "none") == 1
    assert "There is no folder" in capsys.readouterr().err


def test_without_the_packages_that_draw_it_is_said_how_to_get_them(tmp_path, monkeypatch, capsys):
    (tmp_path / "audit.json").write_text(json.dumps({"format": FORMAT, "audit": AUDIT}))
    monkeypatch.setitem(sys.modules, "fairbits.report.sections", None)
    assert run(monkeypatch, tmp_path) == 1
    assert (
        "report.html needs packages that are not installed. pip install 'fairbits[report]'" in capsys.readouterr().err
    )


def test_the_page_of_experiments_needs_them_too(tmp_path, monkeypatch, capsys):
    append_record(tmp_path / "records.jsonl", everything()[0])
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert run(monkeypatch, tmp_path) == 1
    assert "pip install 'fairbits[report]'" in capsys.readouterr().err
    assert not (tmp_path / "tables.md").exists()
