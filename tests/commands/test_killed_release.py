"""kill -9 at any moment: no code is on the disk that is not in the ledger, and --reuse goes on from there."""

import os
import shutil
import signal
import sqlite3
import sys

import numpy as np
import pandas as pd
import pytest
from people import population

from fairbits.certificate import Ledger
from fairbits.commands import main
from fairbits.tables import file_formats
from fairbits.tables import table_file as files

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
ROWS = 40


@pytest.fixture
def place(fitted, tmp_path, monkeypatch):
    shutil.copytree(fitted / "m", tmp_path / "m")
    population(ROWS, 7).to_csv(tmp_path / "new.csv", index=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(files, "PIECE_ROWS", 15)
    return tmp_path


def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)


def before_the_ledger(patch):
    patch.setattr(Ledger, "enter", die)


def while_the_ledger_is_written(patch):
    """Half of the changes are in the file already, for SQLite may keep but one page of them in memory."""
    enter = Ledger.enter

    def torn(self, *arguments, **options):
        self._db.execute("PRAGMA cache_size=1")
        enter(self, *arguments, **options)
        assert self.path.with_name(f"{self.path.name}-journal").stat().st_size > 0
        die()

    patch.setattr(Ledger, "enter", torn)


class DyingConnection(sqlite3.Connection):
    def execute(self, statement, *values):
        found = super().execute(statement, *values)
        if statement == "COMMIT" and self.execute("SELECT max(width) FROM parts").fetchone()[0]:
            die()
        return found


def after_the_ledger_before_any_code_leaves(patch):
    connect = sqlite3.connect
    patch.setattr(sqlite3, "connect", lambda *path, **options: connect(*path, factory=DyingConnection, **options))


def before_the_file(patch):
    patch.setattr(file_formats, "whole_file", die)


def in_the_middle_of_the_file(patch):
    write = pd.DataFrame.to_csv

    def once(self, file, **options):
        write(self[: ROWS // 2], file, **options)
        file.flush()
        die()

    patch.setattr(pd.DataFrame, "to_csv", once)


def dying_before_naming(patch, ending):
    replace = os.replace
    patch.setattr(os, "replace", lambda part, file: die() if str(file).endswith(ending) else replace(part, file))


def before_the_receipt_of_the_ledger(patch):
    dying_before_naming(patch, ".last")


def before_the_file_has_its_name(patch):
    dying_before_naming(patch, "bits.csv")


MOMENTS = {
    before_the_ledger: False,
    while_the_ledger_is_written: False,
    after_the_ledger_before_any_code_leaves: True,
    before_the_receipt_of_the_ledger: True,
    before_the_file: True,
    in_the_middle_of_the_file: True,
    before_the_file_has_its_name: True,
}


def killed(patch_in_child):
    """Run the command in a process of its own that dies in the middle."""
    child = os.fork()
    if child == 0:
        with pytest.MonkeyPatch.context() as patch:
            patch_in_child(patch)
            patch.setattr(sys, "argv", ["fairbits", "transform", "m", "new.csv", "-o", "bits.csv"])
            try:
                main()
            finally:
                os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("moment", MOMENTS, ids=lambda moment: moment.__name__)
def test_killed(place, fairbits, moment):
    assert killed(moment) == -signal.SIGKILL
    assert not (place / "bits.csv").exists()
    left = [pd.read_csv(file) for file in place.glob(".part.*bits.csv")]
    ended = fairbits("transform", "m", "new.csv", "-o", "bits.csv")
    assert ended.code == (1 if MOMENTS[moment] else 0)
    if MOMENTS[moment]:
        assert f"All {ROWS} people already have a code" in ended.err
        assert fairbits("transform", "m", "new.csv", "-o", "bits.csv", "--reuse").code == 0
    whole = pd.read_csv("bits.csv")
    assert len(whole) == ROWS
    for part in left:  # whatever a thief finds there is what the ledger says
        np.testing.assert_array_equal(part, whole[: len(part)])
    assert bool(left) == (moment in (in_the_middle_of_the_file, before_the_file_has_its_name))
