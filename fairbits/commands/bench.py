"""`fairbits bench`: how fast this machine fits and draws, at three sizes."""

import json
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
import torch
from rich.console import Console
from rich.table import Table
from sklearn.pipeline import Pipeline, make_pipeline

from fairbits.encoding import TableEncoder
from fairbits.estimators import BinaryMIClassifier, Schedule
from fairbits.storage import versions

SIZES = (4_000, 16_000, 64_000)
EPOCHS = 3
COLUMNS = 20


def run_bench(*, as_json: bool, sizes: tuple[int, ...] = SIZES) -> None:
    """Measure and print; more rows should take in proportion more time, not more than that."""
    torch.set_num_threads(1)  # on a busy machine threads wait for each other
    with Console(stderr=True).status("fitting and drawing"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a few epochs make no good model
        _measured(1_000)  # the first fit of a process is slow
        found = [_measured(rows) for rows in sizes]
    record = {"code_size": 12, "columns": COLUMNS, "threads": 1, "sizes": found, "versions": versions()}
    if as_json:
        print(json.dumps(record))
        return
    table = Table("rows", "s per epoch", "rows per s, fit", "rows per s, transform", box=None, padding=(0, 3, 0, 0))
    for size in found:
        figures = [
            f"{size['epoch_seconds']:.3f}",
            *(f"{size[f'{k}_rows_per_second']:,.0f}" for k in ("fit", "transform")),
        ]
        table.add_row(f"{size['rows']:,}", *figures)
    Console(highlight=False).print(table, f"\n{COLUMNS} columns, 12 bits, one thread; the time grows as the rows do.")


def _measured(rows: int) -> dict[str, Any]:
    X, y, s = _population(rows)
    schedule = Schedule(min_steps=0, patience=EPOCHS)
    method = BinaryMIClassifier(code_size=12, max_epochs=EPOCHS, schedule=schedule, random_state=0)
    model = make_pipeline(TableEncoder(), method)
    fit = _seconds(lambda: model.fit(X, y, binarymiclassifier__sensitive_features=s))
    draw = _seconds(lambda: _codes(model, X))
    return {
        "rows": rows,
        "epoch_seconds": fit / EPOCHS,
        "fit_rows_per_second": rows * EPOCHS / fit,
        "transform_rows_per_second": rows / draw,
    }


def _codes(model: Pipeline, X: pd.DataFrame) -> np.ndarray:
    return model.transform(X)


def _seconds(work: Any) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _population(rows: int) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Return numbers and categories, a label that follows one of them, and two groups that another one follows."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(rows, COLUMNS - 2)), columns=[f"x{i}" for i in range(COLUMNS - 2)])
    X["job"], X["town"] = rng.choice(list("abcdefgh"), rows), rng.choice([f"t{i}" for i in range(20)], rows)
    s = rng.integers(2, size=rows)
    X["x0"] += s
    return X, (X["x1"] + rng.normal(size=rows) > 0).to_numpy().astype(int), s
