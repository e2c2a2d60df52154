"""Memory of the exact joint information, above the process before the call."""

import resource
import threading
import time
from pathlib import Path

import torch

from benchmarks.outcomes import show
from fairbits.information import joint_information


def resident() -> float:
    """Return the process's resident memory, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


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


def run() -> list[dict]:
    """Measure value and gradient at 12 bits and 50,000 rows."""
    torch.set_num_threads(1)
    theta, groups = torch.rand(50_000, 12, requires_grad=True), torch.arange(50_000) % 2
    joint_information(theta[:100], groups[:100]).backward()
    growth = peak_growth(lambda: joint_information(theta, groups).backward())
    name = "joint information, 12 bits, 50,000 rows"
    return [{"name": name, "value": growth, "unit": "MB", "at_most": 500.0}]


if __name__ == "__main__":
    show(run())
