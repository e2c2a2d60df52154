"""A search as an estimator."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils.validation import check_is_fitted

from fairbits.errors import InputError
from fairbits.estimators import check_settings, setting
from fairbits.estimators.fitting import stratified_folds
from fairbits.estimators.inputs import new_group_encoder
from fairbits.lab.tuning.search import Search, Trial
from fairbits.lab.tuning.search_space import Objective, Space, search_space, settings_of


@dataclasses.dataclass(eq=False, repr=False)
class TunedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Choose the settings of an estimator by Bayesian optimisation, then fit it with them to all rows.

    Trials are scored on folds of the data. Several trials of one architecture train, with all their folds, as one
    stack. A search with `records` can be killed at any time and resumes where it stopped.

    Parameters
    ----------
    estimator : a method of fairbits, with numbers for X
    objective, leakage, max_leakage : what to maximise, see `Objective`
    space : what to search beyond or instead of the estimator's tunable settings: setting -> `SearchRange`, `Layers`,
        a tuple of choices, or None to leave it alone
    n_trials : settings to try, rounded up to whole batches
    trials_at_once : trials of one batch, whose settings are chosen before any of them is trained. Must be 1 with
        sampler "gp"
    mixed : whether every trial of a batch has an architecture of its own; those that share one train as one stack
    sampler : "tpe" or "gp" (Gaussian process)
    prune : stop a trial that is worse than the median at the same epoch; only if objective and the estimator's
        selection are both "paper", since otherwise the values of different settings cannot be compared
    halving : instead, train all trials for 10 epochs, the best third of those so far for 30, and the best third of
        these in full, by any objective with one value
    cv : folds, stratified by label and group
    records : file for finished batches, one line each
    on_trials : called with the list of all trials after every batch
    random_state : seed of folds, settings and fits

    Attributes
    ----------
    trials_ : frame with one row per trial: its settings, state and mean scores over the folds
    best_params_, best_estimator_ : the chosen settings, and the estimator fitted with them to all rows
    best_trial_ : the trial of these settings, with its scores on the folds
    pareto_ : with objective "pareto", the rows of `trials_` that no other trial beats in both values
    """

    estimator: Any
    _: dataclasses.KW_ONLY
    objective: str = "paper"
    leakage: str = "gpa"
    max_leakage: float | None = None
    space: Space | None = None
    n_trials: int = setting(48, at_least=1, whole=True)
    trials_at_once: int = setting(8, at_least=1, whole=True)
    sampler: str = setting("tpe", one_of=("tpe", "gp"))
    prune: bool = True
    mixed: bool = False
    halving: bool = False
    cv: int = 3
    records: str | Path | None = None
    on_trials: Callable[[list[Trial]], None] | None = None
    random_state: int = setting(0, at_least=0, whole=True)

    def fit(self, X: Any, y: Any, *, sensitive_features: Any) -> Self:
        """Search, then fit the best; arguments as for the estimator's `fit`."""
        check_settings(self)
        if sensitive_features is None:
            problem = "is not enough: a search needs the sensitive columns."
            raise InputError(problem, argument="sensitive_features", value=None)
        if self.sampler == "gp" and self.trials_at_once > 1:
            remedy = "Set trials_at_once=1."
            raise InputError("takes one trial at a time.", argument="sampler", value="gp", remedy=remedy)
        objective = Objective(self.objective, self.leakage, self.max_leakage)
        if self.halving and objective.name == "pareto":
            problem = "has no order by which to halve trials."
            raise InputError(problem, argument="objective", value="pareto", remedy="Set halving=False.")
        e, labels = self.estimator, np.asarray(y)
        encoder = new_group_encoder(e.groups)
        s = encoder.fit(sensitive_features, n_rows=len(labels)).transform(sensitive_features)
        search = Search(
            estimator=e,
            space=search_space(e, self.space),
            objective=objective,
            X=np.asarray(X),
            y=labels,
            sensitive_features=sensitive_features,
            s=s,
            folds=stratified_folds(labels, s, self.cv, self.random_state),
            at_once=self.trials_at_once,
            sampler=self.sampler,
            prune=self.prune,
            mixed=self.mixed,
            halving=self.halving,
            seed=self.random_state,
            records=None if self.records is None else Path(self.records),
        )
        trials = search.run(self.n_trials, self.on_trials)
        self.best_trial_, self.trials_ = best_trial(trials, objective), trials_frame(trials)
        if objective.name == "pareto":
            self.pareto_ = self.trials_.iloc[pareto_set(trials, objective)]
        self.best_params_ = settings_of(self.best_trial_.params)
        self.best_estimator_ = clone(e).set_params(**self.best_params_, random_state=self.random_state)
        self.best_estimator_.fit(X, y, sensitive_features=sensitive_features)
        self.classes_, self.n_features_in_ = self.best_estimator_.classes_, self.best_estimator_.n_features_in_
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the class probabilities of the chosen estimator."""
        check_is_fitted(self)
        return self.best_estimator_.predict_proba(X)

    def predict(self, X: Any) -> np.ndarray:
        """Return the classes of the chosen estimator."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    def transform(self, X: Any, **options: Any) -> np.ndarray:
        """Return the representation of the chosen estimator; options as its `transform` takes them."""
        check_is_fitted(self)
        return self.best_estimator_.transform(X, **options)


def best_trial(trials: list[Trial], objective: Objective) -> Trial:
    """Return the best complete trial, the first of equals; of a Pareto set that nearest to (1, 0) in L1."""
    complete = [trial for trial in trials if trial.state == "complete"]
    if not complete:
        raise InputError(
            f"None of {len(trials)} trials could be trained: all diverged or were stopped early.",
            remedy="Lower the range of learning_rate.",
        )
    return max(complete, key=lambda trial: sum(objective.values(trial.mean)))


def pareto_set(trials: list[Trial], objective: Objective) -> list[int]:
    """Return the numbers of the complete trials that no other beats in one value and equals or beats in both."""
    values = {i: objective.values(trial.mean) for i, trial in enumerate(trials) if trial.state == "complete"}
    return [
        i
        for i, own in values.items()
        if not any(other != own and all(a >= b for a, b in zip(other, own, strict=True)) for other in values.values())
    ]


def trials_frame(trials: list[Trial]) -> pd.DataFrame:
    """Return one row per trial: settings, state, mean scores."""
    return pd.DataFrame(
        {**settings_of(t.params), "state": t.state, **(t.mean if t.state == "complete" else {})} for t in trials
    )
