"""How time grows with rows, bits and groups: the exponent a of a fitted power law, time ~ size^a."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from benchmarks.information import differentiated
from benchmarks.ratios import Line, Size, in_turns, line
from fairbits.information import joint_information
from fairbits.lab.machine_speed import measure

ROWS = (4_000, 16_000, 64_000)


def run(size: Size) -> list[Line]:
    """Return the exponents of fit, transform and exact information."""
    rows = [min(n, size.rows // 4 * 4**k) for k, n in enumerate(ROWS)]
    found = [[measure(n) for n in rows] for _ in range(size.repeats // 2 + 2)][1:]
    epochs = [[one["epoch_seconds"] for one in again] for again in found]
    draws = [[one["rows"] / one["transform_rows_per_second"] for one in again] for again in found]
    return [
        exponent("seconds of a fit against rows", rows, epochs, at_most=1.1),
        exponent("seconds of transform against rows", rows, draws, at_most=1.1),
        information_growth("rows", [(n, 12, 2) for n in rows], size, at_most=1.1),
        information_growth("words of a code (2 to the bits)", [(rows[1], bits, 2) for bits in (10, 12, 14, 16)], size),
        information_growth("groups", [(rows[2], 12, k) for k in (2, 4, 8, 16)], size, at_most=0.5),
    ]


def information_growth(what: str, cases: Sequence[tuple[int, int, int]], size: Size, **limit: float) -> Line:
    """Return the exponent of the exact information in the one of (rows, bits, groups) that varies."""
    rng = torch.Generator().manual_seed(0)
    runs: dict[str, Callable[[], Any]] = {}
    for n, bits, k in cases:
        runs[f"{n} {bits} {k}"] = partial(
            differentiated, joint_information, torch.rand(n, bits, generator=rng), torch.arange(n) % k
        )
    sizes = {"rows": [n for n, _, _ in cases], "groups": [k for _, _, k in cases]}.get(
        what, [2.0**b for _, b, _ in cases]
    )
    took = np.array(list(in_turns(runs, size.repeats).values())).T
    return exponent(f"seconds of the exact information against {what}", sizes, took, **limit)


def exponent(name: str, sizes: Sequence[float], times: Any, **limit: float) -> Line:
    """Fit log time to log size in every repetition.

    >>> exponent("seconds against rows", [1, 10, 100], [[2.0, 20.0, 200.0]])["value"]
    1.0
    """
    slopes = [np.polyfit(np.log(sizes), np.log(took), 1)[0] for took in times]
    return line(name, slopes, unit="exponent", **limit)
