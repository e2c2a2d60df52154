"""How the time of a hard code grows with rows and limits: ``python -m benchmarks.code_time [ROWS ...]``.

CPU seconds on one thread, in results/code_time. Every size has one line in records.jsonl and is not run again.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.outcomes import RESULTS, Job, arguments, outcomes_of, publish, quietly, table_lines
from fairbits import LinearCodeClassifier, PosteriorEncoder
from fairbits.estimators import fit_stack
from fairbits.estimators.certified import SHARES

FOLDER = RESULTS / "code_time"
SIZES = (10_000, 32_000, 100_000, 320_000, 1_000_000)
LIMIT = 0.05
MOST_GROWTH = 1.25  # of the time per row, from 100,000 rows to a million
HEAD = f"""\
# Rows and limits against time

`python -m benchmarks.code_time`: 20 columns of numbers, two labels, two groups, CPU seconds on one thread. Posterior:
`PosteriorEncoder.fit_transform`, five folds and a refit of boosted trees and logistic regression. Codes:
`LinearCodeClassifier` for one limit, and for the {len(SHARES)} limits of a certified fit at {LIMIT}. Release: posterior
and code of as many rows.
"""


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    """Return the CPU seconds of a call, and what it returns."""
    start = time.process_time()
    found = run()
    return time.process_time() - start, found


def run(job: Job) -> dict[str, Any]:
    """Fit posteriors and codes to so many rows."""
    rng = np.random.default_rng(0)
    s = rng.integers(0, 2, job.rows)
    X = rng.normal(size=(job.rows, 20))
    X[:, :5] += 0.5 * s[:, None]
    y = (X[:, :8].sum(1) + 2 * rng.normal(size=job.rows) > 1).astype(int)
    encoder = PosteriorEncoder(features="probabilities", random_state=0)
    posterior, Z = timed(lambda: encoder.fit_transform(X, y, sensitive_features=s))
    paths = {}
    for name, limits in (("one", [LIMIT]), ("path", [share * LIMIT for share in SHARES])):
        models = [LinearCodeClassifier(limit=limit, random_state=0) for limit in limits]
        paths[name], _ = timed(partial(fit_stack, models, Z, y, sensitive_features=s))
    release, _ = timed(lambda: models[-1].transform(encoder.transform(X)))
    return {"posterior": posterior, **paths, "release": release}


def main() -> None:
    """Run the sizes that have no record, then write the table."""
    sizes = arguments(__doc__, "ROWS", int).names or SIZES
    found = outcomes_of([Job(rows=size) for size in sizes], partial(quietly, run), FOLDER)
    rows = []
    for one in found:
        took = one["result"]
        rows.append(
            {
                "rows": f"{one['rows']:,}",
                "posterior, s": f"{took['posterior']:.1f}",
                "one limit, s": f"{took['one']:.1f}",
                f"{len(SHARES)} limits, s": f"{took['path']:.1f}",
                "whole fit, s per 100,000 rows": f"{whole(one) / one['rows'] * 1e5:.1f}",
                f"{len(SHARES)} limits against one, whole fit": f"{whole(one) / (took['posterior'] + took['one']):.2f}",
                "release, s": f"{took['release']:.1f}",
            }
        )
    publish(FOLDER, [HEAD, *table_lines(list(rows[0]), [list(row.values()) for row in rows])], _limits(found))


def whole(one: dict[str, Any]) -> float:
    """Return the seconds of posteriors and a path."""
    return one["result"]["posterior"] + one["result"]["path"]


def _limits(found: list[dict[str, Any]]) -> dict[str, bool]:
    at = {one["rows"]: whole(one) / one["rows"] for one in found}
    if not {100_000, 1_000_000} <= at.keys():
        return {}
    return {"linear time to a million rows": at[1_000_000] <= MOST_GROWTH * at[100_000]}


if __name__ == "__main__":
    main()
