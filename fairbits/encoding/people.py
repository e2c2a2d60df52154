"""Whose rows they are: numbers of people, one row of each, and parts that share nobody."""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import GroupShuffleSplit, train_test_split

from fairbits.errors import InputError


def person_numbers(person: Any, n: int) -> np.ndarray:
    """Return one number of a person per row; a table of several columns becomes their combinations.

    >>> person_numbers(["b", "a", "b"], 3)
    array([0, 1, 0])
    """
    table = pd.DataFrame(person.to_pandas() if hasattr(person, "to_pandas") else person)
    if len(table) != n:
        raise InputError(f"There are {len(table):,} identifiers for {n:,} rows.", remedy="Pass one per row.")
    if table.isna().any(axis=None):
        raise InputError("Some identifiers of people are missing.", remedy="Fill them, or drop these rows.")
    return table.groupby(list(table.columns), sort=False).ngroup().to_numpy()


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
