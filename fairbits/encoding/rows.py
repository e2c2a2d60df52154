"""Recognise rows seen before: those a model was trained on, and tables whose codes were drawn already."""

import hashlib
from typing import Any

import numpy as np
import pandas as pd

MARGIN = 0.05  # more rows than chance explains, on top of three standard deviations


def row_hashes(x: np.ndarray) -> np.ndarray:
    """Return a number for each row of (n, ...) numbers that is the same for the same content.  (n,) uint64"""
    x = np.asarray(x).reshape(len(x), -1)
    factors = np.random.default_rng(0).integers(2**64, size=x.shape[1], dtype=np.uint64) | np.uint64(1)
    total = np.zeros(len(x), np.uint64)
    for column, factor in zip(x.T, factors, strict=True):
        content = (column.astype(np.float32) + np.float32(0)).view(np.uint32)  # no -0
        total += content * factor  # modulo 2^64
    return total


def index_hashes(X: Any) -> np.ndarray | None:
    """Return a number for each row's label in a pandas frame's index, None for anything else."""
    return pd.util.hash_array(X.index.to_numpy()) if isinstance(X, pd.DataFrame) else None


def table_fingerprint(hashes: np.ndarray) -> str:
    """Return a text that is the same for tables of the same rows, in any order."""
    return hashlib.sha256(np.sort(hashes).tobytes()).hexdigest()


class SeenRows:
    """The rows a model was trained on, to notice when they come back as calibration rows.

    A pickle keeps the fingerprint of the table alone: numbers of single rows would tell who was in it.
    """

    def __init__(self, hashes: np.ndarray, index: np.ndarray | None = None):
        self.fingerprint = table_fingerprint(hashes)
        self.hashes, self.index = hashes, index

    def __getstate__(self) -> dict[str, Any]:
        return {"fingerprint": self.fingerprint, "hashes": None, "index": None}

    def come_back(self, hashes: np.ndarray, index: np.ndarray | None = None) -> str | None:
        """Say why rows look like these ones, or return None; repeated content alone is no reason."""
        if table_fingerprint(hashes) == self.fingerprint:
            return "they are the same table"
        if self.hashes is None:
            return None
        if index is not None and self.index is not None and self._same_places(hashes, index, self.index):
            return "many have the index and the content of training rows"
        _, counts = np.unique(self.hashes, return_counts=True)
        fresh = (counts == 1).sum() / len(self.hashes)  # Good and Turing: the chance that a new row has new content
        if _more_than_chance(np.isin(hashes, self.hashes), 1 - fresh):
            return "many have the content of training rows, more than repeats within them explain"
        return None

    def _same_places(self, hashes: np.ndarray, index: np.ndarray, own_index: np.ndarray) -> bool:
        """Say whether more rows have the index label *and* content of a training row than content alone explains."""
        _, counts = np.unique(self.hashes, return_counts=True)
        alike = float(((counts / len(self.hashes)) ** 2).sum())  # the chance that two rows have the same content
        return _more_than_chance(np.isin(_paired(hashes, index), _paired(self.hashes, own_index)), alike)


def _paired(hashes: np.ndarray, index: np.ndarray) -> np.ndarray:
    return hashes ^ (index * np.uint64(0x9E3779B97F4A7C15))  # an odd number: no two labels alike


def _more_than_chance(found: np.ndarray, chance: float) -> bool:
    chance = min(max(chance, 1 / len(found)), 1.0)
    return bool(found.mean() > chance + MARGIN + 3 * np.sqrt(chance * (1 - chance) / len(found)))


class ReleaseLedger:
    """The tables whose codes have been drawn: two draws of the same people tell more than one."""

    def __init__(self, tables: list[str] | None = None):
        self.tables = set(tables or ())

    def enter(self, x: np.ndarray) -> bool:
        """Note the table and say whether it was drawn before."""
        fingerprint = table_fingerprint(row_hashes(x))
        again = fingerprint in self.tables
        self.tables.add(fingerprint)
        return again
