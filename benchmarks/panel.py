"""Guarantees from a panel, where a person has many rows: ``python -m benchmarks.panel [--workers N]`` (minutes).

Every part has one line in results/panel/records.jsonl and is not run again.
"""

from typing import Any

import numpy as np
from scipy.stats import beta

from benchmarks.outcomes import RESULTS, Job, run_and_publish
from fairbits import CertifiedClassifier, ExactCodeClassifier
from fairbits.estimators import NotCertifiedError
from fairbits.training import Schedule

FOLDER = RESULTS / "panel"
PEOPLE, ROWS, FRESH = 150, 40, 200_000
RUNS, PARTS = 200, 4
LIMIT = 0.4
PATH = (0.02, 0.1, 0.2, 0.3, 0.4)
ABOUT = f"""\
# Guarantees from a panel

`python -m benchmarks.panel`. {PEOPLE} people with {ROWS} rows each, whose rows are alike; half of the rows certify.
`CertifiedClassifier` keeps one of five small codes of one bit and guarantees a disparity of at most {LIMIT:g}
at 95 %.
The truth is that of the kept code among {FRESH:,} other people. With `person=` the people are split and counted;
without it fairbits takes every row for another person, which is wrong here. In brackets an exact
95 % interval."""


def panel(rng: np.random.Generator, people: int, rows: int) -> tuple[np.ndarray, ...]:
    """Draw features, labels, groups and identifiers of people with so many rows each."""
    s, who = rng.integers(0, 2, people), np.repeat(np.arange(people), rows)
    own = rng.normal(size=(people, 4)) + np.outer(s, [2, 0, 0, 0])
    y = own[:, 0] + own[:, 1] + rng.normal(size=people) > 1
    return own[who] + 0.1 * rng.normal(size=(len(who), 4)), y[who].astype(int), s[who], who


def jobs(names: list[str]) -> list[Job]:
    """List the parts."""
    return [Job(part=part, runs=RUNS // PARTS, limit=LIMIT) for part in range(PARTS)]


def work(job: Job) -> dict[str, Any]:
    """Count guarantees and false ones, with and without the identifiers of people."""
    fresh = panel(np.random.default_rng(10**6), FRESH, 1)
    counts = {"with person": [0, 0], "without": [0, 0]}
    for run in range(job.part * job.runs, (job.part + 1) * job.runs):
        X, y, s, who = panel(np.random.default_rng(run), PEOPLE, ROWS)
        for name, known in (("with person", {"person": who}), ("without", {})):
            truth = kept_disparity(run, job.limit, fresh, X, y, s, known)
            counts[name][0] += truth is not None
            counts[name][1] += truth is not None and truth > job.limit
    return {name: {"promises": promises, "false": false} for name, (promises, false) in counts.items()}


def kept_disparity(run: int, limit: float, fresh: tuple, X: Any, y: Any, s: Any, known: dict) -> float | None:
    """Return the true disparity of the code that is kept; None if there is no guarantee."""
    quick = Schedule(min_steps=60, learning_rate_decay="linear", validation_fraction=0.05, selection="last")
    method = ExactCodeClassifier(
        code_size=1, hidden_sizes=(8,), max_epochs=1, learning_rate=0.03, batch_size=512, schedule=quick, random_state=0
    )
    chosen = CertifiedClassifier(method, max_disparity=limit, path=PATH, calibration_fraction=0.5, random_state=run)
    try:
        chosen.fit(X, y, sensitive_features=s, **known)
    except NotCertifiedError:
        return None
    bit = chosen.estimator_.code_probabilities(fresh[0])[:, 0]
    return float(abs(bit[fresh[2] == 1].mean() - bit[fresh[2] == 0].mean()))


def tables(records: list[dict[str, Any]]) -> list[str]:
    """Return the lines of the page."""
    lines = [*ABOUT.splitlines(), "", "| | runs | guarantees | false, of all runs |", "|---|---|---|---|"]
    runs = sum(record["runs"] for record in records)
    for name in ("with person", "without"):
        promises, k = (sum(record["result"][name][what] for record in records) for what in ("promises", "false"))
        low, high = beta.ppf(0.025, k, runs - k + 1) if k else 0.0, beta.ppf(0.975, k + 1, runs - k)
        lines.append(f"| {name} | {runs} | {promises} | {k} ({low:.1%} to {high:.1%}) |")
    return lines


if __name__ == "__main__":
    run_and_publish(__doc__, jobs, work, FOLDER, tables)
