"""Speed as one table of ratios: ``python -m benchmarks [--quick] [PART ...]``, one process of one thread.

The parts are information, metrics, training, fits and growth. A run of all of them is kept in results/bench, writes
docs/speed.md, and names every line that has changed by more than 10 %. It fails if a target is missed.
"""

import argparse
import json
import sys

from benchmarks import fits, growth, information, metrics, training
from benchmarks.outcomes import RESULTS, quietly
from benchmarks.ratios import FULL, QUICK, Line, changed, made, missed, read, table
from fairbits.storage import replace_file

PARTS = {part.__name__.split(".")[-1]: part.run for part in (information, metrics, training, fits, growth)}
KEPT = RESULTS / "bench" / "bench.json"
PAGE = RESULTS.parent / "docs" / "speed.md"
HEAD = """\
# Speed

`python -m benchmarks` (`make bench`) measures every line in one process of one thread. After a warm-up, sides take
turns. A ratio says how many times as fast fairbits is: above 1 it is faster. It is the median of repetitions in
CPU seconds; the third column has the middle half of them.
"""
LIMITS = """
## What limits it

- A stack takes part of its time for matrix products and random numbers, which the line below its own measures alone.
  The rest goes to many small operations. One fused operation would be faster, but would round in another way.
- Fairlearn's adversary takes eight times as many steps with its batches of 32. Lines with batches of 256 compare equal
  steps.
- A code takes a third of its time for one product. In training torch takes it from MKL, which is slower than numpy on
  this processor (the line below); to predict we take it from oneDNN, which is twice as fast.
"""


def page(kept: dict) -> str:
    """Return the page of a run that was kept."""
    how = kept["made"]
    libraries = ", ".join(
        f"{name} {how[name]}" for name in ("torch", "scikit-learn", "fairlearn", "aif360") if name in how
    )
    foot = f"Measured on {how['date']} at commit {how['commit']}: {how['cpu']}, {libraries}."
    return "\n".join([HEAD, *table(kept["lines"]), "", foot, LIMITS])


def measure(names: list[str], size) -> list[Line]:
    """Return the lines of some parts, and print each part when it is done."""
    lines = []
    for name in names:
        found = quietly(PARTS[name], size)
        print("\n".join(table(found)), flush=True)
        lines += found
    return lines


def main() -> None:
    """Measure, compare with the run that was kept, and keep a whole run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", choices=[[], *PARTS])
    parser.add_argument("--quick", action="store_true", help="few rows, one repetition: numbers without meaning")
    asked = parser.parse_args()
    lines = measure(asked.parts or list(PARTS), QUICK if asked.quick else FULL)
    if asked.quick:
        return
    for words in changed(lines, read(KEPT)["lines"]):
        print(f"changed: {words}")
    if not asked.parts:
        KEPT.parent.mkdir(exist_ok=True)
        kept = {"made": made(), "lines": lines}
        replace_file(KEPT, json.dumps(kept, indent=1) + "\n")
        replace_file(PAGE, page(kept))
    sys.exit(f"beyond the target: {'; '.join(beyond)}" if (beyond := missed(lines)) else 0)


if __name__ == "__main__":
    main()
