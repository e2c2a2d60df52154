"""Run all benchmarks and fail if one misses its limit: ``python -m benchmarks``."""

import sys

from benchmarks import memory, methods, metrics, training
from benchmarks.records import missed, print_records

failures = []
for benchmark in (memory, metrics, training, methods):
    records = benchmark.run()
    print_records(records)
    failures += missed(records)
sys.exit(f"beyond the limit: {', '.join(failures)}" if failures else 0)
