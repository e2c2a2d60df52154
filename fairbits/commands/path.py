"""`fairbits path`: the trade-off of a table, as a table and a figure."""

import json
import os
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from rich.table import Table
from typer import Argument, Option

from fairbits.commands import terminal
from fairbits.commands.fit import read_task
from fairbits.errors import MissingExtraError
from fairbits.storage import file_errors, replace_file, versions
from fairbits.workflow.option_words import WORDS

COLUMNS = {  # of the scores: title, and format
    "one_draw_auc": ("AUC ↑", "{mean:.3f}±{std:.3f}"),
    "one_draw_gpa": ("GPA ↓", "{mean:.3f}±{std:.3f}"),
    "one_draw_audc": ("AUDC ↓", "{mean:.3f}±{std:.3f}"),
    "information": ("I(T;S) bits ↓", "{mean:.4f}±{std:.4f}"),
    "auc": ("AUC avg.", "{mean:.3f}"),
}
Method = StrEnum("Method", ["mi", "bernoulli"])


def path(
    table: Annotated[
        str, Argument(help="CSV or Parquet file, or compas, adult or bank.", autocompletion=terminal.complete_table)
    ],
    label: Annotated[str | None, Option(help="Column to predict.")] = None,
    sensitive: terminal.Sensitive = None,
    output: Annotated[Path, Option("--output", "-o", help="Folder for scores and figure.")] = Path("results/path"),
    method: Annotated[
        Method, Option(help="Penalty on the information of the whole code (mi) or of each bit (bernoulli).")
    ] = Method.mi,
    gammas: Annotated[int, Option(min=2, help="Number of gammas, evenly spaced from 0 to 1.")] = 21,
    folds: Annotated[int, Option(min=2, help="Cross-validation folds.")] = 3,
    seed: Annotated[int, Option(help="Seed of folds and training.")] = 0,
    code_size: Annotated[int, Option(min=1, max=64, help="Bits per row.")] = 8,
    drop: terminal.Drop = None,
    bins: terminal.Bins = 4,
    crossed: terminal.Crossed = False,
    merge_small: terminal.MergeSmall = None,
    separator: terminal.Separator = None,
    encoding: terminal.Encoding = None,
    as_json: terminal.AsJson = False,
) -> None:
    """Compare accuracy, fairness and leakage from no protection to full protection."""
    import numpy as np
    import torch

    from fairbits.encoding import TableEncoder
    from fairbits.estimators import BinaryBernoulliClassifier, BinaryMIClassifier
    from fairbits.estimators.tradeoff_path import TradeoffPath

    console, started = Console(stderr=as_json, highlight=False, markup=False), time.perf_counter()
    columns: dict[str, Any] = {"drop": terminal.names(drop), "n_bins": bins, "crossed": crossed}
    read = {"separator": separator, "encoding": encoding}
    task = read_task(table, label, terminal.names(sensitive), read, {**columns, "merge_small": merge_small})
    with file_errors(output):  # before the training, which takes a while
        output.mkdir(parents=True, exist_ok=True)
    name, groups = Path(table).name, ", ".join(f"{group} {n:,}" for group, n in task.group_sizes.items())
    protected = ", ".join(task.s)
    console.print(f"{name}: {len(task.y):,} rows; predicting {task.label}; protected: {protected} ({groups})")
    for note in task.notes:
        console.print(f"- {note}")
    # On a busy machine the threads of one step wait for each other, ten times as long as one thread takes.
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 1)))
    estimator = {"mi": BinaryMIClassifier, "bernoulli": BinaryBernoulliClassifier}[method]
    strengths = np.linspace(0, 1, gammas).round(4).tolist()
    template = estimator(groups=task.groups, code_size=code_size, random_state=seed)
    path = TradeoffPath(template, strengths, cv=folds, random_state=seed)
    with terminal.advancing() as show:
        path.on_epoch = lambda done, most: show(done, most, f"training {(folds + 1) * gammas} models")
        X = np.asarray(TableEncoder().fit_transform(task.X))
        path.fit(X, task.y, sensitive_features=task.s)
    settings: dict[str, Any] = {"command": "path", "table": name, "label": task.label, "sensitive": list(task.s)}
    settings |= {"method": str(method), "gammas": gammas, "folds": folds, "groups": task.groups}
    settings |= {"seed": seed, "code_size": code_size, "versions": versions()}
    with file_errors(output):
        files = _write(output, path, settings, f"{name}: {estimator.__name__}, {code_size} bits")
    if as_json:
        print(json.dumps({**settings, "scores": path.scores_.to_dict("records")}))
    else:
        console.print(_score_table(path.summary(), folds), WORDS["path"]["explanation"], sep="\n")
    console.print(f"{(time.perf_counter() - started):.0f} s. Written: {', '.join(map(str, files))}")


def _score_table(summary: Any, folds: int) -> Table:
    table = Table(title=f"Held-out scores, mean ± standard deviation of {folds} folds")
    for title in ("gamma", *(title for title, _ in COLUMNS.values())):
        table.add_column(title, justify="right")
    for gamma, row in summary.iterrows():
        table.add_row(f"{gamma:.2f}", *(form.format(**row[name]) for name, (_, form) in COLUMNS.items()))
    return table


def _write(output: Path, path: Any, settings: dict[str, Any], title: str) -> list[Path]:
    """Write scores, settings and figure; each file appears whole or not at all."""
    files = [output / "scores.csv", output / "settings.json"]
    replace_file(files[0], path.scores_.to_csv(index=False))
    replace_file(files[1], json.dumps(settings, indent=2) + "\n")
    try:
        chart = path.plot(title)
    except MissingExtraError as missing:
        Console(stderr=True).print(f"No figure: {missing}", markup=False)
        return files
    from fairbits.report.charts import save_chart

    return [*files, *save_chart(chart, output, "frontier")]
