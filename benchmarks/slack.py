"""How much longer a bound is than what the rows show: ``python -m benchmarks.slack`` (half a minute)."""

import numpy as np

from fairbits.certificate.anytime import anytime_slack
from fairbits.certificate.decision_rates import limit_of_rates
from fairbits.certificate.deviations import deviation, hoeffding_deviation, limit_of_difference, normal_deviation

SIZES = [(100, 100), (300, 300), (587, 889), (5421, 10860), (300, 16000)]
SHOWN = 0.02
EACH, LIMIT = (200, 500, 1590, 5000, 20_000), 0.1  # rows in each of two groups, for bounds at all times
RATES = (0.01, 0.05, 0.2, 0.5)


def table() -> list[str]:
    """Return the lines of the table in docs/certificate.md."""
    decisions = [f"decision, {rate:.0%}" for rate in RATES]
    titles = ["rows", "confidence", "Hoeffding", "any values", "hard values", *decisions, "normal limit"]
    lines = [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    for sizes in SIZES:
        for delta in (0.05, 0.01):
            rows = np.array(sizes)
            short, name = deviation(rows, delta)
            hard = limit_of_difference(SHOWN, rows, delta)[0] - SHOWN
            cells = [f"{hoeffding_deviation(rows, 1.0, delta):.4f}", f"{short:.4f} ({name})", f"{hard:.4f}"]
            for rate in RATES:
                counts = np.rint(rate * rows).astype(int)
                shown = abs(float(np.diff(counts / rows)[0]))
                cells.append(f"{limit_of_rates(counts, rows, delta)[0] - shown:.4f}")
            cells.append(f"{normal_deviation(*sizes, delta):.4f}")
            lines.append(f"| {sizes[0]:,}, {sizes[1]:,} | {1 - delta:.0%} | {' | '.join(cells)} |")
    return lines


def anytime_table() -> list[str]:
    """Return the lines of the table of bounds at all times, beside those at one time."""
    lines = ["| rows in each group | at all times | Hoeffding | any values | hard values |", "|---" * 5 + "|"]
    for n in EACH:
        rows = np.array([n, n])
        once = [hoeffding_deviation(rows, 1.0, 0.05), deviation(rows, 0.05)[0]]
        once.append(limit_of_difference(SHOWN, rows, 0.05)[0] - SHOWN)
        lines.append(f"| {n:,} | " + " | ".join(f"{x:.4f}" for x in [anytime_slack(n / 2, LIMIT, 0.05), *once]) + " |")
    return lines


if __name__ == "__main__":
    print("\n".join([*table(), "", *anytime_table()]))
