"""The ledger of released codes: nobody is lost from it, whatever is killed or damaged."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import traceback
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest

from fairbits.certificate import Ledger, LostLedgerError, OtherPeopleError, Release
from fairbits.certificate.ledger import LEDGER_NAME as NAME
from fairbits.certificate.releasing import release_pieces, repeats_apart
from fairbits.errors import InputError

NAMES = [f"person {i}".encode() for i in range(50)]


def enter(folder, names, seed, **release):
    codes = np.random.default_rng(seed).integers(256, size=(len(names), 2), dtype=np.uint8)
    with Ledger(folder / NAME) as ledger, ledger.locked():
        ledger.enter(ledger.number(names), codes, **release)
    return codes


def entries(folder, names):
    with Ledger(folder / NAME) as ledger, ledger.locked():
        return ledger.find(ledger.number(names))


def draws(folder, names):
    return entries(folder, names)["draws"].tolist()


def codes(folder, names):
    return entries(folder, names)["code"]


def test_what_is_entered_is_known_in_the_next_run(tmp_path):
    first = enter(tmp_path, NAMES[:20], 0)
    second = enter(tmp_path, NAMES[10:30], 1)
    assert draws(tmp_path, NAMES) == [1] * 10 + [2] * 10 + [1] * 10 + [0] * 20
    found = codes(tmp_path, NAMES[:30])
    np.testing.assert_array_equal(found[:10], first[:10])
    np.testing.assert_array_equal(found[10:], second)  # the last one released


def test_codes_of_several_widths_and_kinds_stand_beside_each_other(tmp_path):
    first = enter(tmp_path, NAMES[:20], 0, kind=3)
    wide = np.random.default_rng(1).integers(256, size=(10, 9), dtype=np.uint8)
    with Ledger(tmp_path / NAME) as ledger, ledger.locked():
        ledger.enter(ledger.number(NAMES[15:25]), wide, draws=4, kind=7)
        found = ledger.find(ledger.number(NAMES[:26]))
    np.testing.assert_array_equal(found["draws"], [1] * 15 + [5] * 5 + [4] * 5 + [0])
    np.testing.assert_array_equal(found["kind"], [3] * 15 + [7] * 10 + [0])
    np.testing.assert_array_equal(found["code"][:15, :2], first[:15])
    np.testing.assert_array_equal(found["code"][15:25], wide)


def test_no_row_can_be_read_from_it_nor_compared_between_models(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        enter(tmp_path / folder, NAMES, 0)
    contents = [(tmp_path / folder / NAME).read_bytes() for folder in ("a", "b")]
    assert not [name for name in NAMES for content in contents if name in content]
    with Ledger(tmp_path / "a" / NAME) as a, Ledger(tmp_path / "b" / NAME) as b:
        assert not np.isin(a.number(NAMES), b.number(NAMES)).any()
    assert (tmp_path / "a" / NAME).stat().st_mode & 0o77 == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_what_was_entered_survives_kill_9_at_any_moment(tmp_path):
    """A child enters one batch after another and reports each; it is killed somewhere, again and again."""
    done = 0
    for trial, moment in enumerate(np.random.default_rng(0).uniform(0.001, 0.1, 15)):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                for batch in range(done, done + 10_000):
                    enter(tmp_path, [b"%d %d" % (batch, i) for i in range(200)], batch)
                    os.write(writing, b".")
            finally:
                os._exit(1)
        os.close(writing)
        seen = len(os.read(reading, 1)) if trial % 2 else 0  # in every other trial one batch is done for certain
        time.sleep(moment)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with os.fdopen(reading, "rb") as reports:
            reported = done + seen + len(reports.read())
        names = [b"%d %d" % (batch, i) for batch in range(reported + 2) for i in range(200)]
        found = np.reshape(draws(tmp_path, names), (-1, 200)).tolist()
        assert all(batch == [1] * 200 for batch in found[:reported])
        assert found[reported] in ([0] * 200, [1] * 200)  # a batch as a whole, or nothing of it
        assert found[reported + 1] == [0] * 200
        done = reported + (found[reported] == [1] * 200)
    assert done >= 7


def test_an_error_leaves_the_ledger_as_it_was(tmp_path):
    enter(tmp_path, NAMES[:2], 0)
    with Ledger(tmp_path / NAME) as ledger:
        with suppress(KeyboardInterrupt), ledger.locked():
            ledger.enter(ledger.number(NAMES), np.zeros((50, 2), np.uint8))
            raise KeyboardInterrupt
        assert ledger.find(ledger.number(NAMES))["draws"].tolist() == [1] * 2 + [0] * 48


def test_nothing_is_written_before_somebody_is_entered(tmp_path):
    with Ledger(tmp_path / NAME) as first, Ledger(tmp_path / NAME) as second:
        with first.locked():
            assert not first.find(first.number(NAMES))["draws"].any()
            first.enter(first.number([]), np.zeros((0, 2), np.uint8))
        assert (tmp_path / NAME).stat().st_size == 0
        with second.locked():
            second.enter(second.number(NAMES), np.zeros((50, 2), np.uint8))
        with first.locked():  # it takes over the key of who was first
            assert first.find(first.number(NAMES))["draws"].all()


@pytest.mark.parametrize("step", [13, pytest.param(1, marks=pytest.mark.slow)])
def test_damage_is_never_taken_for_an_empty_ledger(tmp_path, step):
    """The first 600 bytes and every `step`-th after are changed in turn: an error, or everybody is still known.

    SQLite leaves bytes unused, so a change may mean nothing; it must never make somebody unknown.
    """
    enter(tmp_path, NAMES[:3], 0)
    enter(tmp_path, NAMES[3:5], 0)
    (tmp_path / f"{NAME}.last").unlink()  # with it, lost releases are noticed first
    whole, expected = (tmp_path / NAME).read_bytes(), codes(tmp_path, NAMES[:5])
    sentences = []
    for place in [*range(600), *range(600, len(whole), step)]:
        damaged = bytearray(whole)
        damaged[place] ^= 0x11
        (tmp_path / NAME).write_bytes(damaged)
        try:
            found = entries(tmp_path, NAMES[:5])
        except ValueError as error:
            sentences.append(str(error))
        else:
            assert (found["draws"].tolist(), found["code"].tolist()) == ([1] * 5, expected.tolist())
    assert len(sentences) > 50
    assert all("is damaged, or not a ledger" in text or "cannot be written" in text for text in sentences)
    (tmp_path / NAME).write_bytes(whole)
    assert draws(tmp_path, NAMES[:5]) == [1] * 5


def test_a_ledger_that_was_cut_off_or_lost_a_part_is_damaged(tmp_path):
    enter(tmp_path, NAMES, 0)
    (tmp_path / f"{NAME}.last").unlink()
    whole = (tmp_path / NAME).read_bytes()
    for length in range(1, len(whole), 512):
        (tmp_path / NAME).write_bytes(whole[:length])
        with pytest.raises(ValueError, match="is damaged, or not a ledger"):
            draws(tmp_path, NAMES)
    (tmp_path / NAME).write_bytes(whole)
    with sqlite3.connect(tmp_path / NAME) as db:
        db.execute("DELETE FROM parts WHERE length(content) > 0 AND part >= 0")
    db.close()
    with pytest.raises(ValueError, match="is damaged"):
        draws(tmp_path, NAMES)


def test_the_codes_of_others_are_damage_too(tmp_path):
    enter(tmp_path, NAMES, 0)
    with sqlite3.connect(tmp_path / NAME) as db:
        db.execute("UPDATE parts SET content = x'', width = 0 WHERE part >= 0")
    db.close()
    with pytest.raises(ValueError, match="is damaged"):
        draws(tmp_path, NAMES)


def test_damaged_names_and_types_are_a_sentence_too(tmp_path):
    enter(tmp_path, NAMES, 0)
    whole = (tmp_path / NAME).read_bytes()
    (tmp_path / NAME).write_bytes(whole.replace(b"CREATE TABLE parts", b"CREATE TABLE p\xb3\xb3ts"))
    with pytest.raises(InputError, match="is damaged"):
        draws(tmp_path, NAMES)
    for wrong in ("NULL", "'2'", "1.5"):
        (tmp_path / NAME).write_bytes(whole)
        with sqlite3.connect(tmp_path / NAME) as db:
            db.execute(f"CREATE TABLE other AS SELECT part, {wrong} AS width, checksum, content FROM parts")
            db.execute("DROP TABLE parts")
            db.execute("ALTER TABLE other RENAME TO parts")
        db.close()
        with pytest.raises(InputError, match="is damaged"):
            draws(tmp_path, NAMES)


def test_a_second_program_waits_and_then_gets_a_sentence(tmp_path):
    with Ledger(tmp_path / NAME) as first, Ledger(tmp_path / NAME, wait=0.05) as second:
        with first.locked():
            started = time.perf_counter()
            with pytest.raises(ValueError, match="Another program is releasing codes"), second.locked():
                pass
            assert time.perf_counter() - started >= 0.05
        with second.locked():
            second.enter(second.number(NAMES), np.zeros((50, 2), np.uint8))
        with first.locked():
            assert (first.find(first.number(NAMES))["draws"] == 1).all()


def test_opening_a_ledger_twice_does_not_let_another_program_in(tmp_path):
    """Closing a file drops the locks that its process has on it, whoever in the process took them."""
    with Ledger(tmp_path / NAME) as first, first.locked():
        with pytest.raises(ValueError, match="Another program"):
            Ledger(tmp_path / NAME, wait=0.01)
        other = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0.01).execute('BEGIN IMMEDIATE')"
        ended = subprocess.run([sys.executable, "-c", other, tmp_path / NAME], capture_output=True, text=True)
        assert "database is locked" in ended.stderr


class Coin:
    """A code of twelve fair bits."""

    code_size, fingerprint = 12, "a coin"

    def code_probabilities(self, rows):
        return np.full((len(rows), 12), 0.5)


def release_in_turns(folder, number):
    """Release codes of people below 50, and above, together with another process; return what each person got."""
    rng, got, until = np.random.default_rng(number), {}, time.monotonic() + 60
    (folder / f"ready{number}").touch()
    while not all((folder / f"ready{other}").exists() for other in range(2)):
        assert time.monotonic() < until
        time.sleep(0.001)
    for turn in range(30):
        repeated = ("refuse", "reuse")[turn % 2]
        people = pd.DataFrame({"id": rng.choice(50, 7, replace=False) + turn % 2 * 50})
        try:
            with Ledger(folder / "shared.ledger", ["id"]) as ledger:
                released = release_pieces(Coin(), [(people.to_numpy(), people)], ledger, Release(), repeated, 1)
        except InputError as refused:
            if not any(words in str(refused) for words in ("already ha", "Another program has just started")):
                raise
        else:
            for person, code in zip(people.id.tolist(), released.codes.tolist(), strict=True):
                got.setdefault(str(person), []).append(code)
    return got


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_nobody_gets_two_codes_from_two_programs_at_once(tmp_path):
    """Two processes release overlapping people at the same time: each is refused, or gets its one code."""
    children = []
    for number in range(2):
        children.append(os.fork())
        if children[-1] == 0:
            try:
                (tmp_path / f"got{number}.json").write_text(json.dumps(release_in_turns(tmp_path, number)))
                os._exit(0)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    found = [json.loads((tmp_path / f"got{number}.json").read_text()) for number in range(2)]
    assert all(found)
    everybody = {person: [code for own in found for code in own.get(person, [])] for person in {*found[0], *found[1]}}
    assert all(len(codes) == 1 for person, codes in everybody.items() if int(person) < 50)
    reused = [codes for person, codes in everybody.items() if int(person) >= 50]
    assert len(reused) == 50
    assert all(code == codes[0] for codes in reused for code in codes)
    with Ledger(tmp_path / "shared.ledger", ["id"]) as ledger, ledger.locked():
        known = ledger.find(ledger.number([person.encode() for person in everybody]))
    assert (known["draws"] == 1).all()


def test_a_ledger_that_is_lost_or_older_than_its_receipt_is_noticed(tmp_path):
    enter(tmp_path, NAMES[:20], 0)
    older = (tmp_path / NAME).read_bytes()
    enter(tmp_path, NAMES[20:], 1)
    newest, receipt = (tmp_path / NAME).read_bytes(), (tmp_path / f"{NAME}.last").read_bytes()
    (tmp_path / NAME).write_bytes(older)
    with pytest.raises(LostLedgerError, match=r"it has 20 entries, and .* had 50 entries"):
        draws(tmp_path, NAMES)
    (tmp_path / NAME).unlink()
    with pytest.raises(LostLedgerError, match=r"There is no ledger in .* had 50 entries"):
        draws(tmp_path, NAMES)
    assert not (tmp_path / NAME).exists()
    (tmp_path / NAME).write_bytes(newest)  # a backup of it
    assert draws(tmp_path, NAMES) == [1] * 50
    (tmp_path / NAME).write_bytes(older)
    with Ledger(tmp_path / NAME, accept_loss=True) as ledger, ledger.locked():
        ledger.enter(ledger.number(NAMES[40:]), np.zeros((10, 2), np.uint8))
    with Ledger(tmp_path / NAME) as ledger:  # goes on from there, and remembers the loss
        assert not ledger.complete
    (tmp_path / NAME).write_bytes(newest)  # two histories of as many releases
    with pytest.raises(LostLedgerError, match="or another ledger"):
        draws(tmp_path, NAMES)
    (tmp_path / f"{NAME}.last").write_bytes(receipt)
    assert draws(tmp_path, NAMES) == [1] * 50
    (tmp_path / f"{NAME}.last").write_bytes(b"{}")
    with pytest.raises(InputError, match=r"\.last is damaged"):
        draws(tmp_path, NAMES)


def test_a_ledger_without_receipt_and_one_with_newer_releases_are_as_good(tmp_path):
    enter(tmp_path, NAMES[:20], 0)
    receipt = (tmp_path / f"{NAME}.last").read_bytes()
    enter(tmp_path, NAMES[20:], 0)
    (tmp_path / f"{NAME}.last").write_bytes(receipt)  # a program was killed before it wrote the new one
    assert draws(tmp_path, NAMES) == [1] * 50
    (tmp_path / f"{NAME}.last").unlink()
    assert draws(tmp_path, NAMES) == [1] * 50


def test_a_ledger_of_version_2_is_of_the_model_that_comes_first(tmp_path):
    """As fairbits 0.2 wrote it: one model, with the bits of its code in the header."""
    enter(tmp_path, NAMES[:20], 0)
    with Ledger(tmp_path / NAME) as ledger, ledger.locked():
        old = {"format": "fairbits ledger", "version": 2, "bits": 12, "people": [], "key": ledger.key.hex()}
        ledger._write([(-1, 0, json.dumps(old).encode())])
        ledger._db.execute("DELETE FROM parts WHERE part >= 256")
    (tmp_path / f"{NAME}.last").unlink()
    assert draws(tmp_path, NAMES) == [1] * 20 + [0] * 30
    with Ledger(tmp_path / NAME) as ledger, ledger.locked():
        assert ledger.masks("another", 11)[0] != 0
    with Ledger(tmp_path / NAME) as ledger, ledger.locked():
        assert ledger.masks("its own", 12) == (0, [])


def test_other_people_are_refused(tmp_path):
    enter(tmp_path, NAMES[:3], 0)
    with pytest.raises(OtherPeopleError, match="Leave `person` out"):
        Ledger(tmp_path / NAME, ["id"])


def test_a_folder_that_cannot_be_written_is_a_sentence(tmp_path):
    (tmp_path / NAME).mkdir()
    with pytest.raises(ValueError, match="cannot be written"):
        Ledger(tmp_path / NAME)


def test_repeats_are_set_apart_in_the_same_way_every_time():
    rows = pd.Series([5, 9, 5, 5, 9, 1], dtype=np.uint64)
    apart = repeats_apart(rows)
    assert len(np.unique(apart)) == 6
    np.testing.assert_array_equal(apart[[0, 1, 5]], [5, 9, 1])
    np.testing.assert_array_equal(np.sort(repeats_apart(rows[::-1])), np.sort(apart))


def test_one_more_person_takes_as_long_after_many_as_at_first(tmp_path):
    rng = np.random.default_rng(0)
    with Ledger(tmp_path / NAME) as ledger:

        def seconds():
            """Return the time to look up and enter one person, the median of 15."""
            times = []
            for row in rng.integers(2**64, size=(15, 1), dtype=np.uint64):
                start = time.perf_counter()
                with ledger.locked():
                    assert ledger.find(row)["draws"] == 0
                    ledger.enter(row, np.zeros((1, 2), np.uint8))
                times.append(time.perf_counter() - start)
            return np.median(times)

        first = seconds()
        with ledger.locked():
            rows = rng.integers(2**64, size=100_000, dtype=np.uint64)
            ledger.enter(rows, np.zeros((len(rows), 2), np.uint8))
        assert seconds() < 20 * first


@pytest.mark.slow
def test_a_million_rows_are_twenty_megabytes(tmp_path):
    rows = np.arange(1_000_000, dtype=np.uint64) * np.uint64(7919) * np.uint64(2**40 + 1)
    with Ledger(tmp_path / NAME) as ledger, ledger.locked():
        ledger.enter(rows, np.zeros((len(rows), 2), np.uint8))
    assert (tmp_path / NAME).stat().st_size < 20_000_000
    with Ledger(tmp_path / NAME) as ledger, ledger.locked():
        assert (ledger.find(rows[::-1])["draws"] == 1).all()
        assert (ledger.find(rows + np.uint64(1))["draws"] == 0).all()
