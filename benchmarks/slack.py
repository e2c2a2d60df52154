"""How much longer a bound is than what the rows show: ``python -m benchmarks.slack`` (half a minute)."""

import numpy as np

from fairbits.certificate.deviations import deviation, hoeffding_deviation, limit_of_difference, normal_deviation

SIZES = [(100, 100), (300, 300), (587, 889), (5421, 10860), (300, 16000)]
SHOWN = 0.02


def table() -> list[str]:
    """Return the lines of the table in docs/certificate.md."""
    lines = ["| rows | confidence | Hoeffding | any values | hard values | normal limit |", "|---" * 6 + "|"]
    for sizes in SIZES:
        for delta in (0.05, 0.01):
            rows = np.array(sizes)
            short, name = deviation(rows, delta)
            hard = limit_of_difference(SHOWN, rows, delta)[0] - SHOWN
            cells = [f"{hoeffding_deviation(rows, 1.0, delta):.4f}", f"{short:.4f} ({name})", f"{hard:.4f}"]
            cells.append(f"{normal_deviation(*sizes, delta):.4f}")
            lines.append(f"| {sizes[0]:,}, {sizes[1]:,} | {1 - delta:.0%} | {' | '.join(cells)} |")
    return lines


if __name__ == "__main__":
    print("\n".join(table()))
