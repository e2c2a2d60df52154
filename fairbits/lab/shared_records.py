"""Records of jobs in PostgreSQL, for workers that share no disk: a job is done once, by whoever claims it."""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from fairbits.errors import InputError, MissingExtraError
from fairbits.lab.harness import Record, record_of
from fairbits.lab.run_settings import Settings
from fairbits.workers import Work

MAKE = """
    CREATE TABLE IF NOT EXISTS fairbits_records (
        sweep text NOT NULL, hash text NOT NULL, record jsonb NOT NULL, written timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (sweep, hash))
"""
ADD = "INSERT INTO fairbits_records (sweep, hash, record) VALUES (%s, %s, %s)"
SETUP = 7_341_002  # the lock under which the table is made: two that make it at once would race


class SharedRecords:
    """The records of a sweep in a database; every process that runs it does the jobs that nobody else has claimed.

    A claim is a lock of the session: it ends with the process that holds it, however that ends.

    Parameters
    ----------
    storage : address of the database, such as postgresql://user@host/name
    sweep : name of the jobs that belong together
    """

    def __init__(self, storage: str, sweep: str):
        if not storage.startswith(("postgresql://", "postgres://")):
            problem = "is not the address of a PostgreSQL database."
            raise InputError(problem, argument="storage", value=storage, remedy="Pass postgresql://user@host/name.")
        self.storage, self.sweep = storage, sweep
        with self._opened() as db:
            db.execute("SELECT pg_advisory_lock(%s)", (SETUP,))
            db.execute(MAKE)

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        try:
            import psycopg
        except ImportError:
            raise MissingExtraError("PostgreSQL", "postgres") from None
        try:
            db = psycopg.connect(self.storage, autocommit=True)
        except psycopg.OperationalError as error:
            about = " ".join(str(error).split())
            raise InputError(f"The database does not answer: {about}.", remedy="Check --storage.") from None
        try:
            with db:
                yield db
        except psycopg.OperationalError as error:
            remedy = "Start again when it answers: finished work is kept."
            raise InputError(f"The database is gone: {' '.join(str(error).split())}.", remedy=remedy) from None

    def read(self) -> dict[str, Record]:
        """Return the records by hash."""
        with self._opened() as db:
            rows = db.execute("SELECT hash, record FROM fairbits_records WHERE sweep = %s", (self.sweep,))
            return {name: record for name, record in rows.fetchall()}

    def finish(self, jobs: Sequence[Settings], work: Work) -> list[Record]:
        """Do the jobs that have no record and that nobody else is doing; return the records there are, in order."""
        with self._opened() as db:
            for job in jobs:
                name = (self.sweep, job.hash)
                if not _claimed(db, *name):
                    continue
                try:
                    done = db.execute("SELECT 1 FROM fairbits_records WHERE sweep = %s AND hash = %s", name).fetchone()
                    if done is None:
                        started = time.perf_counter()
                        result = work(job)
                        content = json.dumps(record_of(job, result, time.perf_counter() - started))
                        db.execute(ADD, (*name, content))
                finally:
                    db.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", ("\x1f".join(name),))
        found = self.read()
        return [found[job.hash] for job in jobs if job.hash in found]


def _claimed(db: Any, sweep: str, name: str) -> bool:
    """Return whether this session now has the lock of a job."""
    found = db.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", (f"{sweep}\x1f{name}",)).fetchone()
    return bool(found[0])
