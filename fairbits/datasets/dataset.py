"""What a loader returns."""

from __future__ import annotations

from dataclasses import dataclass, field

import pandas as pd

from fairbits.errors import InputError


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Hold a mixed table with its label, its sensitive attribute and what is wrong with it.

    Attributes
    ----------
    name : str
    X : DataFrame
        Features as published: strings for categories, numbers for quantities. Never the sensitive column.
    y : Series of 0 and 1
        1 where the target has the `positive_label`.
    s : Series of str
        Group of each row, named after the sensitive attribute.
    target_name, positive_label : str
        The column behind `y` and its value (or meaning) where `y` is 1.
    description : str
        What a row is, where the table comes from, which rows and columns were taken.
    caveats : tuple of str
        Sentences to read before using the data or quoting a result on it.
    """

    name: str
    X: pd.DataFrame
    y: pd.Series
    s: pd.Series
    target_name: str
    positive_label: str
    description: str
    caveats: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        if not len(self.X) == len(self.y) == len(self.s):
            raise InputError(f"X has {len(self.X)} rows, y {len(self.y)}, s {len(self.s)}: they must agree")

    def __len__(self) -> int:
        return len(self.X)

    def __repr__(self) -> str:
        groups = ", ".join(f"{name} {count}" for name, count in self.s.value_counts().items())
        return (
            f"Dataset({self.name}: {len(self.X)} rows, {self.X.shape[1]} columns; "
            f"{self.positive_label} {self.y.mean():.1%}; {self.s.name}: {groups})"
        )
