"""From a table to a task: a small one whole, of a large one a sample, and all rows set apart to certify."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from fairbits.encoding.recognition import table_fingerprint
from fairbits.errors import InputError
from fairbits.tables.table_file import Table
from fairbits.tables.table_sample import Draws, RowsApart, sample_table
from fairbits.tables.task import TEST_SHARE, Task, make_task


def task_of_frame(
    frame: pd.DataFrame, notes: list[str], label: str, sensitive: Sequence[str], columns: dict[str, Any]
) -> Task:
    """Return the task of a table in memory; `columns` says what becomes of its columns."""
    task = make_task(frame, label, sensitive, **columns)
    task.notes[:0] = notes
    return replace(task, table_hash=table_fingerprint(pd.util.hash_pandas_object(frame, index=False).to_numpy()))


def task_of_table(
    table: Table, label: str, sensitive: Sequence[str], columns: dict[str, Any], fit_rows: int | None = None
) -> Task:
    """Return the task of a table: if it has more than `fit_rows` rows, of a sample that is read piece by piece."""
    table.check_columns([label, *sensitive])
    if fit_rows is None or table.most_rows() <= fit_rows:
        return task_of_frame(*table.read(), label, sensitive, columns)
    share = columns["calibration_share"]
    draws = Draws(columns["seed"], (share, TEST_SHARE))
    sample = sample_table(table, label, sensitive, fit_rows, draws)
    if sample is None:
        return task_of_frame(*table.read(), label, sensitive, columns)
    if columns["person"]:
        problem = f"--person needs all rows of a person together, and {table.path} has {sample.rows:,} rows."
        raise InputError(problem, remedy=f"Keep one row per person, or raise --fit-rows from {fit_rows:,}.")
    task = make_task(sample.read.frame, label, sensitive, **columns, parts=sample.parts)
    train, held, test = task.parts
    task.notes[:0] = [
        *sample.read.notes,
        f"Of {sample.rows:,} rows, {len(train):,} train and {len(test):,} test, drawn at random, more of rare groups "
        f"and labels. About {share * sample.rows:,.0f} others certify the model; its references are certified on "
        f"{len(held):,} of them.",
    ]
    apart = RowsApart(table, draws, label, {"cuts": task.cuts, "pooled": task.pooled})
    return replace(task, apart=apart, table_hash=apart.fingerprint)
