"""Plans: what they expand to, what identifies a run, and what is said of a bad one."""

from pathlib import Path

import pytest

from fairbits import estimators
from fairbits.lab.harness import Folder, reproduce
from fairbits.lab.plan_files import read_plan, shipped_plans
from fairbits.lab.run_parts import estimator_of
from fairbits.lab.run_settings import RUN, Method

TABLES = ("compas", "bank", "adult")
PLAN = """
title = "small"
defaults = { dataset = "compas", trials = 16 }
quick = { trials = 8, fold = 0 }
[[runs]]
kind = "reference"
method = ["constant", "logistic regression"]
fold = [0, 1]
[[runs]]
kind = "search"
method = ["Own", "BinaryMI"]
fold = [0, 1, 2]
[methods.Own]
estimator = "VanillaClassifier"
settings = { max_epochs = 2 }
"""


@pytest.fixture
def write(tmp_path):
    def write(text):
        (tmp_path / "plan.toml").write_text(text)
        return tmp_path / "plan.toml"

    return write


def test_lists_stand_for_one_run_each(write):
    runs = read_plan(write(PLAN)).runs
    assert [(r.name, r.fold) for r in runs[:4]] == [
        (name, fold) for name in ("constant", "logistic regression") for fold in (0, 1)
    ]
    assert [(r.name, r.fold, r.trials) for r in runs[4:]] == [
        (name, fold, 16) for name in ("Own", "BinaryMI") for fold in range(3)
    ]
    assert runs[4].method.settings == {"max_epochs": 2}


def test_runs_follow_the_order_that_a_plan_asks_for(write):
    runs = read_plan(write(PLAN.replace("quick", 'order = ["fold"]\nquick'))).runs
    assert [(run.fold, run.kind) for run in runs[:4]] == [(0, kind) for kind in ("reference", "search") for _ in "ab"]
    assert [run.fold for run in runs] == [0] * 4 + [1] * 4 + [2] * 2


def test_a_method_of_your_own_is_named_by_its_module(tmp_path, monkeypatch):
    (tmp_path / "own_method.py").write_text(
        "class Own:\n    def __init__(self, a=1): self.a = a\n    def fit(self): ...\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert estimator_of(Method(estimator="own_method:Own", settings={"a": 3})).a == 3


def test_a_base_learner_is_a_method_with_settings_of_its_own():
    base = {"estimator": "VanillaClassifier", "settings": {"hidden_sizes": [5], "patience": 3}}
    method = Method(estimator="ThresholdOptimizerClassifier", settings={"base": base}, strength="tol")
    found = estimator_of(method, tol=0.1)
    assert found.tol == 0.1
    assert found.estimator.hidden_sizes == [5]
    assert found.estimator.schedule.patience == 3


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ({"estimator": "NoSuch"}, "'NoSuch' is not an estimator of fairbits; name your own as 'module:Class'"),
        ({"estimator": "load"}, "is not an estimator"),
        ({"estimator": "no_such_module:Own"}, "has to be on PYTHONPATH"),
        ({"estimator": "VanillaClassifier", "settings": {"gama": 1}}, "unexpected keyword argument 'gama'"),
    ],
)
def test_a_wrong_method_is_told_before_anything_runs(method, words, write, tmp_path):
    runs = [run.model_copy(update={"method": Method(**method)}) for run in read_plan(write(PLAN)).runs[-1:]]
    with pytest.raises(ValueError, match=words):
        reproduce(runs, Folder(tmp_path / "results"))


def test_quick_and_changes_replace_settings(write):
    file = write(PLAN)
    quick = read_plan(file, quick=True).runs
    assert [(r.name, r.fold) for r in quick] == [(n, 0) for n in ("constant", "logistic regression", "Own", "BinaryMI")]
    assert {r.trials for r in read_plan(file, quick=True, changes={"trials": 5}).runs if r.kind == "search"} == {5}


def test_a_run_is_known_by_all_its_settings_and_its_trials_by_all_but_their_number():
    run = next(run for run in read_plan("compas").runs if run.kind == "search")
    same = RUN.validate_python(RUN.dump_python(run, mode="json"))
    assert (same.hash, same.trials_hash) == (run.hash, run.trials_hash)
    others = {"dataset": "bank", "fold": 1, "folds": 4, "seed": 1, "sampler": "gp", "prune": False, "threads": 2}
    changed = [run.model_copy(update={name: value}) for name, value in others.items()]
    assert len({r.hash for r in [run, *changed]}) == len(others) + 1
    assert len({r.trials_hash for r in [run, *changed]}) == len(others) + 1
    more = run.model_copy(update={"trials": 400})
    assert more.hash != run.hash
    assert more.trials_hash == run.trials_hash


@pytest.mark.parametrize("name", shipped_plans())
def test_shipped_plans_name_settings_that_their_estimators_take(name):
    plan, quick = read_plan(name), read_plan(name, quick=True)
    assert len(quick.runs) < len(plan.runs) or not plan.runs  # without searches there is nothing to refit
    for run in {(r.kind, r.name): r for r in plan.runs if r.kind != "reference"}.values():
        estimator = estimator_of(run.method)
        estimators.check_settings(estimator)
        if run.kind == "strengths":
            assert hasattr(estimator, run.method.strength)


def test_published_records_keep_their_hashes_and_their_settings():
    """Hashes are names of results: if they change, published results are lost."""
    (folder,) = (Path(__file__).parents[2] / "results").glob("????-??-??_*")
    done = Folder(folder).read()
    assert len(done) == 275
    for record in done.values():
        run = RUN.validate_python(record["run"])
        assert (run.hash, run.model_dump(mode="json")) == (record["hash"], record["run"])
    runs = {run.hash for name in shipped_plans() for run in read_plan(name).runs}
    replaced = {done[name]["run"]["kind"] for name in set(done) - runs}
    assert replaced == {"plane", "images"}  # seeds are the same for all methods now, images have another recipe


def test_what_searches_chose_is_fitted_again_with_the_folds_of_the_search():
    (folder,) = (Path(__file__).parents[2] / "results").glob("????-??-??_*")
    records = Folder(folder).read().values()
    runs = read_plan("refits", records=records).runs
    assert len(runs) == 5 * 3 * 3 * 9  # seeds, datasets, folds, methods
    assert sum(run.trees > 0 for run in runs) == len(runs) / 5
    chosen = {
        tuple(r["run"][k] for k in ("dataset", "name", "fold")): r for r in records if r["run"]["kind"] == "search"
    }
    for run in runs:
        record = chosen[run.dataset, run.name, run.fold]
        assert run.settings == record["result"]["best"]
        assert run.method.model_dump(mode="json") == record["run"]["method"]
    assert not read_plan("refits").runs


def test_one_method_of_one_dataset_is_fitted_again(write):
    (folder,) = (Path(__file__).parents[2] / "results").glob("????-??-??_*")
    plan = 'title = "x"\n[[runs]]\nkind = "refit"\norigin = "searched"\nmethod = "VFAE"\ndataset = ["bank", "adult"]'
    runs = read_plan(write(plan), records=Folder(folder).read().values()).runs
    assert [(run.name, run.dataset, run.fold) for run in runs] == [
        ("VFAE", dataset, fold) for dataset in ("bank", "adult") for fold in range(3)
    ]


def test_the_papers_settings_are_those_of_its_table():
    runs = {(run.dataset, run.name): run.settings for run in read_plan("paper-settings").runs}
    gammas = [runs[d, f"{m}, the paper's settings"]["gamma"] for m in ("BinaryBernoulli", "BinaryMI") for d in TABLES]
    assert gammas == [0.23, 0.60, 0.04, 0.16, 0.03, 0.01]
    assert {settings["learning_rate"] for settings in runs.values()} == {1e-4}


def test_the_paper_is_all_there():
    assert {"compas", "adult", "bank", "biased-mnist", "stability", "complexity", "representations"} <= set(
        shipped_plans()
    )
    compas = read_plan("compas").runs
    assert {r.trials for r in compas if r.kind == "search"} == {200}
    assert {r.fold for r in compas if r.kind == "search"} == {0, 1, 2}
    asked = {"BinaryBernoulli", "BinaryMI", "AdvCls", "VFAE", "HSIC", "Parity", "Vanilla"}
    assert asked <= {r.name for r in compas}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("title", "tittle"), "has no 'title'"),
        (('dataset = "compas"', 'dataset = "german"'), "'compas', 'adult' or 'bank'"),
        (('kind = "search"', 'kind = "serach"'), "kind='serach' is not a kind of run"),
        (('["Own", "BinaryMI"]', '"Binary"'), "method='Binary' is not one of"),
        (('method = ["Own", "BinaryMI"]', 'name = "BinaryMI"'), "Write method = instead"),
        (("fold = [0, 1, 2]", 'fold = "zero"'), "fold"),
        (("fold = [0, 1, 2]", "fold = 0\nfolds = 3\ncolour = 1"), "colour"),
        (("trials = 16", "trials = 0"), "trials"),
        (("[[runs]]", "[[runs]"), "is not valid TOML"),
        (('estimator = "VanillaClassifier"\n', ""), "estimator"),
        (("fold = [0, 1, 2]", "fold = 3"), "fold=3 is not one of the 3 folds"),
        (("fold = [0, 1, 2]", "fold = -1"), "fold"),
        (("fold = [0, 1, 2]", "fold = 0\nfolds = 1"), "folds"),
        (("fold = [0, 1, 2]", 'fold = 0\nsampler = "gp"'), "Set trials_at_once=1"),
        (("trials = 16", "trails = 16"), r"defaults has \['trails'\]"),
        (("quick", "quik"), r"has \['quik'\]; a plan has title"),
        (("{ trials = 8, fold = 0 }", "8"), "are tables of names and values"),
        (("quick", "order = ['trials']\nquick"), r"settings that all runs have; got \['trials'\]"),
    ],
)
def test_a_bad_plan_gets_a_sentence(write, change, words):
    assert PLAN.count(change[0])
    with pytest.raises(ValueError, match=words):
        read_plan(write(PLAN.replace(*change)))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('title = "x"', "has no runs"),
        ('title = "x"\n[runs]\nkind = "reference"', r"written as \[\[runs\]\]"),
        ('title = "x"\nruns = 3', r"written as \[\[runs\]\]"),
        ('title = "x"\ninclude = ["FILE"]', "includes itself"),
    ],
)
def test_a_plan_without_runs_gets_a_sentence(write, text, words):
    file = write("")
    with pytest.raises(ValueError, match=words):
        read_plan(write(text.replace("FILE", file.as_posix())))


def test_bytes_that_are_no_text_get_a_sentence(tmp_path):
    (tmp_path / "plan.toml").write_bytes(b'title = "\xe9"')
    with pytest.raises(ValueError, match="is not valid TOML"):
        read_plan(tmp_path / "plan.toml")


@pytest.mark.parametrize("name", ["german", "compas.csv", "nowhere.toml"])
def test_an_unknown_experiment_gets_a_sentence(name):
    with pytest.raises(ValueError, match=r"is not a plan: use one of adult|There is no file"):
        read_plan(name)
