"""Small models in folders, and the command line as a function."""

import functools
import sys
from collections import namedtuple

import pytest
import typer.main
from battery import train_briefly
from people import population

from fairbits.commands import main

Ended = namedtuple("Ended", ["code", "out", "err"])


@pytest.fixture(scope="session", autouse=True)
def _one_tree_of_commands():
    """Let typer read the signatures of the commands once: it would at every call."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", functools.cache(typer.main.get_command))
        yield


@pytest.fixture
def fairbits(monkeypatch, capsys):
    """Return a function that runs the command line and tells its exit code and what it printed."""

    def fairbits(*arguments):
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", ["fairbits", *map(str, arguments)])
        try:
            main()
            code = 0
        except SystemExit as stopped:
            code = stopped.code or 0
        said = capsys.readouterr()
        return Ended(code, said.out, said.err)

    return fairbits


def fit(folder, *arguments, table=None, sensitive="sex"):
    """Fit a small table in a folder; the model is in m, the table beside it."""
    (population(600, 0) if table is None else table).to_csv(folder / "pay.csv", index=False)
    arguments = ["--label", "paid", "--sensitive", sensitive, "--epochs", "3", "--seed", "0", *arguments]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["fairbits", "fit", str(folder / "pay.csv"), *arguments, "-o", str(folder / "m")])
        train_briefly(patch, 100)  # a model of the session is made before the module trains briefly
        with pytest.raises(SystemExit) as ended:
            main()
    assert not ended.value.code
    return folder


@pytest.fixture(scope="session")
def fitted(tmp_path_factory):
    """Return a folder with a random code, not to be drawn from: copy it first. The table it was fitted to is beside."""
    return fit(tmp_path_factory.mktemp("fitted"), "--gamma", "0.5", "--code-size", "6")


@pytest.fixture(scope="session")
def hard(tmp_path_factory):
    """Return a folder with a hard code, which is certified."""
    return fit(tmp_path_factory.mktemp("hard"), "--for", "codes", "--max-disparity", "0.7", "--code-size", "4")


@pytest.fixture(scope="session")
def seeing(tmp_path_factory):
    """Return a folder with a hard code that depends on the sensitive column."""
    return fit(tmp_path_factory.mktemp("seeing"), "--max-disparity", "0.7", "--code-size", "4", "--encode-sensitive")
