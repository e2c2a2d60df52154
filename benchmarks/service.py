"""How fast `fairbits serve` answers: ``python -m benchmarks.service`` writes results/service/table.md.

It fits a model, serves it on loopback, and sends 1,000 requests of one to three rows, 32 at a time. It fails if an
answer is lost, or is not that of `fairbits transform` for these rows. Server and client have one thread each.
"""

import asyncio
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import URLError

import numpy as np
import pandas as pd

from benchmarks.large_tables import people
from benchmarks.outcomes import RESULTS, Job, outcomes_of, publish, table_lines
from benchmarks.scale import COMMAND, measured

FOLDER = RESULTS / "service"
REQUESTS, AT_A_TIME, MOST_ROWS = 1_000, 32, 3
FITTED = (1_000, 20_000)  # rows; with more than 1,500 boosted trees stand beside the logistic regression
ROLES = (
    "--label",
    "repaid",
    "--sensitive",
    "sex",
    "--drop",
    "row_id",
    "--for",
    "codes",
    "--max-disparity",
    "0.5",
    "--seed",
    "0",
)
HEAD = f"""\
# Requests against time

`python -m benchmarks.service`: {REQUESTS:,} requests of 1 to {MOST_ROWS} rows of 17 columns, {AT_A_TIME} at a time, to
`fairbits serve` on loopback. Server and client have one thread each. p50 and p99 are what a client waits.
"""


class Answer(NamedTuple):
    """What came back, and after how many seconds."""

    status: int
    content: dict[str, Any]
    seconds: float


@contextmanager
def served(model: Path, *options: str | Path) -> Iterator[int]:
    """Serve a model, and yield the port, once it answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [*COMMAND, "serve", str(model), "--port", str(port), *map(str, options)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            while not _is_healthy(port):
                if process.poll() is not None:
                    raise RuntimeError("the service has ended")
                time.sleep(0.1)
            yield port
        finally:
            process.send_signal(signal.SIGTERM)


def _is_healthy(port: int) -> bool:
    try:
        return urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).status == 200
    except (URLError, TimeoutError):
        return False


async def load(port: int, contents: list[dict[str, Any]], at_a_time: int) -> list[Answer]:
    """Post contents to /codes over so many connections; return the answers in order."""
    waiting, answers = iter(list(enumerate(contents))), {}

    async def connection() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number, content in waiting:
            body, started = json.dumps(content).encode(), time.perf_counter()
            writer.write(b"POST /codes HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            answer = await reader.readexactly(int(head.partition("content-length: ")[2].partition("\r")[0]))
            took = time.perf_counter() - started
            answers[number] = Answer(int(head.split()[1]), json.loads(answer), took)
        writer.close()

    await asyncio.gather(*(connection() for _ in range(at_a_time)))
    return [answers[number] for number in range(len(contents))]


def requests(frame: pd.DataFrame, n: int, seed: int = 0) -> tuple[list[np.ndarray], list[dict[str, Any]]]:
    """Return the rows that n requests ask about, and the contents of these requests."""
    rng, rows = np.random.default_rng(seed), json.loads(frame.to_json(orient="records"))
    asked = [rng.integers(0, len(frame), rng.integers(1, MOST_ROWS + 1)) for _ in range(n)]
    return asked, [{"rows": [rows[row] for row in own]} for own in asked]


def run(job: Job) -> dict[str, Any]:
    """Fit a model to so many rows, ask it, and compare each answer with the code in a file."""
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as place:
        table, later, model, bits = (Path(place) / name for name in ("rows.csv", "later.csv", "model", "bits.csv"))
        people(np.arange(job.rows), 0).to_csv(table, index=False)
        measured("fit", table, *ROLES, "-o", model)
        frame = people(np.arange(1_000), 1).drop(columns=["row_id", "sex", "repaid"])
        frame.to_csv(later, index=False)
        measured("transform", model, later, "-o", bits)
        codes = pd.read_csv(bits).to_numpy()
        with served(model) as port:
            return answered(port, frame, codes)


def answered(port: int, frame: pd.DataFrame, codes: np.ndarray) -> dict[str, Any]:
    """Send the requests, after some to warm up; return the waiting times and the rows per second."""
    asyncio.run(load(port, requests(frame, 100, 1)[1], AT_A_TIME))
    asked, contents = requests(frame, REQUESTS)
    started = time.perf_counter()
    answers = asyncio.run(load(port, contents, AT_A_TIME))
    took = time.perf_counter() - started
    mixed_up = [
        rows for rows, answer in zip(asked, answers, strict=True) if answer.content["codes"] != codes[rows].tolist()
    ]
    if mixed_up:
        raise RuntimeError(f"{len(mixed_up)} of {len(asked)} answers are those for other rows")
    seconds = np.array([answer.seconds for answer in answers])
    p50, p99 = np.quantile(seconds, [0.5, 0.99])
    return {"p50": p50, "p99": p99, "rows_per_second": sum(map(len, asked)) / took}


def main() -> None:
    """Run the sizes that have no record, then write the table."""
    rows = []
    for one in outcomes_of([Job(rows=rows) for rows in FITTED], run, FOLDER):
        found = one["result"]
        times = [f"{found[name] * 1e3:.0f}" for name in ("p50", "p99")]
        rows.append([f"{one['rows']:,}", *times, f"{found['rows_per_second']:,.0f}"])
    publish(FOLDER, [HEAD, *table_lines(["rows of the fit", "p50, ms", "p99, ms", "rows per second"], rows)], {})


if __name__ == "__main__":
    main()
