"""Hand out codes: one draw per person, entered in the ledger before it leaves."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from fairbits.certificate import Release, system_uniforms
from fairbits.encoding.columns import label
from fairbits.errors import InputError
from fairbits.tables.fitted_model import FittedModel
from fairbits.tables.row_reader import RowReader
from fairbits.tables.table_file import PIECE_ROWS, TableFile
from fairbits.tables.table_writer import TableWriter
from fairbits.workflow.ledger import ODD, Ledger, repeats_apart

ONCE, REUSE, AGAIN = "once", "reuse", "again"  # what becomes of people whose code has been handed out
OnRows = Callable[[int], None]


@dataclass(frozen=True)
class Released:
    """The codes of a table and how they came about."""

    codes: np.ndarray  # (n, bytes), bits packed
    bits: int
    new: int  # people without a code before
    reused: int
    again: int  # people who now have one more code than before
    most_draws: int  # codes of one person that have been handed out, this time included
    alike: int  # rows with the values of an earlier row of the table, taken for other people
    exchangeable: int  # reused codes of rows that others are like: who of them had which code is not known
    notes: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.codes)

    def unpacked(self, start: int, stop: int) -> np.ndarray:
        """Return the bits of some rows.  (n, bits) uint8"""
        return np.unpackbits(self.codes[start:stop], axis=1, count=self.bits)


def release(
    model: FittedModel,
    table: TableFile,
    *,
    repeated: str = ONCE,
    people: Sequence[str] = (),
    on_rows: OnRows = lambda _: None,
) -> Released:
    """Draw a code of every row, or take it from the ledger; on return all of them are in the ledger.

    Parameters
    ----------
    repeated : what to do about people whose codes have been handed out as often as the certificate covers: refuse
        ("once"), hand out the same code ("reuse"), or draw another one ("again")
    people : columns that name a person; by default the same values of what the model reads are the same person
    on_rows : called with the number of rows done
    """
    model.need_code()
    with Ledger(model.folder, model.method.code_size, people) as ledger:
        reader = RowReader(model, table)
        rows, codes = _drawn(model, reader, ledger, people, on_rows)
        shared = _shared(rows, ledger)
        alike = len(rows) - len(np.unique(rows))
        if people and alike:
            raise InputError(f"{alike:,} rows of {table.path} name a person of an earlier row; leave one row of each.")
        rows = repeats_apart(rows)
        before = ledger.draws(rows)
        spent = before >= model.draws
        if repeated == ONCE and spent.any():
            raise InputError(_refusal(spent, model, people))
        kept = before > 0 if repeated == REUSE else np.zeros(len(rows), dtype=bool)
        codes[kept] = ledger.codes(rows[kept])
        ledger.enter(rows[~kept], codes[~kept])
    after = before + ~kept
    return Released(
        codes=codes,
        bits=model.method.code_size,
        new=int((before == 0).sum()),
        reused=int(kept.sum()),
        again=int((~kept & (before > 0)).sum()),
        most_draws=int(after.max(initial=0)),
        alike=alike,
        exchangeable=int((kept & shared).sum()),
        notes=reader.notes,
    )


def _shared(rows: np.ndarray, ledger: Ledger) -> np.ndarray:
    """Say which rows, by their numbers before repeats are told apart, are like others here or in the ledger.  (n,)"""
    _, place, count = np.unique(rows, return_inverse=True, return_counts=True)
    return (count[place] > 1) | (ledger.draws(rows + ODD) > 0)


def write_released(
    released: Released,
    columns: Callable[[np.ndarray], pd.DataFrame],
    table: TableFile,
    keep: Sequence[str],
    output: Path,
) -> None:
    """Write what `columns` makes of the bits, beside the columns to keep; the codes must be in the ledger."""
    done = 0
    try:
        with TableWriter(output) as writer:
            for carried in _carried(table, keep, len(released)):
                made = columns(released.unpacked(done, done + len(carried)))
                writer.write(pd.concat([carried, made], axis=1))
                done += len(carried)
            if done != len(released) or table.has_changed():
                raise InputError(f"{table.path} was changed meanwhile")
    except (OSError, ValueError) as error:
        raise OSError(
            f"{output} could not be written ({error}). Its codes are in the ledger and count as handed out: run again "
            "with --reuse to get the same ones."
        ) from error


def _carried(table: TableFile, keep: Sequence[str], rows: int) -> Iterator[pd.DataFrame]:
    """Yield the columns to keep piece by piece, frames without columns if there are none."""
    if keep:
        yield from table.pieces([], verbatim=keep)
        return
    for start in range(0, rows, PIECE_ROWS):
        yield pd.DataFrame(index=range(min(PIECE_ROWS, rows - start)))


def _drawn(
    model: FittedModel, reader: RowReader, ledger: Ledger, people: Sequence[str], on_rows: OnRows
) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of each row or person, and a fresh code, packed."""
    numbers, codes = [], []
    for piece in reader.pieces(verbatim=people):
        content = _named(piece.carried, reader) if people else [row.tobytes() for row in piece.X]
        numbers.append(ledger.number(content))
        codes.append(np.packbits(Release().draw(model.method.code_probabilities(piece.X), system_uniforms), axis=1))
        on_rows(reader.rows)
    return np.concatenate(numbers), np.concatenate(codes)


def _named(carried: pd.DataFrame, reader: RowReader) -> list[bytes]:
    """Return the names of people as bytes; every person must have one."""
    texts = carried.apply(lambda column: column.map(label, na_action="ignore")).astype("str").fillna("")
    nameless = (texts == "").all(axis=1).to_numpy()
    if nameless.any():
        row = reader.rows - len(texts) + int(np.flatnonzero(nameless)[0]) + 1
        raise InputError(f"Row {row} of {reader.table.path} has nothing in {', '.join(carried.columns)}: who is it?")
    return ["\x1f".join(row).encode() for row in texts.itertuples(index=False)]


def _refusal(spent: np.ndarray, model: FittedModel, people: Sequence[str]) -> str:
    how = ", ".join(people) if people else "the values that the model reads"
    covered = "one draw" if model.draws == 1 else f"{model.draws} draws"
    return (
        f"Codes of {int(spent.sum()):,} of these {len(spent):,} people have been handed out before (recognised by "
        f"{how}). One more draw of the same person tells more than the certificate covers, which is {covered}. Say "
        "--reuse to hand out the same codes again (also after a run that was interrupted), or --again to draw new ones "
        "all the same."
    )
