"""Records survive what a crash can do to a file."""

import re
import subprocess

import pytest

from fairbits.lab import run_records
from fairbits.lab.run_records import append_record, read_records

RECORDS = [{"n": 1, "text": "å\nb"}, {"n": 2}, {"n": 3}]


@pytest.fixture
def file(tmp_path):
    for record in RECORDS:
        append_record(tmp_path / "records.jsonl", record)
    return tmp_path / "records.jsonl"


def test_what_is_appended_is_read(file):
    assert list(read_records(file)) == RECORDS


def test_no_file_holds_no_records(tmp_path):
    assert list(read_records(tmp_path / "none.jsonl")) == []


def test_cut_anywhere_the_whole_lines_are_kept_and_the_next_record_is_whole(file):
    content = file.read_bytes()
    ends = [i for i in range(len(content) + 1) if i == 0 or content[i - 1 : i] == b"\n"]
    for cut in range(len(content) + 1):
        file.write_bytes(content[:cut])
        whole = sum(end <= cut for end in ends) - 1
        unterminated = cut + 1 in ends  # all of a line but its end: nothing is missing
        append_record(file, {"n": 4})
        assert list(read_records(file)) == [*RECORDS[: whole + unterminated], {"n": 4}]


def test_bytes_that_are_no_text_are_left_out(file):
    file.write_bytes(b"\xff\xfe\x00garbage\n" + file.read_bytes() + b"[1, 2]\n17\n")
    assert list(read_records(file)) == RECORDS


def test_a_number_that_json_does_not_know_is_refused_before_anything_is_written(file):
    before = file.read_bytes()
    with pytest.raises(ValueError):
        append_record(file, {"n": float("nan")})
    assert file.read_bytes() == before


def test_the_commit_is_that_of_the_package_and_marked_if_its_code_was_changed(tmp_path, monkeypatch):
    def git(*arguments):
        who = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True)

    package, results = tmp_path / "fairbits", tmp_path / "results"
    package.mkdir(), results.mkdir()
    code, record = package / "__init__.py", results / "records.jsonl"
    code.write_text("a = 1\n"), record.write_text("1\n")
    monkeypatch.setattr(run_records, "__file__", str(package / "lab" / "run_records.py"))
    git("init")
    git("add", "results")
    git("commit", "-m", "somebody else's repository")
    assert run_records.commit() == ""
    git("add", "fairbits")
    git("commit", "-m", "code")
    record.write_text("2\n")  # what a run writes is no change of the code
    clean = run_records.commit()
    assert re.fullmatch("[0-9a-f]{7,}", clean)
    code.write_text("a = 2\n")
    assert run_records.commit() == f"{clean}-dirty"
    code.write_text("a = 1\n")
    assert run_records.commit() == clean
    benchmarks = tmp_path / "benchmarks"
    benchmarks.mkdir()
    (benchmarks / "new.py").write_text("GRID = [1]\n")  # not committed: no commit has this benchmark
    assert run_records.commit() == f"{clean}-dirty"
    git("add", "benchmarks")
    git("commit", "-m", "benchmark")
    clean = run_records.commit()
    assert not clean.endswith("-dirty")
    (benchmarks / "new.py").write_text("GRID = [1, 2]\n")
    assert run_records.commit() == f"{clean}-dirty"
