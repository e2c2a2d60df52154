"""What a fit is measured against: rivals, references, and the path its model was chosen from."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

import fairbits
from fairbits.auditing.probes import score_intervals
from fairbits.encoding import GroupEncoder, TableEncoder
from fairbits.estimators import BinaryMIClassifier, fit_stack
from fairbits.estimators.diagnostics import held_out_scores, information_plane
from fairbits.tables.task import Task

RIVALS = ("Parity", "HSIC")
STRENGTHS = (0.1, 0.3, 0.5, 0.7, 0.9)  # of the rivals
PATH = (0.0, 0.5, 0.8, 0.9, 0.95, 0.99)  # gammas to compare with a fixed one


def some_rows(task: Task, rows: np.ndarray) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame]:
    """Return inputs, labels and sensitive columns of some rows of a task."""
    return task.X.iloc[rows], task.y[rows], task.s.iloc[rows]


@dataclass(frozen=True)
class Scored:
    """A model's name, the weight of its penalty if it has one, its training rows, and its scores on the test rows."""

    name: str
    gamma: float | None
    rows: int
    scores: dict[str, float]
    intervals: dict[str, tuple[float, float]]  # of accuracy and AUC; on a path only the chosen model has them
    chosen: bool = False


@dataclass(frozen=True)
class Contest:
    """The rows and settings with which alternatives are trained, and the test rows on which they are scored."""

    task: Task
    train: np.ndarray
    test: np.ndarray
    settings: dict[str, Any]  # that all networks share
    confidence: float = 0.95  # of the intervals of scores
    strengths: tuple[float, ...] = STRENGTHS
    others: tuple[float, ...] = PATH
    most_rows: int = 20_000  # that a model trains on for comparison only

    @cached_property
    def few(self) -> np.ndarray:
        """Training rows, which are in random order: not too many, unless a label or a group would be missing."""
        cells = np.column_stack([np.unique(self.task.y, return_inverse=True)[1], group_numbers(self.task)])
        few, everything = (cells[rows] for rows in (self.train[: self.most_rows], self.train))
        complete = all(len(np.unique(a)) == len(np.unique(b)) for a, b in zip(few.T, everything.T, strict=True))
        return self.train[: self.most_rows] if complete else self.train

    def scored(self, name: str, model: Pipeline, rows: np.ndarray) -> Scored:
        """Score the last step of a pipeline on what the steps before make of the test rows."""
        last, y = model[-1], self.task.y[self.test]
        X = model[:-1].transform(self.task.X.iloc[self.test])
        scores = held_out_scores(last, X, y, group_numbers(self.task)[self.test])
        gamma, intervals = getattr(last, "gamma", None), {}
        if gamma is None:
            intervals = score_intervals(last.predict_proba(X), np.searchsorted(last.classes_, y), self.confidence)
        return Scored(name, gamma, len(rows), scores, intervals)

    def references(self) -> list[Scored]:
        """Score the models that need no network."""
        X, y, _ = some_rows(self.task, self.train)
        models = {"logistic regression": LogisticRegression(max_iter=2000), "constant": DummyClassifier()}
        fitted = {name: make_pipeline(TableEncoder(), model).fit(X, y) for name, model in models.items()}
        return [self.scored(name, model, self.train) for name, model in fitted.items()]

    def rival(self, name: str) -> list[Scored]:
        """Score the path of a rival, trained as one stack."""
        method = getattr(fairbits, f"{name}Classifier")  # loaded here, when somebody compares
        return self._path(name, [method(**self.settings, gamma=gamma) for gamma in self.strengths])

    def path(self, chosen: BinaryMIClassifier) -> list[Scored]:
        """Score a short path around a model with a fixed gamma."""
        gammas = [gamma for gamma in self.others if gamma != chosen.gamma]
        return self._path("BinaryMI", [self._ours(chosen, gamma) for gamma in gammas])

    def plane(self, chosen: BinaryMIClassifier) -> dict[str, Any]:
        """Train the setting of the chosen model again; return what its code reveals of validation rows, in bits."""
        X, y, s = some_rows(self.task, self.few)
        X = TableEncoder().fit(X).transform(X)
        epochs = information_plane(self._ours(chosen, chosen.gamma), X, y, sensitive_features=s)
        return {"rows": len(self.few), "epochs": epochs}

    def _ours(self, chosen: BinaryMIClassifier, gamma: float) -> BinaryMIClassifier:
        return BinaryMIClassifier(code_size=chosen.code_size, gamma=gamma, **self.settings)

    def _path(self, name: str, models: list[Any]) -> list[Scored]:
        X, y, s = some_rows(self.task, self.few)
        encoder = TableEncoder().fit(X)
        fit_stack(models, encoder.transform(X), y, sensitive_features=s)
        return [self.scored(name, make_pipeline(encoder, model), self.few) for model in models]


def group_numbers(task: Task) -> np.ndarray:
    """Return the groups of all rows as numbers, (n, columns)."""
    return GroupEncoder(groups=task.groups, min_group_size=1).fit(task.s).transform(task.s)
