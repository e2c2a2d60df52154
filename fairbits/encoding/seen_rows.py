"""Recognise rows seen before: those a model was trained on, and tables whose codes were drawn already."""

import hashlib
from typing import Any, Self

import numpy as np
import pandas as pd

MARGIN = 0.05  # more rows than chance explains, on top of three standard deviations
RUN = 8  # rows in a row whose content is compared, where rows have no labels


def row_hashes(x: np.ndarray) -> np.ndarray:
    """Return a hash of each row of (n, ...) numbers, equal for equal content.  (n,) uint64"""
    x = np.asarray(x).reshape(len(x), -1)
    factors = np.random.default_rng(0).integers(2**64, size=x.shape[1], dtype=np.uint64) | np.uint64(1)
    total = np.zeros(len(x), np.uint64)
    for column, factor in zip(x.T, factors, strict=True):
        content = (column.astype(np.float32) + np.float32(0)).view(np.uint32)  # no -0
        total += content * factor  # modulo 2^64
    return total


def index_hashes(X: Any) -> np.ndarray | None:
    """Return a hash of each label in the index of a pandas frame, None for anything else."""
    return pd.util.hash_array(X.index.to_numpy()) if isinstance(X, pd.DataFrame) else None


def table_fingerprint(hashes: np.ndarray) -> str:
    """Return a text that is equal for tables of the same rows, in any order."""
    return hashlib.sha256(np.sort(hashes).tobytes()).hexdigest()


class SeenRows:
    """Rows seen before, to notice when they come back: as calibration rows, or to be drawn again.

    A pickle keeps the fingerprint of the table alone: hashes of single rows would reveal who was in it.
    """

    def __init__(self, hashes: np.ndarray, index: np.ndarray | None = None):
        self.fingerprint = table_fingerprint(hashes)
        self.hashes: np.ndarray | None = hashes
        self.index = index

    def __getstate__(self) -> dict[str, Any]:
        return {"fingerprint": self.fingerprint, "hashes": None, "index": None}

    @classmethod
    def of_table(cls, fingerprint: str) -> Self:
        """Return an object that recognises a table by its fingerprint alone."""
        seen = cls.__new__(cls)
        seen.fingerprint, seen.hashes, seen.index = fingerprint, None, None
        return seen

    def come_back(self, hashes: np.ndarray, index: np.ndarray | None = None) -> str | None:
        """Return why rows look like these ones, or None; repeated content alone is no reason."""
        if table_fingerprint(hashes) == self.fingerprint:
            return "they are the same table"
        if self.hashes is None or not len(hashes):
            return None
        _, counts = np.unique(self.hashes, return_counts=True)
        share = counts / len(self.hashes)
        alike = float((share**2).sum())  # the chance that two rows have the same content
        if index is not None and self.index is not None:
            found = np.isin(_paired(hashes, index), _paired(self.hashes, self.index))
            if _more_than_chance(found, alike):
                return "many have the index and the content of those rows"
        elif len(hashes) >= RUN:
            found = np.isin(_runs(hashes), _runs(self.hashes))
            if _more_than_chance(found, len(self.hashes) * alike**RUN):  # a run may be anywhere among them
                return "many are in the same order as those rows"
        fresh = share[counts == 1].sum()  # Good and Turing: the chance that a new row has new content
        if _more_than_chance(np.isin(hashes, self.hashes), 1 - fresh):
            return "many have the content of those rows, more than repeats within them explain"
        return None


def _paired(hashes: np.ndarray, index: np.ndarray) -> np.ndarray:
    return hashes ^ (index * np.uint64(0x9E3779B97F4A7C15))  # an odd number: no two labels alike


def _runs(hashes: np.ndarray) -> np.ndarray:
    """Return a hash of every `RUN` rows that follow each other."""
    total = np.zeros(max(len(hashes) - RUN + 1, 0), np.uint64)
    for place in range(RUN):
        total = total * np.uint64(0x9E3779B97F4A7C15) + hashes[place : place + len(total)]
    return total


def _more_than_chance(found: np.ndarray, chance: float) -> bool:
    chance = min(max(chance, 1 / len(found)), 1.0)
    return bool(found.mean() > chance + MARGIN + 3 * np.sqrt(chance * (1 - chance) / len(found)))


class ReleaseLedger:
    """The rows whose codes have been drawn: two draws of the same people tell more than one.

    It knows tables for ever and single rows as long as it is not pickled.
    """

    def __init__(self, tables: dict[str, list[str]] | None = None):
        self.tables = {table: set(releases) for table, releases in (tables or {}).items()}
        self._rows: SeenRows | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"tables": self.tables, "_rows": None}

    def enter(self, x: np.ndarray, index: np.ndarray | None = None, seeded: str | None = None) -> bool:
        """Note the rows and say whether they, or many of them, were drawn before.

        `seeded` describes a draw that can be repeated: the same draw of the same rows in the same order tells nothing
        new, and is no second one.
        """
        hashes = row_hashes(x)
        table = table_fingerprint(hashes)
        release = None if seeded is None else hashlib.sha256(seeded.encode() + hashes.tobytes()).hexdigest()
        if release is not None and release in self.tables.get(table, ()):
            return False
        again = table in self.tables or (self._rows is not None and self._rows.come_back(hashes, index) is not None)
        self.tables.setdefault(table, set()).update([release] if release else [])
        self._remember(hashes, index)
        return again

    def _remember(self, hashes: np.ndarray, index: np.ndarray | None) -> None:
        if self._rows is not None and self._rows.hashes is not None:
            index = None if index is None or self._rows.index is None else np.r_[self._rows.index, index]
            hashes = np.r_[self._rows.hashes, hashes]
        self._rows = SeenRows(hashes, index)
