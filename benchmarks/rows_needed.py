"""The smallest limits that a table of so many rows can prove: ``python -m benchmarks.rows_needed`` (seconds)."""

import numpy as np

from fairbits.certificate.certificate_record import at_most
from fairbits.certificate.decision_rates import equal_limit
from fairbits.tables.task import CALIBRATION_SHARE, FEWEST_OF_A_GROUP, TEST_SHARE

ROWS = (1_000, 2_000, 5_000, 10_000, 30_000, 100_000)  # of the table
SHARES = (0.5, 0.2, 0.05, 0.01)  # of its smallest group; there is one other
RATE = 0.2  # of a decision


def cell(rows: int, share: float) -> str:
    """Return the bounds of codes and of a decision that show no disparity."""
    if rows * share * (1 - CALIBRATION_SHARE - TEST_SHARE) < FEWEST_OF_A_GROUP:
        return "no group"
    small = round(rows * CALIBRATION_SHARE * share)
    sizes = np.array([small, round(rows * CALIBRATION_SHARE) - small])
    return " / ".join(at_most(equal_limit(sizes, 0.05, kind, RATE)) for kind in ("hard", "binary"))


def table() -> list[str]:
    """Return the lines of the table in README.md and docs/concepts.md."""
    head = ["rows in the table", *(f"smallest group {share:.0%}" for share in SHARES)]
    lines = [f"| {rows:,} | " + " | ".join(cell(rows, share) for share in SHARES) + " |" for rows in ROWS]
    return [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *lines]


if __name__ == "__main__":
    print("\n".join(table()))
