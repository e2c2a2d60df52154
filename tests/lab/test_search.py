"""A search is repeatable, survives being killed, and gives up what is hopeless."""

from dataclasses import asdict

import numpy as np
import optuna
import pytest
from small import BRIEF, S, X, Y

from fairbits import BinaryBernoulliClassifier, Schedule, VanillaClassifier
from fairbits.estimators import fit_stack
from fairbits.estimators.fitting import stratified_folds
from fairbits.lab.tuning import Layers, Objective, Search, SearchRange, search
from fairbits.lab.tuning.search_space import search_space
from fairbits.metrics.gaps import prediction_scores

SPACE = {"hidden_sizes": Layers((1, 2), (3, 5)), "learning_rate": SearchRange(1e-3, 1e-1, log=True)}


def make(**changes):
    estimator = changes.pop("estimator", BinaryBernoulliClassifier(**BRIEF))
    settings = {
        "estimator": estimator,
        "space": search_space(estimator, changes.pop("space", SPACE)),
        "objective": Objective(),
        "X": X,
        "y": Y,
        "sensitive_features": S,
        "s": S,
        "folds": stratified_folds(Y, S, 2, 0),
        "at_once": 3,
    }
    return Search(**{**settings, **changes})


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """Twelve trials in four batches, and their records."""
    file = tmp_path_factory.mktemp("search") / "trials.jsonl"
    return make(records=file).run(12), file.read_bytes()


def test_trials_of_a_batch_share_the_architecture_and_nothing_else(uninterrupted):
    trials, _ = uninterrupted
    for batch in (trials[i : i + 3] for i in range(0, 12, 3)):
        assert len({(t.params["depth"], t.params["width"]) for t in batch}) == 1
        assert len({t.params["gamma"] for t in batch}) == 3
    assert len({(t.params["depth"], t.params["width"]) for t in trials}) > 1


@pytest.mark.parametrize("cut", [0, 1, 2, 3])
def test_mixed_architectures_end_with_the_same_trials_when_killed(tmp_path, cut):
    whole, file = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    trials = make(records=whole, mixed=True).run(9)
    for batch in (trials[i : i + 3] for i in range(0, 9, 3)):
        assert len({t.params["gamma"] for t in batch}) == 3
    assert any(len({(t.params["depth"], t.params["width"]) for t in trials[i : i + 3]}) > 1 for i in (0, 3, 6))
    lines = whole.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:cut]) + b'{"search": "torn')
    assert [asdict(t) for t in make(records=file, mixed=True).run(9)] == [asdict(t) for t in trials]


@pytest.mark.parametrize("objective", [Objective(), Objective("constrained", "gpa", 0.1)], ids=lambda o: o.name)
def test_successive_halving_stops_all_but_the_best_third_so_far(tmp_path, monkeypatch, objective):
    monkeypatch.setattr(search, "RUNGS", (1, 2))
    file, cut = tmp_path / "trials.jsonl", tmp_path / "cut.jsonl"
    how = {"mixed": True, "halving": True, "objective": objective}
    trials = make(records=file, **how).run(12)
    assert {t.state for t in trials} == {"complete", "pruned"}
    for rung in (1, 2):
        for number, trial in enumerate(trials):
            values = [t.watched[rung] for t in trials[: number // 3 * 3] if rung in t.watched]
            if rung in trial.watched and sum(v > trial.watched[rung] for v in values) >= (len(values) + 3) / 3:
                assert (trial.state, max(trial.watched)) == ("pruned", rung)
    assert all(max(t.watched) == 2 for t in trials if t.state == "complete")
    assert all(not t.scores for t in trials if t.state == "pruned")
    for batches in range(4):
        cut.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:batches]))
        assert [asdict(t) for t in make(records=cut, **how).run(12)] == [asdict(t) for t in trials]


def test_trials_of_a_mixed_batch_are_scored_as_if_alone_and_in_their_order():
    one = make(mixed=True)
    for number, trial in enumerate(one.run(3)):
        train, test = one.folds[0]
        model = one._model(trial.params, number, 0)
        fit_stack([model], X, Y, sensitive_features=S, rows=[train])
        alone = prediction_scores(model.predict_proba(X[test]), model.classes_, Y[test], S[test])
        assert alone["auc"] == pytest.approx(trial.scores[0]["auc"], abs=2e-3)


@pytest.mark.parametrize("cut", [0, 0.1, 0.26, 0.5, 0.74, 0.99])
def test_killed_anywhere_it_ends_with_the_same_trials(uninterrupted, tmp_path, cut):
    trials, records = uninterrupted
    file = tmp_path / "trials.jsonl"
    file.write_bytes(records[: int(cut * len(records))])
    assert [asdict(t) for t in make(records=file).run(12)] == [asdict(t) for t in trials]


def test_more_trials_go_on_from_fewer(uninterrupted, tmp_path):
    trials, records = uninterrupted
    file = tmp_path / "trials.jsonl"
    assert len(make(records=file).run(5)) == 6  # whole batches
    assert [asdict(t) for t in make(records=file).run(12)] == [asdict(t) for t in trials]
    assert file.read_bytes() == records


def test_fewer_trials_end_the_same_after_more(uninterrupted, tmp_path):
    trials, records = uninterrupted
    file = tmp_path / "trials.jsonl"
    file.write_bytes(records)
    assert [asdict(t) for t in make(records=file).run(5)] == [asdict(t) for t in trials[:6]]
    assert file.read_bytes() == records


def test_nothing_runs_when_all_is_recorded(uninterrupted, tmp_path, monkeypatch):
    file = tmp_path / "trials.jsonl"
    file.write_bytes(uninterrupted[1])
    monkeypatch.setattr(search, "fit_stack", None)
    assert len(make(records=file).run(12)) == 12


def test_the_scores_of_a_trial_are_those_of_its_models_fitted_alone(uninterrupted):
    trial = uninterrupted[0][4]
    one = make()
    for fold, (train, test) in enumerate(one.folds):
        model = one._model(trial.params, 4, fold)
        fit_stack([model], X, Y, sensitive_features=S, rows=[train])
        alone = prediction_scores(model.predict_proba(X[test]), model.classes_, Y[test], S[test])
        assert alone["auc"] == pytest.approx(trial.scores[fold]["auc"], abs=2e-3)  # one swapped pair of rows
        assert alone["audc"] == pytest.approx(trial.scores[fold]["audc"], abs=1e-4)


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"at_once": 4},
        {"prune": False},
        {"mixed": True},
        {"halving": True},
        {"y": 1 - Y},
        {"X": X + 1},
        {"objective": Objective("pareto")},
        {"space": {**SPACE, "gamma": SearchRange(0, 0.5)}},
        {"estimator": BinaryBernoulliClassifier(**{**BRIEF, "code_size": 3})},
    ],
    ids=str,
)
def test_records_of_another_search_are_refused_and_kept(uninterrupted, tmp_path, change):
    file = tmp_path / "trials.jsonl"
    file.write_bytes(uninterrupted[1])
    with pytest.raises(ValueError, match="another search"):
        make(records=file, **change).run(12)
    assert file.read_bytes() == uninterrupted[1]


def test_another_seed_tries_other_settings(uninterrupted):
    assert [t.params for t in make(seed=1).run(3)] != [t.params for t in uninterrupted[0][:3]]


def test_the_sampler_learns_from_the_trials_before(monkeypatch):
    """With gamma alone to choose and its own value as the score, late trials are near the best one."""
    monkeypatch.setattr(Search, "_train_stack", lambda self, trials, asked: [_give(t) for t in trials] and None)
    trials = make(space={"learning_rate": None, "weight_decay": None}, at_once=1).run(60)
    distance = [abs(t.params["gamma"] - 0.3) for t in trials]
    assert np.mean(distance[40:]) < 0.5 * np.mean(distance[:10])


def _give(trial):
    trial.scores = [{"auc": 1 - abs(trial.params["gamma"] - 0.3), "gpa": 0.0, "audc": 0.0}]
    return trial


def test_a_diverging_trial_fails_alone():
    space = {"learning_rate": SearchRange(1e-2, 1e30, log=True), "weight_decay": None}
    trials = make(
        estimator=VanillaClassifier(hidden_sizes=(4,), max_epochs=4, schedule=Schedule(min_steps=0)), space=space
    ).run(6)
    states = {t.state for t in trials}
    assert states == {"complete", "failed"}, [t.params for t in trials]
    assert all(bool(t.scores) == (t.state == "complete") for t in trials)


def test_killed_after_a_stack_diverged_it_ends_with_the_same_trials(tmp_path, monkeypatch):
    """What the stack reported before it diverged is not what its trials, trained alone, are remembered by."""
    monkeypatch.setattr(search, "PRUNING_TRIALS", 3)
    monkeypatch.setattr(Search, "_train_stack", _diverge_together)
    file, cut = tmp_path / "trials.jsonl", tmp_path / "cut.jsonl"
    trials = make(records=file).run(18)
    assert {t.state for t in trials} == {"complete", "pruned"}
    for batches in range(1, 6):
        cut.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:batches]))
        assert [asdict(t) for t in make(records=cut).run(18)] == [asdict(t) for t in trials]


def _diverge_together(self, trials, asked):
    for trial, one in zip(trials, asked, strict=True):
        trial.watched[1] = trial.params["gamma"] if len(trials) == 1 else -trial.params["gamma"]
        one.report(trial.watched[1], 1)
        trial.state = "pruned" if one.should_prune() else "complete"
        trial.scores = [] if trial.state == "pruned" else _give(trial).scores
    if len(trials) > 1:
        raise FloatingPointError


def test_hopeless_trials_are_given_up_and_the_others_are_as_without(monkeypatch):
    monkeypatch.setattr(search, "PRUNING_TRIALS", 3)
    monkeypatch.setattr(search, "PRUNING_EPOCHS", 2)
    often = BinaryBernoulliClassifier(**{**BRIEF, "batch_size": 8})  # validated after every epoch
    plain = make(estimator=often, prune=False).run(3)
    trials = make(estimator=often).run(6)
    pruned = [t.state == "pruned" for t in trials]
    assert not any(pruned[:3])
    assert any(pruned[3:])
    first_batch = sorted(t.watched[1] for t in trials[:3])
    for trial in trials[3:]:
        assert (trial.state == "pruned") == (trial.watched[1] < first_batch[1] or _later(trial, trials))
        assert bool(trial.scores) == (trial.state == "complete")
    assert [t.scores for t in trials[:3]] == [t.scores for t in plain]


def _later(trial, trials):
    """Say whether the trial is below the median at the second look."""
    return 3 in trial.watched and max(trial.watched.values()) < sorted(t.watched[3] for t in trials[:3])[1]


def test_optuna_is_left_as_talkative_as_it_was():
    before = optuna.logging.get_verbosity()
    make(at_once=1).run(1)
    assert optuna.logging.get_verbosity() == before
