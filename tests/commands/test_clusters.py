"""A Dask cluster on loopback: the same as on one machine, also when a worker is killed; the scheduler gone is said."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from people import population

from fairbits import InputError
from fairbits.lab.harness import Folder, finish
from fairbits.tables import table_file as files
from fairbits.tables.fitted_model import open_model
from fairbits.tables.table_file import open_table
from fairbits.workflow.part_files import write_parts
from fairbits.workflow.released_columns import Columns

distributed = pytest.importorskip("distributed", reason="pip install 'fairbits[distributed]'")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
LAB = str(Path(__file__).parent.parent / "lab")
WORKER = ("distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny", "--no-dashboard", "--death-timeout", "30")


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """The address of a scheduler with two workers, the processes of both workers, and that of the scheduler."""
    monkeypatch.syspath_prepend(LAB)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    paths = os.pathsep.join([str(Path.cwd()), LAB, os.environ.get("PYTHONPATH", "")])
    about = {"env": {**os.environ, "PYTHONPATH": paths}, "cwd": tmp_path, "stderr": subprocess.DEVNULL}

    def start(*arguments):
        return subprocess.Popen([sys.executable, "-m", *arguments], **about)

    scheduler = start("distributed.cli.dask_scheduler", "--host", address, "--no-dashboard")
    workers = [start(*WORKER, address) for _ in range(2)]
    try:
        with distributed.Client(address, timeout=120, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=120)
        yield address, workers, scheduler
    finally:
        for process in (*workers, scheduler):
            process.kill()
            process.wait()


@pytest.fixture
def rows(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "PART_ROWS", 1_000)
    (tmp_path / "rows").mkdir()
    for number in range(4):
        population(3_000, number).to_parquet(tmp_path / "rows" / f"{number}.parquet", row_group_size=1_000)
    return tmp_path / "rows"


def bytes_of(folder):
    return {file.name: file.read_bytes() for file in sorted(folder.glob("part-*"))}


def test_a_killed_worker_changes_nothing(cluster, hard, rows, tmp_path):
    address, workers, _ = cluster
    model, table, columns = open_model(hard / "m"), open_table(rows), Columns("codes")
    write_parts(model, table, tmp_path / "here", columns)

    def kill_one(done, *_):
        if done == 2:
            os.kill(workers[0].pid, signal.SIGKILL)

    found = write_parts(model, table, tmp_path / "there", columns, cluster=address, progress=kill_one)
    assert (found.parts, found.missing, found.reader.rows) == (12, 0, 12_000)
    assert workers[0].wait(10) == -signal.SIGKILL
    assert bytes_of(tmp_path / "there") == bytes_of(tmp_path / "here")


def test_a_sweep_survives_a_killed_worker(cluster, tmp_path):
    from brief_work import Number, slowly

    address, workers, _ = cluster
    jobs, killed = [Number(number=n) for n in range(16)], []

    def watch(waiting, running, finished):
        if finished == 3:
            killed.append(os.kill(workers[1].pid, signal.SIGKILL))

    records = finish(jobs, slowly, Folder(tmp_path / "sweep"), cluster=address, watch=watch)
    assert len(killed) == 1
    assert [record["result"] for record in records] == [{"double": 2 * n} for n in range(16)]
    assert len((tmp_path / "sweep" / "records.jsonl").read_text().splitlines()) == 16  # no job twice


def test_without_its_scheduler_a_sweep_ends_with_a_sentence_and_goes_on_later(cluster, tmp_path):
    from brief_work import Number, slowly

    address, _, scheduler = cluster
    jobs, folder = [Number(number=n) for n in range(12)], Folder(tmp_path / "sweep")

    def watch(waiting, running, finished):
        if finished == 3:
            scheduler.kill()

    with pytest.raises(InputError, match=r"The Dask scheduler .* is gone .* finished work is kept"):
        finish(jobs, slowly, folder, cluster=address, watch=watch)
    kept = len(folder.read())
    assert 3 <= kept < 12
    with pytest.raises(InputError, match="No Dask scheduler answers"):
        finish(jobs, slowly, folder, cluster=address)
    assert len(finish(jobs, slowly, folder, workers=1)) == 12


def test_codes_of_a_dask_frame_are_those_of_the_command(hard, rows):
    frames = pytest.importorskip("dask.dataframe")
    from fairbits import dask

    frame = pd.concat([pd.read_parquet(file) for file in sorted(rows.iterdir())], ignore_index=True)
    ddf = frames.from_pandas(frame, npartitions=5)
    lazy = dask.transform(hard / "m", ddf)
    assert list(lazy.columns) == ["bit0", "bit1", "bit2", "bit3"]
    assert set(lazy.dtypes) == {np.dtype(np.uint8)}
    found = lazy.compute(scheduler="synchronous")
    from fairbits.tables.fitted_model import RowReader

    model = open_model(hard / "m")
    expected = model.method.transform(RowReader(model, open_table(rows)).encoded())
    np.testing.assert_array_equal(found.to_numpy(), expected)
    assert found.index.equals(frame.index)
    packed = dask.transform(hard / "m", ddf, packed=True).compute(scheduler="synchronous")
    assert packed.code.tolist() == (expected @ [8, 4, 2, 1]).tolist()
    classes = dask.predict(hard / "m", ddf[ddf.grade > 100]).compute(scheduler="synchronous")
    assert len(classes) == 0


def test_random_codes_of_partitions_are_refused(fitted, rows):
    from fairbits import dask

    with pytest.raises(InputError, match="would draw random codes again"):
        dask.transform(fitted / "m", None)
