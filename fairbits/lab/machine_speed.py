"""How fast a machine fits and draws codes."""

import time
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline

from fairbits.encoding import TableEncoder
from fairbits.estimators import BinaryMIClassifier, Schedule

EPOCHS, COLUMNS, CODE_SIZE = 3, 20, 12


def measure(rows: int) -> dict[str, Any]:
    """Fit a table of numbers and categories and draw its codes; return rows per second."""
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
