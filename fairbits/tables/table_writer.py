"""Write a table piece by piece; the file appears whole or not at all, and never in the place of another."""

import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pandas as pd

from fairbits.errors import InputError
from fairbits.tables.table_file import PARQUET_ENDINGS

CSV_ENDINGS = (".csv",)


def check_output(path: Path) -> None:
    """Raise a ValueError unless a new table can be written there."""
    if not path.name.lower().endswith((*CSV_ENDINGS, *PARQUET_ENDINGS)):
        raise InputError(
            f"{path} ends in neither .csv nor .parquet; name the file to write with -o, such as -o out.csv."
        )
    if path.name.lower().endswith(PARQUET_ENDINGS):
        _parquet_writer()
    check_place(path)


def check_place(path: Path) -> None:
    """Raise a ValueError if there is something at a path already, or its folder cannot be written."""
    if os.path.lexists(path):
        raise InputError(f"{path} exists and is left as it is; name another file with -o, or move that one away.")
    if not path.parent.is_dir():
        raise InputError(f"There is no folder {path.parent} to write {path.name} to; make it first.")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"The folder {path.parent} cannot be written; name a file elsewhere with -o.")


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
        import pyarrow

        table = pyarrow.Table.from_pandas(piece, preserve_index=False)
        if self._parquet is None:
            self._schema = pyarrow.schema([_filled(field) for field in table.schema])
            self._parquet = _parquet_writer()(self._file, self._schema)
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


def _filled(field: Any) -> Any:
    """Return the type of a column; one that is empty so far may have text further down."""
    import pyarrow

    return pyarrow.field(field.name, pyarrow.string()) if pyarrow.types.is_null(field.type) else field


def _parquet_writer() -> Any:
    try:
        from pyarrow.parquet import ParquetWriter
    except ImportError:
        raise InputError("Parquet files need pyarrow: pip install 'fairbits[tables]'.") from None
    return ParquetWriter
