"""Run all benchmarks and fail if one misses its limit: ``python -m benchmarks``."""

import sys

from benchmarks import memory, methods, metrics, training
from benchmarks.outcomes import show

missed = [name for benchmark in (memory, metrics, training, methods) for name in show(benchmark.run())]
sys.exit(f"beyond the limit: {', '.join(missed)}" if missed else 0)
