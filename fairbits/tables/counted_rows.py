"""The different rows of some columns of a table, and how often each occurs: few, however large the table is."""

import pickle
import tempfile
import weakref
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import IO, Any

import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype, is_object_dtype

from fairbits.encoding.columns import label as text_of
from fairbits.encoding.recognition import identifiers, without_zeros
from fairbits.tables.table_file import ReadTable, Table

MOST_ROWS = 500_000  # of a table that is read whole, and of the rows that are in memory at a time
MOST_FILES = 256  # that are open at a time


class CountedRows:
    """Different rows, and how many rows of a table are like each; `person` columns identify people.

    Numbers of columns with `cuts` are alike if they lie between the same two. Memory is that of the different rows. All
    rows of a person come together again by way of temporary files, which hold identifiers and are deleted at the end.
    """

    def __init__(
        self,
        table: Table,
        columns: Sequence[str],
        person: Sequence[str] = (),
        cuts: Mapping[str, Sequence[float]] | None = None,
    ):
        self.by_person = bool(person)
        self.notes, pieces = _pieces(table, [*columns, *person])
        n_files = min(-(-table.most_rows() // MOST_ROWS), MOST_FILES) if person else 0
        stack, new = ExitStack(), tempfile.TemporaryFile
        self._files: list[IO[bytes]] = [stack.enter_context(new()) for _ in range(n_files)]
        weakref.finalize(self, stack.close)
        found, counts, before = [], [np.zeros(0, np.int64)], 0
        for piece in pieces:
            for name, own_cuts in (cuts or {}).items():
                piece[name] = _rounded(piece[name], np.asarray(own_cuts))
            number = piece.groupby(list(columns), dropna=False, sort=False, observed=True).ngroup().to_numpy()
            _, first, own = np.unique(number, return_index=True, return_counts=True)
            found.append(piece[list(columns)].iloc[first])
            counts.append(own)
            if person:
                self._keep(number + before, identifiers(piece[list(person)]))
            before += len(first)
        frame = pd.concat(found, ignore_index=True)
        for name in frame:  # one piece may have numbers where another has texts
            if is_object_dtype(frame[name]) and infer_dtype(frame[name], skipna=True).startswith("mixed"):
                frame[name] = frame[name].map(text_of, na_action="ignore")
        self._number = frame.groupby(list(columns), dropna=False, sort=False, observed=True).ngroup().to_numpy()
        self.frame = frame.iloc[np.unique(self._number, return_index=True)[1]].reset_index(drop=True)
        self.rows = np.bincount(self._number, np.concatenate(counts), len(self.frame)).astype(np.int64)

    def _keep(self, numbers: np.ndarray, people: list[tuple[str, ...]]) -> None:
        """Write rows to files, those of a person to one."""
        places = [zlib.crc32("\x1f".join(without_zeros(name)).encode()) % len(self._files) for name in people]
        for place, own in pd.Series(places).groupby(places).groups.items():
            pickle.dump((numbers[own], [people[row] for row in own]), self._files[int(place)])

    def together(self, used: np.ndarray) -> Iterator[tuple[np.ndarray, Any]]:
        """Yield which of the different rows each row of the table is, with the people of the rows in a frame, or None.

        Rows that are not `used` are left out. All rows of a person come at once.
        """
        if not self._files:
            ends = self.rows[used].cumsum()
            for start in range(0, int(ends[-1]), MOST_ROWS):
                rows = np.arange(start, min(start + MOST_ROWS, int(ends[-1])))
                yield np.flatnonzero(used)[np.searchsorted(ends, rows, side="right")], None
        for file in self._files:
            parts = [*_read(file)]
            rows = self._number[np.concatenate([numbers for numbers, _ in parts])] if parts else np.empty(0, np.int64)
            people = pd.DataFrame([name for _, names in parts for name in names])
            if used[rows].any():
                yield rows[used[rows]], people[used[rows]].reset_index(drop=True)


def _pieces(table: Table, columns: list[str]) -> tuple[list[str], Iterator[pd.DataFrame]]:
    """Return notes, and columns of a table piece by piece; a table that fits into memory is one piece."""
    if table.most_rows() > MOST_ROWS:
        return list(table.notes), (piece for _, piece in table.pairs([], columns))
    read: ReadTable = table.read(columns)
    return read.notes, iter([read.frame])


def _rounded(x: pd.Series, cuts: np.ndarray) -> pd.Series:
    """Return numbers as the cut below them, or all below the first cut as one number."""
    if x.dtype.kind not in "iuf":
        return x
    below = np.append(cuts[0] - 1, cuts)[np.searchsorted(cuts, x, side="right")]
    return x.where(~np.isfinite(x), below)


def _read(file: IO[bytes]) -> Iterator[tuple[np.ndarray, list[tuple[str, ...]]]]:
    """Yield what was written to a temporary file of our own."""
    end = file.tell()
    file.seek(0)
    while file.tell() < end:
        yield pickle.load(file)
