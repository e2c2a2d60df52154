"""The exact joint information: against the sum over all words of every row, and against its own matrix products."""

import resource
import threading
import time
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.ratios import Line, Size, in_turns, line
from fairbits.information import joint_information, weigh_groups
from fairbits.information.exact import table_information
from fairbits.information.words import word_probabilities


def differentiated(measure, theta: Tensor, groups: Tensor) -> None:
    """Compute a value and its gradient."""
    measure(theta.requires_grad_(), groups).backward()


def brute_force(theta: Tensor, groups: Tensor) -> Tensor:
    """Return the information from the probability of every word given every row, (n, 2^m)."""
    weights, prior = weigh_groups(groups, n_groups=2)
    return table_information(weights @ word_probabilities(theta), prior)


def products(theta: Tensor, groups: Tensor) -> None:
    """Take the three products of half words that value and gradient cannot do without."""
    half, rows = 1 << theta.shape[1] // 2, [len(part) // 2 for part in (theta, theta)]
    for n in rows:  # of both groups
        left, right = theta.new_ones(half, n), theta.new_ones(half, n)
        above = left @ right.mT
        above @ right, above.mT @ left


def run(size: Size) -> list[Line]:
    """Return the memory at 12 bits, before others have taken and freed some, and the lines of both comparisons."""
    cases = [
        (12, 4_000, "brute force", partial(differentiated, brute_force)),
        (16, 50_000, "its matrix products", products),
    ]
    lines = [memory(min(50_000, size.rows))]
    for bits, n, against, other in cases:
        theta, groups = torch.rand(min(n, size.rows), bits), torch.arange(min(n, size.rows)) % 2
        ours = partial(differentiated, joint_information, theta, groups)
        took = in_turns({"ours": ours, "theirs": partial(other, theta, groups)}, size.repeats)
        name = f"exact information and gradient, {bits} bits, {len(theta):,} rows : {against}"
        lines.append(line(name, took["theirs"] / took["ours"]))
    return lines


def memory(rows: int, bits: int = 12) -> Line:
    """Return the most memory that value and gradient hold above that of the process before."""
    theta, groups = torch.rand(rows, bits), torch.arange(rows) % 2
    growth = peak_growth(partial(differentiated, joint_information, theta, groups))
    return line(
        f"memory of the exact information and gradient, {bits} bits, {rows:,} rows", [growth], unit="MB", at_most=500.0
    )


def peak_growth(function) -> float:
    """Return how far resident memory rises above its start while a function runs, in MB."""
    peak, done, start = 0.0, threading.Event(), resident()

    def watch() -> None:
        nonlocal peak
        while not done.is_set():
            peak = max(peak, resident())
            time.sleep(0.0005)

    watcher = threading.Thread(target=watch)
    watcher.start()
    function()
    done.set()
    watcher.join()
    return peak - start


def resident() -> float:
    """Return the process's resident memory, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6
