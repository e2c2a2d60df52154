"""What a loader returns and says about it, and the check of its files."""

import hashlib
import tomllib
from dataclasses import dataclass
from importlib.resources import files
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from fairbits.errors import InputError

Folder = str | PathLike[str] | None
Seed = int | np.random.Generator | None
SHIPPED = files("fairbits.datasets") / "_data"
ABOUT = tomllib.loads((SHIPPED / "about.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Hold a mixed table with its label, its sensitive attribute and what is wrong with it.

    Attributes
    ----------
    X : DataFrame of features as published: strings for categories, numbers for quantities; no sensitive column
    y : Series of 0 and 1, 1 where the column `target_name` has the value (or meaning) `positive_label`
    s : Series of str, the group of each row, named after the sensitive attribute
    description : what a row is, where the table comes from, which rows and columns were taken
    caveats : sentences to read before you use the data or quote a result on it
    """

    name: str
    X: pd.DataFrame
    y: pd.Series
    s: pd.Series
    target_name: str
    positive_label: str
    description: str
    caveats: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not len(self.X) == len(self.y) == len(self.s):
            raise InputError(f"X has {len(self.X)} rows, y {len(self.y)}, s {len(self.s)}.", remedy="They must agree.")

    def __len__(self) -> int:
        return len(self.X)

    def __repr__(self) -> str:
        groups = ", ".join(f"{name} {count}" for name, count in self.s.value_counts().items())
        label = f"{self.positive_label} {self.y.mean():.1%}"
        return f"Dataset({self.name}: {len(self)} rows, {self.X.shape[1]} columns; {label}; {self.s.name}: {groups})"


def about(name: str, *cases: str, **facts: Any) -> tuple[str, tuple[str, ...]]:
    """Return the description of a data set and its caveats, with those that hold in some `cases` only."""
    text = ABOUT[name]
    caveats = [*text["caveats"], *(text[case] for case in cases)]
    return text["description"].format(**facts), tuple(caveat.format(**facts) for caveat in caveats)


def verify(name: str, content: bytes, expected: str, remedy: str) -> None:
    """Raise OSError unless the sha256 of the content is the expected one."""
    found = hashlib.sha256(content).hexdigest()
    if found != expected:
        raise OSError(f"{name} is damaged or another file: its sha256 is {found}, expected {expected}. {remedy}")
