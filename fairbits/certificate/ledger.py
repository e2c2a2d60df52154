"""The ledger of a model: which people have a released code, how many draws of it, and the last one.

An SQLite file. Each person is a keyed hash with the packed code; the key is in the file too, so nobody can read rows
from it, but anyone who has it can check whether a row that they know is in it. The people are kept in 256 parts by the
first byte of their hash, each with a checksum: finding somebody reads one part, and a damaged part cannot pass for one
in which the person is missing.
"""

import hashlib
import json
import os
import secrets
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from fairbits.errors import InputError

LEDGER_NAME = "released.ledger"
FORMAT, VERSION = "fairbits ledger", 2
PARTS, HEADER = 256, -1  # the header is one more part
TABLE = "CREATE TABLE parts (part INTEGER PRIMARY KEY, width INTEGER, checksum INTEGER, content BLOB)"
UNWRITABLE = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)


class OtherPeopleError(InputError):
    """People were recognised by other columns when this ledger was started."""

    def __init__(self, people: Sequence[str]):
        self.people = list(people)
        how = ", ".join(people) if people else "the values that the model reads"
        remedy = f"Pass {how} as `person`." if people else "Leave `person` out."
        super().__init__(f"The ledger of this model recognises people by {how}.", remedy=remedy)


class Ledger:
    """An open ledger; look up and enter people `with ledger.locked():`, which is one change, made whole or not at all.

    Parameters
    ----------
    path : of the file, which is made if there is none
    bits : of the model's code
    people : names of the columns that identify a person; none if people are recognised by the values the model reads
    wait : seconds to wait for another program that changes the ledger
    """

    def __init__(self, path: str | os.PathLike[str], bits: int, people: Sequence[str] = (), *, wait: float = 30.0):
        self.path, self.bits, self.people = Path(path), bits, list(people)
        try:
            # A ledger that is there is not opened here: closing it would drop the locks that this process has on it.
            if not self.path.exists():
                self.path.touch(0o600)
            self._db = sqlite3.connect(self.path, timeout=wait, isolation_level=None)
        except (OSError, sqlite3.OperationalError) as error:
            raise self._unwritable(str(error)) from None
        self.key = secrets.token_bytes(32)  # of a ledger that has nobody in it yet
        try:
            with self.locked():
                pass
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep others out; what is entered is on the disk at the end, or not at all after an error or a crash."""
        try:
            self._db.execute("PRAGMA synchronous=EXTRA")
            self._db.execute("BEGIN IMMEDIATE")
            self._started = self.path.stat().st_size > 0
            if self._started:
                self.key = self._read_key()
            yield
            self._db.execute("COMMIT" if self._started else "ROLLBACK")  # an empty file stays empty
        except sqlite3.ProgrammingError:
            raise
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code == sqlite3.SQLITE_BUSY:
                problem = f"Another program is releasing codes with this model right now ({self.path})."
                raise InputError(problem, remedy="Try again when it has finished.") from None
            raise (self._unwritable(str(error)) if code in UNWRITABLE else self._damaged()) from None
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    def number(self, content: Sequence[bytes]) -> np.ndarray:
        """Return a number for each content, the same for the same one; without the key it means nothing.  (n,)"""
        hashed = b"".join(hashlib.blake2b(row, key=self.key, digest_size=8).digest() for row in content)
        return np.frombuffer(hashed, "<u8")

    def find(self, rows: np.ndarray) -> np.ndarray:
        """Return the entry of each numbered row, draws 0 where there is none.  (n,) of row, draws, kind, code"""
        order, pieces = np.argsort(rows), []
        for part, wanted in _by_part(rows[order]):
            known = self._read(part)
            found = np.zeros(len(wanted), known.dtype)
            if len(known):
                place = np.searchsorted(known["row"], wanted).clip(max=len(known) - 1)
                found = np.where(known["row"][place] == wanted, known[place], found)
            pieces.append(found)
        width = max((piece.dtype["code"].shape[0] for piece in pieces), default=0)
        entries = np.zeros(len(rows), _entry(width))
        if len(rows):
            entries[order] = np.concatenate([_widened(piece, width) for piece in pieces])
        entries["row"] = rows
        return entries

    def draws(self, rows: np.ndarray) -> np.ndarray:
        """Return how many draws of each numbered row have been released.  (n,)"""
        return self.find(rows)["draws"].astype(np.int64)

    def enter(self, rows: np.ndarray, codes: np.ndarray, *, draws: int = 1, kind: int = 0) -> None:
        """Note packed codes (n, bytes) of different rows that are about to be released.

        `draws` is how many each person gets, `kind` a number for the kind of release.
        """
        if not self._started and len(rows):
            self._start()
        order = np.argsort(rows)
        new = np.zeros(len(rows), _entry(codes.shape[1]))
        new["row"], new["draws"], new["kind"], new["code"] = rows[order], draws, kind, codes[order]
        start = 0
        for part, wanted in _by_part(new["row"]):
            added, known = new[start : start + len(wanted)], self._read(part)
            start += len(wanted)
            width = max(codes.shape[1], known.dtype["code"].shape[0])
            added, known = _widened(added, width), _widened(known, width)
            before = np.isin(known["row"], wanted)
            added["draws"][np.isin(wanted, known["row"])] += known["draws"][before]
            merged = np.concatenate([known[~before], added])
            self._write(part, width, merged[np.argsort(merged["row"])].tobytes())

    def _read(self, part: int) -> np.ndarray:
        width, content = self._content(part) if self._started else (0, b"")
        return np.frombuffer(content, _entry(width))

    def _content(self, part: int) -> tuple[int, bytes]:
        found = self._db.execute("SELECT width, checksum, content FROM parts WHERE part = ?", (part,)).fetchone()
        if found is None or not isinstance(found[2], bytes) or found[1] != _checksum(part, found[0], found[2]):
            raise self._damaged()
        return found[0], found[2]

    def _write(self, part: int, width: int, content: bytes) -> None:
        row = part, width, _checksum(part, width, content), content
        self._db.execute("INSERT OR REPLACE INTO parts VALUES (?, ?, ?, ?)", row)

    def _start(self) -> None:
        self._db.execute(TABLE)
        self._write(HEADER, 0, json.dumps({**self._header(), "key": self.key.hex()}).encode())
        for part in range(PARTS):
            self._write(part, 0, b"")
        self._started = True

    def _header(self) -> dict[str, Any]:
        return {"format": FORMAT, "version": VERSION, "bits": self.bits, "people": self.people}

    def _read_key(self) -> bytes:
        header = json.loads(self._content(HEADER)[1])
        key = bytes.fromhex(header.pop("key"))
        if {**header, "people": self.people} != self._header():
            raise self._damaged()
        if header["people"] != self.people:
            raise OtherPeopleError(header["people"])
        return key

    def _damaged(self) -> InputError:
        return InputError(
            f"{self.path} is damaged, or not the ledger of this model. It lists the people who already have a code, so "
            "without it no new code is covered by the certificate.",
            remedy="Restore it from a backup, or fit a new model.",
        )

    def _unwritable(self, reason: str) -> InputError:
        return InputError(
            f"{self.path} cannot be written ({reason}). It lists the people who already have a code, so fairbits "
            "releases none without it.",
            remedy="Copy the model to a folder that you can write to.",
        )


def _entry(width: int) -> np.dtype:
    return np.dtype([("row", "<u8"), ("draws", "<u4"), ("kind", "<u4"), ("code", "u1", (width,))])


def _widened(entries: np.ndarray, width: int) -> np.ndarray:
    """Return entries with room for codes of so many bytes."""
    wide = np.zeros(len(entries), _entry(width))
    for name in ("row", "draws", "kind"):
        wide[name] = entries[name]
    wide["code"][:, : entries.dtype["code"].shape[0]] = entries["code"]
    return wide


def _by_part(rows: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the number of each part that sorted rows fall into, and these rows."""
    parts, starts = np.unique(rows >> np.uint64(56), return_index=True)
    for part, start, stop in zip(parts.tolist(), starts, [*starts[1:], len(rows)], strict=False):
        yield part, rows[start:stop]


def _checksum(part: int, width: int, content: bytes) -> int:
    return zlib.crc32(content, zlib.crc32(b"%d %d" % (part, width)))
