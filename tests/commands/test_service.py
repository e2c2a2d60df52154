"""`fairbits serve`: answers of a real server on loopback, its refusals, its load, and its end."""

import asyncio
import io
import json
import shutil
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from people import population

from benchmarks.service import load, requests

httpx = pytest.importorskip("httpx", reason="pip install 'fairbits[serve]' httpx")
pytest.importorskip("uvicorn", reason="pip install 'fairbits[serve]'")
COMMAND = [sys.executable, "-c", "from fairbits.commands import main; main()"]
READ = ["grade", "height", "job", "day"]
ARROW = "application/vnd.apache.arrow.stream"


def served(folder, *options):
    """Start a service and return its process and address, once it answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([*COMMAND, "serve", str(folder), "--port", str(port), *map(str, options)])
    address = f"http://127.0.0.1:{port}"
    for _ in range(600):
        assert process.poll() is None
        try:
            httpx.get(f"{address}/health")
            return process, address
        except httpx.ConnectError:
            time.sleep(0.1)
    raise AssertionError("the service does not answer")


def stopped(process):
    process.send_signal(signal.SIGTERM)
    return process.wait(20)


@pytest.fixture(scope="module")
def service(hard, tmp_path_factory):
    """A service with a monitor, and its folder."""
    place = tmp_path_factory.mktemp("service")
    shutil.copytree(hard / "m", place / "m")
    process, address = served(
        place / "m", "--monitor", place / "state.json", "--max-bytes", "200000", "--max-rows", "500"
    )
    yield address, place
    if process.poll() is None:
        stopped(process)


def rows_of(frame):
    return {"rows": json.loads(frame.to_json(orient="records"))}


@pytest.fixture(scope="module")
def expected(hard, tmp_path_factory):
    """New people, and their codes and classes as `fairbits transform` and `predict` write them."""
    place = tmp_path_factory.mktemp("expected")
    frame = population(400, 11)
    frame.to_csv(place / "new.csv", index=False)
    for command, file in (("transform", "bits.csv"), ("predict", "classes.csv")):
        run = [*COMMAND, command, str(hard / "m"), str(place / "new.csv"), "-o", str(place / file)]
        subprocess.run(run, check=True, stdout=subprocess.DEVNULL)
    return frame, pd.read_csv(place / "bits.csv").to_numpy(), pd.read_csv(place / "classes.csv").prediction.tolist()


def test_rows_get_the_codes_and_classes_of_the_commands(service, expected):
    address, _ = service
    frame, codes, classes = expected
    answer = httpx.post(f"{address}/codes", json=rows_of(frame[READ]), timeout=60)
    assert answer.status_code == 200
    assert answer.json()["codes"] == codes.tolist()
    assert answer.json()["classes"] == classes
    assert answer.json()["certificate"].startswith("Guaranteed at 95% confidence: the rates of any decision")


def test_arrow_comes_and_goes(service, expected):
    address, _ = service
    frame, codes, classes = expected
    table, buffer = pa.Table.from_pandas(frame[READ], preserve_index=False), io.BytesIO()
    with pa.ipc.new_stream(buffer, table.schema) as writer:
        writer.write_table(table)
    headers = {"content-type": ARROW, "accept": ARROW}
    answer = httpx.post(f"{address}/codes", content=buffer.getvalue(), headers=headers, timeout=60)
    found = pa.ipc.open_stream(answer.content).read_all().to_pandas()
    assert found.prediction.tolist() == classes
    np.testing.assert_array_equal(found.drop(columns="prediction").to_numpy(), codes)


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"not json", 400, "The body is not JSON."),
        (b"[1]", 422, "The body must be"),
        (b'{"rows": []}', 422, "There are no rows."),
        (b'{"rows": [{"grade": 1}]}', 422, "has no column 'height', which the model reads"),
        (b'{"rows": [{"grade": 1}, {"height": 1}]}', 422, "Row 1 has a column 'grade', and row 2 has none."),
        (b'{"rows": [{"grade": [1]}]}', 422, "Column 'grade' of row 1 holds a list or record"),
        (
            b'{"rows": [{"grade": "high", "height": 1, "job": "cook", "day": "2024-01-01"}]}',
            422,
            "Column 'grade' of the rows held numbers when the model was fitted; in row 1 it is 'high'.",
        ),
        (b'{"rows": "' + b"x" * 300_000 + b'"}', 413, "The body has more than 200,000 bytes."),
    ],
)
def test_what_cannot_be_answered_is_a_sentence(service, body, status, words):
    address, _ = service
    answer = httpx.post(f"{address}/codes", content=body, headers={"content-type": "application/json"}, timeout=60)
    assert answer.status_code == status
    assert words in answer.json()["error"]


def test_too_many_rows_and_bad_arrow_are_refused(service):
    address, _ = service
    many = pd.DataFrame({"grade": np.zeros(501)})
    assert "send at most 500 at a time" in httpx.post(f"{address}/codes", json=rows_of(many)).json()["error"]
    answer = httpx.post(f"{address}/codes", content=b"x", headers={"content-type": ARROW})
    assert (answer.status_code, answer.json()["error"]) == (400, "The body is not a stream of Arrow record batches.")
    assert httpx.get(f"{address}/codes").status_code == 405


def test_a_bad_request_spoils_no_other_of_its_batch(service, expected):
    address, _ = service
    frame, codes, _ = expected
    asked, contents = requests(frame[READ], 64)
    for number, content in enumerate(contents):
        if number % 4 == 0:
            content["rows"] = [{**row, "grade": "high"} for row in content["rows"]]
        elif number % 4 == 1:
            content["rows"] = [{"more": 1, **row} for row in content["rows"]]  # a column that the model does not read
    answers = asyncio.run(load(int(address.rpartition(":")[2]), contents, 32))
    assert [answer.status for answer in answers] == [422, 200, 200, 200] * 16
    for rows, answer in zip(asked, answers, strict=True):
        assert answer.status == 422 or answer.content["codes"] == codes[rows].tolist()


def test_a_bad_date_is_refused_whatever_else_is_in_the_batch(service, expected):
    """A column of a file may have a few; if a batch might, an answer would depend on the requests beside it."""
    address, _ = service
    _, contents = requests(expected[0][READ], 64)
    contents[40]["rows"] = [{**contents[40]["rows"][0], "day": "yesterday"}]
    answers = asyncio.run(load(int(address.rpartition(":")[2]), contents, 32))
    assert [number for number, answer in enumerate(answers) if answer.status != 200] == [40]
    assert "held dates" in answers[40].content["error"]


def test_a_thousand_requests_at_32_a_time_are_neither_lost_nor_mixed_up(service, expected, record_property):
    address, _ = service
    frame, codes, classes = expected
    asked, contents = requests(frame[READ], 1_000)
    started = time.perf_counter()
    answers = asyncio.run(load(int(address.rpartition(":")[2]), contents, 32))
    took = time.perf_counter() - started
    for rows, answer in zip(asked, answers, strict=True):
        assert answer.status == 200
        assert answer.content["codes"] == codes[rows].tolist()
        assert answer.content["classes"] == [classes[row] for row in rows]
    seconds = np.array([answer.seconds for answer in answers])
    n_rows = sum(map(len, asked))
    shown = f"p50 {np.quantile(seconds, 0.5) * 1e3:.0f} ms, p99 {np.quantile(seconds, 0.99) * 1e3:.0f} ms"
    print(f"1,000 requests, 32 at a time: {shown}, {n_rows / took:,.0f} rows per second")
    record_property("load", shown)
    metrics = httpx.get(f"{address}/metrics").text
    counted = {line.split()[0]: float(line.split()[1]) for line in metrics.splitlines() if not line.startswith("#")}
    assert counted['fairbits_requests_total{status="200"}'] >= 1_000
    assert counted["fairbits_rows_total"] >= n_rows
    assert counted["fairbits_batches_total"] < counted['fairbits_requests_total{status="200"}'] / 2  # they are batched
    assert counted["fairbits_request_seconds_count"] == counted['fairbits_request_seconds_bucket{le="+Inf"}']


def test_the_certificate_and_the_monitor(service, fairbits):
    address, place = service
    frame = population(1_200, 12)
    for first in range(0, 1_200, 400):
        rows = frame[first : first + 400][[*READ, "sex"]]
        assert httpx.post(f"{address}/codes", json=rows_of(rows), timeout=60).status_code == 200
    told = httpx.get(f"{address}/certificate").json()
    assert told["certificate"]["release"]["hard"]
    assert told["monitor"]["limit"] == 0.7
    assert told["monitor"]["rows"] == 1_200
    assert told["monitor"]["verdict"] == "proved"
    assert "fairbits_disparity_at_most" in httpx.get(f"{address}/metrics").text
    assert json.loads((place / "state.json").read_text())["limit"] == 0.7
    population(300, 13).to_csv(place / "later.csv", index=False)
    ended = fairbits("watch", place / "m", place / "later.csv", "--state", place / "state.json")
    assert "1,500 rows" in ended.out


@pytest.mark.slow
def test_stopped_and_started_again_it_gives_the_same_codes(hard, tmp_path):
    frame = population(50, 14)
    process, address = served(hard / "m", "--monitor", tmp_path / "state.json")
    first = httpx.post(f"{address}/codes", json=rows_of(frame[[*READ, "sex"]]), timeout=60).json()
    assert stopped(process) == 0
    assert json.loads((tmp_path / "state.json").read_text())["history"][-1][0] == 50  # what waited is kept
    process, address = served(hard / "m")
    process.send_signal(signal.SIGKILL)
    process.wait()
    process, address = served(hard / "m")
    assert httpx.post(f"{address}/codes", json=rows_of(frame[READ]), timeout=60).json() == first
    stopped(process)


def test_a_random_code_needs_a_key(fitted, fairbits):
    ended = fairbits("serve", fitted / "m")
    assert ended.code == 1
    assert "A service draws random codes with a key. Pass --key and --person" in ended.err
    assert "--key and --person go together." in fairbits("serve", fitted / "m", "--person", "id").err
