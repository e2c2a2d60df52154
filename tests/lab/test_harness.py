"""Jobs of any kind are done once, by several processes, and the benchmarks' published jobs are all done."""

import os
from pathlib import Path

import pytest
from brief_work import Number, die, double, refuse

from benchmarks import proof, results, rivals, scale
from benchmarks.outcomes import Job, outcomes
from fairbits.lab.harness import Folder, finish


def test_jobs_are_done_once_in_other_processes_and_returned_in_order(tmp_path):
    folder, seen, states = Folder(tmp_path / "new"), [], []
    jobs = [Number(number=n) for n in (3, 1, 2)]
    records = finish(jobs, double, folder, workers=2, watch=lambda *state: states.append(state), track=seen.append)
    assert [record["result"]["double"] for record in records] == [6, 2, 4]
    assert [record["run"] for record in records] == [{"number": 3}, {"number": 1}, {"number": 2}]
    assert os.getpid() not in {record["result"]["process"] for record in records}
    assert sorted(record["hash"] for record in seen) == sorted(job.hash for job in jobs)
    assert states[-1] == ([], [], 3)
    assert finish(jobs[::-1], refuse, folder) == records[::-1]


def test_an_error_in_a_job_ends_all_and_keeps_what_is_done(tmp_path):
    folder, done, next_one = Folder(tmp_path), Number(number=1), Number(number=2)
    finish([done], double, folder)
    for work, error, words in (
        (refuse, AssertionError, "number=2"),
        (die, ValueError, "worker process was killed"),
    ):
        with pytest.raises(error, match=words):
            finish([done, next_one], work, folder)
        assert list(folder.read()) == [done.hash]


@pytest.mark.parametrize(
    ("benchmark", "jobs"),
    [
        (results, results.jobs()),
        (rivals, rivals.jobs(list(rivals.LOADERS))),
        (scale, [Job(rows=rows, epochs=scale.EPOCHS) for rows in scale.SIZES]),
        (proof, proof.jobs()),
    ],
)
def test_every_job_of_the_benchmarks_has_its_published_record(benchmark, jobs):
    done = outcomes(benchmark.FOLDER)
    assert not [job for job in jobs if job.hash not in done]


@pytest.mark.parametrize("benchmark", [results, rivals])
def test_published_tables_are_those_of_the_records(benchmark):
    done = outcomes(benchmark.FOLDER)
    found = [done[job.hash] for job in results.jobs()] if benchmark is results else done
    lines = benchmark.tables(found)
    assert Path(benchmark.FOLDER / "table.md").read_text().splitlines()[: len(lines)] == lines


def test_the_proofs_table_is_that_of_its_records():
    done = outcomes(proof.FOLDER)
    records = [done[job.hash] for job in proof.jobs()]
    records += [done[job.hash] for job in proof.later_jobs(records)]
    assert (proof.FOLDER / "table.md").read_text() == "\n".join(proof.tables(records)) + "\n"
    assert all(proof.limits(records).values())
