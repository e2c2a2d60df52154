"""From a task to a model with its certificate, its audit, and the alternatives it was chosen among."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline

from fairbits.auditing import Audit, audit
from fairbits.certificate import Certificate, certify
from fairbits.certified import GAMMAS, CertifiedClassifier, NotCertifiedError
from fairbits.encoding import GroupEncoder, TableEncoder
from fairbits.estimators import BinaryMIClassifier, VanillaClassifier
from fairbits.estimators.held_out import held_out_scores
from fairbits.workflow.task import Task

TEST_FRACTION, CALIBRATION_FRACTION = 0.2, 0.3
OnStage = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """What the user asked for: limits to be proved, or a fixed weight of the penalty."""

    max_disparity: float | None = None
    max_information: float | None = None
    gamma: float | None = None
    code_size: int = 12
    confidence: float = 0.95
    max_epochs: int = 40
    seed: int = 0  # of the split; the draws of a model never have one

    def __post_init__(self) -> None:
        limits = self.max_disparity is not None or self.max_information is not None
        if limits == (self.gamma is not None):
            raise ValueError("Give limits (--max-disparity, --max-information) or a --gamma: one of the two.")


@dataclass(frozen=True)
class Scored:
    """A model's name, the weight of its penalty if it has one, and its scores on the test rows."""

    name: str
    gamma: float | None
    scores: dict[str, float]


@dataclass(frozen=True)
class Fit:
    """A fitted model and all that is known about it."""

    model: Pipeline
    certificate: Certificate
    certified: bool  # the limits asked for were proved; of a fixed gamma no limit was asked for
    refusal: str | None
    audit: Audit
    alternatives: list[Scored]
    rows: dict[str, int]  # of every part of the table
    test: np.ndarray  # numbers of the test rows
    concerns: list[str] = field(default_factory=list)

    def test_rows(self, task: Task) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame]:
        """Return columns, labels and sensitive columns of the rows that played no part in training or certifying."""
        return task.X.iloc[self.test], task.y[self.test], task.s.iloc[self.test]


def fit_task(task: Task, options: FitOptions, on_stage: OnStage = lambda _: None) -> Fit:
    """Split the rows, fit, certify, and audit on rows that played no part."""
    rows, test = train_test_split(np.arange(len(task.y)), test_size=TEST_FRACTION, random_state=options.seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        on_stage("training")
        model, certificate, refusal, path = _fit(task, rows, options)
        on_stage("alternatives")
        train = train_test_split(rows, test_size=CALIBRATION_FRACTION, random_state=options.seed)[0]
        plain = _plain(task, train, options)
        on_stage("audit")
        found = audit(model, task.X.iloc[test], task.y[test], sensitive_features=task.s.iloc[test], unmitigated=plain)
    s = _group_numbers(task)[test]
    scored = [_scored("BinaryMI", m, task, test, s) for m in path]
    scored += [_scored(name, m, task, test, s) for name, m in (("unmitigated", plain), *_references(task, train))]
    parts = {"train": len(train), "calibration": len(rows) - len(train), "test": len(test)}
    concerns = list(dict.fromkeys(str(w.message) for w in caught if w.category.__module__.startswith("fairbits")))
    return Fit(model, certificate, refusal is None, refusal, found, scored, parts, test, concerns)


def _method(task: Task, options: FitOptions) -> Pipeline:
    method = BinaryMIClassifier(code_size=options.code_size, groups=task.groups, max_epochs=options.max_epochs)
    return make_pipeline(TableEncoder(), method)


def _fit(task: Task, rows: np.ndarray, options: FitOptions) -> tuple[Pipeline, Certificate, str | None, list[Any]]:
    """Return the model, its certificate, why the limits could not be proved, and the path it was chosen from."""
    X, y, s = task.X.iloc[rows], task.y[rows], task.s.iloc[rows]
    if options.gamma is not None:
        return _fit_gamma(task, X, y, s, options)
    limits = {"max_disparity": options.max_disparity, "max_information": options.max_information}
    model = CertifiedClassifier(
        _method(task, options),
        **limits,
        confidence=options.confidence,
        gammas=GAMMAS,
        calibration_fraction=CALIBRATION_FRACTION,
        random_state=options.seed,
    )
    try:
        model.fit(X, y, sensitive_features=s)
    except NotCertifiedError as refusal:
        safest = model.candidates_[0]
        held = train_test_split(np.arange(len(y)), test_size=CALIBRATION_FRACTION, random_state=options.seed)[1]
        certificate = certify(safest, X.iloc[held], sensitive_features=s.iloc[held], confidence=options.confidence)
        return safest, certificate, str(refusal), model.candidates_
    return model.estimator_, model.certificate_, None, model.candidates_


def _fit_gamma(task: Task, X: Any, y: np.ndarray, s: Any, options: FitOptions) -> tuple:
    train, held = train_test_split(np.arange(len(y)), test_size=CALIBRATION_FRACTION, random_state=options.seed)
    model = clone(_method(task, options)).set_params(binarymiclassifier__gamma=options.gamma)
    model.fit(X.iloc[train], y[train], binarymiclassifier__sensitive_features=s.iloc[train])
    certificate = certify(model, X.iloc[held], sensitive_features=s.iloc[held], confidence=options.confidence)
    return model, certificate, None, [model]


def _plain(task: Task, train: np.ndarray, options: FitOptions) -> Pipeline:
    plain = make_pipeline(TableEncoder(), VanillaClassifier(max_epochs=options.max_epochs, groups=task.groups))
    return plain.fit(task.X.iloc[train], task.y[train], vanillaclassifier__sensitive_features=task.s.iloc[train])


def _references(task: Task, train: np.ndarray) -> list[tuple[str, Pipeline]]:
    models = {"logistic regression": LogisticRegression(max_iter=2000), "constant": DummyClassifier()}
    X, y = task.X.iloc[train], task.y[train]
    return [(name, make_pipeline(TableEncoder(), model).fit(X, y)) for name, model in models.items()]


def _group_numbers(task: Task) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said by the task
        encoder = GroupEncoder(groups=task.groups, min_group_size=1).fit(task.s)
    return encoder.transform(task.s)


def _scored(name: str, model: Any, task: Task, test: np.ndarray, s: np.ndarray) -> Scored:
    """Score the last step of a pipeline on what the steps before make of the test rows."""
    X = model[:-1].transform(task.X.iloc[test])
    last = model[-1]
    return Scored(name, getattr(last, "gamma", None), held_out_scores(last, X, task.y[test], s))
