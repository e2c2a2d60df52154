"""`fairbits bench`: the speed of this machine."""

import json
import time
import warnings
from typing import Any

from rich.console import Console
from rich.table import Table

from fairbits.commands.terminal import AsJson, waiting

SIZES = (4_000, 16_000, 64_000)
EPOCHS, COLUMNS, CODE_SIZE = 3, 20, 12


def bench(as_json: AsJson = False) -> None:
    """Measure how fast this machine fits and draws codes."""
    import torch

    from fairbits.storage import versions

    torch.set_num_threads(1)  # on a busy machine threads wait for each other
    with waiting("fitting and drawing"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a few epochs make no good model
        measure(1_000)  # the first fit of a process is slow
        found = [measure(rows) for rows in SIZES]
    if as_json:
        settings = {"code_size": CODE_SIZE, "columns": COLUMNS, "threads": 1}
        print(json.dumps({**settings, "sizes": found, "versions": versions()}))
        return
    table = Table("rows", "s per epoch", "rows per s, fit", "rows per s, transform", box=None, padding=(0, 3, 0, 0))
    for size in found:
        speeds = (f"{size[f'{what}_rows_per_second']:,.0f}" for what in ("fit", "transform"))
        table.add_row(f"{size['rows']:,}", f"{size['epoch_seconds']:.3f}", *speeds)
    note = f"\n{COLUMNS} columns, {CODE_SIZE} bits, one thread. The time grows in proportion to the rows."
    Console(highlight=False).print(table, note)


def measure(rows: int) -> dict[str, Any]:
    """Fit a table of numbers and categories and draw its codes; return rows per second."""
    import numpy as np
    import pandas as pd
    from sklearn.pipeline import make_pipeline

    from fairbits.encoding import TableEncoder
    from fairbits.estimators import BinaryMIClassifier, Schedule

    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(rows, COLUMNS - 2)), columns=[f"x{i}" for i in range(COLUMNS - 2)])
    X["job"], X["town"] = rng.choice(list("abcdefgh"), rows), rng.choice([f"t{i}" for i in range(20)], rows)
    s = rng.integers(2, size=rows)
    X["x0"] += s
    y = (X["x1"] + rng.normal(size=rows) > 0).to_numpy().astype(int)
    schedule = Schedule(min_steps=0, patience=EPOCHS)
    method = BinaryMIClassifier(code_size=CODE_SIZE, max_epochs=EPOCHS, schedule=schedule, random_state=0)
    model = make_pipeline(TableEncoder(), method)
    started = time.perf_counter()
    model.fit(X, y, binarymiclassifier__sensitive_features=s)
    fitted = time.perf_counter()
    model.transform(X)
    drawn = time.perf_counter()
    return {
        "rows": rows,
        "epoch_seconds": (fitted - started) / EPOCHS,
        "fit_rows_per_second": rows * EPOCHS / (fitted - started),
        "transform_rows_per_second": rows / (drawn - fitted),
    }
