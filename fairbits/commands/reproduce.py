"""`fairbits reproduce`: run what is missing, show how far it is, write tables and figures."""

import json
import time
import tomllib
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from fairbits.errors import InputError
from fairbits.lab.harness import Folder, reproduce
from fairbits.lab.plan_files import read_plan, shipped_plans
from fairbits.lab.tracking import wandb_mirror
from fairbits.metrics import paper_objective

STOPPING = "Ctrl-C loses the batch of trials that is under way, no more."


def run_reproduce(
    name: str,
    output: Path,
    *,
    quick: bool,
    trials: int | None,
    changes: list[str] | None,
    workers: int,
    track: str | None,
    as_json: bool = False,
) -> None:
    """Reproduce one experiment or all of them; what has its record is not run again."""
    if output.exists() and not output.is_dir():
        raise InputError(f"-o names a folder; {output} is a file.")
    console, folder = Console(stderr=as_json), Folder(output)
    other = _changes(changes or []) | ({} if trials is None else {"trials": trials})
    plans = [read_plan(plan, quick=quick, changes=other) for plan in (shipped_plans() if name == "all" else [name])]
    unknown = set(other) - {name for plan in plans for run in plan.runs for name in type(run).model_fields}
    if unknown:
        raise InputError(f"No run of {name} has a setting {sorted(unknown)}.")
    runs = list({run.hash: run for plan in plans for run in plan.runs}.values())
    for plan in plans:
        console.print(f"[bold]{plan.title}[/bold]: {len(plan.runs)} runs")
    for package, count in folder.other_versions().items():
        console.print(f"{count} records of {output} were made with another {package} than this; they are kept as is.")
    if folder.torn_lines():
        console.print(f"{folder.torn_lines()} torn line(s) of {folder.file} are left out; their runs are run again.")
    try:
        with Live(console=console, refresh_per_second=2, transient=True) as live:
            display = _Display(folder, runs)
            records = reproduce(
                runs,
                folder,
                workers=workers,
                watch=lambda *state: live.update(display(*state), refresh=True),
                track=None if track is None else wandb_mirror(output.name),
            )
    except KeyboardInterrupt:
        console.print("Stopped. What is finished is kept; the same command goes on from there.")
        raise SystemExit(130) from None
    files = _write(list(folder.read().values()), output, console)
    if as_json:
        print(json.dumps({"output": str(output), "runs": len(records), "files": [str(file) for file in files]}))


def _changes(texts: list[str]) -> dict[str, Any]:
    """Read settings given as NAME=VALUE, the value as in TOML."""
    try:
        return tomllib.loads("\n".join(texts))
    except tomllib.TOMLDecodeError:
        raise InputError(f"--set takes NAME=VALUE with a value as in TOML, such as epochs=80; got {texts}.") from None


def _write(records: list[dict[str, Any]], output: Path, console: Console) -> list[Path]:
    """Write tables, figures and the page of all records in the folder; return the files."""
    try:
        from fairbits.lab.paper_page import write_lab_report

        files = write_lab_report(output)
    except ImportError:  # the packages that draw
        from fairbits.lab.paper import write_paper

        files = write_paper(records, output)
    for file in files:
        if file.suffix == ".md":
            console.print(file.read_text(), markup=False, highlight=False)
    console.print(f"Written: {', '.join(str(file) for file in files)}")
    return files


class _Display:
    """What runs, how many trials are done, the best so far, the time left."""

    def __init__(self, folder: Folder, runs: list[Any]):
        done = folder.read()
        self.folder, self.started = folder, time.monotonic()
        self.trials = sum(_size(run) for run in runs)
        self.before = sum(_size(run) if run.hash in done else self._done(run) for run in runs)

    def __call__(self, waiting: list[Any], running: list[Any], finished: int) -> Group:
        left = sum(_size(run) - self._done(run) for run in [*waiting, *running])
        now = self.trials - left
        table = Table("running", "fold", "trials", "best so far", box=None, padding=(0, 2, 0, 0))
        for run in running:
            best = self._best(run)
            table.add_row(
                f"{getattr(run, 'dataset', 'images')} {run.name}",
                str(getattr(run, "fold", "")),
                f"{self._done(run)} / {run.trials}" if run.kind == "search" else "",
                "" if best is None else f"{best:.4f}",
            )
        rate = (now - self.before) / (time.monotonic() - self.started)
        time_left = f"about {left / rate / 60:.0f} min left" if rate > 0 else "the first batch is under way"
        words = f"{now:,} of {self.trials:,} trials, {len(waiting)} runs waiting, {time_left}."
        return Group(ProgressBar(total=self.trials, completed=now, width=60), words, STOPPING, table)

    def _done(self, run: Any) -> int:
        return min(len(self.folder.progress(run)), run.trials) if run.kind == "search" else 0

    def _best(self, run: Any) -> float | None:
        """Return the best value of the paper's objective among the run's complete trials."""
        if run.kind != "search":
            return None
        complete = [trial["scores"] for trial in self.folder.progress(run) if trial["state"] == "complete"]
        values = [sum(map(paper_objective, folds)) / len(folds) for folds in complete]
        return max(values, default=None)


def _size(run: Any) -> int:
    """Return about how many trials a run is worth."""
    return run.trials if run.kind == "search" else len(getattr(run, "values", [run]))
