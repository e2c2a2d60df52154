"""Tables of the same columns, one after another: a folder of files, or those that match a pattern."""

from collections.abc import Iterator
from glob import glob
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from fairbits.errors import InputError
from fairbits.tables.file_formats import PARQUET_ENDINGS, TEXT_ENDINGS
from fairbits.tables.table_file import Names, Pair, Table, TableFile, TablePart

HIDDEN = ("_", ".")  # how names of files that hold no rows begin


class TableFolder(Table):
    """The files of a folder and of those in it, or those that match a pattern, in the order of their names."""

    def __init__(self, path: str | Path, **reading: Any):
        self.path, self.reading = Path(path), reading
        inside = self.path.rglob("*") if self.path.is_dir() else map(Path, glob(str(path), recursive=True))
        names = sorted(file for file in inside if file.is_file() and _holds_rows(file, self.path))
        if not names:
            problem = f"There is no CSV or Parquet file in {path}." if self.path.is_dir() else f"No file is {path}."
            raise InputError(problem, remedy="Name a file, a folder of files or a pattern such as 'rows/*.parquet'.")
        self.files = [TableFile(name, **reading) for name in names]
        first = self.files[0]
        self.names, self.notes = first.names, list(dict.fromkeys(chain(*(file.notes for file in self.files))))
        self.notes = [f"Read {len(names):,} files from {path}.", *self.notes] if len(names) > 1 else self.notes
        for file in self.files:
            if differing := sorted(set(file.names) ^ set(self.names)):
                has = file if differing[0] in file.names else first
                lacks = first if has is file else file
                problem = f"{has.path} has a column {differing[0]!r} and {lacks.path} has none."
                raise InputError(problem, remedy="Keep files with the same columns in one folder.")

    def check_unchanged(self) -> None:
        for file in self.files:
            file.check_unchanged()

    def state(self) -> list[list[Any]]:
        return [state for file in self.files for state in file.state()]

    def most_rows(self) -> int:
        return sum(file.most_rows() for file in self.files)

    def parts(self) -> list[TablePart]:
        return [part for file in self.files for part in file.parts()]

    def raw(self, columns: list[str]) -> pd.DataFrame:
        return pd.concat([file.raw(columns) for file in self.files], ignore_index=True)

    def pairs(self, columns: Names, beside: Names = (), **kinds: Any) -> Iterator[Pair]:
        return chain.from_iterable(file.pairs(columns, beside, **kinds) for file in self.files)


def _holds_rows(file: Path, folder: Path) -> bool:
    """Return whether a file is a table by its name, and no part of its way from the folder is hidden."""
    way = file.relative_to(folder).parts if folder.is_dir() else file.parts[-1:]
    return file.name.lower().endswith((*TEXT_ENDINGS, *PARQUET_ENDINGS)) and not any(
        name.startswith(HIDDEN) for name in way
    )
