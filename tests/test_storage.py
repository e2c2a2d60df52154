"""A file is replaced as a whole, or left as it was."""

import json

import pytest

from fairbits.storage import replace_file


def test_a_file_is_replaced_as_a_whole(tmp_path):
    file = tmp_path / "table.md"
    replace_file(file, "old")
    replace_file(file, json.dumps("new"))
    assert file.read_text() == '"new"'
    assert [f.name for f in tmp_path.iterdir()] == ["table.md"]


def test_a_file_that_cannot_be_written_leaves_the_old_one_and_nothing_else(tmp_path, monkeypatch):
    def full(number):
        raise OSError(28, "No space left on device")

    file = tmp_path / "table.md"
    replace_file(file, "old")
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        replace_file(file, "new")
    assert file.read_text() == "old"
    assert [f.name for f in tmp_path.iterdir()] == ["table.md"]
