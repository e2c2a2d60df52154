"""Write a table piece by piece; the file appears whole or not at all, and never in the place of another."""

import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pandas as pd

from fairbits.errors import InputError
from fairbits.tables.table_file import PARQUET_ENDINGS, parquet_module


def check_output(path: Path) -> None:
    """Raise InputError unless a new table can be written there."""
    if not path.name.lower().endswith((".csv", *PARQUET_ENDINGS)):
        raise InputError(f"{path} ends in neither .csv nor .parquet.", remedy="Name a file such as out.csv.")
    if path.name.lower().endswith(PARQUET_ENDINGS):
        parquet_module()
    check_place(path)


def check_place(path: Path) -> None:
    """Raise InputError if there is something at a path already, or its folder cannot be written."""
    if os.path.lexists(path):
        raise InputError(f"{path} exists and is left as it is.", remedy="Name another file, or move that one away.")
    if not path.parent.is_dir():
        raise InputError(f"There is no folder {path.parent} to write {path.name} to.", remedy="Make it first.")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"The folder {path.parent} cannot be written.", remedy="Name a file elsewhere.")


class TableWriter:
    """A table that is written in pieces of the same columns, CSV or Parquet by its ending."""

    def __init__(self, path: Path):
        self.path, self.part = path, path.with_name(f".part.{os.getpid()}.{path.name}")
        self._parquet: Any = None
        self._is_parquet = path.name.lower().endswith(PARQUET_ENDINGS)

    def __enter__(self) -> Self:
        self._file = self.part.open("xb")
        return self

    def write(self, piece: pd.DataFrame) -> None:
        """Add rows."""
        if not self._is_parquet:
            piece.to_csv(self._file, index=False, header=self._file.tell() == 0)
            return
        import pyarrow as pa

        table = pa.Table.from_pandas(piece, preserve_index=False)
        if self._parquet is None:  # a column that is empty so far may have text further down
            fields = [f.with_type(pa.string()) if pa.types.is_null(f.type) else f for f in table.schema]
            self._schema = pa.schema(fields)
            self._parquet = parquet_module().ParquetWriter(self._file, self._schema)
        self._parquet.write_table(table.cast(self._schema))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            if self._parquet is not None:
                self._parquet.close()
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            if kind is None:
                os.replace(self.part, self.path)
        finally:
            self.part.unlink(missing_ok=True)
