"""A search that can be killed at any time: each batch of trials trains as one stack and is kept in one line."""

import contextlib
import hashlib
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.trial import TrialState, create_trial
from sklearn.base import clone

from fairbits.errors import InputError
from fairbits.estimators import fit_stack
from fairbits.lab.run_parts import Part, scores_of
from fairbits.lab.run_records import append_record, read_records
from fairbits.lab.tuning.search_space import Objective, distributions, settings_of
from fairbits.metrics.gaps import prediction_scores

STARTUP_TRIALS = 10  # chosen at random, before the sampler starts to learn
PRUNING_TRIALS, PRUNING_EPOCHS = 16, 20  # trials before the first is stopped early; epochs between decisions
RUNGS, KEPT = (10, 30), 3  # epochs of the short trainings of which successive halving keeps one in so many
STATES = {"complete": TrialState.COMPLETE, "pruned": TrialState.PRUNED, "failed": TrialState.FAIL}


@dataclass
class Trial:
    """Settings and their outcome: "complete", "pruned" (stopped early) or "failed" (diverged)."""

    params: dict[str, Any]
    state: str = "complete"
    scores: list[dict[str, float]] = field(default_factory=list)  # of each fold
    watched: dict[int, float] = field(default_factory=dict)  # epoch -> what it was worth, by which it was stopped

    @property
    def mean(self) -> dict[str, float]:
        """The mean of every score over the folds."""
        return {name: float(np.mean([fold[name] for fold in self.scores])) for name in self.scores[0]}

    def __post_init__(self) -> None:
        self.watched = {int(epoch): value for epoch, value in self.watched.items()}  # keys are text in a record


@dataclass(kw_only=True)
class Search:
    """Search the settings of an estimator on folds of the data.

    The trials of a batch that share an architecture train, with all their folds, as one stack. Every trial has its own
    sampler: its seed depends on the trial's number alone, and it sees the earlier batches. So a search that was killed
    and resumed from its records ends with the same trials as one that was not.

    Parameters
    ----------
    space : what `search_space` returns
    s : (n, columns) group numbers, for the scores
    folds : (training rows, test rows) of each
    at_once, sampler, prune, mixed, halving, records : as for `TunedClassifier`
    """

    estimator: Any
    space: dict[str, Any]
    objective: Objective
    X: Any
    y: np.ndarray
    sensitive_features: Any
    s: np.ndarray
    folds: Sequence[tuple[np.ndarray, np.ndarray]]
    at_once: int = 8
    sampler: str = "tpe"
    prune: bool = True
    mixed: bool = False
    halving: bool = False
    seed: int = 0
    records: Path | None = None

    def run(self, n_trials: int, on_trials: Callable[[list[Trial]], None] | None = None) -> list[Trial]:
        """Return the first `n_trials`, in whole batches: those of the records, then new ones.

        Further trials in the records are ignored: a short search ends the same whether or not a longer one ran before.
        """
        trials = self._recorded()[: -(-n_trials // self.at_once) * self.at_once]
        report = on_trials or (lambda _: None)
        report(trials)
        with _quiet():
            while len(trials) < n_trials:
                asked = self._ask(self._study(trials), len(trials))  # from the trials alone, as a resumed search
                batch = self._train_batch(asked)
                if self.records is not None:
                    append_record(self.records, {"search": self.name, "batch": [asdict(trial) for trial in batch]})
                trials += batch
                report(trials)
        return trials

    @property
    def name(self) -> str:
        """A hash of everything that the trials depend on."""
        later = [name for name in ("mixed", "halving") if getattr(self, name)]  # earlier searches are named without
        about: dict[str, Any] = {
            "estimator": type(self.estimator).__name__,
            "settings": {name: repr(value) for name, value in self.estimator.get_params(deep=False).items()},
            "space": {name: repr(part) for name, part in self.space.items()},
            "how": [asdict(self.objective), self.at_once, self.sampler, self.prune, self.seed, *later],
            "data": [
                hashlib.sha256(np.ascontiguousarray(part).tobytes()).hexdigest()
                for part in (self.X, self.y, self.s, *(test for _, test in self.folds))
            ],
        }
        return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]

    def _recorded(self) -> list[Trial]:
        records = [] if self.records is None else list(read_records(self.records))
        others = {record.get("search") for record in records} - {self.name}
        if others:
            raise InputError(
                f"{self.records} holds trials of another search (other data or other settings).",
                remedy="Choose another file, or move this one away.",
            )
        return [Trial(**trial) for record in records for trial in record["batch"]]

    def _study(self, trials: list[Trial]) -> optuna.Study:
        directions = [optuna.study.StudyDirection.MAXIMIZE] * (2 if self.objective.name == "pareto" else 1)
        pruner = optuna.pruners.MedianPruner(PRUNING_TRIALS, n_warmup_steps=0)
        study = optuna.create_study(directions=directions, pruner=pruner)
        for trial in trials:
            frozen = create_trial(
                params=trial.params,
                distributions=distributions(self.space),
                intermediate_values=trial.watched,
                values=self.objective.values(trial.mean) if trial.state == "complete" else None,
                state=STATES[trial.state],
            )
            study.add_trial(frozen)
        return study

    def _ask(self, study: optuna.Study, first: int) -> list[optuna.Trial]:
        """Ask for a batch, of which the first trial chooses the architecture of all unless they are mixed."""
        kinds = distributions(self.space)
        asked: list[optuna.Trial] = []
        shared: dict[str, Any] = {}
        for number in range(first, first + self.at_once):
            sampler = self._sampler(number)
            study.sampler = optuna.samplers.PartialFixedSampler(shared, sampler) if shared else sampler
            asked.append(study.ask(kinds))
            shared = {} if self.mixed else self._architecture(asked[0])
        return asked

    def _architecture(self, one: optuna.Trial) -> dict[str, Any]:
        """Return what the trials of one stack have in common."""
        return {k: v for k, v in one.params.items() if k not in self.estimator.stacked_settings}

    def _sampler(self, number: int) -> optuna.samplers.BaseSampler:
        seed = int(np.random.SeedSequence([self.seed, number]).generate_state(1)[0])
        if self.sampler == "gp":
            return optuna.samplers.GPSampler(seed=seed, n_startup_trials=STARTUP_TRIALS)
        return optuna.samplers.TPESampler(seed=seed, n_startup_trials=STARTUP_TRIALS, constant_liar=True)

    def _train_batch(self, asked: list[optuna.Trial]) -> list[Trial]:
        """Train the trials of each architecture together; return all in the order in which they were asked for."""
        groups: dict[str, list[optuna.Trial]] = {}
        for one in asked:
            groups.setdefault(json.dumps(self._architecture(one)), []).append(one)
        trained = {
            one.number: trial for own in groups.values() for one, trial in zip(own, self._train(own), strict=True)
        }
        return [trained[one.number] for one in asked]

    def _train(self, asked: list[optuna.Trial]) -> list[Trial]:
        """Train the trials as one stack, or one by one if any of them diverges."""
        trials = [Trial(one.params) for one in asked]
        try:
            (self._train_halved if self.halving else self._train_stack)(trials, asked)
        except FloatingPointError:
            if len(trials) == 1:
                return [Trial(asked[0].params, "failed")]
            return [trial for one in asked for trial in self._train([one])]
        return trials

    def _train_halved(self, trials: list[Trial], asked: list[optuna.Trial]) -> None:
        """Train for a few epochs, the best third of the trials so far for more, and the best of these in full."""
        for epochs in RUNGS:
            self._train_stack(trials, asked, epochs)
            for trial, one in zip(trials, asked, strict=True):
                (trial.watched[epochs],) = self.objective.values(trial.mean)
                one.report(trial.watched[epochs], epochs)
            outside = [_is_outside_best(one, epochs) for one in asked]
            for trial in compress(trials, outside):
                trial.state, trial.scores = "pruned", []
            if all(outside):
                return
            inside = [not is_outside for is_outside in outside]
            trials, asked = list(compress(trials, inside)), list(compress(asked, inside))
        self._train_stack(trials, asked)

    def _train_stack(self, trials: list[Trial], asked: list[optuna.Trial], epochs: int | None = None) -> None:
        """Train in full, or from the start for so many epochs, and score on the folds."""
        models = [
            self._model(trial.params, one.number, fold)
            for trial, one in zip(trials, asked, strict=True)
            for fold in range(len(self.folds))
        ]
        if epochs is not None:
            for model in models:
                schedule = replace(model.training, min_steps=0)
                model.set_params(max_epochs=min(epochs, model.max_epochs), schedule=schedule)
        rows = [train for _ in trials for train, _ in self.folds]
        data = {"sensitive_features": self.sensitive_features, "rows": rows}
        fit_stack(models, self.X, self.y, **data, hopeless=self._hopeless(trials, asked))
        for i, trial in enumerate(trials):
            if trial.state == "complete":
                own = models[i * len(self.folds) : (i + 1) * len(self.folds)]
                trial.scores = [self._score(m, test) for m, (_, test) in zip(own, self.folds, strict=True)]

    def _model(self, params: dict[str, Any], number: int, fold: int) -> Any:
        seed = int(np.random.SeedSequence([self.seed, number, fold]).generate_state(1)[0])
        return clone(self.estimator).set_params(**settings_of(params), random_state=seed)

    def _score(self, model: Any, test: np.ndarray) -> dict[str, float]:
        x, y, s = self.X[test], self.y[test], self.s[test]
        if self.objective.name == "paper":  # the information of a wide code takes seconds
            return prediction_scores(model.predict_proba(x), model.classes_, y, s)
        return scores_of(model, Part(x, y, s))

    def _hopeless(self, trials: list[Trial], asked: list[optuna.Trial]) -> Any:
        if not self.prune or self.halving or self.objective.name != "paper":
            return None
        if self.estimator.training.selection != "paper":
            return None

        def hopeless(epoch: int, histories: list[list[dict[str, float]]]) -> set[int]:
            if (epoch + 1) % PRUNING_EPOCHS:
                return set()
            places: set[int] = set()
            for i, (trial, one) in enumerate(zip(trials, asked, strict=True)):
                own = range(i * len(self.folds), (i + 1) * len(self.folds))
                values = [[-h["validation_selection"] for h in histories[k]] for k in own]
                if not all(values) or trial.state == "pruned":
                    continue
                trial.watched[epoch] = float(np.mean([max(v) for v in values]))
                one.report(trial.watched[epoch], epoch)
                if one.should_prune():
                    trial.state = "pruned"
                    places |= set(own)
            return places

        return hopeless


def _is_outside_best(one: optuna.Trial, epochs: int) -> bool:
    """Say whether a trial is not among the best third of those that have come this far, itself among them."""
    reached = {t.number: t.intermediate_values.get(epochs) for t in one.study.get_trials(deepcopy=False)}
    values = [value for value in reached.values() if value is not None]
    own = reached[one.number]
    assert own is not None  # it has just been reported
    return len(values) >= KEPT and sum(value > own for value in values) >= len(values) / KEPT


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence Optuna's messages about every trial and about its experimental parts."""
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            warnings.filterwarnings("ignore", "The reported value is ignored")  # a trial trained again, alone
            yield
    finally:
        optuna.logging.set_verbosity(level)
