"""The ledger of released codes: which people have one, of which model, how many draws of it, and the last one.

An SQLite file. Each person is a keyed hash with the packed code; the key is in the file too, so nobody can read rows
from it, but anyone who has it can check whether a row that they know is in it. The people are kept in 256 parts by the
first byte of their hash, each with a checksum: finding somebody reads one part, and a damaged part cannot pass for one
in which the person is missing. A part more for every release holds a digest of all releases up to it. The last digest
is also in a receipt, a file of its own: a ledger that has lost it is older than the receipt, or another one.
"""

import hashlib
import json
import os
import secrets
import sqlite3
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import numpy as np
import pandas as pd

from fairbits.errors import InputError
from fairbits.storage import replace_file

LEDGER_NAME, RECEIPT_ENDING = "released.ledger", ".last"
FORMAT, VERSION = "fairbits ledger", 3  # version 2 was of one model
PARTS, HEADER = 256, -1  # the header is one more part, and so is every release
BELOW_PART = np.uint64(56)  # bits of a row's number below the number of its part
TABLE = "CREATE TABLE parts (part INTEGER PRIMARY KEY, width INTEGER, checksum INTEGER, content BLOB)"
UNWRITABLE = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
MOST_DRAWS = 2**16 - 1  # that are counted


class OtherPeopleError(InputError):
    """People were recognised by other columns when this ledger was started."""

    def __init__(self, people: Sequence[str]):
        self.people = list(people)
        how = ", ".join(people) if people else "the values that the model reads"
        remedy = f"Pass {how} as `person`." if people else "Leave `person` out."
        super().__init__(f"This ledger recognises people by {how}.", remedy=remedy)


class LostLedgerError(InputError):
    """The ledger of the last release is missing, or this one is older."""

    def __init__(self, problem: str):
        super().__init__(
            f"{problem} It lists the people who already have a code, so fairbits does not know who would get a second "
            "one.",
            remedy="Restore it from a backup, or pass accept_loss=True to go on: whether the certificate covers the "
            "codes of this ledger is then unknown.",
        )


class Ledger(AbstractContextManager["Ledger"]):
    """An open ledger; look up and enter people inside `with ledger.locked():`, which makes one atomic change.

    Parameters
    ----------
    path : of the file, which is made if there is none
    people : names of the columns that identify a person; none if people are recognised by the values the model reads
    receipt : file that keeps the digest of the last release; by default beside the ledger, its name with .last
    accept_loss : go on if the releases up to the receipt are not in the ledger, which is incomplete from then on
    wait : seconds to wait for another program that changes the ledger
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        people: Sequence[str] = (),
        *,
        receipt: str | os.PathLike[str] | None = None,
        accept_loss: bool = False,
        wait: float = 30.0,
    ):
        self.path, self.people, self.accept_loss = Path(path), list(people), accept_loss
        self.receipt = self.path.with_name(self.path.name + RECEIPT_ENDING) if receipt is None else Path(receipt)
        self.key = secrets.token_bytes(32)  # of a ledger that has nobody in it yet
        self.models: list[str] = []  # fingerprints, in order of their first release
        self.complete = True
        try:
            # A ledger that is there is not opened here: closing it would drop the locks that this process has on it.
            if not self.path.exists():
                self._started = False
                self._compare_receipt()
                self.path.touch(0o600)
            if not os.access(self.receipt.parent, os.W_OK):
                raise PermissionError(f"{self.receipt.parent} is read-only")
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
            self._news = b""
            if self._started:
                self._read_header()
            self._compare_receipt()
            yield
            self._db.execute("COMMIT" if self._started else "ROLLBACK")  # an empty file stays empty
        except sqlite3.ProgrammingError:
            raise
        except (sqlite3.Error, UnicodeDecodeError) as error:  # SQLite's own message may be damaged, too
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code == sqlite3.SQLITE_BUSY:
                problem = f"Another program is releasing codes with this ledger right now ({self.path})."
                raise InputError(problem, remedy="Try again when it has finished.") from None
            raise (self._unwritable(error) if code in UNWRITABLE else self._damaged()) from None
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        if self._news:  # a receipt may be older than the ledger, so it comes last
            replace_file(self.receipt, self._news)

    def number(self, content: Sequence[bytes]) -> np.ndarray:
        """Return a number for each content, the same for the same one; without the key it means nothing.  (n,)"""
        hashed = b"".join(hashlib.blake2b(row, key=self.key, digest_size=8).digest() for row in content)
        return np.frombuffer(hashed, "<u8")

    def masks(self, model: str, bits: int) -> tuple[np.uint64, list[np.uint64]]:
        """Return what turns the number of a person (by xor) into that of a model's entry, and the same of all others.

        Call it while the ledger is locked. `bits` of the code say whether a ledger of version 2 is of this model.
        """
        if self.models == [f"{bits} bits"]:
            self.models = [model]
        elif model not in self.models:
            self.models.append(model)
        masks = dict(zip(self.models, self.number([name.encode() for name in self.models]), strict=True))
        masks[self.models[0]] = np.uint64(0)
        return masks.pop(model), list(masks.values())

    def find(self, rows: np.ndarray) -> np.ndarray:
        """Return the entry of each numbered row, all 0 where there is none.  (n,) of row, draws, zeros, kind, code"""
        return _looked_up(rows, self._read(rows))

    def enter(
        self, rows: np.ndarray, codes: np.ndarray, *, draws: int = 1, zeros: np.ndarray | int = 0, kind: int = 0
    ) -> None:
        """Note packed codes (n, bytes) of different rows that are about to be released.

        `draws` is how many each person gets, `zeros` says how many leading zeros the identifiers have, `kind` is a
        number for the kind of release.
        """
        if not len(rows):
            return
        if not self._started:
            self._db.execute(TABLE)
            self._write((part, 0, b"") for part in range(PARTS))
            self._started = True
        known = self._read(rows, codes.shape[1])
        new = _looked_up(rows, known)
        added = int((new["draws"] == 0).sum())
        new["row"], new["kind"], new["zeros"], new["code"] = rows, kind, zeros, 0
        new["draws"] = np.minimum(new["draws"].astype(np.int64) + draws, MOST_DRAWS)
        new["code"][:, : codes.shape[1]] = codes
        entries = np.concatenate([known[~np.isin(known["row"], rows)], new])
        entries = entries[np.argsort(entries["row"])]
        parts, width = entries["row"] >> BELOW_PART, known.dtype["code"].shape[0]
        self._write((part, width, entries[parts == part].tobytes()) for part in np.unique(parts).tolist())
        self._write_release(added, new.tobytes())

    def _write_release(self, added: int, content: bytes) -> None:
        """Write the header, the digest of one more release, and what the receipt is to say."""
        header = {"format": FORMAT, "version": VERSION, "people": self.people, "models": self.models}
        header |= {"complete": self.complete, "key": self.key.hex()}
        (last,) = self._db.execute("SELECT max(part) FROM parts").fetchone()
        before = self._content(last)[1] if last >= PARTS else b""
        entries = added + (struct.unpack_from("<Q", before)[0] if before else 0)
        release = struct.pack("<Q", entries) + hashlib.blake2b(before + content, digest_size=16).digest()
        self._write([(HEADER, 0, json.dumps(header).encode()), (last + 1, 0, release)])
        known = {"ledger": str(self.path.absolute()), "release": last + 1, "entries": entries}
        self._news = json.dumps(known | {"digest": release[8:].hex()}).encode()

    def _read_header(self) -> None:
        header = json.loads(self._content(HEADER)[1])
        if header.get("version") == 2:
            header |= {"version": VERSION, "models": [f"{header.pop('bits')} bits"], "complete": True}
        if (header["format"], header["version"]) != (FORMAT, VERSION):
            raise self._damaged()
        if header["people"] != self.people:
            raise OtherPeopleError(header["people"])
        self.key, self.models, self.complete = bytes.fromhex(header["key"]), header["models"], header["complete"]

    def _compare_receipt(self) -> None:
        """Raise LostLedgerError, or call the ledger incomplete, if the releases up to the receipt are not in it."""
        if not self.receipt.exists():
            return
        try:
            known = json.loads(self.receipt.read_bytes())
            release, then, place = int(known["release"]), int(known["entries"]), str(known["ledger"])
            expected = struct.pack("<Q", then) + bytes.fromhex(known["digest"])
        except (ValueError, TypeError, KeyError, struct.error):
            remedy = "Restore it from a backup, or move it away."
            raise InputError(f"{self.receipt} is damaged.", remedy=remedy) from None
        shown, now = b"", 0
        if self._started:
            (last,) = self._db.execute("SELECT max(part) FROM parts").fetchone()
            now = struct.unpack_from("<Q", self._content(last)[1])[0] if last >= PARTS else 0
            shown = self._content(release)[1] if PARTS <= release <= last else b""
        if shown == expected:
            return
        if self.accept_loss:
            self.complete = False
            return
        had = f"the ledger of the last release ({place}) had {then:,} entries"
        if not self._started:
            raise LostLedgerError(f"There is no ledger in {self.path}, and {had}.")
        raise LostLedgerError(
            f"{self.path} is older than the last release, or another ledger: it has {now:,} entries, and {had}."
        )

    def _read(self, rows: np.ndarray, width: int = 0) -> np.ndarray:
        """Return all entries of the parts that rows fall into, with room for codes of `width` bytes or more."""
        found = [self._content(part) for part in np.unique(rows >> BELOW_PART).tolist()] if self._started else []
        width = max([width, *(own for own, _ in found)])
        fields = {"row": "<u8", "draws": "<u2", "zeros": "<u2", "kind": "<u4", "code": f"({width},)u1"}
        entry = np.dtype(list(fields.items()))
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
            f"{self.path} is damaged, or not a ledger. It lists the people who already have a code, so "
            "without it no new code is covered by the certificate.",
            remedy="Restore it from a backup, or fit a new model.",
        )

    def _unwritable(self, reason: Exception) -> InputError:
        return InputError(
            f"{self.path} cannot be written ({reason}). It lists the people who already have a code, so fairbits "
            "releases none without it.",
            remedy="Copy the model, or the ledger, to a folder that you can write to.",
        )


def _looked_up(rows: np.ndarray, entries: np.ndarray) -> np.ndarray:
    """Return the entry of each row, all 0 where there is none."""
    place = pd.Index(entries["row"]).get_indexer(rows)
    found = np.zeros(len(rows), entries.dtype)
    found[place >= 0] = entries[place[place >= 0]]
    return found


def _checksum(part: int, width: int, content: bytes) -> int:
    return zlib.crc32(content, zlib.crc32(b"%d %d" % (part, width)))
