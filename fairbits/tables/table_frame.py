"""Rows in memory as a table: for a model that reads rows as it reads a file."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from fairbits.tables.table_file import Names, Pair, Table, TablePart, parse_dates


class TableFrame(Table):
    """A pandas frame; errors call it by a name."""

    def __init__(self, frame: pd.DataFrame, name: str = "the rows", wrong_dates: float = Table.wrong_dates):
        self.wrong_dates = wrong_dates
        self.frame, self.path, self.reading = frame, Path(name), {}
        self.names, self.notes = list(map(str, frame.columns)), []

    def raw(self, columns: list[str]) -> pd.DataFrame:
        return self.frame[columns].copy()

    def pairs(self, columns: Names, beside: Names = (), *, dates: bool = True, **kinds: Names) -> Iterator[Pair]:
        own, more = list(dict.fromkeys([*columns, *(name for kind in kinds.values() for name in kind)])), list(beside)
        extra = self.frame[more].copy()
        if dates:
            parse_dates(extra)
        yield self.frame[own], extra

    def parts(self) -> list[TablePart]:
        raise NotImplementedError("rows in memory have no parts")

    def most_rows(self) -> int:
        return len(self.frame)

    def state(self) -> list[list[Any]]:
        return []

    def check_unchanged(self) -> None:
        pass
