"""A sample of a table that is larger than memory, by group and label, and the rows set apart that certify a model."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from fairbits.encoding.columns import label as text_of
from fairbits.tables.table_file import Names, Pair, ReadTable, Table, TablePart, parsed

FEWEST_SAMPLED = 2_000  # rows of every group with a label, if there are as many
SAMPLED = f"of groups with few rows all, or about {FEWEST_SAMPLED:,}"
MOST_STRATA = 50  # values of a column whose values are sampled each on its own
TRAIN, CALIBRATION, TEST = range(3)


class Draws(NamedTuple):
    """Which part of the rows each row of a table is in, and whether it is sampled: by its place and a seed alone."""

    seed: int
    shares: tuple[float, float]  # of the rows that calibrate and that test

    def of(self, first: int, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the parts of n rows from `first` on, and a number in [0, 1) for each."""
        bits = np.random.Philox(key=self.seed)
        bits.advance(first)  # each step makes four numbers
        uniform = (bits.random_raw(4 * n).reshape(n, 4)[:, :2] >> np.uint64(11)) * 2.0**-53
        calibration, test = self.shares
        places = np.searchsorted([calibration, calibration + test], uniform[:, 0], side="right")
        return np.array([CALIBRATION, TEST, TRAIN])[places], uniform[:, 1]


class TableSample(NamedTuple):
    """Rows with a label, drawn at random, and the parts of the table they are in."""

    read: ReadTable
    parts: tuple[np.ndarray, np.ndarray, np.ndarray]
    rows: int  # of the table, with a label


def sample_table(table: Table, label: str, sensitive: Sequence[str], most: int, draws: Draws) -> TableSample | None:
    """Draw about `most` rows, more of rare groups and labels; None if the table has no more rows than that."""
    strata = _Strata([label, *sensitive])
    sizes = strata.count(columns[columns[label].notna()] for _, columns in table.pairs([], strata.columns, dates=False))
    if (rows := sizes.total()) <= most:
        return None
    rates = _rates(sizes, most)
    found, parts, first = [], [], 0
    for _, piece in table.pairs([], table.names, dates=False):
        part, uniform = draws.of(first, len(piece))
        first += len(piece)
        labelled = piece[label].notna().to_numpy()
        rate = np.zeros(len(piece))
        rate[labelled] = [rates[name] for name in strata.of(piece[labelled])]
        found.append(piece[uniform < rate])
        parts.append(part[uniform < rate])
    number = np.concatenate(parts)
    places = tuple(np.flatnonzero(number == part) for part in (TRAIN, CALIBRATION, TEST))
    return TableSample(parsed(pd.concat(found, ignore_index=True), table.notes), places, rows)  # type: ignore[arg-type]


class SampledTable(Table):
    """Rows of a table, drawn at random and more of rare groups, to read as if there were no others."""

    def __init__(self, table: Table, chosen: np.ndarray):
        self._table, self._chosen, self.rows = table, chosen, int(chosen.sum())
        self.path, self.reading, self.names = table.path, table.reading, table.names
        self.notes = [*table.notes, f"Of {len(chosen):,} rows, {self.rows:,} drawn at random are used: {SAMPLED}."]

    def raw(self, columns: list[str]) -> pd.DataFrame:
        return pd.concat([more for _, more in self.pairs([], columns, dates=False)], ignore_index=True)

    def pairs(self, columns: Names, beside: Names = (), **kinds: Any) -> Iterator[Pair]:
        first = 0
        for read, more in self._table.pairs(columns, beside, **kinds):
            mine = self._chosen[first : (first := first + len(more))]
            yield read[mine].reset_index(drop=True), more[mine].reset_index(drop=True)

    def parts(self) -> list[TablePart]:
        raise NotImplementedError("a sample is read by one process")

    def most_rows(self) -> int:
        return self.rows

    def state(self) -> list[list[Any]]:
        return self._table.state()

    def check_unchanged(self) -> None:
        self._table.check_unchanged()


def sampled(table: Table, columns: Sequence[str], most: int) -> Table:
    """Return the table, or about `most` of its rows, more of rare combinations of columns; it takes a byte per row."""
    if table.most_rows() <= most:
        return table
    strata, chosen, first = _Strata(columns), [], 0
    sizes = strata.count(piece for _, piece in table.pairs([], columns, dates=False))
    if sizes.total() <= most:
        return table
    rates = _rates(sizes, most)
    for _, piece in table.pairs([], columns, dates=False):
        _, uniform = Draws(0, (0.0, 0.0)).of(first, len(piece))
        first += len(piece)
        chosen.append(uniform < [rates[name] for name in strata.of(piece)])
    return SampledTable(table, np.concatenate(chosen))


def _rates(sizes: Counter[str], most: int) -> dict[str, float]:
    """Return the chance of a row of each stratum, such that about `most` rows are drawn."""
    return {name: max(most / sizes.total(), FEWEST_SAMPLED / size) for name, size in sizes.items()}


class _Strata:
    """Names what is sampled on its own: combinations of the values of columns that have few."""

    def __init__(self, columns: Sequence[str]):
        self.columns = list(columns)
        self._few: list[str] | None = None  # decided by the first rows

    def count(self, pieces: Iterator[pd.DataFrame]) -> Counter[str]:
        """Return the rows of each stratum."""
        sizes = Counter[str]()
        for piece in pieces:
            sizes.update(self.of(piece).tolist())
        return sizes

    def of(self, rows: pd.DataFrame) -> np.ndarray:
        """Return the name of each row's stratum.  (n,)"""
        if self._few is None:
            self._few = [name for name in self.columns if rows[name].nunique(dropna=False) <= MOST_STRATA]
        codes, names = np.zeros(len(rows), dtype=np.int64), np.array([""], dtype=object)
        for name in self._few:
            numbers, values = pd.factorize(rows[name].astype(object), use_na_sentinel=False)
            codes = codes * len(values) + numbers
            texts = np.array([text_of(value) for value in values], dtype=object)
            names = (names[:, None] + "\x1f" + texts).ravel()
            used, codes = np.unique(codes, return_inverse=True)
            names = names[used]
        return names[codes]


@dataclass(frozen=True)
class RowsApart:
    """The rows of a table that calibrate: read for a model, piece by piece."""

    table: Table
    draws: Draws
    label: str
    task: dict[str, Any]  # how sensitive columns become groups: "cuts" and "pooled"

    def __call__(self, model: Pipeline) -> Iterator[tuple[np.ndarray, np.ndarray, pd.DataFrame]]:
        """Yield rows of known groups and labels as the last step of a fitted model takes them, labels and groups."""
        from fairbits.tables.fitted_model import FittedModel, RowReader  # here, as limits are planned without torch

        fitted = FittedModel(Path(), model, {"task": self.task}, None)
        reader = RowReader(fitted, self.table, groups=True, chosen=self._chosen)
        classes = {text_of(c): c for c in model[-1].classes_.tolist()}
        for piece in reader.pieces(typed=[self.label]):
            labels = piece.typed[self.label].astype(object).map(text_of, na_action="ignore").map(classes)
            has = labels.notna().to_numpy()
            if has.any() and piece.s is not None:
                yield piece.X[has], labels[has].to_numpy(model[-1].classes_.dtype), piece.s[has]
        reader.finish()
        self.table.check_unchanged()

    def _chosen(self, first: int, n: int) -> np.ndarray:
        return self.draws.of(first, n)[0] == CALIBRATION

    @property
    def fingerprint(self) -> str:
        """Equal for the same files."""
        return hashlib.sha256(json.dumps(self.table.state()).encode()).hexdigest()
