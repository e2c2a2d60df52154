"""A small model in a folder, and the command line as a function."""

import sys
from collections import namedtuple

import pytest
from people import population

from fairbits.commands import main
from fairbits.estimators import InvariantClassifier, Schedule

Ended = namedtuple("Ended", ["code", "out", "err"])


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


@pytest.fixture(scope="session")
def fitted(tmp_path_factory):
    """Return a folder of `fairbits fit`, not to be drawn from: copy it first. The table it was fitted to is beside."""
    folder = tmp_path_factory.mktemp("fitted")
    population(600, 0).to_csv(folder / "pay.csv", index=False)
    arguments = ["--label", "paid", "--sensitive", "sex", "--gamma", "0.5", "--epochs", "3", "--code-size", "6"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["fairbits", "fit", str(folder / "pay.csv"), *arguments, "-o", str(folder / "m")])
        patch.setattr(InvariantClassifier, "own_schedule", Schedule(min_steps=200))
        with pytest.raises(SystemExit):
            main()
    return folder
