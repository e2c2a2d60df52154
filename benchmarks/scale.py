"""How time and memory of `fairbits fit --gamma` and `fairbits transform` grow with the rows of a table of 50 columns.

``python -m benchmarks.scale [ROWS ...]`` writes results/scale/table.md and fails if a limit is missed. Each command
runs in a process of its own; memory is the most it ever held.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.outcomes import RESULTS, Job, arguments, outcomes_of, publish

FOLDER = RESULTS / "scale"
SIZES = (250_000, 500_000, 1_000_000)
EPOCHS = 5
MOST_MEGABYTES = 4_000
MOST_GROWTH = 1.25  # of the time per row, from the smallest table to the largest; start-up makes the small one slower
# A process begins with the memory of the one that started it: this one is small.
MEASURED = """\
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)"""
COMMAND = [sys.executable, "-c", "from fairbits.commands import main; main()"]


def write_table(file: Path, n: int) -> None:
    """Write a table of 30 numbers, 17 texts, an identifier, a sensitive column and a label."""
    rng = np.random.default_rng(0)
    sex, numbers = rng.integers(0, 2, n), rng.normal(size=(n, 30))
    numbers[:, :5] += 0.8 * sex[:, None]
    columns = {f"number{i}": numbers[:, i].round(4) for i in range(30)}
    columns |= {f"kind{i}": np.array([f"level{j}" for j in range(5 + i)])[rng.integers(0, 5 + i, n)] for i in range(17)}
    label = numbers[:, :8].sum(1) + 2 * rng.normal(size=n) > 1
    people = {"id": np.arange(n), "sex": np.where(sex, "f", "m"), "repaid": np.where(label, "yes", "no")}
    pd.DataFrame(columns | people).to_csv(file, index=False)


def measured(*arguments: str | Path) -> dict[str, float]:
    """Return the seconds of a command and the most memory it held, in MB."""
    started = time.perf_counter()
    command = [sys.executable, "-c", MEASURED, *COMMAND, *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, arguments))} has failed")
    cpu_seconds, kilobytes = map(float, done.stdout.split())
    return {"seconds": time.perf_counter() - started, "cpu_seconds": cpu_seconds, "megabytes": kilobytes / 1000}


def run(job: Job) -> dict[str, Any]:
    """Fit and transform a table of so many rows."""
    with tempfile.TemporaryDirectory() as place:
        table, model, codes = (Path(place) / name for name in ("table.csv", "model", "codes.csv"))
        write_table(table, job.rows)
        roles = ("--label", "repaid", "--sensitive", "sex", "--gamma", "0.5", "--epochs", str(job.epochs))
        fit = measured("fit", table, *roles, "-o", model)
        transform = measured("transform", model, table, "-o", codes)
        return {"csv": table.stat().st_size / 1e6, "fit": fit, "transform": transform}


def main() -> None:
    """Run the sizes that have no record, then write the table."""
    sizes = arguments(__doc__, "ROWS", int).names or SIZES  # one at a time: they would share the machine
    found = outcomes_of([Job(rows=size, epochs=EPOCHS) for size in sizes], run, FOLDER)
    publish(FOLDER, _table(found), _limits(found))


def _table(records: list[dict[str, Any]]) -> list[str]:
    lines = [
        "# Rows against time and memory",
        "",
        f"`python -m benchmarks.scale`: a CSV of 50 columns, `fairbits fit --gamma 0.5 --epochs {EPOCHS}` with its "
        "audit, comparisons and report, then `fairbits transform`; one process of one thread at a time.",
        "",
        "| rows | CSV, MB | fit, s | s per 100,000 rows | MB | transform, s | s per 100,000 rows | MB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for record in records:
        n, result = record["rows"], record["result"]
        cells = [
            f"{used['seconds']:.0f} | {used['seconds'] / n * 1e5:.1f} | {used['megabytes']:.0f}"
            for used in (result["fit"], result["transform"])
        ]
        lines.append(f"| {n:,} | {result['csv']:.0f} | {' | '.join(cells)} |")
    return lines


def _limits(records: list[dict[str, Any]]) -> dict[str, bool]:
    small, large = records[0], records[-1]
    limits = {}
    for command in ("fit", "transform"):
        limits[f"{command} within {MOST_MEGABYTES} MB"] = large["result"][command]["megabytes"] <= MOST_MEGABYTES
        per_row = [record["result"][command]["seconds"] / record["rows"] for record in (small, large)]
        limits[f"{command} in linear time"] = per_row[1] <= MOST_GROWTH * per_row[0]
    return limits


if __name__ == "__main__":
    main()
