"""The ledger of a model: whose code has been handed out, and which one. It survives a crash at any moment.

The file is a sequence of frames, each with its length and checksums: first what the ledger is for, as JSON, then
batches of rows, for each a keyed hash and the code. A batch is on the disk before any of its codes leaves; one that a
crash has cut off was never handed out, and is not counted. Rows cannot be read from it, but who has it can ask whether
a row that they know is in it.
"""

import hashlib
import json
import os
import secrets
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NoReturn, Self

import numpy as np
import pandas as pd

from fairbits.errors import InputError

FORMAT, VERSION = "fairbits ledger", 1
NAME = "released.ledger"
FRAME, CHECK = struct.Struct("<4sII"), struct.Struct("<I")  # mark, length and checksum of the content; their checksum
HEAD, ROWS = b"head", b"rows"
ODD = np.uint64(0x9E3779B97F4A7C15)  # an odd number: no two repeats alike


class Ledger:
    """The ledger in a model's folder, open for one run at a time.

    Parameters
    ----------
    folder : of the model
    bits : of a code
    people : columns that name a person; none, if people are recognised by the values the model reads
    """

    def __init__(self, folder: Path, bits: int, people: Sequence[str] = ()):
        self.file, self.width, self.people = folder / NAME, (bits + 7) // 8, list(people)
        self._header = {"format": FORMAT, "version": VERSION, "bits": bits, "people": self.people}
        self._entry = np.dtype([("row", "<u8"), ("code", "u1", (self.width,))])
        self.entries = np.empty(0, self._entry)
        self.key, self._end = secrets.token_bytes(32), 0  # bytes of the file that are whole

    def __enter__(self) -> Self:
        self._opened = _locked(self.file)
        try:
            self._read()
        except BaseException:
            self._opened.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._opened.close()  # an empty file stays: another run may have opened it

    def number(self, content: Sequence[bytes]) -> np.ndarray:
        """Return a number for each content, the same for the same one; it says nothing to who has no key.  (n,)"""
        hashed = b"".join(hashlib.blake2b(row, key=self.key, digest_size=8).digest() for row in content)
        return np.frombuffer(hashed, "<u8")

    def draws(self, rows: np.ndarray) -> np.ndarray:
        """Return how many codes of each row have been handed out.  (n,)"""
        known, counts = np.unique(self.entries["row"], return_counts=True)
        if not len(known):
            return np.zeros(len(rows), np.int64)
        place = np.searchsorted(known, rows).clip(max=len(known) - 1)
        return np.where(known[place] == rows, counts[place], 0)

    def codes(self, rows: np.ndarray) -> np.ndarray:
        """Return the code that was handed out last of each row, all of which must be known.  (n, width) uint8"""
        backwards = self.entries[::-1]
        known, last = np.unique(backwards["row"], return_index=True)
        return backwards["code"][last[np.searchsorted(known, rows)]]

    def enter(self, rows: np.ndarray, codes: np.ndarray) -> None:
        """Note codes (n, width) that are about to be handed out; they are on the disk on return."""
        if not len(rows):
            return
        batch = np.empty(len(rows), self._entry)
        batch["row"], batch["code"] = rows, codes
        header = json.dumps({**self._header, "key": self.key.hex()}).encode()
        frames = _frame(ROWS, batch.tobytes()) if self._end else _frame(HEAD, header) + _frame(ROWS, batch.tobytes())
        self._opened.seek(self._end)
        self._opened.truncate()  # what a crash has cut off
        self._opened.write(frames)
        self._opened.flush()
        os.fsync(self._opened.fileno())
        if not self._end:
            _sync_name(self.file)
        self._end = self._opened.tell()
        self.entries = np.concatenate([self.entries, batch])

    def _read(self) -> None:
        header = self._next(HEAD)
        if header is None:
            return
        self.key = self._checked(header)
        parts = [self.entries]
        while (content := self._next(ROWS)) is not None:
            parts.append(np.frombuffer(content, self._entry))
            self._end = self._opened.tell()
        self.entries = np.concatenate(parts)

    def _next(self, mark: bytes) -> bytes | None:
        """Return the content of the next frame, None at the end or where a crash has cut it off."""
        start = self._opened.read(FRAME.size + CHECK.size)
        if len(start) < FRAME.size + CHECK.size:
            return None
        found, length, checksum = FRAME.unpack(start[: FRAME.size])
        if start != _framed(found, length, checksum) or found != mark:
            self._damaged()
        content = self._opened.read(length)
        if len(content) < length:
            return None
        if zlib.crc32(content) != checksum:
            self._damaged()
        return content

    def _checked(self, header: bytes) -> bytes:
        """Return the key, if the header is that of a ledger for these codes and people."""
        try:
            found: dict[str, Any] = json.loads(header)
            key = bytes.fromhex(found.pop("key"))
        except (ValueError, KeyError, TypeError, AttributeError):
            self._damaged()
        if found.get("people") != self.people and {**found, "people": self.people} == self._header:
            raise InputError(_other_people(found["people"]))
        if found != self._header:
            self._damaged()
        return key

    def _damaged(self) -> NoReturn:
        raise InputError(
            f"{self.file} is damaged, or not the ledger of this model. It says whose codes were handed out: put a copy "
            "back. Without it nothing can be drawn that the certificate covers; fit a new model instead."
        )


def _frame(mark: bytes, content: bytes) -> bytes:
    return _framed(mark, len(content), zlib.crc32(content)) + content


def _framed(mark: bytes, length: int, checksum: int) -> bytes:
    start = FRAME.pack(mark, length, checksum)
    return start + CHECK.pack(zlib.crc32(start))


def repeats_apart(rows: np.ndarray) -> np.ndarray:
    """Give the first, second, ... row of the same number numbers of their own, the same in every table.  (n,)

    >>> first, second, third = repeats_apart(np.array([7, 7, 8], np.uint64))
    >>> int(first), int(third), bool(first == second)
    (7, 8, False)
    """
    repeat = pd.Series(rows).groupby(rows).cumcount().to_numpy(np.uint64)
    return rows + repeat * ODD  # modulo 2^64


def _other_people(people: Sequence[str]) -> str:
    if people:
        return f"People of this model are recognised by {', '.join(people)}: say --person {','.join(people)} here, too."
    return "People of this model are recognised by the values that the model reads: leave --person out here, too."


def _locked(file: Path) -> IO[bytes]:
    """Open the ledger for reading and appending, for this run alone."""
    try:
        opened = os.fdopen(os.open(file, os.O_RDWR | os.O_CREAT, 0o600), "r+b")
    except OSError as error:
        raise InputError(
            f"{file} cannot be written ({error.strerror}). It notes whose codes were handed out, so none can be "
            "without it; copy the model to a folder of yours."
        ) from None
    if os.name == "posix":
        import fcntl

        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            opened.close()
            raise InputError(
                f"Another fairbits draws codes with this model now ({file}); wait until it is done."
            ) from None
    return opened


def _sync_name(file: Path) -> None:
    """Put the name of a new file on the disk, where the system can."""
    if os.name == "posix":
        folder = os.open(file.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
