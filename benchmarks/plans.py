"""What `fairbits plan` says, how fast, and whether it is true: ``python -m benchmarks.plans`` (a minute or two).

Every table has one line in results/plans/records.jsonl and is not run again.
"""

import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.outcomes import RESULTS, Job, run_and_publish, table_lines
from fairbits import certify
from fairbits.datasets import load_adult, load_bank, load_compas
from fairbits.errors import InputError
from fairbits.tables.task import make_task
from fairbits.workflow.fit_task import FitOptions
from fairbits.workflow.planning import check_limits, plan

FOLDER = RESULTS / "plans"
SPLITS, MOST_SECONDS = 40, 3.0
LOADERS = {"adult": load_adult, "bank": load_bank, "compas": load_compas}
PLANNED: dict[str, tuple[str, int | None, list[str], bool]] = {  # name: dataset, rows, sensitive columns, crossed
    "Adult, 600 rows, sex": ("adult", 600, ["sex"], False),
    "Adult, 1,000 rows, race": ("adult", 1_000, ["race"], False),
    "Adult, 3,000 rows, sex x race": ("adult", 3_000, ["sex", "race"], True),
    "Adult, 5,000 rows, native-country": ("adult", 5_000, ["native-country"], False),
    "Adult, 10,000 rows, sex and race": ("adult", 10_000, ["sex", "race"], False),
    "Adult, sex": ("adult", None, ["sex"], False),
    "Bank, 1,000 rows, age": ("bank", 1_000, ["age"], False),
    "Bank, marital": ("bank", None, ["marital"], False),
    "COMPAS, 1,500 rows, race": ("compas", 1_500, ["race"], False),
    "COMPAS, race": ("compas", None, ["race"], False),
}
HEAD = f"""\
# What `fairbits plan` says of ten tables

`python -m benchmarks.plans`. Seconds of one processor for the whole command, reading the table included (target: at
most {MOST_SECONDS:g}). "Impossible below" is the limit below which no split of the table can be certified, for codes
and for decisions; "in this split" is that of --seed 0. Each impossible limit is tried on {SPLITS} splits: it is
wrong if `fairbits fit` would not refuse it there, or if the calibration rows prove it for a code or a decision that
is the same for everybody. "Least proved" is the smallest bound of such a code, and of such a decision, in any of
these splits."""


def frame(name: str) -> tuple[pd.DataFrame, str]:
    """Return the table with its label and its sensitive columns, and the name of the label."""
    dataset, rows, *_ = PLANNED[name]
    data = LOADERS[dataset]()
    table = data.X.assign(**{data.target_name: data.y, str(data.s.name): data.s})
    return table.sample(min(rows or len(table), len(table)), random_state=1), data.target_name


def jobs(names: list[str]) -> list[Job]:
    """List the tables."""
    return [Job(table=name) for name in PLANNED if not names or name.split(",")[0].lower() in names]


def run(job: Job) -> dict[str, Any]:
    """Plan, and check on other splits what the plan calls impossible."""
    table, label = frame(job.table)
    *_, sensitive, crossed = PLANNED[job.table]
    known: dict[str, Any] = {"crossed": crossed}
    found, wrong, least = plan(make_task(table, label, sensitive, **known)), 0, {"codes": 1.0, "decisions": 1.0}
    limits = {of: [one["limit"] for one in found["limits"] if one[of] == "impossible"] for of in least}
    limits = {of: [*own, found[of]["smallest_of_any_split"] * (1 - 1e-9)] for of, own in limits.items()}
    for seed in range(SPLITS):
        try:
            task = make_task(table, label, sensitive, **known, seed=seed)
        except InputError:  # nothing to compare in this split
            continue
        held = task.parts[1]
        s = task.s.iloc[held]
        columns = [s] if crossed else [s[[name]] for name in s]
        for of, promise in (("codes", "code"), ("decisions", "class")):
            same = np.zeros((len(held), 2)) if of == "codes" else np.zeros(len(held), dtype=int)
            bound = max(certify(same, sensitive_features=column).total_variation for column in columns)
            least[of] = min(least[of], bound)
            for limit in limits[of]:
                try:
                    check_limits(task, FitOptions(max_disparity=limit, promise=promise))
                except InputError:
                    wrong += bound <= limit
                else:
                    wrong += 1
    sums = {
        of: {"split": found[of]["smallest"], "any": found[of]["smallest_of_any_split"], "least": least[of]}
        for of in least
    }
    checks = sum(map(len, limits.values())) * SPLITS
    return {
        "rows": len(table),
        "seconds": seconds(table, label, sensitive, crossed),
        "checks": checks,
        "wrong": wrong,
        **sums,
    }


def seconds(table: pd.DataFrame, label: str, sensitive: list[str], crossed: bool) -> float:
    """Return the seconds of a processor that the command takes."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "table.csv"
        table.to_csv(file, index=False)
        asked = ["plan", str(file), "--label", label, "--sensitive", ",".join(sensitive), *["--crossed"] * crossed]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = "from fairbits.commands import main; main()"
        subprocess.run([sys.executable, "-c", start, *asked], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def tables(found: list[dict[str, Any]]) -> list[str]:
    """Return the page."""
    head = ["table", "seconds"]
    for of in ("codes", "decisions"):
        head += [f"{of}: impossible below", "in this split", "least proved"]
    rows = [
        [one["table"], f"{own['seconds']:.1f}"]
        + [f"{own[of][name]:.4f}" for of in ("codes", "decisions") for name in ("any", "split", "least")]
        + [f"{own['wrong']} of {own['checks']}"]
        for one in found
        for own in [one["result"]]
    ]
    return [HEAD, "", *table_lines([*head, "wrong"], rows)]


if __name__ == "__main__":
    run_and_publish(__doc__, jobs, run, FOLDER, tables)
