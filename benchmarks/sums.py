"""Time and memory of a certificate from sums: ``python -m benchmarks.sums [ROWS ...]`` (100 million rows by default).

Writes results/sums/table.md and fails if a limit is missed. The rows are drawn block by block; drawing is timed apart.
"""

import resource
import time
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.outcomes import RESULTS, Job, arguments, outcomes_of, publish
from fairbits import CertificateState
from fairbits.encoding import GroupEncoder

FOLDER = RESULTS / "sums"
BITS, BLOCK = 8, 500_000
MOST_MEGABYTES = 1_000
TRUTH = 0.25


def rows(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw codes (n, 8) and groups: fair coins, but the first bit is 1 in three quarters of the second group."""
    s, words = rng.integers(0, 2, n, dtype=np.uint8), rng.integers(0, 256, n, dtype=np.uint8)
    words |= (s & rng.integers(0, 2, n, dtype=np.uint8)) << 7
    return np.unpackbits(words[:, None], axis=1), s


def run(job: Job) -> dict[str, Any]:
    """Add the rows of a hard code to a state, then finish it."""
    encoder = GroupEncoder(min_group_size=1).fit([0, 1])
    known = {"group_encoder_": encoder, "code_size": job.bits, "is_hard": True, "random_state": None, "predict": None}
    state = CertificateState(SimpleNamespace(**known, fingerprint="", code_probabilities=lambda X: X))
    rng, drawing, adding = np.random.default_rng(0), 0.0, 0.0
    for start in range(0, job.rows, job.block):
        began = time.process_time()
        X, s = rows(rng, min(job.block, job.rows - start))
        drawn = time.process_time()
        state.add(X, sensitive_features=s)
        drawing, adding = drawing + drawn - began, adding + time.process_time() - drawn
    bound = state.finish().bounds[0]
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    return {"drawing": drawing, "adding": adding, "megabytes": used, "bound": bound.total_variation}


def main() -> None:
    """Run the sizes that have no record, then write the table."""
    sizes = arguments(__doc__, "ROWS", int).names or [100_000_000]
    found = outcomes_of([Job(rows=size, bits=BITS, block=BLOCK) for size in sizes], run, FOLDER)
    lines = [
        "# A certificate from sums",
        "",
        f"`python -m benchmarks.sums`: `CertificateState.add` of a hard code of {BITS} bits, {BLOCK:,} rows at a time; "
        f"seconds of one processor. The true disparity is {TRUTH:g}.",
        "",
        "| rows | drawing them, s | adding them, s | s per million rows | most memory, MB | certified disparity |",
        "|---|---|---|---|---|---|",
    ]
    for record in found:
        n, r = record["rows"], record["result"]
        cells = f"{r['drawing']:.0f} | {r['adding']:.0f} | {r['adding'] / n * 1e6:.2f} | {r['megabytes']:.0f}"
        lines.append(f"| {n:,} | {cells} | {r['bound']:.5f} |")
    largest = found[-1]["result"]
    limits = {f"within {MOST_MEGABYTES} MB": largest["megabytes"] <= MOST_MEGABYTES}
    publish(FOLDER, lines, limits | {"at least the truth": largest["bound"] >= TRUTH})


if __name__ == "__main__":
    main()
