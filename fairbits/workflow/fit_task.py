"""From a task to a model with its certificate, its audit, and the alternatives it was chosen among."""

import json
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline

from fairbits.auditing import Audit
from fairbits.certificate import Certificate, SmallGroupWarning, certify
from fairbits.encoding import GroupEncoder, TableEncoder
from fairbits.errors import InputError, InputWarning
from fairbits.estimators import BinaryMIClassifier, CollapsedCodeWarning, VanillaClassifier, VanishedClassWarning
from fairbits.estimators.certified import GAMMAS, CertifiedClassifier, NotCertifiedError
from fairbits.estimators.fitting import watch_epochs
from fairbits.tables.task import Task
from fairbits.workflow.alternatives import PATH, RIVALS, STRENGTHS, Contest, Scored, some_rows
from fairbits.workflow.option_words import worded
from fairbits.workflow.table_audit import audit_in_words

TEST_FRACTION, CALIBRATION_FRACTION = 0.2, 0.3
STEPS = ("training", "unmitigated", "audit", "path", *RIVALS, "references", "plane")
OnStep = Callable[[int, int, str, float], None]  # (steps done, all steps, name of this one, share of it that is done)
Step = Callable[[str], AbstractContextManager[None]]


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """What the user asked for: limits to certify, or a fixed weight of the penalty."""

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
            raise InputError("Pass limits (--max-disparity, --max-information) or a --gamma: one of the two.")


@dataclass(frozen=True)
class Fit:
    """A fitted model and all that is known about it."""

    model: Pipeline
    certificate: Certificate
    refusal: str | None  # why the limits could not be certified
    audit: Audit
    alternatives: list[Scored]
    tested: list[dict[str, Any]]  # the models whose limits were tested, in order, up to the first failure
    plane: dict[str, Any]
    rows: dict[str, int]  # of every part of the table
    test: np.ndarray  # numbers of the test rows
    concerns: list[str] = field(default_factory=list)

    @property
    def certified(self) -> bool:
        """The limits were certified; with a fixed gamma there are none."""
        return self.refusal is None

    def test_rows(self, task: Task) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame]:
        """Return inputs, labels and sensitive columns of the rows that were not used in training or certifying."""
        return some_rows(task, self.test)


class _Chosen(NamedTuple):
    """The model, its certificate, why the limits could not be certified, the path it is from, and what was tested."""

    model: Pipeline
    certificate: Certificate
    refusal: str | None
    path: list[Pipeline]
    tested: list[dict[str, Any]]


def fit_task(
    task: Task,
    options: FitOptions,
    on_step: OnStep = lambda *_: None,
    *,
    gammas: tuple[float, ...] = GAMMAS,
    strengths: tuple[float, ...] = STRENGTHS,
    others: tuple[float, ...] = PATH,
) -> Fit:
    """Split the rows, fit, certify, audit on the test rows, and compare.

    Parameters
    ----------
    gammas : weights of the penalty to choose from, if limits are asked for
    strengths : weights of the rivals' penalties
    others : gammas to compare a fixed one with
    """
    steps = [name for name in STEPS if name != "path" or options.gamma is not None]

    @contextmanager
    def step(name: str) -> Iterator[None]:
        on_step(steps.index(name), len(steps), name, 0.0)
        with watch_epochs(lambda done, most: on_step(steps.index(name), len(steps), name, done / most)):
            yield
        on_step(steps.index(name), len(steps), name, 1.0)

    rows, test = train_test_split(np.arange(len(task.y)), test_size=TEST_FRACTION, random_state=options.seed)
    train, held = train_test_split(rows, test_size=CALIBRATION_FRACTION, random_state=options.seed)
    _check_parts(task, {"training": train, "calibration": held, "test": test})
    network: dict[str, Any] = {"groups": task.groups, "max_epochs": options.max_epochs}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with step("training"):
            method = make_pipeline(TableEncoder(), BinaryMIClassifier(code_size=options.code_size, **network))
            if options.gamma is None:
                chosen = _fit_limits(task, method, rows, held, options, gammas)
            else:
                chosen = _fit_gamma(task, method, train, held, options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about models that nobody will use
        with step("unmitigated"):
            plain = _plain(task, train, network)
        with step("audit"):
            X, y, s = some_rows(task, test)
            found, audited = audit_in_words(
                chosen.model, X, y, sensitive_features=s, unmitigated=plain, confidence=options.confidence
            )
        any_size = {**network, "groups": GroupEncoder(groups=task.groups, min_group_size=1)}
        contest = Contest(task, train, test, any_size, options.confidence, strengths, others)
        scored = _alternatives(contest, chosen, plain, found, step)
        with step("plane"):
            plane = contest.plane(chosen.model[-1])
    # The audit judges collapsed codes and vanished classes by rows that the training has not seen; that the groups are
    # small has been said of the calibration rows.
    concerns = [w.message for w in caught if not issubclass(w.category, (CollapsedCodeWarning, VanishedClassWarning))]
    concerns += [warning for warning in audited if not isinstance(warning, SmallGroupWarning)]
    names = chosen.model[0].get_feature_names_out()
    return Fit(
        model=chosen.model,
        certificate=chosen.certificate,
        refusal=chosen.refusal,
        audit=found,
        alternatives=scored,
        tested=chosen.tested,
        plane=plane,
        rows={"train": len(train), "calibration": len(held), "test": len(test)},
        test=test,
        concerns=list(
            dict.fromkeys(_concern(warning, names) for warning in concerns if isinstance(warning, InputWarning))
        ),
    )


def _concern(warning: Any, names: np.ndarray) -> str:
    """Return a warning in words, with the names of encoded columns: the method itself knows their places only."""
    return re.sub(
        r"(?<!sensitive )column '(\d+)'", lambda found: f"column {str(names[int(found[1])])!r}", worded(warning)
    )


def _check_parts(task: Task, parts: dict[str, np.ndarray]) -> None:
    """Raise before hours of work if a part of the rows lacks a class or a group."""
    columns = {f"the label {task.label}": task.y, **{str(name): task.s[name].to_numpy() for name in task.s}}
    for name, values in columns.items():
        for part, rows in parts.items():
            missing = set(values.tolist()) - set(values[rows].tolist())
            if missing:
                raise InputError(
                    f"None of the {len(rows):,} {part} rows has {min(map(str, missing))!r} in {name}: it is too rare.",
                    remedy="Merge it with another value, or leave its rows out.",
                )


def _fit_limits(
    task: Task, method: Pipeline, rows: np.ndarray, held: np.ndarray, options: FitOptions, gammas: tuple[float, ...]
) -> _Chosen:
    """Keep the most accurate model that the calibration rows certify, or the safest one, uncertified."""
    model = CertifiedClassifier(
        method,
        max_disparity=options.max_disparity,
        max_information=options.max_information,
        confidence=options.confidence,
        gammas=gammas,
        calibration_fraction=CALIBRATION_FRACTION,  # it splits the rows again, in the same way
        random_state=options.seed,
    )
    X, y, s = some_rows(task, rows)
    try:
        model.fit(X, y, sensitive_features=s)
        best, certificate, refusal = model.estimator_, model.certificate_, None
    except NotCertifiedError as error:
        best, refusal = model.candidates_[0], worded(error)
        certificate = _certified(task, best, held, options)
    tested = json.loads(model.path_.to_json(orient="records"))  # Python's own numbers
    return _Chosen(best, certificate, refusal, model.candidates_, tested)


def _fit_gamma(task: Task, method: Pipeline, train: np.ndarray, held: np.ndarray, options: FitOptions) -> _Chosen:
    X, y, s = some_rows(task, train)
    model = method.set_params(binarymiclassifier__gamma=options.gamma)
    model.fit(X, y, binarymiclassifier__sensitive_features=s)
    return _Chosen(model, _certified(task, model, held, options), None, [model], [])


def _certified(task: Task, model: Pipeline, held: np.ndarray, options: FitOptions) -> Certificate:
    X, _, s = some_rows(task, held)
    return certify(model, X, sensitive_features=s, confidence=options.confidence)


def _plain(task: Task, train: np.ndarray, network: dict[str, Any]) -> Pipeline:
    X, y, s = some_rows(task, train)
    plain = make_pipeline(TableEncoder(), VanillaClassifier(**network))
    return plain.fit(X, y, vanillaclassifier__sensitive_features=s)


def _alternatives(contest: Contest, chosen: _Chosen, plain: Pipeline, found: Audit, step: Step) -> list[Scored]:
    """Score the path, the rivals and the references; the audit has scored the chosen model."""
    train, method = contest.train, chosen.model[-1]
    kept = Scored("BinaryMI", method.gamma, len(train), found.task or {}, found.intervals, chosen=True)
    scored = [kept if m is chosen.model else contest.scored("BinaryMI", m, train) for m in chosen.path]
    if not chosen.tested:  # a fixed gamma
        with step("path"):
            scored += contest.path(method)
    for name in RIVALS:
        with step(name):
            scored += contest.rival(name)
    with step("references"):
        return [*scored, contest.scored("unmitigated", plain, train), *contest.references()]
