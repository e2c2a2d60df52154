"""Records in a real PostgreSQL server on loopback: two workers on an empty database do each job once."""

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from brief_work import Number, double, outlive, refuse, slowly

from fairbits import InputError
from fairbits.commands import main
from fairbits.lab import harness
from fairbits.lab.harness import Folder, finish
from fairbits.lab.shared_records import SharedRecords

pytest.importorskip("psycopg", reason="pip install 'fairbits[postgres]'")
JOBS = [Number(number=n) for n in range(8)]


def programs():
    """Return where initdb and postgres are, or None: Debian has them outside of the path."""
    for place in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        if (place / "initdb").exists():
            return place
    found = shutil.which("initdb")
    return None if found is None else Path(found).resolve().parent


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(harness, "OTHERS_SECONDS", 0.1)


class Server:
    """A server of its own, on a socket in a folder."""

    def __init__(self, folder):
        self.place, self.folder = programs(), folder
        self.quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
        if not os.getuid():  # PostgreSQL does not run as root
            self.quiet["user"] = "postgres"
        make = [self.place / "initdb", "-D", folder / "db", "-U", "tester", "-A", "trust"]
        subprocess.run(make, check=True, **self.quiet)
        self.storage = f"postgresql://tester@/postgres?host={folder}"
        self.start()

    def start(self):
        run = [self.place / "postgres", "-D", self.folder / "db", "-k", self.folder]
        self.process = subprocess.Popen([*run, "-c", "listen_addresses=", "-c", "fsync=off"], **self.quiet)
        for _ in range(200):
            if not subprocess.run([self.place / "pg_isready", "-h", self.folder], **self.quiet).returncode:
                return
            time.sleep(0.1)

    def stop(self):
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(20)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    if programs() is None:
        pytest.skip("PostgreSQL is not installed: apt install postgresql")
    folder = tmp_path_factory.mktemp("pg")
    if not os.getuid():
        try:
            shutil.chown(folder, "postgres")
        except LookupError:
            pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
        for parent in folder.parents:
            if parent != Path("/tmp") and parent.is_relative_to("/tmp"):
                parent.chmod(0o755)
    server = Server(folder)
    yield server
    server.stop()


def _finish(storage, path, work=slowly):
    return finish(JOBS, work, Folder(path), storage=storage)


def _worker(*arguments):
    worker = multiprocessing.get_context("spawn").Process(target=_finish, args=arguments)
    worker.start()
    return worker


def test_two_workers_on_an_empty_database_do_each_job_once(server, tmp_path):
    folders = [tmp_path / name / "race" for name in ("here", "there")]
    workers = [_worker(server.storage, folder) for folder in folders]
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
        worker.close()
    here, there = (_finish(server.storage, folder, refuse) for folder in folders)
    assert here == there  # the same records, with the same dates and durations
    assert [record["result"] for record in here] == [{"double": 2 * n} for n in range(8)]
    assert SharedRecords(server.storage, "another").read() == {}


def test_a_killed_worker_leaves_its_job_to_the_others(server, tmp_path):
    worker = _worker(server.storage, tmp_path / "dies" / "killed")
    records = SharedRecords(server.storage, "killed")
    while not records.read():
        time.sleep(0.05)
    os.kill(worker.pid, signal.SIGKILL)
    worker.join(20)
    worker.close()
    assert 1 <= len(records.read()) < 8
    assert len(_finish(server.storage, tmp_path / "lives" / "killed", double)) == 8
    assert sorted(records.read()) == sorted(job.hash for job in JOBS)


def test_a_job_whose_database_goes_away_is_kept_and_shared_later(server, tmp_path):
    folder = tmp_path / "gone"
    with pytest.raises(InputError, match="The database does not answer"):
        _finish(server.storage, folder, partial(outlive, server.process.pid))
    server.process.wait(20)
    kept = list(Folder(folder).read())
    assert kept == [JOBS[0].hash]
    server.start()
    assert SharedRecords(server.storage, "gone").read() == {}
    _finish(server.storage, folder, double)
    assert sorted(SharedRecords(server.storage, "gone").read()) == sorted(job.hash for job in JOBS)


def test_reproduce_takes_the_records_of_another_machine(server, tmp_path, monkeypatch):
    plan = tmp_path / "plan.toml"
    plan.write_text(
        'title = "small"\n[[runs]]\nkind = "reference"\nmethod = ["constant", "logistic regression"]\n'
        'dataset = "compas"\nfold = [0, 1]\ntrees = 10\n'
    )
    records = []
    for place in ("here", "there"):
        folder = tmp_path / place / "small"
        arguments = ["reproduce", plan, "-o", folder, "--storage", server.storage]
        monkeypatch.setattr(sys, "argv", ["fairbits", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
        records.append(Folder(folder).read())
    assert len(records[0]) == 4
    assert records[0] == records[1]  # also their durations: nothing was run again


def test_what_is_no_database_is_said(tmp_path):
    with pytest.raises(InputError, match="is not the address of a PostgreSQL database"):
        SharedRecords("sqlite:///x", "s")
    with pytest.raises(InputError, match="The database does not answer"):
        SharedRecords(f"postgresql://nobody@/none?host={tmp_path}", "s")
