"""How often the sketch of a fit recognises its rows: ``python -m benchmarks.sketch`` (a minute)."""

import numpy as np

from fairbits.encoding.recognition import RowSketch

SIZES = [(600, 100), (600, 300), (5_000, 300), (5_000, 1_000), (5_000, 3_000)]
SIZES += [(30_000, 1_000), (30_000, 3_000), (30_000, 10_000)]
SHARES = (1.0, 0.5, 0.3, 0.2, 0.1, 0.0)
TABLES = 200


def recognised(n: int, k: int, rng: np.random.Generator) -> np.ndarray:
    """Return how often k new rows are recognised, for each share of them that are rows of a fit to n rows."""
    found = np.zeros(len(SHARES))
    for _ in range(TABLES):
        rows = rng.integers(2**64, size=n + k, dtype=np.uint64)  # no content repeats
        sketch, shared = RowSketch.of(rows[:n]), [round(share * k) for share in SHARES]
        found += [sketch.recognises(rows[n - own : n - own + k]) for own in shared]
    return found / TABLES


def table() -> list[str]:
    """Return the lines of the table in docs/certificate.md."""
    head = " | ".join(f"{share:.0%}".replace("%", " %") for share in SHARES)
    lines, rng = (
        [f"| rows of the fit | bytes | new rows | {head} |", "|---" * (3 + len(SHARES)) + "|"],
        np.random.default_rng(0),
    )
    for n, k in SIZES:
        size = -(-RowSketch.of(rng.integers(2**64, size=n, dtype=np.uint64)).size // 8)
        lines.append(f"| {n:,} | {size:,} | {k:,} | {' | '.join(f'{rate:.2f}' for rate in recognised(n, k, rng))} |")
    return lines


if __name__ == "__main__":
    print("\n".join(table()))
