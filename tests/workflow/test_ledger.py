"""The ledger of codes handed out: nothing is forgotten, whatever is cut off or damaged."""

import numpy as np
import pytest

from fairbits.workflow.ledger import NAME, Ledger, repeats_apart

NAMES = [f"person {i}".encode() for i in range(50)]


def enter(folder, names, seed, bits=12):
    with Ledger(folder, bits) as ledger:
        rows = ledger.number(names)
        codes = np.random.default_rng(seed).integers(256, size=(len(names), 2), dtype=np.uint8)
        ledger.enter(rows, codes)
    return codes


def draws(folder, names, bits=12):
    with Ledger(folder, bits) as ledger:
        return ledger.draws(ledger.number(names)).tolist()


def test_what_is_entered_is_known_in_the_next_run(tmp_path):
    first = enter(tmp_path, NAMES[:20], 0)
    second = enter(tmp_path, NAMES[10:30], 1)
    assert draws(tmp_path, NAMES) == [1] * 10 + [2] * 10 + [1] * 10 + [0] * 20
    with Ledger(tmp_path, 12) as ledger:
        codes = ledger.codes(ledger.number(NAMES[:30]))
    np.testing.assert_array_equal(codes[:10], first[:10])
    np.testing.assert_array_equal(codes[10:], second)  # the last one handed out


def test_no_row_can_be_read_from_it_nor_compared_between_models(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        enter(tmp_path / folder, NAMES, 0)
    contents = [(tmp_path / folder / NAME).read_bytes() for folder in ("a", "b")]
    assert not [name for name in NAMES for content in contents if name in content]
    with Ledger(tmp_path / "a", 12) as a, Ledger(tmp_path / "b", 12) as b:
        assert not np.isin(a.entries["row"], b.entries["row"]).any()


def test_whatever_is_cut_off_was_not_handed_out_and_nothing_before_is_lost(tmp_path):
    enter(tmp_path, NAMES[:3], 0)
    whole = (tmp_path / NAME).read_bytes()
    enter(tmp_path, NAMES[3:20], 1)
    more = (tmp_path / NAME).read_bytes()
    for length in range(len(whole), len(more)):
        (tmp_path / NAME).write_bytes(more[:length])
        assert draws(tmp_path, NAMES[:20]) == [1] * 3 + [0] * 17
        enter(tmp_path, NAMES[20:21], 2)  # shorter than what was cut off
        assert draws(tmp_path, NAMES[:21]) == [1] * 3 + [0] * 17 + [1]


def test_a_first_entry_that_was_cut_off_is_made_again(tmp_path):
    enter(tmp_path, NAMES[:2], 0)
    whole = (tmp_path / NAME).read_bytes()
    for length in range(len(whole)):
        (tmp_path / NAME).write_bytes(whole[:length])
        assert draws(tmp_path, NAMES[:2]) == [0, 0]
        enter(tmp_path, NAMES[:2], 0)
        assert draws(tmp_path, NAMES[:2]) == [1, 1]


def test_damage_is_never_taken_for_an_empty_ledger(tmp_path):
    enter(tmp_path, NAMES[:3], 0)
    enter(tmp_path, NAMES[3:5], 0)
    whole = (tmp_path / NAME).read_bytes()
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 0x11
        (tmp_path / NAME).write_bytes(damaged)
        with pytest.raises(ValueError, match="is damaged, or not the ledger of this model"):
            draws(tmp_path, NAMES[:5])
    (tmp_path / NAME).write_bytes(whole)
    assert draws(tmp_path, NAMES[:5]) == [1] * 5


def test_a_ledger_is_for_one_run_at_a_time(tmp_path):
    with Ledger(tmp_path, 12), pytest.raises(ValueError, match="Another fairbits draws codes"), Ledger(tmp_path, 12):
        pass


def test_another_code_or_other_people_are_refused(tmp_path):
    enter(tmp_path, NAMES[:3], 0)
    with pytest.raises(ValueError, match="not the ledger of this model"), Ledger(tmp_path, 11):
        pass
    with pytest.raises(ValueError, match="leave --person out here, too"), Ledger(tmp_path, 12, ["id"]):
        pass


def test_a_folder_that_cannot_be_written_is_a_sentence(tmp_path):
    (tmp_path / NAME).mkdir()
    with pytest.raises(ValueError, match="cannot be written"), Ledger(tmp_path, 12):
        pass


def test_repeats_are_told_apart_in_the_same_way_every_time():
    rows = np.array([5, 9, 5, 5, 9, 1], np.uint64)
    apart = repeats_apart(rows)
    assert len(np.unique(apart)) == 6
    np.testing.assert_array_equal(apart[[0, 1, 5]], rows[[0, 1, 5]])
    np.testing.assert_array_equal(np.sort(repeats_apart(rows[::-1])), np.sort(apart))


def test_a_million_rows_are_ten_megabytes(tmp_path):
    rows = np.arange(1_000_000, dtype=np.uint64) * np.uint64(7919)
    with Ledger(tmp_path, 12) as ledger:
        ledger.enter(rows, np.zeros((len(rows), 2), np.uint8))
    assert (tmp_path / NAME).stat().st_size < 10_001_000
    with Ledger(tmp_path, 12) as ledger:
        assert (ledger.draws(rows[::-1]) == 1).all()
        assert (ledger.draws(rows + np.uint64(1)) == 0).all()
