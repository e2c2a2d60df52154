"""Records of jobs in PostgreSQL, for workers that share no disk: a job is done once, by whoever claims it."""

import json
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from fairbits.errors import InputError, MissingExtraError
from fairbits.lab.run_records import Record, record_of
from fairbits.lab.run_settings import Settings
from fairbits.workers import Work

MAKE = """
    CREATE TABLE IF NOT EXISTS fairbits_records (
        sweep text NOT NULL, hash text NOT NULL, record jsonb NOT NULL, written timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (sweep, hash))
"""
ADD = "INSERT INTO fairbits_records (sweep, hash, record) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
FIND = "SELECT record FROM fairbits_records WHERE sweep = %s AND hash = %s"
CLAIM = "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))"  # a lock of the session, which ends with the process
SETUP = 7_341_002  # the lock under which the table is made: two that make it at once would race


class SharedRecords:
    """The records of a sweep in a database; every process that runs it does the jobs that nobody else has claimed.

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

    def add(self, records: Iterable[Record]) -> None:
        """Add records that the database does not have."""
        with self._opened() as db:
            for record in records:
                db.execute(ADD, (self.sweep, record["hash"], json.dumps(record)))

    def do(self, work: Work, job: Settings) -> Record | None:
        """Return the record of a job, done now if nobody has done it; None while another worker is at it."""
        record: Record | None = None
        try:
            with self._opened() as claim:
                (claimed,) = claim.execute(CLAIM, (f"{self.sweep}\x1f{job.hash}",)).fetchone()
                found = claim.execute(FIND, (self.sweep, job.hash)).fetchone()
                if found is not None or not claimed:
                    return None if found is None else found[0]
                started = time.perf_counter()
                record = record_of(job, work(job), time.perf_counter() - started)
                claim.execute(ADD, (self.sweep, job.hash, json.dumps(record)))
        except InputError:  # the database went away during the work: the next start adds the record
            if record is None:
                raise
        return record
