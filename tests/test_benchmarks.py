"""Every benchmark still runs: its jobs are listed, and the smallest is done on a few rows of its tables."""

import importlib
import inspect
import pkgutil
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
import torch
from battery import few_trees, train_briefly

import benchmarks
from benchmarks import __main__ as bench
from benchmarks import growth, information, ratios
from benchmarks.outcomes import Job, outcomes, quietly
from fairbits.datasets import load_adult, load_bank, load_compas
from fairbits.information import joint_information

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


SMALLEST = {part: lambda m: m.run(ratios.QUICK) for part in ("fits", "growth", "information", "metrics", "training")}
SMALLEST |= {
    "borderline": lambda m: m.run(first(m, table="Adult, 1,000 rows")),
    "code_time": lambda m: m.run(Job(rows=400)),
    "codes": lambda m: m.path(first(m, dataset="compas", method="binary-mi")),
    "codes, exact": lambda m: m.path(first(m, dataset="compas", method="exact")),
    "coverage": every_case,
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
}


QUICK = (
    "coverage",
    "fits",
    "growth",
    "information",
    "metrics",
    "proof, slack",
    "results",
    "rivals",
    "sketch",
    "sums",
    "tasks, small",
    "training",
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


def test_runs_take_turns_and_the_first_round_warms_up(monkeypatch):
    clock, calls = iter(np.cumsum([0, 9, 0, 9, 0, 4, 0, 2, 0, 6, 0, 1])), []
    monkeypatch.setattr(ratios.time, "process_time", lambda: next(clock))
    took = ratios.in_turns({name: partial(calls.append, name) for name in "ab"}, 2)
    assert calls == list("ab" * 3)
    assert [took["a"].tolist(), took["b"].tolist()] == [[4, 6], [2, 1]]
    found = ratios.line("a : b", took["a"] / took["b"])
    assert found == {"name": "a : b", "value": 4, "low": 3, "high": 5}


def test_lines_beyond_their_target_and_lines_that_changed_are_named():
    lines = [ratios.line("slow", [0.9], at_least=1), ratios.line("fast", [1.05], at_least=1, at_most=2)]
    lines += [ratios.line("steep", [1.2], at_most=1.1), {"name": "absent", "missing": "not installed"}]
    before = [ratios.line("slow", [1.01]), ratios.line("fast", [1.0]), ratios.line("absent", [1.0])]
    assert ratios.missed(lines) == ["slow", "steep"]
    assert ratios.changed(lines, before) == ["slow: 1.01 before, 0.9 now (-11 %)"]
    assert ratios.table(lines)[2:] == [
        "| slow | 0.9 | 0.9 to 0.9 | at least 1 |",
        "| fast | 1.05 | 1.05 to 1.05 | at least 1, at most 2 |",
        "| steep | 1.2 | 1.2 to 1.2 | at most 1.1 |",
        "| absent | not installed |  |  |",
    ]


def test_the_page_of_speeds_is_that_of_the_run_that_was_kept():
    kept = ratios.read(bench.KEPT)
    assert bench.page(kept) == bench.PAGE.read_text()
    assert {"commit", "cpu", "torch", "scikit-learn"} <= kept["made"].keys()


def test_a_run_names_what_changed_and_fails_beyond_a_target(monkeypatch, tmp_path, capsys):
    lines = iter([[ratios.line("fit", [value], at_least=1)] for value in (2.0, 0.5)])
    for name, value in {"KEPT": tmp_path / "new" / "kept.json", "PAGE": tmp_path / "page.md"}.items():
        monkeypatch.setattr(bench, name, value)
    monkeypatch.setattr(bench, "PARTS", {"training": lambda size: next(lines)})
    monkeypatch.setattr("sys.argv", ["benchmarks"])
    for code, words in ((0, ""), ("beyond the target: fit", "changed: fit: 2 before, 0.5 now (-75 %)")):
        with pytest.raises(SystemExit) as ended:
            bench.main()
        assert ended.value.code == code
        assert words in capsys.readouterr().out
        assert bench.page(ratios.read(bench.KEPT)) == bench.PAGE.read_text()


def test_a_power_law_has_its_exponent():
    found = growth.exponent("law", [1, 10, 1000], [[3 * n**1.5 for n in (1, 10, 1000)], [1, 1, 1]])
    assert (found["low"], found["value"], found["high"]) == pytest.approx((0.375, 0.75, 1.125))


def test_what_the_exact_information_is_measured_against():
    """Brute force gives the same number."""
    theta, groups = torch.rand(50, 6), torch.arange(50) % 2
    assert information.brute_force(theta, groups).item() == pytest.approx(joint_information(theta, groups).item(), 1e-4)
