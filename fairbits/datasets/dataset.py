"""What a loader returns, and the shipped tables it reads, whose bytes are known in advance."""

import gzip
import hashlib
import io
import json
from dataclasses import dataclass
from importlib.resources import files
from os import PathLike

import pandas as pd

from fairbits.errors import InputError

SHIPPED = files("fairbits.datasets") / "_data"
Folder = str | PathLike[str] | None


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
        return (
            f"Dataset({self.name}: {len(self.X)} rows, {self.X.shape[1]} columns; "
            f"{self.positive_label} {self.y.mean():.1%}; {self.s.name}: {groups})"
        )


def shipped_table(name: str) -> pd.DataFrame:
    """Read one of the shipped tables after checking its sha256."""
    content = (SHIPPED / name).read_bytes()
    expected = json.loads((SHIPPED / "checksums.json").read_text(encoding="utf-8"))[name]
    verify(name, content, expected, "Install fairbits again.")
    return parse_table(gzip.decompress(content))


def parse_table(content: bytes, separator: str = ",") -> pd.DataFrame:
    """Parse a table in which only an empty cell is missing ('?' and 'unknown' stay as they are)."""
    return pd.read_csv(io.BytesIO(content), sep=separator, keep_default_na=False, na_values=[""])


def verify(name: str, content: bytes, expected: str, remedy: str) -> None:
    """Raise OSError unless the sha256 of the content is the expected one."""
    found = hashlib.sha256(content).hexdigest()
    if found != expected:
        raise OSError(f"{name} is damaged or another file: its sha256 is {found}, expected {expected}. {remedy}")
