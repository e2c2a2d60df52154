"""Codes of a Dask data frame, partition by partition, on the cluster that it lives on."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairbits.errors import InputError
from fairbits.tables.fitted_model import FittedModel, RowReader, open_model
from fairbits.tables.table_frame import TableFrame
from fairbits.workflow.released_columns import CLASSES, CODES, Columns, code_frame, made_columns, prediction_frame


def transform(model: str | Path, ddf: Any, *, packed: bool = False) -> Any:
    """Return the code of each row of a Dask data frame, lazily, with the index of the rows.

    Parameters
    ----------
    model : folder that `fairbits fit` wrote, where every worker sees it; a hard code
    ddf : data frame with the columns that the model reads
    packed : all bits of a code in one whole number
    """
    opened = _hard(model)
    if opened.decides:
        remedy = "Use fairbits.dask.predict."
        raise InputError("This model guarantees its class alone, so it has no code to share.", remedy=remedy)
    return _mapped(model, opened, ddf, Columns(CODES, packed))


def predict(model: str | Path, ddf: Any) -> Any:
    """Return the class of each row of a Dask data frame, lazily; the parameters are those of `transform`."""
    opened = _hard(model)
    return _mapped(model, opened, ddf, Columns(CLASSES))


def _mapped(model: str | Path, opened: FittedModel, ddf: Any, columns: Columns) -> Any:
    meta = _empty(opened, columns).set_index(ddf._meta.index)
    return ddf.map_partitions(_made, str(Path(model).absolute()), columns, meta=meta)


def _made(frame: pd.DataFrame, folder: str, columns: Sequence[Any]) -> pd.DataFrame:
    import torch

    torch.set_num_threads(1)  # on a busy machine threads wait for each other
    model, asked = _opened(folder), Columns(*columns)
    if not len(frame):
        made = _empty(model, asked)
    else:
        (piece,) = RowReader(model, TableFrame(frame.reset_index(drop=True), "the partition")).pieces()
        made = made_columns(model, piece, asked)
    return made.set_index(frame.index)


def _empty(model: FittedModel, columns: Columns) -> pd.DataFrame:
    """Return the columns of no rows."""
    if columns.what == CODES:
        return code_frame(model, np.zeros((0, model.method.code_size), np.uint8), packed=columns.packed)
    return prediction_frame(model, np.zeros((0, len(model.method.classes_))))


@lru_cache(1)
def _opened(folder: str) -> FittedModel:
    return open_model(Path(folder))


def _hard(model: str | Path) -> FittedModel:
    opened = open_model(Path(model))
    if not opened.is_hard:
        remedy = "Use `fairbits transform` with --key, or a ledger."
        raise InputError("Partitions that are computed again would draw random codes again.", remedy=remedy)
    opened.need_code()
    return opened
