"""Records are mirrored as they are, and only if asked for."""

import sys
import types

import pytest

from fairbits.lab.reproduction import series, wandb_mirror

RECORD = {
    "hash": "abc",
    "run": {"kind": "search", "dataset": "compas", "name": "HSIC", "fold": 1},
    "result": {"test": {"auc": 0.7}, "best": {"gamma": 0.5}, "epochs": [{"about_x": 1.0}, {"about_x": 2.0}]},
    "made": {"seconds": 3.0},
}


class FakeRun:
    def __init__(self, **options):
        self.options, self.steps, self.summary = options, [], {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.finished = True

    def log(self, values, step):
        self.steps.append((step, values))


def test_a_record_becomes_a_run(monkeypatch):
    runs = []
    fake = types.SimpleNamespace(init=lambda **options: runs.append(FakeRun(**options)) or runs[-1])
    monkeypatch.setitem(sys.modules, "wandb", fake)
    wandb_mirror("folder")(RECORD)
    (run,) = runs
    assert run.finished
    assert run.options["config"] == RECORD["run"]
    assert (run.options["name"], run.options["group"]) == ("search-compas-HSIC-1", "folder")
    assert run.summary == {"test.auc": 0.7, "best.gamma": 0.5, "seconds": 3.0}
    assert run.steps == [(0, {"about_x": 1.0}), (1, {"about_x": 2.0})]


def test_without_the_extra_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ValueError, match=r"pip install 'fairbits\[tracking\]'"):
        wandb_mirror("folder")


def test_lists_of_dicts_are_series():
    assert series(RECORD["result"]) == [{"about_x": 1.0}, {"about_x": 2.0}]


def test_offline_it_works_without_an_account(monkeypatch, tmp_path):
    pytest.importorskip("wandb")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_MODE", "offline")
    wandb_mirror("folder")(RECORD)
    assert list((tmp_path / "wandb").glob("offline-run-*-abc"))
