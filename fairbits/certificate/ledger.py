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
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import numpy as np
import pandas as pd

from fairbits.errors import InputError

LEDGER_NAME = "released.ledger"
FORMAT, VERSION = "fairbits ledger", 2
PARTS, HEADER = 256, -1  # the header is one more part
BELOW_PART = np.uint64(56)  # bits of a row's number below the number of its part
TABLE = "CREATE TABLE parts (part INTEGER PRIMARY KEY, width INTEGER, checksum INTEGER, content BLOB)"
UNWRITABLE = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)


class OtherPeopleError(InputError):
    """People were recognised by other columns when this ledger was started."""

    def __init__(self, people: Sequence[str]):
        self.people = list(people)
        how = ", ".join(people) if people else "the values that the model reads"
        remedy = f"Pass {how} as `person`." if people else "Leave `person` out."
        super().__init__(f"The ledger of this model recognises people by {how}.", remedy=remedy)


class Ledger(AbstractContextManager["Ledger"]):
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
        self._header = {"format": FORMAT, "version": VERSION, "bits": bits, "people": self.people}
        self.key = secrets.token_bytes(32)  # of a ledger that has nobody in it yet
        try:
            # A ledger that is there is not opened here: closing it would drop the locks that this process has on it.
            if not self.path.exists():
                self.path.touch(0o600)
            self._db = sqlite3.connect(self.path, timeout=wait, isolation_level=None)
        except (OSError, sqlite3.OperationalError) as error:
            raise self._unwritable(error) from None
        try:
            with self.locked():
                pass
        except BaseException:
            self._db.close()
            raise

    def __exit__(self, *error: object) -> None:
        self._db.close()

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
        except (sqlite3.Error, UnicodeDecodeError) as error:  # SQLite's own message may be damaged, too
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code == sqlite3.SQLITE_BUSY:
                problem = f"Another program is releasing codes with this model right now ({self.path})."
                raise InputError(problem, remedy="Try again when it has finished.") from None
            raise (self._unwritable(error) if code in UNWRITABLE else self._damaged()) from None
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    def number(self, content: Sequence[bytes]) -> np.ndarray:
        """Return a number for each content, the same for the same one; without the key it means nothing.  (n,)"""
        hashed = b"".join(hashlib.blake2b(row, key=self.key, digest_size=8).digest() for row in content)
        return np.frombuffer(hashed, "<u8")

    def find(self, rows: np.ndarray) -> np.ndarray:
        """Return the entry of each numbered row, all 0 where there is none.  (n,) of row, draws, kind, code"""
        return _looked_up(rows, self._read(rows))

    def enter(self, rows: np.ndarray, codes: np.ndarray, *, draws: int = 1, kind: int = 0) -> None:
        """Note packed codes (n, bytes) of different rows that are about to be released.

        `draws` is how many each person gets, `kind` a number for the kind of release.
        """
        if not self._started and len(rows):
            self._start()
        known = self._read(rows, codes.shape[1])
        new = _looked_up(rows, known)
        new["row"], new["draws"], new["kind"], new["code"] = rows, new["draws"] + draws, kind, 0
        new["code"][:, : codes.shape[1]] = codes
        entries = np.concatenate([known[~np.isin(known["row"], rows)], new])
        entries = entries[np.argsort(entries["row"])]
        parts, width = entries["row"] >> BELOW_PART, known.dtype["code"].shape[0]
        self._write((part, width, entries[parts == part].tobytes()) for part in np.unique(parts).tolist())

    def _start(self) -> None:
        self._db.execute(TABLE)
        header = json.dumps({**self._header, "key": self.key.hex()}).encode()
        self._write([(HEADER, 0, header), *((part, 0, b"") for part in range(PARTS))])
        self._started = True

    def _read_key(self) -> bytes:
        header = json.loads(self._content(HEADER)[1])
        key, people = bytes.fromhex(header.pop("key")), header["people"]
        if {**header, "people": self.people} != self._header:
            raise self._damaged()
        if people != self.people:
            raise OtherPeopleError(people)
        return key

    def _read(self, rows: np.ndarray, width: int = 0) -> np.ndarray:
        """Return all entries of the parts that rows fall into, with room for codes of `width` bytes or more."""
        found = [self._content(part) for part in np.unique(rows >> BELOW_PART).tolist()] if self._started else []
        width = max([width, *(own for own, _ in found)])
        entry = np.dtype([("row", "<u8"), ("draws", "<u4"), ("kind", "<u4"), ("code", "u1", (width,))])
        pieces = [np.zeros((0, entry.itemsize), np.uint8)]
        for own, content in found:
            narrow = np.frombuffer(content, np.uint8).reshape(-1, entry.itemsize - width + own)
            pieces.append(np.pad(narrow, ((0, 0), (0, width - own))))
        return np.concatenate(pieces).view(entry).ravel()

    def _content(self, part: int) -> tuple[int, bytes]:
        found = self._db.execute("SELECT width, checksum, content FROM parts WHERE part = ?", (part,)).fetchone()
        if tuple(map(type, found or ())) != (int, int, bytes) or found[1] != _checksum(part, found[0], found[2]):
            raise self._damaged()
        return found[0], found[2]

    def _write(self, parts: Iterable[tuple[int, int, bytes]]) -> None:
        for part, width, content in parts:
            row = part, width, _checksum(part, width, content), content
            self._db.execute("INSERT OR REPLACE INTO parts VALUES (?, ?, ?, ?)", row)

    def _damaged(self) -> InputError:
        return InputError(
            f"{self.path} is damaged, or not the ledger of this model. It lists the people who already have a code, so "
            "without it no new code is covered by the certificate.",
            remedy="Restore it from a backup, or fit a new model.",
        )

    def _unwritable(self, reason: Exception) -> InputError:
        return InputError(
            f"{self.path} cannot be written ({reason}). It lists the people who already have a code, so fairbits "
            "releases none without it.",
            remedy="Copy the model to a folder that you can write to.",
        )


def _looked_up(rows: np.ndarray, entries: np.ndarray) -> np.ndarray:
    """Return the entry of each row, all 0 where there is none."""
    place = pd.Index(entries["row"]).get_indexer(rows)
    found = np.zeros(len(rows), entries.dtype)
    found[place >= 0] = entries[place[place >= 0]]
    return found


def _checksum(part: int, width: int, content: bytes) -> int:
    return zlib.crc32(content, zlib.crc32(b"%d %d" % (part, width)))
