"""From a task to a model with its certificate, its audit, and the alternatives it was chosen among."""

import json
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline

from fairbits.auditing import Audit, audit
from fairbits.certificate import Certificate, SmallGroupWarning, certify
from fairbits.encoding import GroupEncoder, TableEncoder
from fairbits.errors import InputError
from fairbits.estimators import BinaryMIClassifier, CollapsedCodeWarning, VanillaClassifier, VanishedClassWarning
from fairbits.estimators.certified import GAMMAS, CertifiedClassifier, NotCertifiedError
from fairbits.estimators.fitting import watch_epochs
from fairbits.tables.task import Task
from fairbits.workflow.alternatives import RIVALS, Contest, Scored

TEST_FRACTION, CALIBRATION_FRACTION = 0.2, 0.3
STEPS = ("training", "unmitigated", "audit", "path", *RIVALS, "references", "plane")
OnStep = Callable[
    [int, int, str, float], None
]  # (steps done, steps in all, name of this one, share of it that is done)


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
            raise InputError("Give limits (--max-disparity, --max-information) or a --gamma: one of the two.")


@dataclass(frozen=True)
class Fit:
    """A fitted model and all that is known about it."""

    model: Pipeline
    certificate: Certificate
    certified: bool  # the limits asked for were proved; of a fixed gamma no limit was asked for
    refusal: str | None
    audit: Audit
    alternatives: list[Scored]
    tested: list[dict[str, Any]]  # the models whose limits were tested, in order, up to the first failure
    plane: dict[str, Any]
    rows: dict[str, int]  # of every part of the table
    test: np.ndarray  # numbers of the test rows
    concerns: list[str] = field(default_factory=list)

    def test_rows(self, task: Task) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame]:
        """Return columns, labels and sensitive columns of the rows that played no part in training or certifying."""
        return task.X.iloc[self.test], task.y[self.test], task.s.iloc[self.test]


@dataclass(frozen=True)
class _Steps:
    """Tells who watches which step the fit is at; within training the epochs say how far."""

    names: tuple[str, ...]
    tell: OnStep

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        def tell(share: float) -> None:
            self.tell(self.names.index(name), len(self.names), name, share)

        tell(0.0)
        with watch_epochs(lambda done, most: tell(done / most)):
            yield
        tell(1.0)


def fit_task(task: Task, options: FitOptions, on_step: OnStep = lambda *_: None) -> Fit:
    """Split the rows, fit, certify, and audit on rows that played no part."""
    step = _Steps(tuple(name for name in STEPS if name != "path" or options.gamma is not None), on_step)
    rows, test = train_test_split(np.arange(len(task.y)), test_size=TEST_FRACTION, random_state=options.seed)
    train, held = train_test_split(rows, test_size=CALIBRATION_FRACTION, random_state=options.seed)
    _check_parts(task, {"training": train, "calibration": held, "test": test})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with step("training"):
            chosen = _fit(task, rows, options)
        with step("unmitigated"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plain = _plain(task, train, options)
        warnings.simplefilter("ignore", SmallGroupWarning)  # test rows; of the calibration rows it has been said
        with step("audit"):
            found = audit(
                chosen.model,
                task.X.iloc[test],
                task.y[test],
                sensitive_features=task.s.iloc[test],
                unmitigated=plain,
                confidence=options.confidence,
            )
    contest = Contest(
        task,
        train,
        test,
        {**_settings(task, options), "groups": GroupEncoder(groups=task.groups, min_group_size=1)},
        options.confidence,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is to be said of models that nobody will use
        scored = _alternatives(contest, chosen, plain, found, step)
        with step("plane"):
            plane = contest.plane(chosen.model[-1])
    said = [str(w.message) for w in caught if w.category.__module__.startswith("fairbits") and not _again(w, found)]
    concerns = list(dict.fromkeys(_with_names(text, chosen.model[0].get_feature_names_out()) for text in said))
    return Fit(
        model=chosen.model,
        certificate=chosen.certificate,
        certified=chosen.refusal is None,
        refusal=chosen.refusal,
        audit=found,
        alternatives=scored,
        tested=chosen.tested,
        plane=plane,
        rows={"train": len(train), "calibration": len(rows) - len(train), "test": len(test)},
        test=test,
        concerns=concerns,
    )


def _again(warning: warnings.WarningMessage, found: Audit) -> bool:
    """Say whether the training warned of what the audit judges by rows that it has not seen."""
    return issubclass(warning.category, (CollapsedCodeWarning, VanishedClassWarning)) and (
        str(warning.message) not in found.concerns
    )


def _with_names(message: str, names: np.ndarray) -> str:
    """Return a message with the names of encoded columns; the method itself knows their places only."""
    return re.sub(r"(?<!sensitive )column '(\d+)'", lambda found: f"column {str(names[int(found[1])])!r}", message)


def _check_parts(task: Task, parts: dict[str, np.ndarray]) -> None:
    """Raise before hours of work if a part of the rows lacks a class or a group."""
    columns = {f"the label {task.label}": task.y, **{str(name): task.s[name].to_numpy() for name in task.s}}
    for name, values in columns.items():
        for part, rows in parts.items():
            missing = set(values.tolist()) - set(values[rows].tolist())
            if missing:
                raise InputError(
                    f"None of the {len(rows):,} {part} rows has {min(map(str, missing))!r} in {name}: it is too rare. "
                    "Merge it with another, or leave its rows out."
                )


class _Chosen(NamedTuple):
    """The model, its certificate, why the limits could not be proved, the path it is from, and what was tested."""

    model: Pipeline
    certificate: Certificate
    refusal: str | None
    path: list[Pipeline]
    tested: list[dict[str, Any]]


def _settings(task: Task, options: FitOptions) -> dict[str, Any]:
    return {"groups": task.groups, "max_epochs": options.max_epochs}


def _method(task: Task, options: FitOptions) -> Pipeline:
    method = BinaryMIClassifier(code_size=options.code_size, **_settings(task, options))
    return make_pipeline(TableEncoder(), method)


def _fit(task: Task, rows: np.ndarray, options: FitOptions) -> _Chosen:
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
        return _Chosen(safest, certificate, str(refusal), model.candidates_, _tested(model))
    return _Chosen(model.estimator_, model.certificate_, None, model.candidates_, _tested(model))


def _tested(model: CertifiedClassifier) -> list[dict[str, Any]]:
    return json.loads(model.path_.to_json(orient="records"))  # numbers of Python


def _fit_gamma(task: Task, X: Any, y: np.ndarray, s: Any, options: FitOptions) -> _Chosen:
    train, held = train_test_split(np.arange(len(y)), test_size=CALIBRATION_FRACTION, random_state=options.seed)
    model = clone(_method(task, options)).set_params(binarymiclassifier__gamma=options.gamma)
    model.fit(X.iloc[train], y[train], binarymiclassifier__sensitive_features=s.iloc[train])
    certificate = certify(model, X.iloc[held], sensitive_features=s.iloc[held], confidence=options.confidence)
    return _Chosen(model, certificate, None, [model], [])


def _plain(task: Task, train: np.ndarray, options: FitOptions) -> Pipeline:
    plain = make_pipeline(TableEncoder(), VanillaClassifier(**_settings(task, options)))
    return plain.fit(task.X.iloc[train], task.y[train], vanillaclassifier__sensitive_features=task.s.iloc[train])


def _alternatives(contest: Contest, chosen: _Chosen, plain: Pipeline, found: Audit, step: _Steps) -> list[Scored]:
    """Score the path, rivals and references; of the chosen model the audit has said what one draw does."""
    train, method = contest.train, chosen.model[-1]
    kept = Scored("BinaryMI", method.gamma, len(train), found.task or {}, found.intervals, chosen=True)
    path = [kept if m is chosen.model else contest.scored("BinaryMI", m, train) for m in chosen.path]
    if "path" in step.names:
        with step("path"):
            path += contest.path(method)
    for name in RIVALS:
        with step(name):
            path += contest.rival(name)
    with step("references"):
        return [*path, contest.scored("unmitigated", plain, train), *contest.references()]
