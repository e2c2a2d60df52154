"""`fairbits watch`: tables one after another, one state, each verdict with its exit code; killed, it goes on."""

import json
import os
import shutil
import signal
import sys

import pytest
from people import population

from fairbits.certificate import CertificateMonitor
from fairbits.commands import main
from fairbits.storage import locked


@pytest.fixture
def place(hard, tmp_path, monkeypatch):
    shutil.copytree(hard / "m", tmp_path / "m")
    shutil.copy(hard / "pay.csv", tmp_path)
    monkeypatch.chdir(tmp_path)
    for i in range(4):
        population(300, 20 + i).to_csv(f"{i}.csv", index=False)
    return tmp_path


def test_the_certified_limit_is_proved_and_pictured(place, fairbits):
    ended = fairbits("watch", "m", "0.csv", "1.csv", "--state", "s.json", "--picture", "bounds.svg")
    assert ended.code == 0, ended.err
    assert "Proved (2 batches, 600 rows): at 95% confidence" in ended.out
    assert "differ between two groups by at most 0.7." in ended.out
    assert (place / "bounds.svg").read_text().startswith("<svg")
    again = fairbits("watch", "m", "1.csv", "2.csv", "--state", "s.json", "--json")
    assert "1.csv was added before: skipped." in again.err
    found = json.loads(again.out)
    assert (found["rows"], found["verdict"], len(found["history"])) == (900, "proved", 3)


def test_a_contradiction_ends_with_code_4(place, fairbits):
    for i in range(4):
        population(1500, 40 + i, told=1.5).to_csv(f"told{i}.csv", index=False)
    tables = [f"told{i}.csv" for i in range(4)]
    ended = fairbits("watch", "m", *tables, "--state", "s.json", "--max-disparity", "0.2")
    assert ended.code == 4
    assert "more than 0.2 in the population of at least one batch" in ended.out


def test_rows_of_the_fit_prove_nothing(place, fairbits):
    fairbits("watch", "m", "0.csv", "--state", "s.json")
    before = (place / "s.json").read_bytes()
    ended = fairbits("watch", "m", "pay.csv", "--state", "s.json")
    assert ended.code == 3
    assert "They prove nothing, and were not added." in ended.err
    assert (place / "s.json").read_bytes() == before


def test_decisions_of_anybody(place, fairbits):
    asked = ("--decision", "paid", "--sensitive", "sex", "--max-disparity", "0.5", "--state", "s.json")
    ended = fairbits("watch", "0.csv", "1.csv", *asked, "--person", "id")
    assert ended.code == 0, ended.err
    assert "Proved (2 batches, 600 people): at 95% confidence" in ended.out
    assert "the rates of the decision differ" in ended.out
    other = fairbits("watch", "2.csv", *asked, "--confidence", "0.9")
    assert (other.code, "was begun with a confidence of 95%, which" in other.err) == (1, True)


def test_scores_are_watched_in_levels(place, fairbits):
    asked = ("--decision", "grade", "--sensitive", "sex", "--max-disparity", "0.5", "--state", "s.json")
    ended = fairbits("watch", "0.csv", *asked, "--levels=-0.5,0.5", "--json")
    assert ended.code == 0, ended.err
    monitor, people = CertificateMonitor(0.5, levels=[-0.5, 0.5]), population(300, 20)
    monitor.add(people.grade.to_numpy(), sensitive_features=people.sex)
    assert json.loads(ended.out)["at_most"] == pytest.approx(monitor.at_most)
    assert fairbits("watch", "1.csv", *asked).code == 0
    for message, more in {
        "was begun with levels [-0.5, 0.5], which cannot be changed": ["--levels", "0.5"],
        "--levels low must be numbers": ["--levels", "low"],
    }.items():
        assert message in fairbits("watch", "2.csv", *asked, *more).err
    assert (
        "--levels and --crossed are for --decision"
        in fairbits("watch", "m", "0.csv", "--state", "n", "--levels", "1").err
    )


def test_a_second_process_waits_outside(place, fairbits):
    fairbits("watch", "m", "0.csv", "--state", "s.json")
    before = (place / "s.json").read_bytes()
    with locked(place / ".s.json.lock", "", ""):
        ended = fairbits("watch", "m", "1.csv", "--state", "s.json")
        assert (ended.code, "Another process is adding tables to s.json" in ended.err) == (1, True)
        assert fairbits("watch", "m", "1.csv", "--state", "other.json").code == 0
    assert (place / "s.json").read_bytes() == before
    assert fairbits("watch", "m", "1.csv", "--state", "s.json").code == 0


def test_wrong_uses_get_a_sentence(place, fairbits):
    fairbits("watch", "m", "0.csv", "--state", "s.json")
    (place / "cut.json").write_bytes((place / "s.json").read_bytes()[:99])
    decided = ("watch", "0.csv", "--decision", "paid", "--sensitive", "sex")
    for message, arguments in {
        "another model or other columns": (*decided, "--max-disparity", "0.5", "--state", "s.json"),
        "Pass the limit with --max-disparity": (*decided, "--state", "new.json"),
        "Name the sensitive columns": ("watch", "0.csv", "--decision", "paid", "--state", "new.json"),
        "at least one table": ("watch", "m", "--state", "new.json"),
        "or it is damaged": ("watch", "m", "1.csv", "--state", "cut.json"),
        "begun with a limit of 0.7": ("watch", "m", "1.csv", "--state", "s.json", "--max-disparity", "0.3"),
        "--max-disparity 1.5 must be a number above 0 and below 1": (
            "watch",
            "m",
            "1.csv",
            "--state",
            "n",
            "--max-disparity",
            "1.5",
        ),
        "--picture p.pdf must end in": ("watch", "m", "1.csv", "--state", "n", "--picture", "p.pdf"),
        "There is no file absent.csv": ("watch", "m", "absent.csv", "--state", "n"),
    }.items():
        ended = fairbits(*arguments)
        assert (ended.code, message in ended.err) == (1, True), (message, ended.err)
    assert not (place / "n").exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("moment", ["before the state is written", "after it is written", "while it is written"])
def test_killed_it_goes_on_to_the_same_bytes(place, fairbits, moment):
    command = ["watch", *(f"{i}.csv" for i in range(4))]
    command += ["--decision", "paid", "--sensitive", "sex", "--max-disparity", "0.3"]
    fairbits(*command, "--state", "whole.json")
    child = os.fork()
    if not child:
        save = CertificateMonitor.save

        def die(*_):
            os.kill(os.getpid(), signal.SIGKILL)

        def last(self, path):
            if len(self.batches) == 3:
                if moment == "before the state is written":
                    die()
                if moment == "while it is written":
                    os.replace = die
                save(self, path)
                die()
            save(self, path)

        CertificateMonitor.save = last
        sys.argv = ["fairbits", *command, "--state", "killed.json"]
        try:
            main()
        finally:
            os._exit(1)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    done = len(json.loads((place / "killed.json").read_text())["batches"])
    assert done == (3 if moment == "after it is written" else 2)
    again = fairbits(*command, "--state", "killed.json")
    assert again.err.count("was added before: skipped.") == done
    assert (place / "killed.json").read_bytes() == (place / "whole.json").read_bytes()
