"""What the lines of the benchmark table share: measured in turns, kept as JSON, held against limits and the run before.

The ratio of two times says how many times as fast as the other one ours is: above 1 ours is faster. Seconds are CPU
seconds, which other work on the machine changes less. The spread is that of the middle half of the repetitions.
"""

import json
import platform
import time
from collections.abc import Callable, Sequence
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.outcomes import table_lines
from fairbits.lab.run_records import COMMIT
from fairbits.storage import versions

Line = dict[str, Any]  # name, value, low, high; perhaps unit, at_least or at_most; or name and "missing"
CHANGE = 0.1


class Size(NamedTuple):
    """How much to measure: rows of a table at most, repetitions after the first, epochs of a fit."""

    rows: int
    repeats: int
    epochs: int


FULL, QUICK = Size(1_000_000, 7, 10), Size(400, 1, 2)


def seconds(run: Callable[[], Any]) -> float:
    """Return the CPU seconds of a call."""
    start = time.process_time()
    run()
    return time.process_time() - start


def in_turns(runs: dict[str, Callable[[], Any]], repeats: int) -> dict[str, np.ndarray]:
    """Return the seconds of every run in each repetition, in which all take their turn; the first warms up."""
    rounds = [[seconds(run) for run in runs.values()] for _ in range(repeats + 1)][1:]
    return dict(zip(runs, np.array(rounds).T, strict=True))


def line(name: str, values: Any, **more: Any) -> Line:
    """Return a line: the median of a number in each repetition, and the ends of its middle half.

    >>> line("ours : theirs", [1.0, 2.0, 6.0])
    {'name': 'ours : theirs', 'value': 2.0, 'low': 1.5, 'high': 4.0}
    """
    low, value, high = (float(f"{number:.4g}") for number in np.quantile(values, [0.25, 0.5, 0.75]))
    return {"name": name, "value": value, "low": low, "high": high, **more}


def missed(lines: Sequence[Line]) -> list[str]:
    """Return the names of the lines that are beyond their limit."""
    bounds = [(one, one.get("at_least", -np.inf), one.get("at_most", np.inf)) for one in lines if "value" in one]
    return [one["name"] for one, least, most in bounds if not least <= one["value"] <= most]


def changed(lines: Sequence[Line], before: Sequence[Line]) -> list[str]:
    """Say which values are no longer within 10 % of those kept.

    >>> changed([line("fit", [2.0]), line("new", [1.0])], [line("fit", [4.0]), line("old", [1.0])])
    ['fit: 4 before, 2 now (-50 %)']
    """
    kept, found = {one["name"]: one["value"] for one in before if one.get("value")}, []
    for name, now in ((one["name"], one["value"]) for one in lines if "value" in one):
        if name in kept and abs(now / kept[name] - 1) > CHANGE:
            found.append(f"{name}: {kept[name]:g} before, {now:g} now ({now / kept[name] - 1:+.0%})".replace("%", " %"))
    return found


def table(lines: Sequence[Line]) -> list[str]:
    """Return the lines of a table in Markdown, the values in three digits."""
    head = ("fairbits : against", "times as fast", "middle half", "target")
    return table_lines(head, [[one["name"], *_cells(one)] for one in lines])


def _cells(one: Line) -> list[str]:
    if "missing" in one:
        return [one["missing"], "", ""]
    value, low, high = (f"{one[part]:.3g}" for part in ("value", "low", "high"))
    targets = [f"at {word} {one[f'at_{word}']:g}" for word in ("least", "most") if f"at_{word}" in one]
    return [f"{value} {one.get('unit', '')}".strip(), f"{low} to {high}", ", ".join(targets)]


def made() -> dict[str, str]:
    """Return when, with what and on which processor the numbers are measured."""
    others = filter(find_spec, ("fairlearn", "aif360"))
    return {"date": date.today().isoformat(), "commit": COMMIT, "cpu": _processor(), **versions(*others)}


def _processor() -> str:
    file = Path("/proc/cpuinfo")
    names = [row.partition(": ")[2] for row in file.read_text().splitlines() if row.startswith("model name")]
    return names[0] if file.exists() and names else platform.processor()


def read(file: Path) -> dict[str, Any]:
    """Return what a run has kept, nothing where there was none."""
    return json.loads(file.read_text()) if file.exists() else {"made": {}, "lines": []}
