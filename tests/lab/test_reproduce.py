"""Experiments can be killed anywhere: nothing finished is lost, and the table is the same to the byte."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from paper_records import draw_no_pixels

from fairbits import workers as pools
from fairbits.commands import main
from fairbits.lab import paper
from fairbits.lab.harness import Folder
from fairbits.lab.plan_files import read_plan

PLAN = """
title = "small"
[[runs]]
kind = "reference"
method = ["constant", "logistic regression"]
dataset = "compas"
fold = 0
trees = 10
[[runs]]
kind = "search"
method = "Own"
dataset = "compas"
fold = 0
inner_folds = 2
trials = 12
trials_at_once = 4
trees = 10
[methods.Own]
estimator = "BinaryBernoulliClassifier"
settings = { max_epochs = 2, min_steps = 0, code_size = 4, selection = "paper" }
"""
DYING_BYTES = 60
DYING = f"""
import os
def dying(file):  # the disk has the first bytes of the line when the process is killed
    os.truncate(file, {DYING_BYTES})
    os.kill(os.getpid(), 9)
os.fsync = dying
"""


class Command:
    """The command line at work on a folder."""

    def __init__(self, home, plan=PLAN):
        (home / "plan.toml").write_text(plan)
        self.plan, self.folder = home / "plan.toml", home / "results"
        self.run = read_plan(self.plan).runs[-1]

    def arguments(self, plan=None):
        return ["reproduce", str(plan or self.plan), "-o", str(self.folder), "--workers", "1"]

    def start(self, code=""):
        command = [sys.executable, "-c", f"{code}from fairbits.commands import main; main()", *self.arguments()]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def finish(self, *options, plan=None, charts=paper.CHARTS):
        """Run to the end in this process, which has imported everything: its worker is a thread."""
        out = io.StringIO()
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
            patch.setattr(sys, "argv", ["fairbits", *self.arguments(plan), *options])
            patch.setattr(paper, "CHARTS", charts)
            patch.setattr(pools, "ProcessPoolExecutor", lambda workers, *_, **__: ThreadPoolExecutor(workers))
            with pytest.raises(SystemExit) as ended:
                main()
        assert not ended.value.code
        return out.getvalue()

    def kill_when(self, ready):
        """Start, and kill -9 as soon as `ready()`, workers included."""
        process = self.start()
        while not ready():
            assert process.poll() is None, process.communicate()
            time.sleep(0.03)
        process.send_signal(signal.SIGKILL)
        process.communicate()

    def leave_as_if_killed(self, finished):
        """Leave what a process has written that was killed in the second of a search's batches."""
        for name, lines in (("records.jsonl", 2), (self.trials.relative_to(self.folder), 2)):
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_bytes(b"".join((finished / name).read_bytes().splitlines(True)[:lines]))

    @property
    def trials(self):
        return self.folder / "trials" / f"{self.run.trials_hash}.jsonl"

    def batches(self):
        return len(Folder(self.folder).progress(self.run)) // 4

    def results(self):
        """Return all that is written but for when and how long."""
        tables = {f.name: f.read_bytes() for f in self.folder.iterdir() if f.suffix in (".md", ".tex", ".svg")}
        records = Folder(self.folder).read()
        return tables, {name: record["result"] for name, record in records.items()}


@pytest.fixture(scope="module", autouse=True)
def _no_pixels():
    with pytest.MonkeyPatch.context() as patch:
        draw_no_pixels(patch)
        yield


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    command = Command(tmp_path_factory.mktemp("uninterrupted"))
    return command, command.finish()


def test_it_ends_with_tables(uninterrupted):
    command, output = uninterrupted
    tables, results = command.results()
    assert len(results) == 3
    assert {"tables.md", "tables.tex"} <= set(tables)
    assert "logistic regression" in output
    assert "logistic regression" in (command.folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("kills", [0, 1, 2])
def test_killed_in_a_fit_in_a_search_and_in_writing_it_ends_the_same(uninterrupted, tmp_path, kills):
    command = Command(tmp_path)
    if kills == 0:
        command.leave_as_if_killed(uninterrupted[0].folder)
    if kills == 2:
        command.kill_when(lambda: len(Folder(command.folder).read()) == 2)  # the first fit is under way
    if kills:
        command.kill_when(lambda: command.batches() >= 1)  # some batches are done, and a fit is under way
    assert command.batches() >= 1
    trials = command.trials
    content = trials.read_bytes()
    trials.write_bytes(content[: len(content) - 40])  # as if killed while it wrote the batch
    records = command.folder / "records.jsonl"
    torn = records.read_bytes()[:-60]
    records.write_bytes(torn)  # as if killed while it wrote the record
    assert "torn line" in command.finish()
    assert records.read_bytes().startswith(torn)  # a torn line is not overwritten
    assert command.results() == uninterrupted[0].results()
    assert content[: content.rfind(b"\n", 0, -1) + 1] in trials.read_bytes()  # what was whole is still there
    assert len(trials.read_bytes().split(b"\n")) >= 4


@pytest.mark.slow
@pytest.mark.skipif(not os.path.isdir("/proc"), reason="looks for processes in /proc")
def test_stopped_by_ctrl_c_it_leaves_no_worker_behind(tmp_path):
    command = Command(tmp_path, PLAN.replace("trials = 12", "trials = 1200"))  # it is not to end before the signal
    process = command.start()
    while not command.batches():
        assert process.poll() is None, process.communicate()
        time.sleep(0.03)
    workers = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert workers
    process.send_signal(signal.SIGINT)  # to the command alone, not to its workers
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Stopped" in out
    until = time.monotonic() + 30
    while any(map(at_work, workers)):
        assert time.monotonic() < until
        time.sleep(0.05)


def at_work(pid):
    """Say whether a process runs: one that has ended has no command, or no folder."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False


@pytest.mark.slow
def test_killed_in_the_middle_of_a_line_it_ends_the_same(uninterrupted, tmp_path):
    command = Command(tmp_path)
    process = command.start(code=DYING)
    process.communicate(timeout=300)
    assert process.returncode == -signal.SIGKILL
    content = (command.folder / "records.jsonl").read_bytes()
    assert 0 < len(content) == DYING_BYTES
    command.finish()
    assert (command.folder / "records.jsonl").read_bytes().startswith(content)  # a torn line is not overwritten
    assert command.results() == uninterrupted[0].results()


def test_what_is_finished_is_not_run_again_and_other_versions_are_told(uninterrupted, tmp_path):
    command = Command(tmp_path)
    command.folder.mkdir()
    text = (uninterrupted[0].folder / "records.jsonl").read_text().replace('"torch": "', '"torch": "0.')
    (command.folder / "records.jsonl").write_text(text)
    assert "3 records" in command.finish(charts=()).replace("\n", " ")
    told = json.loads(command.finish("--json", charts=()))
    assert (command.folder / "records.jsonl").read_text() == text
    assert told["runs"] == 3
    assert str(command.folder / "report.html") in told["files"]


def test_the_tables_are_of_all_records_in_the_folder(uninterrupted):
    command, _ = uninterrupted
    before = command.results()
    part = command.plan.with_name("part.toml")
    part.write_text(PLAN[: PLAN.rindex("[[runs]]")])
    command.finish(plan=part)
    assert command.results() == before


def test_records_of_another_format_are_refused_and_kept(tmp_path):
    folder = Folder(tmp_path)
    folder.file.write_text(json.dumps({"format": 99, "hash": "x"}) + "\n")
    with pytest.raises(ValueError, match="format 99"):
        folder.read()
    assert json.loads(folder.file.read_text())["format"] == 99


def test_a_file_for_a_folder(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("kept")
    monkeypatch.setattr(sys, "argv", ["fairbits", "reproduce", "compas", "-o", str(tmp_path / "file")])
    with pytest.raises(SystemExit):
        main()
    assert "-o names a folder" in capsys.readouterr().err
    assert (tmp_path / "file").read_text() == "kept"


@pytest.mark.skipif(os.name != "posix", reason="locks are posix's")
def test_two_at_once_in_one_folder_are_one_too_many(tmp_path):
    with (
        Folder(tmp_path).locked(),
        pytest.raises(ValueError, match="Another process is at work"),
        Folder(tmp_path).locked(),
    ):
        pass


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["german"], "'german' is not a plan: use one of adult"),
        (["compas", "--set", "epoch: 3"], "--set takes NAME=VALUE"),
        (["compas", "--set", "epohcs=3"], "No run of compas has a setting ['epohcs']"),
        (["compas", "--set", 'dataset="german"'], "'compas', 'adult' or 'bank'"),
        (["nowhere.toml"], "There is no file nowhere.toml"),
    ],
)
def test_bad_input_gets_a_sentence_and_changes_nothing(arguments, words, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["fairbits", "reproduce", *arguments, "-o", str(tmp_path / "results")])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 1
    assert words in capsys.readouterr().err
    assert not (tmp_path / "results").exists()
