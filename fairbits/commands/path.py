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
from fairbits.errors import InputError, MissingExtraError
from fairbits.storage import file_errors, replace_file, versions
from fairbits.workflow.option_words import WORDS

COLUMNS = {  # of the scores: title, and format
    "one_draw_auc": ("AUC ↑", "{mean:.3f}±{std:.3f}"),
    "one_draw_gpa": ("GPA ↓", "{mean:.3f}±{std:.3f}"),
    "one_draw_audc": ("AUDC ↓", "{mean:.3f}±{std:.3f}"),
    "information": ("I(T;S) bits ↓", "{mean:.4f}±{std:.4f}"),
    "auc": ("AUC avg.", "{mean:.3f}"),
}
MOST_BITS = 10  # of a code with linear scores
LIMITED = {  # of the scores of a code with a limit: title, and format
    "accuracy": ("accuracy ↑", "{mean:.3f}±{std:.3f}"),
    "auc": ("AUC ↑", "{mean:.3f}±{std:.3f}"),
    "disparity": ("disparity ↓", "{mean:.3f}±{std:.3f}"),
    "gpa": ("GPA ↓", "{mean:.3f}±{std:.3f}"),
    "information": ("I(T;S) bits ↓", "{mean:.4f}±{std:.4f}"),
}
EXPLANATION = (  # of these
    "Accuracy and AUC: of the class and the probability that are read off the code. Disparity: the largest difference "
    "between groups of any decision made from the code. GPA: how much the AUC differs between groups. I(T;S): the "
    "leakage. All on rows left out of training; with few rows disparity and leakage are overestimated."
)
Method = StrEnum("Method", ["mi", "bernoulli", "fair"])


def path(
    table: Annotated[
        str, Argument(help="CSV or Parquet file, or compas, adult or bank.", autocompletion=terminal.complete_table)
    ],
    label: Annotated[str | None, Option(help="Column to predict.")] = None,
    sensitive: terminal.Sensitive = None,
    output: Annotated[Path, Option("--output", "-o", help="Folder for scores and figure.")] = Path("results/path"),
    method: Annotated[
        Method,
        Option(
            help="Penalty on the information of the whole code (mi) or of each bit (bernoulli), or the recommended "
            "hard code, trained to limits (fair)."
        ),
    ] = Method.mi,
    gammas: Annotated[int, Option(min=2, help="Number of gammas, evenly spaced from 0 to 1.")] = 21,
    limits: Annotated[
        str | None, Option(help="Limits of --method fair, such as 0.02,0.05,0.1.", show_default="0.01 to 1")
    ] = None,
    folds: Annotated[int, Option(min=2, help="Cross-validation folds.")] = 3,
    seed: Annotated[int, Option(help="Seed of folds and training.")] = 0,
    code_size: Annotated[
        int | None, Option(min=1, max=64, help="Bits per row.", show_default="8, with --method fair 4")
    ] = None,
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

    from fairbits.certificate.released_code import fitted_code
    from fairbits.encoding import TableEncoder
    from fairbits.estimators import BinaryBernoulliClassifier, BinaryMIClassifier, FairCodeClassifier
    from fairbits.estimators.tradeoff_path import LIMITS, TradeoffPath

    wanted = _limits(method, limits, code_size)
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
    shared: dict[str, Any] = {"groups": task.groups, "random_state": seed}
    X = task.X
    if method == Method.fair:
        template = FairCodeClassifier(code_size=code_size, **shared)
        strengths = wanted or list(LIMITS)
        path = TradeoffPath(template, limits=strengths, cv=folds, random_state=seed)
    else:
        code_size = 8 if code_size is None else code_size
        estimator = {"mi": BinaryMIClassifier, "bernoulli": BinaryBernoulliClassifier}[method]
        template = estimator(code_size=code_size, **shared)
        strengths = np.linspace(0, 1, gammas).round(4).tolist()
        path = TradeoffPath(template, strengths, cv=folds, random_state=seed)
        X = np.asarray(TableEncoder().fit_transform(task.X))
    with terminal.advancing() as show:
        path.on_epoch = lambda done, most: show(done, most, f"training {(folds + 1) * len(strengths)} models")
        path.fit(X, task.y, sensitive_features=task.s)
    code_size = fitted_code(path.estimators_[0], None)[0].code_size
    settings: dict[str, Any] = {"command": "path", "table": name, "label": task.label, "sensitive": list(task.s)}
    settings |= {"method": str(method), "folds": folds, "groups": task.groups}
    settings |= {"limits": strengths} if method == Method.fair else {"gammas": gammas}
    settings |= {"seed": seed, "code_size": code_size, "versions": versions()}
    with file_errors(output):
        files = _write(output, path, settings, f"{name}: {type(template).__name__}, {code_size} bits")
    if as_json:
        print(json.dumps({**settings, "scores": path.scores_.to_dict("records")}))
    else:
        explanation = EXPLANATION if method == Method.fair else WORDS["path"]["explanation"]
        console.print(_score_table(path.summary(), folds), explanation, sep="\n")
    console.print(f"{(time.perf_counter() - started):.0f} s. Written: {', '.join(map(str, files))}")


def _limits(method: Method, limits: str | None, code_size: int | None) -> list[float]:
    """Return the limits that the user names, none if there are none; raise if the method does not take what is said."""
    if limits is not None and method != Method.fair:
        raise InputError("--limits are for --method fair; other methods take --gammas.")
    if method == Method.fair and (code_size or 0) > MOST_BITS:
        raise InputError(f"A code of --method fair has at most {MOST_BITS} bits.", remedy="Lower --code-size.")
    try:
        return [float(part) for part in terminal.names(limits)]
    except ValueError:
        problem = f"--limits {limits} is not a list of numbers."
        raise InputError(problem, remedy="Pass limits such as 0.02,0.05,0.1.") from None


def _score_table(summary: Any, folds: int) -> Table:
    table = Table(title=f"Held-out scores, mean ± standard deviation of {folds} folds")
    columns = LIMITED if summary.index.name == "limit" else COLUMNS
    for title in (summary.index.name, *(title for title, _ in columns.values())):
        table.add_column(title, justify="right")
    for value, row in summary.iterrows():
        table.add_row(f"{value:.2f}", *(form.format(**row[name]) for name, (_, form) in columns.items()))
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
