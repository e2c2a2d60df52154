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

from fairbits.encoding import take_rows
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
        self._people = PeopleFiles(table) if person else None
        found, counts, before = [], [np.zeros(0, np.int64)], 0
        for piece in pieces:
            for name, own_cuts in (cuts or {}).items():
                piece[name] = _rounded(piece[name], np.asarray(own_cuts))
            number = piece.groupby(list(columns), dropna=False, sort=False, observed=True).ngroup().to_numpy()
            _, first, own = np.unique(number, return_index=True, return_counts=True)
            found.append(piece[list(columns)].iloc[first])
            counts.append(own)
            if self._people:
                self._people.write(piece[list(person)], number + before)
            before += len(first)
        frame = pd.concat(found, ignore_index=True)
        for name in frame:  # one piece may have numbers where another has texts
            if is_object_dtype(frame[name]) and infer_dtype(frame[name], skipna=True).startswith("mixed"):
                frame[name] = frame[name].map(text_of, na_action="ignore")
        self._number = frame.groupby(list(columns), dropna=False, sort=False, observed=True).ngroup().to_numpy()
        self.frame = frame.iloc[np.unique(self._number, return_index=True)[1]].reset_index(drop=True)
        self.rows = np.bincount(self._number, np.concatenate(counts), len(self.frame)).astype(np.int64)

    def together(self, used: np.ndarray) -> Iterator[tuple[np.ndarray, Any]]:
        """Yield which of the different rows each row of the table is, with the people of the rows in a frame, or None.

        Rows that are not `used` are left out. All rows of a person come at once.
        """
        if self._people is None:
            ends = self.rows[used].cumsum()
            for start in range(0, int(ends[-1]), MOST_ROWS):
                rows = np.arange(start, min(start + MOST_ROWS, int(ends[-1])))
                yield np.flatnonzero(used)[np.searchsorted(ends, rows, side="right")], None
        for people, (numbers,) in self._people.read() if self._people else ():
            rows = self._number[numbers]
            if used[rows].any():
                yield rows[used[rows]], people[used[rows]].reset_index(drop=True)


class PeopleFiles:
    """Temporary files in which all rows of a person meet; they are deleted at the end."""

    def __init__(self, table: Table):
        stack, new, n = ExitStack(), tempfile.TemporaryFile, -(-table.most_rows() // MOST_ROWS)
        self._files: list[IO[bytes]] = [stack.enter_context(new()) for _ in range(min(n, MOST_FILES))]
        weakref.finalize(self, stack.close)

    def write(self, people: pd.DataFrame, *parts: Any) -> None:
        """Write rows of arrays or frames, those of a person to one file."""
        names = identifiers(people)
        places = [zlib.crc32("\x1f".join(without_zeros(name)).encode()) % len(self._files) for name in names]
        for place, own in pd.Series(places).groupby(places).groups.items():
            rows = own.to_numpy()
            content = pd.DataFrame([names[row] for row in rows]), *(take_rows(part, rows) for part in parts)
            pickle.dump(content, self._files[int(place)])

    def read(self) -> Iterator[tuple[pd.DataFrame, list[Any]]]:
        """Yield people and what was written about them, file by file."""
        for file in self._files:
            end, found = file.tell(), []
            file.seek(0)
            while file.tell() < end:
                found.append(pickle.load(file))  # our own, written just now
            if found:
                people, *parts = (_joined(own) for own in zip(*found, strict=True))
                yield people, parts


def _joined(parts: Sequence[Any]) -> Any:
    """Return arrays or frames below one another; None of nothing."""
    if parts[0] is None:
        return None
    frames = isinstance(parts[0], pd.DataFrame)
    return pd.concat(parts, ignore_index=True) if frames else np.concatenate(parts)


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
