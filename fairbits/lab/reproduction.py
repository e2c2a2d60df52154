"""Run the experiments of plans, show how far they are, mirror their records, and write their tables and figures."""

import json
import re
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from fairbits.errors import InputError, MissingExtraError
from fairbits.lab.harness import Folder, reproduce
from fairbits.lab.paper import can_draw, write_lab_report, write_paper
from fairbits.lab.plan_files import read_plan, shipped_plans
from fairbits.lab.run_settings import Plan
from fairbits.metrics import paper_objective
from fairbits.storage import file_errors


def run_experiments(
    experiment: str,
    output: Path,
    *,
    changes: list[str],
    trials: int | None,
    quick: bool,
    workers: int,
    cluster: str | None = None,
    storage: str | None = None,
    track: str | None,
    as_json: bool,
    searches: Path | None = None,
) -> None:
    """Run one plan or "all" of them; runs that have their record are not run again.

    `searches` is the folder of the searches whose choices are fitted again, by default `output` itself: then those of
    the same command count, too.
    """
    if output.exists() and not output.is_dir():
        raise InputError(f"-o names a folder; {output} is a file.")
    console, folder = Console(stderr=as_json), Folder(output)
    changed = _changes(changes) | ({} if trials is None else {"trials": trials})
    wanted = shipped_plans() if experiment == "all" else [experiment]
    source = folder if searches is None else Folder(searches)

    def read_plans() -> list[Plan]:
        records = list(source.read().values())
        return [read_plan(name, quick=quick, changes=changed, records=records) for name in wanted]

    plans = read_plans()
    unknown = set(changed) - {name for plan in plans for run in plan.runs for name in type(run).model_fields}
    if unknown:
        raise InputError(f"No run of {experiment} has a setting {sorted(unknown)}.")
    runs = _runs(plans)
    if not runs:
        remedy = "Name a folder with searches by --searches, or run a plan of searches there first."
        raise InputError(f"{experiment} fits what searches chose, and {source.path} has none.", remedy=remedy)
    _introduce(console, plans, folder)
    with file_errors(output):  # before the runs, which take hours
        output.mkdir(parents=True, exist_ok=True)
    mirror = None if track is None else wandb_mirror(output.name)
    where: dict[str, Any] = {"workers": workers, "cluster": cluster, "storage": storage, "track": mirror}
    try:
        records = _carry_out(runs, folder, console, **where)
        if len(more := _runs(read_plans())) > len(runs):  # searches that have just ended
            records = _carry_out(more, folder, console, **where)
    except KeyboardInterrupt:
        console.print("Stopped. Finished runs are kept; the same command continues from there.")
        raise
    with file_errors(output):
        files = write_lab_report(output) if can_draw() else write_paper(folder.read().values(), output)
    for file in files:
        if file.suffix == ".md":
            console.print(file.read_text(), markup=False, highlight=False)
    console.print(f"Written: {', '.join(map(str, files))}")
    if as_json:
        print(json.dumps({"output": str(output), "runs": len(records), "files": [str(file) for file in files]}))


def _introduce(console: Console, plans: list[Plan], folder: Folder) -> None:
    """Say what will be run, and what is odd about the records there are."""
    for plan in plans:
        console.print(f"[bold]{plan.title}[/bold]: {len(plan.runs)} runs")
    for package, count in folder.other_versions().items():
        console.print(
            f"{count} records of {folder.path} were made with a different version of {package}; they are kept."
        )
    if folder.torn_lines():
        console.print(f"{folder.torn_lines()} torn line(s) of {folder.file} are ignored; their runs are run again.")


def _carry_out(runs: list[Any], folder: Folder, console: Console, **options: Any) -> list[dict[str, Any]]:
    """Execute the runs under a display of how far they are."""
    display = _Display(folder, runs)
    with Live(console=console, refresh_per_second=2, transient=True) as live:
        return reproduce(runs, folder, watch=lambda *state: live.update(display(*state), refresh=True), **options)


def _runs(plans: list[Plan]) -> list[Any]:
    """Return the runs of plans, each once."""
    return list({run.hash: run for plan in plans for run in plan.runs}.values())


def _changes(texts: list[str]) -> dict[str, Any]:
    """Read settings given as NAME=VALUE, the value as in TOML; a word needs no quotes.

    >>> _changes(["dataset=bank", "epochs=80", "common=true"])
    {'dataset': 'bank', 'epochs': 80, 'common': True}
    """
    quoted = [re.sub(r"^(\w+)\s*=\s*((?!true$|false$)[A-Za-z][\w-]*)$", r'\1="\2"', text) for text in texts]
    try:
        return tomllib.loads("\n".join(quoted))
    except tomllib.TOMLDecodeError:
        example = "such as epochs=80, dataset=bank or 'seed=[0, 1]'"
        raise InputError(f"--set takes NAME=VALUE with a value as in TOML, {example}; got {texts}.") from None


class _Display:
    """Which runs are under way, how many trials are done, the best score so far, and the time left."""

    def __init__(self, folder: Folder, runs: list[Any]):
        finished = folder.read()
        self.folder, self.started = folder, time.monotonic()
        self.trials = sum(_size(run) for run in runs)
        self.before = sum(_size(run) if run.hash in finished else len(self._trials(run)) for run in runs)

    def __call__(self, waiting: list[Any], running: list[Any], finished: int) -> Group:
        left = sum(_size(run) - len(self._trials(run)) for run in [*waiting, *running])
        done = self.trials - left
        table = Table("running", "fold", "trials", "best so far", box=None, padding=(0, 2, 0, 0))
        for run in running:
            trials = self._trials(run)
            scores = [trial["scores"] for trial in trials if trial["state"] == "complete"]
            best = max((sum(map(paper_objective, folds)) / len(folds) for folds in scores), default=None)
            table.add_row(
                f"{getattr(run, 'dataset', 'images')} {run.name}",
                str(getattr(run, "fold", "")),
                f"{len(trials)} / {run.trials}" if run.kind == "search" else "",
                "" if best is None else f"{best:.4f}",
            )
        rate = (done - self.before) / (time.monotonic() - self.started)
        time_left = f"about {left / rate / 60:.0f} min left" if rate > 0 else "the first batch is running"
        words = f"{done:,} of {self.trials:,} trials, {len(waiting)} runs waiting, {time_left}."
        stopping = "Ctrl-C loses only the batch of trials that is running."
        return Group(ProgressBar(total=self.trials, completed=done, width=60), words, stopping, table)

    def _trials(self, run: Any) -> list[dict[str, Any]]:
        """Return the finished trials of a search, none for another run."""
        return self.folder.progress(run)[: run.trials] if run.kind == "search" else []


def _size(run: Any) -> int:
    """Return about how many trials a run is worth."""
    return run.trials if run.kind == "search" else len(getattr(run, "values", [run]))


def wandb_mirror(folder: str) -> Callable[[dict[str, Any]], None]:
    """Return a function that sends each record as one run; `WANDB_MODE=offline` keeps it on this machine."""
    try:
        import wandb
    except ImportError:
        raise MissingExtraError("Weights & Biases", "tracking") from None

    def send(record: dict[str, Any]) -> None:
        run = record["run"]
        name = "-".join(str(run[key]) for key in ("kind", "dataset", "name", "fold", "seed") if key in run)
        where = {"project": "fairbits", "group": folder, "name": name, "id": record["hash"]}
        with wandb.init(**where, config=run, reinit=True) as sent:
            for i, step in enumerate(series(record["result"])):
                sent.log(step, step=i)
            sent.summary.update({**flat(record["result"]), "seconds": record["made"]["seconds"]})

    return send


def flat(result: Any, prefix: str = "") -> dict[str, float]:
    """Return the numbers of nested dicts under joined names; lists are left out.

    >>> flat({"test": {"auc": 0.7}, "best": {"depth": 2}, "scores": [1, 2]})
    {'test.auc': 0.7, 'best.depth': 2}
    """
    if isinstance(result, (int, float)) and not isinstance(result, bool):
        return {prefix[:-1]: result}
    if not isinstance(result, dict):
        return {}
    return {k: v for name, part in result.items() for k, v in flat(part, f"{prefix}{name}.").items()}


def series(result: dict[str, Any]) -> list[dict[str, float]]:
    """Return the lists of dicts in a result, such as epochs or strengths, one after another."""
    return [flat(step) for part in result.values() if isinstance(part, list) for step in part]
