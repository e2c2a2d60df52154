"""How benchmarks are timed, shown and judged."""

import time
from collections.abc import Callable


def print_records(records: list[dict]) -> None:
    """Print one line per record: name, value, and the limit it is held against."""
    for record in records:
        limits = [f"at {word} {record[f'at_{word}']:g}" for word in ("least", "most") if f"at_{word}" in record]
        print(
            f"{record['name']:<48} {record['value']:>8.2f} {record.get('unit', ''):<4} {', '.join(limits)}", flush=True
        )


def seconds(run: Callable, *args) -> float:
    """Return how long a call takes."""
    start = time.perf_counter()
    run(*args)
    return time.perf_counter() - start


def missed(records: list[dict]) -> list[str]:
    """Return the names of the records beyond their limit."""
    return [
        r["name"]
        for r in records
        if r["value"] < r.get("at_least", -float("inf")) or r["value"] > r.get("at_most", float("inf"))
    ]
