"""Records in a real PostgreSQL server on loopback: two workers on an empty database do each job once."""

import multiprocessing
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from brief_work import Number, double, refuse, slowly

from fairbits import InputError
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


@pytest.fixture(scope="module")
def storage(tmp_path_factory):
    """The address of a server of its own, on a socket in a folder."""
    if (place := programs()) is None:
        pytest.skip("PostgreSQL is not installed: apt install postgresql")
    folder = tmp_path_factory.mktemp("pg")
    other = {} if os.getuid() else {"user": "postgres"}  # it does not run as root
    if other:
        try:
            shutil.chown(folder, "postgres")
        except LookupError:
            pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
        for parent in folder.parents:
            if parent != Path("/tmp") and parent.is_relative_to("/tmp"):
                parent.chmod(0o755)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder, **other}
    subprocess.run([place / "initdb", "-D", folder / "db", "-U", "tester", "-A", "trust"], check=True, **quiet)
    run = [place / "postgres", "-D", folder / "db", "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"]
    server = subprocess.Popen(run, **quiet)
    try:
        for _ in range(200):
            if (folder / ".s.PGSQL.5432").exists() and not subprocess.run(
                [place / "pg_isready", "-h", folder], **quiet
            ).returncode:
                break
            time.sleep(0.1)
        yield f"postgresql://tester@/postgres?host={folder}"
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(20)


def _finish(storage, sweep):
    SharedRecords(storage, sweep).finish(JOBS, slowly)


def test_two_workers_on_an_empty_database_do_each_job_once(storage):
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_finish, args=(storage, "race")) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
        worker.close()
    records = SharedRecords(storage, "race")
    assert [record["result"] for record in records.finish(JOBS, refuse)] == [{"double": 2 * n} for n in range(8)]
    assert SharedRecords(storage, "another").read() == {}


def test_a_killed_worker_leaves_its_job_to_the_others(storage):
    context = multiprocessing.get_context("spawn")
    worker = context.Process(target=_finish, args=(storage, "killed"))
    worker.start()
    records = SharedRecords(storage, "killed")
    while not records.read():
        time.sleep(0.05)
    os.kill(worker.pid, signal.SIGKILL)
    worker.join(20)
    worker.close()
    kept = len(records.read())
    assert 1 <= kept < 8
    for _ in range(50):  # the server notices that the session is gone
        if len(records.finish(JOBS, double)) == 8:
            break
        time.sleep(0.1)
    assert sorted(records.read()) == sorted(job.hash for job in JOBS)


def test_what_is_no_database_is_said(tmp_path):
    with pytest.raises(InputError, match="is not the address of a PostgreSQL database"):
        SharedRecords("sqlite:///x", "s")
    with pytest.raises(InputError, match="The database does not answer"):
        SharedRecords(f"postgresql://nobody@/none?host={tmp_path}", "s")
