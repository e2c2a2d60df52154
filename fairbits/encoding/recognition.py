"""Recognise what was seen before: sensitive columns in a table, rows that a model was trained on, people."""

import base64
import hashlib
import math
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Self

import narwhals as nw
import numpy as np
import pandas as pd
from scipy.stats import hypergeom
from sklearn.model_selection import GroupShuffleSplit, train_test_split

from fairbits.encoding.columns import (
    array_of,
    as_codes,
    as_frame,
    as_numbers,
    column_kind,
    label,
    one_column,
    take_rows,
)
from fairbits.encoding.group_encoder import MAX_LABELS, default_names, sensitive_columns
from fairbits.errors import InputError

SAMPLE_ROWS = 2_000
MARGIN = 0.05  # more rows than chance explains, on top of three standard deviations
RUN = 8  # rows in a row whose content is compared, where rows have no labels
FEWEST_ROWS = 10  # below, two columns of distinct numbers are in the same order too easily
MOST_DIFFERENT = 2**19  # hashes of different contents that are kept
FALSE_ALARM = 1e-6  # chance that a sketch takes a table of new rows for one of the fit
MIX = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))  # splitmix64
ODD = np.uint64(0x9E3779B97F4A7C15)  # multiplying by it modulo 2^64 keeps different hashes different

EXACT_FLOATS = 2**53  # from here on not every whole number is a float
WHOLE_DECIMAL = re.compile(r"-?[0-9]+\.0*")
LEADING_ZEROS = re.compile(r"^0+(?=[0-9]+$)")


class Overlap(NamedTuple):
    """A column of a table that repeats a sensitive one, by its name or, where columns have none, its position."""

    column: str | int
    how: str
    sensitive: str

    def __str__(self) -> str:
        return f"column {str(self.column)!r} {self.how} the sensitive column {self.sensitive!r}"


def sensitive_in_table(X: Any, sensitive_features: Any) -> list[Overlap]:
    """Return an `Overlap` for each column of X that is named as, one-to-one with, or marks a value of a sensitive one.

    Columns without names are called by their position; missing values count as a value. A sensitive column that hardly
    repeats is one-to-one with every other such column: of these only numbers in the same or reverse order count.

    >>> table = pd.DataFrame({"gender": [0, 1, 0, 1], "age": [20, 30, 20, 40]})
    >>> print(*sensitive_in_table(table, pd.Series(["F", "M", "F", "M"], name="sex")))
    column 'gender' is one-to-one with the sensitive column 'sex'
    """
    X = as_frame(X)
    X = X if isinstance(X, (nw.DataFrame, np.ndarray)) else array_of(X)
    columns = sensitive_columns(sensitive_features, X.shape[0])
    named = isinstance(X, nw.DataFrame) and list(columns) != default_names(len(columns))
    return [
        Overlap(column, how, name)
        for name, values in columns.items()
        for column, how in _overlaps(X, name if named else None, values)
    ]


def _overlaps(X: Any, sensitive: str | None, values: Any) -> Iterator[tuple[str | int, str]]:
    """Yield the columns of X that repeat a sensitive column, and how."""
    codes, n_values = _all_codes(values)
    relation, rows = _coded, np.linspace(0, len(codes) - 1, min(SAMPLE_ROWS, len(codes))).astype(np.int64)
    if n_values > len(codes) / 2:
        relation = _ranked
    else:  # look at the first row of each value, too
        rows = np.union1d(rows, pd.Series(codes).drop_duplicates().index)
    sample, part = X[rows], take_rows(values, rows)  # a relation of all rows holds there, too
    names: list[Any] = [*map(str, X.columns)] if isinstance(X, nw.DataFrame) else [*range(X.shape[1])]
    for position, name in enumerate(names):
        if name == sensitive and _all_codes(one_column(X[:, position]))[1] > 1:
            yield name, "has the name of"
        elif relation(one_column(sample[:, position]), part) and (how := relation(one_column(X[:, position]), values)):
            yield name, how


def _all_codes(values: Any) -> tuple[np.ndarray, int]:
    """Return codes 0..K-1, missing values being one more value, and K."""
    codes, distinct = as_codes(values)
    gaps = codes < 0
    return np.where(gaps, len(distinct), codes), len(distinct) + bool(gaps.any())


def _coded(x: Any, s: Any) -> str | None:
    """Compare columns as partitions of the rows: how does `x` repeat `s`, if at all?"""
    x_codes, n_x = _all_codes(x)
    s_codes, n_s = _all_codes(s)
    pairs = pd.unique(x_codes * n_s + s_codes)
    if n_x < 2 or len(pairs) > n_s:  # constant, or not a function of s
        return None
    if n_x == n_s:
        return "is one-to-one with"
    marks = n_x == 2 and n_s <= MAX_LABELS and 1 in np.bincount(pairs // n_s)
    return "marks one value of" if marks else None


def _ranked(x: Any, s: Any) -> str | None:
    """Compare columns of numbers by the order they put the rows in, ties included."""
    if len(s) < FEWEST_ROWS or {column_kind(x), column_kind(s)} != {"number"}:
        return None
    x, s = (np.unique(as_numbers(values), return_inverse=True)[1] for values in (x, s))  # dense ranks
    return "is one-to-one with" if np.array_equal(x, s) or np.array_equal(x, s.max() - s) else None


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


@dataclass(frozen=True)
class RowSketch:
    """A trace of a table that recognises many of its rows together, and no single one.

    A random half of the rows sets one bit each in an array of which half the bits are set. A row of the table finds its
    bit set with chance 3/4, any other row with chance 1/2: whichever it is, the odds that this row was in the table
    change by a factor of at most 2. The other half of the rows is counted: how many find their bit set although they
    did not set it, by chance or because their content repeats.
    """

    bits: str  # base64
    size: int  # how many bits
    salt: int
    others: int  # rows of the other half
    found: int  # those of them that find their bit set

    @classmethod
    def of(cls, hashes: np.ndarray) -> Self:
        """Sketch a table by the hashes of its rows, one row of each person; equal tables have equal sketches."""
        # What is drawn depends on all rows, so that refits add no evidence and nobody can draw it again for one row.
        secret = hashlib.sha512(b"sketch" + np.sort(hashes).tobytes()).digest()
        salt, seed = int.from_bytes(secret[:8]), list(secret[8:])
        kept, others = np.array_split(np.random.default_rng(seed).permutation(np.sort(hashes)), 2)
        size = max(round(len(np.unique(kept)) / math.log(2)), 1)
        array = np.zeros(size, dtype=bool)
        array[_bit_places(kept, salt, size)] = True
        found = int(array[_bit_places(others, salt, size)].sum())
        return cls(base64.b64encode(np.packbits(array).tobytes()).decode(), size, salt, len(others), found)

    def recognises(self, hashes: np.ndarray) -> bool:
        """Return whether so many rows find their bit set that chance and repeated content do not explain it.

        Fisher's exact test, one-sided, of these rows against the other half of the table. If they are new rows of the
        same population, both counts are binomial with the same chance. Each content must pass on its own, too: a new
        row that is repeated many times counts once.
        """
        return ComparedRows(self).add(hashes).recognised

    def count(self, hashes: np.ndarray) -> int:
        """Return how many rows find their bit set."""
        array = np.unpackbits(np.frombuffer(base64.b64decode(self.bits), np.uint8), count=self.size)
        return int(array[_bit_places(hashes, self.salt, self.size)].sum())

    def by_chance(self, n: int, found: int) -> float:
        """Return the chance that `found` or more of n new rows find their bit set."""
        return float(hypergeom.sf(found - 1, n + self.others, found + self.found, n))


@dataclass
class ComparedRows:
    """Rows that come in parts, compared with a sketch: counts of all, and a bounded sample of different contents."""

    sketch: RowSketch
    rows: int = 0
    found: int = 0
    different: np.ndarray = field(default_factory=lambda: np.empty(0, np.uint64))
    cutoff: int = 2**64 - 1  # hashes up to here are in the sample

    def add(self, hashes: np.ndarray) -> Self:
        """Add rows by their hashes."""
        self.rows, self.found = self.rows + len(hashes), self.found + self.sketch.count(hashes)
        self._keep(hashes)
        return self

    def merge(self, other: "ComparedRows") -> Self:
        """Add the rows of another part."""
        self.rows, self.found = self.rows + other.rows, self.found + other.found
        self.cutoff = min(self.cutoff, other.cutoff)
        self._keep(other.different)
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return the counts and the sample, ready for JSON."""
        return {"rows": self.rows, "found": self.found, "cutoff": self.cutoff, "different": self.different.tolist()}

    @classmethod
    def of_dict(cls, sketch: RowSketch, content: dict[str, Any]) -> Self:
        """Read what `to_dict` returned."""
        different = np.array(content["different"], dtype=np.uint64)
        return cls(sketch, content["rows"], content["found"], different, content["cutoff"])

    def _keep(self, hashes: np.ndarray) -> None:
        kept = np.concatenate([self.different, hashes])
        kept = np.sort(kept[kept <= np.uint64(self.cutoff)])  # numpy's own unique is ten times slower
        kept = kept[np.diff(kept, prepend=~kept[:1]) != 0]
        while len(kept) > MOST_DIFFERENT:
            self.cutoff //= 2
            kept = kept[kept <= np.uint64(self.cutoff)]
        self.different = kept

    @property
    def recognised(self) -> bool:
        """Whether many of the rows are rows of the sketch, more than chance and repeated content explain."""
        each = (self.rows, self.found), (len(self.different), self.sketch.count(self.different))
        return self.rows > 0 and all(self.sketch.by_chance(*counts) <= FALSE_ALARM for counts in each)


def _bit_places(hashes: np.ndarray, salt: int, size: int) -> np.ndarray:
    mixed = hashes ^ np.uint64(salt)
    for shift, factor in MIX:
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed % np.uint64(size)


@dataclass(eq=False)
class SeenRows:
    """Rows seen before, to notice when they come back as calibration rows; by a fingerprint alone only a whole table.

    A pickle keeps the fingerprint of the table alone: hashes of single rows would reveal who was in it.
    """

    hashes: np.ndarray | None = None
    index: np.ndarray | None = None

    @cached_property
    def fingerprint(self) -> str:
        """Equal for tables of the same rows; files and pickles set it."""
        return "" if self.hashes is None else table_fingerprint(self.hashes)

    def __getstate__(self) -> dict[str, Any]:
        return {"fingerprint": self.fingerprint}

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
            found = np.isin(hashes ^ (index * ODD), self.hashes ^ (self.index * ODD))
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


def _runs(hashes: np.ndarray) -> np.ndarray:
    """Return a hash of every `RUN` rows that follow each other."""
    total = np.zeros(max(len(hashes) - RUN + 1, 0), np.uint64)
    for place in range(RUN):
        total = total * ODD + hashes[place : place + len(total)]
    return total


def _more_than_chance(found: np.ndarray, chance: float) -> bool:
    chance = min(max(chance, 1 / len(found)), 1.0)
    return bool(found.mean() > chance + MARGIN + 3 * np.sqrt(chance * (1 - chance) / len(found)))


EITHER = "Write identifiers as text, in the same way for each person, or pass leading_zeros='same' or 'different'."


class LeadingZerosError(InputError):
    """Two identifiers of people differ only in leading zeros: they may be one person, or two."""

    def __init__(self, problem: str, remedy: str = "Write identifiers as text, in the same way for each person."):
        problem += " of the identifier, as 7 and 007 do: fairbits cannot know whether that is one person."
        super().__init__(problem, remedy=remedy)


def person_table(person: Any, n: int) -> pd.DataFrame:
    """Return what identifies the people of n rows as a table; a column without a name is called "person"."""
    table = pd.DataFrame(person.to_pandas() if hasattr(person, "to_pandas") else person)
    if len(table) != n:
        raise InputError(f"There are {len(table):,} identifiers for {n:,} rows.", remedy="Pass one per row.")
    table.columns = ["person" if name == 0 else str(name) for name in table.columns]
    return table


def identifiers(table: pd.DataFrame) -> list[tuple[str, ...]]:
    """Return the `identifier`s of every row of a table."""
    return list(zip(*(map(identifier, column.tolist()) for _, column in table.items()), strict=True))


def named_rows(table: pd.DataFrame, before: int = 0) -> list[tuple[str, ...]]:
    """Return the `identifier`s of every row; raise InputError if one has none, the first being number `before` + 1."""
    names = identifiers(table)
    empty = next((row for row, name in enumerate(names) if not any(name)), None)
    if empty is not None:
        columns = ", ".join(map(str, table.columns))
        raise InputError(f"Row {before + empty + 1:,} has no value in {columns}, which identifies people.")
    return names


def identifier(value: Any) -> str:
    """Return the text of what identifies a person, the same however a file was read; empty if there is nothing.

    Whole numbers have no decimals, dates at midnight no time, texts no space around them and one form in Unicode.

    >>> [identifier(value) for value in (100, 100.0, "100", " 100.0 ", "007", "A 1", " ", None)]
    ['100', '100', '100', '100', '007', 'A 1', '', '']
    """
    if pd.isna(value) is True:
        return ""
    if isinstance(value, (float, np.floating)) and abs(float(value)) >= EXACT_FLOATS:
        problem = f"The identifier {value:.0f} was read as a decimal number and may have lost its last digits."
        raise InputError(problem, remedy="Read this column as text.")
    text = unicodedata.normalize("NFC", label(value)).strip().removesuffix(" 00:00:00")
    return text.partition(".")[0] if WHOLE_DECIMAL.fullmatch(text) else text


def without_zeros(name: tuple[str, ...]) -> tuple[str, ...]:
    """Return identifiers without the leading zeros of numbers.

    >>> without_zeros(("007", "00", "0a"))
    ('7', '0', '0a')
    """
    return tuple(LEADING_ZEROS.sub("", text) for text in name)


def person_numbers(person: Any, n: int) -> np.ndarray:
    """Return one number of a person per row; a table of several columns becomes their combinations.

    >>> person_numbers(["b", "a", "b"], 3)
    array([0, 1, 0])
    """
    spelt: dict[tuple[str, ...], tuple[str, ...]] = {}
    numbers: dict[tuple[str, ...], int] = {}
    for row, name in enumerate(names := identifiers(person_table(person, n))):
        if "" in name:
            raise InputError("Some identifiers of people are missing.", remedy="Fill them, or drop these rows.")
        if spelt.setdefault(without_zeros(name), name) != name:
            raise LeadingZerosError(f"Row {row + 1:,} and an earlier one differ only in leading zeros")
        numbers.setdefault(name, len(numbers))
    return np.array([numbers[name] for name in names], dtype=np.int64)


def one_row_each(person: Any, n: int, random_state: Any = 0) -> np.ndarray:
    """Return the places of one row of every person, drawn at random, in order; all n rows if person is None."""
    if person is None:
        return np.arange(n)
    order = np.random.default_rng(random_state).permutation(n)
    return np.sort(order[np.unique(person_numbers(person, n)[order], return_index=True)[1]])


def split_people(n: int, share: float, random_state: Any, person: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Set a share of n rows apart, at random; with identifiers of people, a share of the people with all their rows."""
    if person is None:
        kept, held = train_test_split(np.arange(n), test_size=share, random_state=random_state)
        return kept, held
    split = GroupShuffleSplit(1, test_size=share, random_state=random_state)
    return next(split.split(np.arange(n), groups=person_numbers(person, n)))
