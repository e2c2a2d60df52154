"""Tables larger than memory: time and memory of `fairbits fit`, `certify` and `transform` against rows.

``python -m benchmarks.large_tables [ROWS ...]`` writes results/large_tables/table.md and fails if a limit is missed.
Each command runs in a process of its own with one thread; memory is the most it ever held.
"""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.outcomes import RESULTS, Job, arguments, outcomes_of, publish
from benchmarks.scale import measured

FOLDER = RESULTS / "large_tables"
SIZES = (1_000_000, 2_000_000, 20_000_000)
PARTS = 20
MOST_MEGABYTES = 2_000
MOST_GROWTH = 1.25  # of the time per row, from the smallest table to the largest
ROLES = ("--label", "repaid", "--sensitive", "sex", "--max-disparity", "0.1", "--for", "codes", "--seed", "0")


def write_parts(folder: Path, n: int, seed: int, parts: int = PARTS) -> None:
    """Write n rows of 20 columns: 14 numbers, 3 texts, an identifier, a sensitive column and a label."""
    folder.mkdir(parents=True)
    for part, rows in enumerate(np.array_split(np.arange(n), parts)):
        people(rows, [seed, part]).to_parquet(folder / f"part-{part:03d}.parquet", index=False)


def people(rows: np.ndarray, seed: Any) -> pd.DataFrame:
    """Return the people of some rows."""
    rng, n = np.random.default_rng(seed), len(rows)
    sex, numbers = rng.integers(0, 2, n), rng.normal(size=(n, 14)).astype(np.float32)
    numbers[:, :4] += 0.4 * sex[:, None]
    columns: dict[str, Any] = {f"number{i}": numbers[:, i].round(3) for i in range(14)}
    columns |= {f"kind{i}": np.array([f"level{j}" for j in range(5 + i)])[rng.integers(0, 5 + i, n)] for i in range(3)}
    repaid = numbers[:, :8].sum(1) + 2 * rng.normal(size=n) > 1
    return pd.DataFrame(
        columns | {"row_id": rows, "sex": np.where(sex, "f", "m"), "repaid": np.where(repaid, "yes", "no")}
    )


def run(job: Job) -> dict[str, Any]:
    """Fit, certify and transform tables of so many rows."""
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory(dir=os.environ.get("FAIRBITS_SCRATCH")) as place:
        table, later, model, bits = (Path(place) / name for name in ("rows", "later", "model", "bits"))
        write_parts(table, job.rows, 0)
        found = {"fit": measured("fit", table, *ROLES, "-o", model)}
        shutil.rmtree(table)
        write_parts(later, job.rows, 1)
        found["certify"] = measured("certify", model, later)
        found["transform"] = measured("transform", model, later, "-o", bits)
        return found


def main() -> None:
    """Run the sizes that have no record, then write the table."""
    sizes = arguments(__doc__, "ROWS", int).names or SIZES  # one at a time: they would share the machine
    found = outcomes_of([Job(rows=size) for size in sizes], run, FOLDER)
    publish(FOLDER, _table(found), _limits(found))


def _table(records: list[dict[str, Any]]) -> list[str]:
    lines = [
        "# Large tables: rows against time and memory",
        "",
        f"`python -m benchmarks.large_tables`: {PARTS} Parquet files of 20 columns; one process of one thread at a "
        "time. `fit` learns from about 500,000 rows, and certifies on all rows set apart.",
        "",
        "Seconds are of the processor, start-up included: other work on the machine does not count.",
        "",
        "| rows | fit, s | us per row | MB | certify, s | us per row | MB | transform, s | us per row | MB |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for record in records:
        cells = []
        for command in ("fit", "certify", "transform"):
            used = record["result"][command]
            spent = used["cpu_seconds"]
            cells.append(f"{spent:.0f} | {spent / record['rows'] * 1e6:.1f} | {used['megabytes']:.0f}")
        lines.append(f"| {record['rows']:,} | {' | '.join(cells)} |")
    return lines


def _limits(records: list[dict[str, Any]]) -> dict[str, bool]:
    small, large = records[0], records[-1]
    limits = {}
    for command in ("fit", "certify", "transform"):
        limits[f"{command} within {MOST_MEGABYTES} MB"] = large["result"][command]["megabytes"] <= MOST_MEGABYTES
        per_row = [record["result"][command]["cpu_seconds"] / record["rows"] for record in (small, large)]
        limits[f"{command} in linear time"] = per_row[1] <= MOST_GROWTH * per_row[0]
    return limits


if __name__ == "__main__":
    main()
