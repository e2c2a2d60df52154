"""`fairbits path`: train, print, write."""

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from fairbits import datasets
from fairbits.encoding import TableEncoder
from fairbits.estimators import BinaryBernoulliClassifier, BinaryMIClassifier
from fairbits.estimators.tradeoff_path import TradeoffPath
from fairbits.storage import replace_file, versions

METHODS = {"mi": BinaryMIClassifier, "bernoulli": BinaryBernoulliClassifier}
COLUMNS = {
    "one_draw_auc": "AUC ↑",
    "one_draw_gpa": "GPA ↓",
    "one_draw_audc": "AUDC ↓",
    "information": "I(T;S) bits ↓",
    "auc": "AUC avg.",
}
EXPLANATION = (
    "AUC, GPA, AUDC and information are of one drawn code per person, on rows left out of training (the columns were "
    "scaled on all rows); the information of few rows errs upwards. AUC avg. is of the prediction averaged over many "
    "draws: more accurate, but the information of one draw does not cover it."
)


def run_path(
    name: str, output: Path, *, method: str, gammas: int, folds: int, seed: int, code_size: int, as_json: bool = False
) -> None:
    """Fit the path on a shipped table, show the scores and write them with a figure."""
    console, started = Console(stderr=as_json), time.perf_counter()
    output.mkdir(parents=True, exist_ok=True)  # before the training: a folder that cannot be written wastes no time
    data = getattr(datasets, f"load_{name}")()
    estimator = METHODS[method](code_size=code_size, random_state=seed)
    path = TradeoffPath(estimator, np.linspace(0, 1, gammas).round(4).tolist(), cv=folds, random_state=seed)
    console.print(
        f"[bold]{name}[/bold]: {len(data.X):,} rows; predict [bold]{data.target_name}[/bold], forget "
        f"[bold]{data.s.name}[/bold] ({', '.join(f'{k} {n:,}' for k, n in data.s.value_counts().items())})"
    )
    _fit(path, data, console)
    if not as_json:
        console.print(_table(path.summary(), folds), EXPLANATION, sep="\n")
    settings: dict[str, Any] = {
        "command": "path",
        "table": name,
        "method": method,
        "gammas": gammas,
        "folds": folds,
        "seed": seed,
    }
    settings |= {"code_size": code_size, "versions": versions()}
    files = _write(output, path.scores_, settings, name)
    if as_json:
        print(json.dumps({**settings, "scores": path.scores_.to_dict("records")}))
    console.print(f"{(time.perf_counter() - started):.0f} s. Written: {', '.join(str(f) for f in files)}")


def _fit(path: TradeoffPath, data, console: Console) -> None:
    # On a busy machine the threads of one step wait for each other, ten times as long as one thread takes.
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 1)))
    X = TableEncoder().fit_transform(data.X)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(f"training {(path.cv + 1) * len(path.gammas)} models")
        path.on_epoch = lambda done, most: bar.update(task, completed=done, total=most)
        path.fit(np.asarray(X), data.y.to_numpy(), sensitive_features=data.s)


def _table(summary: pd.DataFrame, folds: int) -> Table:
    table = Table(title=f"Held-out scores, mean ± standard deviation of {folds} folds")
    table.add_column("gamma", justify="right")
    for title in COLUMNS.values():
        table.add_column(title, justify="right")
    for gamma, row in summary.iterrows():
        table.add_row(f"{gamma:.2f}", *(_cell(row, column) for column in COLUMNS))
    return table


def _cell(row: pd.Series, column: str) -> str:
    if column == "auc":
        return f"{row[column, 'mean']:.3f}"
    digits = 4 if column == "information" else 3
    return f"{row[column, 'mean']:.{digits}f}±{row[column, 'std']:.{digits}f}"


def _write(output: Path, scores: pd.DataFrame, settings: dict, name: str) -> list[Path]:
    """Write scores, settings and figure; each file appears whole or not at all."""
    files = [output / "scores.csv", output / "settings.json"]
    replace_file(files[0], scores.to_csv(index=False))
    replace_file(files[1], json.dumps(settings, indent=2) + "\n")
    try:
        from fairbits.report.charts import frontier_chart, save_chart
    except ImportError:
        Console(stderr=True).print("No figure: install fairbits with the extra 'report' to draw it.")
        return files
    title = f"{name}: {METHODS[settings['method']].__name__}, {settings['code_size']} bits"
    return [*files, *save_chart(frontier_chart(scores, title), output, "frontier")]
