"""Every benchmark still runs: its jobs are listed, and the smallest is done on a few rows of its tables."""

import importlib
import inspect
import pkgutil
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
from battery import few_trees, problem, train_briefly

import benchmarks
from benchmarks.outcomes import Job, outcomes, quietly
from fairbits.datasets import load_adult, load_bank, load_compas

NAMES = [module.name for module in pkgutil.iter_modules(benchmarks.__path__) if module.name != "__main__"]
PUBLISHED = ["borderline", "codes", "coverage", "panel", "plans"]  # tests/lab/test_harness.py has the others
LOADERS = {"adult": load_adult, "bank": load_bank, "compas": load_compas}
ROWS = 400


@pytest.mark.parametrize("name", NAMES)
def test_jobs_are_listed_and_each_is_another_one(name):
    module = importlib.import_module(f"benchmarks.{name}")
    if not hasattr(module, "jobs"):
        return
    wanted = list(module.LOADERS) if name == "rivals" else []
    found = module.jobs(*[wanted] * len(inspect.signature(module.jobs).parameters))
    assert len({job.hash for job in found}) == len(found) > 0


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_pages_are_those_of_the_records(name):
    module = importlib.import_module(f"benchmarks.{name}")
    lines = module.tables(list(outcomes(module.FOLDER).values()))
    assert "\n".join(lines) + "\n" == (module.FOLDER / "table.md").read_text()


@cache
def some_rows(name, **_):
    """Return a few rows of a shipped table."""
    data = LOADERS[name]()
    rows = np.random.default_rng(0).permutation(len(data))[:ROWS]
    return replace(data, **{part: getattr(data, part).iloc[rows].reset_index(drop=True) for part in ("X", "y", "s")})


def first(module, **settings):
    """Return the first job with these settings."""
    wanted = ["compas"] if module.__name__.endswith("rivals") else []
    found = module.jobs(*[wanted] * len(inspect.signature(module.jobs).parameters))
    return next(job for job in found if settings.items() <= job.model_dump().items())


def every_case(module):
    cases = module.CASES | module.STREAM_CASES | module.DELAY_CASES
    return [module.work(Job(case=case, draws=1 if case in module.CASES else 20)) for case in cases]


SMALLEST = {
    "borderline": lambda m: m.run(first(m, table="Adult, 1,000 rows")),
    "code_time": lambda m: m.run(Job(rows=400)),
    "codes": lambda m: m.path(first(m, dataset="compas", method="binary-mi")),
    "codes, exact": lambda m: m.path(first(m, dataset="compas", method="exact")),
    "coverage": every_case,
    "memory": lambda m: m.run(),
    "methods": lambda m: m.seconds_per_epoch("BinaryMIClassifier", *problem(200)),
    "metrics": lambda m: m.run(2000, 1),
    "panel": lambda m: m.work(Job(part=0, runs=1, limit=0.4)),
    "plans": lambda m: m.run(first(m, table="Adult, 600 rows, sex")),
    "proof": lambda m: m.run(first(m, job="receivers", dataset="compas")),
    "proof, hard": lambda m: m.run(first(m, job="hard-receivers", dataset="compas")),
    "proof, hard probe": lambda m: m.run(Job(job="hard-probe", limits=[0.2], seed=0)),
    "proof, choice": lambda m: m.run(Job(job="choice", settings={}, gammas=[0.9], seed=0)),
    "proof, tightness": lambda m: m.run(Job(job="tightness", settings={}, gammas=[0.9], seed=0)),
    "proof, slack": lambda m: m.run(Job(job="slack", settings={}, gammas=[0.9], seed=0)),
    "proof, probe": lambda m: m.run(Job(job="probe", gammas=[0.9], seed=0)),
    "results": lambda m: m.run(first(m, dataset="compas")),
    "rivals": lambda m: m.run(first(m)),
    "rows_needed": lambda m: m.table(),
    "scale": lambda m: m.run(Job(rows=ROWS, epochs=1)),
    "scores": lambda m: m.path(first(m, inputs="columns")),
    "scores, posterior": lambda m: m.path(first(m, inputs="posterior")),
    "service": lambda m: m.run(Job(rows=ROWS)),
    "sketch": lambda m: m.table(),
    "slack": lambda m: [m.table(), m.anytime_table()],
    "sums": lambda m: m.run(Job(rows=1000, bits=8, block=600)),
    "tasks": lambda m: m.work(first(m, job="tasks", task="equalised odds: Adult, S = sex, within labels")),
    "tasks, small": lambda m: m.work(first(m, job="small", dataset="compas")),
    "training": lambda m: m.run(),
}


QUICK = (
    "coverage",
    "memory",
    "methods",
    "metrics",
    "proof, slack",
    "results",
    "rivals",
    "sketch",
    "sums",
    "tasks, small",
)


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[pytest.mark.slow] * (case not in QUICK)) for case in SMALLEST]
)
def test_the_smallest_job_runs(case, monkeypatch):
    module = importlib.import_module(f"benchmarks.{case.split(',')[0]}")
    few = {"SPLITS": 2, "FRESH": 1000, "TABLES": 1, "SIZES": [(600, 100)], "SMALL": 200, "PROXY_DRAWS": 100}
    for name, value in few.items():
        if isinstance(getattr(module, name, None), type(value)):  # other benchmarks have tables of that name
            monkeypatch.setattr(module, name, value)
    for name in LOADERS:
        small = partial(some_rows, name)
        if hasattr(module, f"load_{name}"):
            monkeypatch.setattr(module, f"load_{name}", small)
        if name in getattr(module, "LOADERS", ()):
            monkeypatch.setitem(module.LOADERS, name, small)
    for function in vars(module).values():
        if hasattr(function, "cache_clear"):
            function.cache_clear()
    train_briefly(monkeypatch, 5)
    with few_trees():
        assert quietly(lambda _: SMALLEST[case](module), None)
