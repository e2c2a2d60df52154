"""People by their identifiers, however a file was read, and splits that keep the rows of a person together."""

import re
import unicodedata
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import GroupShuffleSplit, train_test_split

from fairbits.encoding.columns import label
from fairbits.errors import InputError

EXACT_FLOATS = 2**53  # from here on not every whole number is a float
WHOLE_DECIMAL = re.compile(r"-?[0-9]+\.0*")
LEADING_ZEROS = re.compile(r"^0+(?=[0-9]+$)")


class LeadingZerosError(InputError):
    """Two identifiers of people differ only in leading zeros: they may be one person, or two."""

    def __init__(self, problem: str, remedy: str = "Write identifiers as text, those of one person always alike."):
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
