"""From a task to a model with its certificate, its audit, and the alternatives it is compared with."""

import json
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline

import fairbits
from fairbits.auditing import Audit
from fairbits.auditing.probes import score_intervals
from fairbits.certificate import Certificate, SmallGroupWarning, certify
from fairbits.encoding import GroupEncoder, TableEncoder
from fairbits.errors import InputError, InputWarning
from fairbits.estimators import BinaryMIClassifier, VanillaClassifier, fit_stack
from fairbits.estimators.base import VanishedClassWarning
from fairbits.estimators.certified import GAMMAS, CertifiedClassifier, NotCertifiedError
from fairbits.estimators.codes import CollapsedCodeWarning
from fairbits.estimators.diagnostics import held_out_scores, information_plane
from fairbits.estimators.fitting import watch_epochs
from fairbits.tables.task import MERGE, Task
from fairbits.workflow.option_words import audit_in_words, worded

TEST_FRACTION, CALIBRATION_FRACTION = 0.2, 0.3
SEED = 0  # of the split; the draws of a model never have one
RIVALS = ("Parity", "HSIC")
STRENGTHS = (0.1, 0.3, 0.5, 0.7, 0.9)  # of the rivals
PATH = (0.0, 0.5, 0.8, 0.9, 0.95, 0.99)  # gammas to compare with a fixed one
STEPS = ("training", "unmitigated", "audit", "path", *RIVALS, "references", "plane")
OnStep = Callable[[int, int, str, float], None]  # (steps done, all steps, name of this one, share of it that is done)


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """What the user asked for: limits to certify, or a fixed weight of the penalty."""

    max_disparity: float | None = None
    max_information: float | None = None
    gamma: float | None = None
    code_size: int = 12
    confidence: float = 0.95
    max_epochs: int = 40

    def __post_init__(self) -> None:
        limits = self.max_disparity is not None or self.max_information is not None
        if limits == (self.gamma is not None):
            raise InputError("Pass limits (--max-disparity, --max-information) or a --gamma: one of the two.")


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
class Chosen:
    """A model and how it was chosen."""

    model: Pipeline
    certificate: Certificate
    refusal: str | None  # why the limits could not be certified
    path: list[Pipeline]  # that the model is from
    tested: list[dict[str, Any]]  # the models whose limits were tested, in order, up to the first failure


@dataclass(frozen=True)
class Fit(Chosen):
    """A chosen model and all that is known about it."""

    audit: Audit
    alternatives: list[Scored]
    plane: dict[str, Any]
    rows: dict[str, int]  # of every part of the table
    test: np.ndarray  # numbers of the rows that were not used in training or certifying
    concerns: list[str]

    @property
    def certified(self) -> bool:
        """The limits were certified; with a fixed gamma there are none."""
        return self.refusal is None


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

    `gammas` are the weights of the penalty to choose from, `strengths` those of the rivals' penalties, `others` those
    that a fixed gamma is compared with.
    """
    steps = [name for name in STEPS if name != "path" or options.gamma is not None]

    @contextmanager
    def step(name: str) -> Iterator[None]:
        on_step(steps.index(name), len(steps), name, 0.0)
        with watch_epochs(lambda done, most: on_step(steps.index(name), len(steps), name, done / most)):
            yield
        on_step(steps.index(name), len(steps), name, 1.0)

    rows, test = train_test_split(np.arange(len(task.y)), test_size=TEST_FRACTION, random_state=SEED)
    train, held = train_test_split(rows, test_size=CALIBRATION_FRACTION, random_state=SEED)
    _check_parts(task, {"training": train, "calibration": held, "test": test})
    network: dict[str, Any] = {"groups": task.groups, "max_epochs": options.max_epochs}
    with warnings.catch_warnings(record=True) as caught, step("training"):
        warnings.simplefilter("always")
        method = make_pipeline(TableEncoder(), BinaryMIClassifier(code_size=options.code_size, **network))
        if options.gamma is None:
            chosen = _fit_limits(task, method, rows, held, options, gammas)
        else:
            chosen = _fit_gamma(task, method, train, held, options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about models that nobody will use
        with step("unmitigated"):
            X, y, s = task.part(train)
            plain = make_pipeline(TableEncoder(), VanillaClassifier(**network))
            plain.fit(X, y, vanillaclassifier__sensitive_features=s)
        with step("audit"):
            X, y, s = task.part(test)
            compared: dict[str, Any] = {"unmitigated": plain, "confidence": options.confidence}
            found, audited = audit_in_words(chosen.model, X, y, sensitive_features=s, **compared)
        any_size = {**network, "groups": GroupEncoder(groups=task.groups, min_group_size=1)}
        contest = Contest(task, train, test, any_size, options.confidence, strengths, others)
        scored = contest.alternatives(chosen, plain, found, step)
        with step("plane"):
            plane = contest.plane(chosen.model[-1])
    # The audit judges collapsed codes and vanished classes by rows that the training has not seen; that the groups are
    # small has been said of the calibration rows.
    concerns = [w.message for w in caught if not issubclass(w.category, (CollapsedCodeWarning, VanishedClassWarning))]
    concerns += [warning for warning in audited if not isinstance(warning, SmallGroupWarning)]
    names = chosen.model[0].get_feature_names_out()
    words = dict.fromkeys(_concern(warning, names) for warning in concerns if isinstance(warning, InputWarning))
    sizes = {"train": len(train), "calibration": len(held), "test": len(test)}
    return Fit(**vars(chosen), audit=found, alternatives=scored, plane=plane, rows=sizes, test=test, concerns=[*words])


def _concern(warning: Any, names: np.ndarray) -> str:
    """Return a warning in words, with the names of encoded columns: the method itself knows their places only."""
    named = re.compile(r"(?<!sensitive )column '(\d+)'")
    return named.sub(lambda found: f"column {str(names[int(found[1])])!r}", worded(warning))


def _check_parts(task: Task, parts: dict[str, np.ndarray]) -> None:
    """Raise before hours of work if a part of the rows lacks a class or a group."""
    columns = {f"the label {task.label}": task.y, **{str(name): task.s[name].to_numpy() for name in task.s}}
    for name, values in columns.items():
        for part, rows in parts.items():
            missing = set(values.tolist()) - set(values[rows].tolist())
            if missing:
                absent = f"None of the {len(rows):,} {part} rows has {min(map(str, missing))!r} in {name}"
                raise InputError(f"{absent}: it is too rare.", remedy=MERGE)


def _fit_limits(
    task: Task, method: Pipeline, rows: np.ndarray, held: np.ndarray, options: FitOptions, gammas: tuple[float, ...]
) -> Chosen:
    """Keep the most accurate model that the calibration rows certify, or the safest one, uncertified."""
    model = CertifiedClassifier(
        method,
        max_disparity=options.max_disparity,
        max_information=options.max_information,
        confidence=options.confidence,
        gammas=gammas,
        calibration_fraction=CALIBRATION_FRACTION,  # it splits the rows again, in the same way
        random_state=SEED,
    )
    X, y, s = task.part(rows)
    try:
        model.fit(X, y, sensitive_features=s)
        best, certificate, refusal = model.estimator_, model.certificate_, None
    except NotCertifiedError as error:
        best, refusal = model.candidates_[0], worded(error)
        certificate = _certified(task, best, held, options)
    tested = json.loads(model.path_.to_json(orient="records"))  # Python's own numbers
    return Chosen(best, certificate, refusal, model.candidates_, tested)


def _fit_gamma(task: Task, method: Pipeline, train: np.ndarray, held: np.ndarray, options: FitOptions) -> Chosen:
    X, y, s = task.part(train)
    model = method.set_params(binarymiclassifier__gamma=options.gamma)
    model.fit(X, y, binarymiclassifier__sensitive_features=s)
    return Chosen(model, _certified(task, model, held, options), None, [model], [])


def _certified(task: Task, model: Pipeline, held: np.ndarray, options: FitOptions) -> Certificate:
    X, _, s = task.part(held)
    return certify(model, X, sensitive_features=s, confidence=options.confidence)


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
    def groups(self) -> np.ndarray:
        """The groups of all rows as numbers, (n, columns)."""
        return GroupEncoder(groups=self.task.groups, min_group_size=1).fit(self.task.s).transform(self.task.s)

    @cached_property
    def few(self) -> np.ndarray:
        """Training rows, which are in random order: not too many, unless a label or a group would be missing."""
        cells = np.column_stack([np.unique(self.task.y, return_inverse=True)[1], self.groups])
        few, everything = (cells[rows] for rows in (self.train[: self.most_rows], self.train))
        complete = all(len(np.unique(a)) == len(np.unique(b)) for a, b in zip(few.T, everything.T, strict=True))
        return self.train[: self.most_rows] if complete else self.train

    def alternatives(
        self, chosen: Chosen, plain: Pipeline, found: Audit, step: Callable[[str], AbstractContextManager[None]]
    ) -> list[Scored]:
        """Score the path, the rivals and the references; the audit has scored the chosen model."""
        method = chosen.model[-1]
        kept = Scored("BinaryMI", method.gamma, len(self.train), found.task or {}, found.intervals, chosen=True)
        scored = [kept if m is chosen.model else self.scored("BinaryMI", m, self.train) for m in chosen.path]
        if not chosen.tested:  # a fixed gamma
            with step("path"):
                others = [gamma for gamma in self.others if gamma != method.gamma]
                scored += self.path("BinaryMI", others, code_size=method.code_size)
        for name in RIVALS:
            with step(name):
                scored += self.path(name, self.strengths)
        with step("references"):
            X, y, _ = self.task.part(self.train)
            models = {"logistic regression": LogisticRegression(max_iter=2000), "constant": DummyClassifier()}
            fitted = {name: make_pipeline(TableEncoder(), model).fit(X, y) for name, model in models.items()}
            references = {"unmitigated": plain, **fitted}
            return scored + [self.scored(name, model, self.train) for name, model in references.items()]

    def scored(self, name: str, model: Pipeline, rows: np.ndarray) -> Scored:
        """Score the last step of a pipeline on what the steps before make of the test rows."""
        last, y = model[-1], self.task.y[self.test]
        X = model[:-1].transform(self.task.X.iloc[self.test])
        scores = held_out_scores(last, X, y, self.groups[self.test])
        gamma, intervals = getattr(last, "gamma", None), {}
        if gamma is None:
            intervals = score_intervals(last.predict_proba(X), np.searchsorted(last.classes_, y), self.confidence)
        return Scored(name, gamma, len(rows), scores, intervals)

    def path(self, name: str, gammas: Sequence[float], **settings: Any) -> list[Scored]:
        """Train a method with every gamma, as one stack, and score the models."""
        method = getattr(fairbits, f"{name}Classifier")  # rivals are loaded here, when somebody compares
        models = [method(**self.settings, **settings, gamma=gamma) for gamma in gammas]
        X, y, s = self.task.part(self.few)
        encoder = TableEncoder().fit(X)
        fit_stack(models, encoder.transform(X), y, sensitive_features=s)
        return [self.scored(name, make_pipeline(encoder, model), self.few) for model in models]

    def plane(self, chosen: BinaryMIClassifier) -> dict[str, Any]:
        """Train the setting of the chosen model again; return what its code reveals of validation rows, in bits."""
        X, y, s = self.task.part(self.few)
        again = BinaryMIClassifier(code_size=chosen.code_size, gamma=chosen.gamma, **self.settings)
        epochs = information_plane(again, TableEncoder().fit(X).transform(X), y, sensitive_features=s)
        return {"rows": len(self.few), "epochs": epochs}
