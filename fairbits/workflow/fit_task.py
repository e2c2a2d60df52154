"""From a task to a model with its certificate, its audit, what it is compared with, and the JSON record of all that."""

import datetime
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

from fairbits.auditing.auditor import Audit
from fairbits.auditing.code_leakage import column_leakage
from fairbits.auditing.probes import score_intervals
from fairbits.certificate import Certificate, SmallGroupWarning, certify
from fairbits.certificate.released_code import encode_rows, fitted_code
from fairbits.encoding import GroupEncoder, TableEncoder
from fairbits.encoding.people import one_row_each
from fairbits.encoding.recognition import RowSketch, row_hashes, table_fingerprint
from fairbits.encoding.table_encoder import inner_encoder
from fairbits.errors import InputError, InputWarning
from fairbits.estimators import BinaryMIClassifier, FairCodeClassifier, VanishedClassWarning, fit_stack
from fairbits.estimators.certified import CertifiedClassifier, method_path
from fairbits.estimators.codes import CollapsedCodeWarning
from fairbits.estimators.diagnostics import held_out_scores
from fairbits.estimators.fitting import watch_epochs
from fairbits.estimators.optimal_front import optimal_front
from fairbits.estimators.posterior import PosteriorEncoder
from fairbits.estimators.promises import NotCertifiedError
from fairbits.information import total_variation
from fairbits.report.page import FORMAT
from fairbits.settings import check_settings
from fairbits.storage import versions
from fairbits.tables.task import MERGE, Task
from fairbits.workflow.option_words import audit_in_words, worded

SEED = 0  # of the order of models; the draws of a random code never have one
GAMMAS = (0.0, 0.5, 0.8, 0.9, 0.95, 0.99)  # to compare a fixed one with
RANDOM_CODE = {"code_size": 12, "max_epochs": 40}  # unless the user says otherwise
STEPS = ("training", "references", "audit", "front")
OnStep = Callable[[int, int, str, float], None]  # (steps done, all steps, name of this one, share of it that is done)
OWN = "fairbits"  # the name of every model of the path
FRONT = (0.0, 0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6)  # limits at which the optimum is estimated
FRONT_ROWS = 20_000
COARSE: dict[str, Any] = {"bins": 16, "starts": 1}  # of the optimum: a few seconds instead of a minute
SCORE_BINS = 20
PIECE = 50_000  # rows


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """What the user asked for: limits to certify, or a fixed gamma, which trains the paper's random code."""

    max_disparity: float | None = None
    max_information: float | None = None
    gamma: float | None = None
    code_size: int | None = None  # None: what suits the method
    confidence: float = 0.95
    max_epochs: int | None = None
    encode_sensitive: bool = False

    def __post_init__(self) -> None:
        limits = self.max_disparity is not None or self.max_information is not None
        if limits == (self.gamma is not None):
            raise InputError("Pass limits (--max-disparity, --max-information) or a --gamma: one of the two.")
        if self.encode_sensitive and not limits:
            raise InputError("--encode-sensitive needs a limit.", remedy="Leave --gamma out.")

    def pipeline(self, groups: str) -> Pipeline:
        """Return the encoder and the method, not fitted."""
        asked = {name: getattr(self, name) for name in RANDOM_CODE if getattr(self, name) is not None}
        if self.gamma is not None:
            code = BinaryMIClassifier(groups=groups, gamma=self.gamma, **(RANDOM_CODE | asked))
            model = Pipeline([("table", TableEncoder()), ("code", code)])
        else:
            model = FairCodeClassifier(encode_sensitive=self.encode_sensitive, groups=groups).pipeline()
            model[-1].set_params(**asked, measure="information" if self.max_disparity is None else "disparity")
        check_settings(model[-1])
        return model


@dataclass(frozen=True)
class Scored:
    """A model's name, its limit or gamma if it has one, and its scores on the test rows."""

    name: str
    value: float | None
    scores: dict[str, float]  # "disparity" is the largest of any decision made from the code, or from a score
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

    asked: dict[str, Any]  # the options
    audit: Audit
    alternatives: list[Scored]
    front: list[dict[str, float]]  # an estimate of what any representation can reach
    rows: dict[str, int]  # of every part of the table
    test: np.ndarray  # numbers of the rows that were not used in training or certifying
    concerns: list[str]

    @property
    def certified(self) -> bool:
        """The limits were certified; with a fixed gamma there are none."""
        return self.refusal is None

    @property
    def varied(self) -> str:
        """The setting in which the models of the path differ: limit or gamma."""
        return method_path(self.model[-1])


def fit_task(
    task: Task, options: FitOptions, on_step: OnStep = lambda *_: None, *, path: Sequence[float] | None = None
) -> Fit:
    """Split the rows, fit, certify, audit on the test rows, and compare.

    `path` has the limits to train to, or the gammas to compare a fixed one with; None chooses them.
    """

    @contextmanager
    def step(name: str) -> Iterator[None]:
        place = STEPS.index(name)
        on_step(place, len(STEPS), name, 0.0)
        with watch_epochs(lambda done, most: on_step(place, len(STEPS), name, done / most)):
            yield
        on_step(place, len(STEPS), name, 1.0)

    train, held, test = task.parts
    test = test[one_row_each(task.people(test), len(test))]  # so that the rows of the audit are independent
    _check_parts(task, {"training": train, "calibration": held, "test": test})
    method = options.pipeline(task.groups)
    with warnings.catch_warnings(record=True) as caught, step("training"):
        warnings.simplefilter("always")
        if options.gamma is None:
            chosen = _fit_limits(task, method, train, held, options, path)
        else:
            chosen = _fit_gamma(task, method, train, held, options, GAMMAS if path is None else path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about models that nobody will use
        with step("references"):
            X, y, s = task.part(train)
            encoder = chosen.model[0]
            if not isinstance(encoder, PosteriorEncoder):
                encoder = PosteriorEncoder(groups=task.groups).fit(X, y, sensitive_features=s)
            # What the encoder knows about the label is a model of its features without protection.
            label = SimpleNamespace(classes_=encoder.classes_, predict_proba=encoder.label_probabilities)
            plain = Pipeline([("posterior", encoder), ("label", label)])
            linear = make_pipeline(TableEncoder(), LogisticRegression(max_iter=2000)).fit(X, y)
            constant = make_pipeline(TableEncoder(), DummyClassifier()).fit(X, y)
        with step("audit"):
            X, y, s = task.part(test)
            compared: dict[str, Any] = {"unmitigated": plain, "confidence": options.confidence}
            found, audited = audit_in_words(chosen.model, X, y, sensitive_features=s, **compared)
            references = {"unprotected": plain, "logistic regression": linear, "constant": constant}
            scored = alternatives(chosen.model, chosen.path, references, found, (X, y, s))
        with step("front"):
            unseen, _, s = task.part(np.concatenate([held, test]))  # by the encoder
            front = estimated_front(encoder, unseen, s, chosen.model[-1].group_encoder_)
    # The audit judges collapsed codes and vanished classes by rows that the training has not seen; that the groups are
    # small has been said of the calibration rows.
    concerns = [w.message for w in caught if not issubclass(w.category, (CollapsedCodeWarning, VanishedClassWarning))]
    concerns += [warning for warning in audited if not isinstance(warning, SmallGroupWarning)]
    names = chosen.model[0].get_feature_names_out()
    words = dict.fromkeys(_concern(warning, names) for warning in concerns if isinstance(warning, InputWarning))
    sizes = {"train": len(train), "calibration": len(held), "test": len(test)}
    facts: dict[str, Any] = {"asked": asdict(options), "audit": found, "alternatives": scored, "front": front}
    return Fit(**vars(chosen), **facts, rows=sizes, test=test, concerns=[*words])


def _concern(warning: Any, names: np.ndarray) -> str:
    """Return a warning in words, with the names of encoded columns: the method itself knows their places only."""
    named = re.compile(r"(?<!sensitive )column '(\d+)'")
    return named.sub(lambda found: f"column {str(names[int(found[1])])!r}", worded(warning))


def _check_parts(task: Task, parts: dict[str, np.ndarray]) -> None:
    """Raise before a long training if a part of the rows lacks a class or a group."""
    columns = {f"the label {task.label}": task.y, **{str(name): task.s[name].to_numpy() for name in task.s}}
    for name, values in columns.items():
        for part, rows in parts.items():
            missing = set(values.tolist()) - set(values[rows].tolist())
            if missing:
                absent = f"None of the {len(rows):,} {part} rows has {min(map(str, missing))!r} in {name}"
                raise InputError(f"{absent}: it is too rare.", remedy=MERGE)


def _fit_limits(
    task: Task, method: Pipeline, train: np.ndarray, held: np.ndarray, options: FitOptions, path: Sequence[float] | None
) -> Chosen:
    """Keep the best model that the calibration rows certify, or the safest one, uncertified."""
    model = CertifiedClassifier(
        method,
        max_disparity=options.max_disparity,
        max_information=options.max_information,
        confidence=options.confidence,
        path=path,
        random_state=SEED,
    )
    rows = np.concatenate([train, held])
    X, y, s = task.part(rows)
    try:
        calibration = np.arange(len(train), len(rows))
        model.fit(X, y, sensitive_features=s, person=task.people(rows), calibration=calibration)
        best, certificate, refusal = model.estimator_, model.certificate_, None
    except NotCertifiedError as error:
        best, refusal = model.candidates_[0], worded(error)
        certificate = _certified(task, best, held, options)
    tested = model.path_.astype(object).where(model.path_.notna(), None).to_dict("records")
    return Chosen(best, certificate, refusal, model.candidates_, tested)


def _fit_gamma(
    task: Task, method: Pipeline, train: np.ndarray, held: np.ndarray, options: FitOptions, others: Sequence[float]
) -> Chosen:
    """Train the method with a given gamma, and with others to compare."""
    X, y, s = task.part(train)
    own = method[-1].gamma
    Z, gammas = method[0].fit_transform(X), sorted({*others, own})
    models = fit_stack([clone(method[-1]).set_params(gamma=g) for g in gammas], Z, y, sensitive_features=s)
    place = gammas.index(own)
    for concern in models[place].concerns(Z, y, s):
        warnings.warn(concern, stacklevel=2)
    path = [Pipeline([method.steps[0], ("code", model)]) for model in models]
    return Chosen(path[place], _certified(task, path[place], held, options), None, path, [])


def _certified(task: Task, model: Pipeline, held: np.ndarray, options: FitOptions) -> Certificate:
    X, _, s = task.part(held)
    return certify(model, X, sensitive_features=s, confidence=options.confidence, person=task.people(held))


def alternatives(
    model: Pipeline, path: list[Pipeline], references: dict[str, Pipeline], found: Audit, test: tuple[Any, Any, Any]
) -> list[Scored]:
    """Score the models of a path, which share their encoder, and references; the audit has scored the chosen model."""
    X, y, s = test
    method, rows = fitted_code(model, X, s)
    groups, varied, scored = method.group_encoder_.transform(s), method_path(method), []
    for code in (one[-1] for one in path):
        chosen = code is method
        scores = found.task or {} if chosen else held_out_scores(code, rows, y, groups)
        theta = torch.from_numpy(code.code_probabilities(rows))
        apart = max(float(total_variation(theta, torch.from_numpy(column))) for column in groups.T)
        known = found.intervals if chosen else {}
        scored.append(Scored(OWN, getattr(code, varied), {**scores, "disparity": apart}, known, chosen))
    for name, reference in references.items():
        last, seen = fitted_code(reference, X, s)
        probabilities = last.predict_proba(seen)
        scores = held_out_scores(last, seen, y, groups) | {"disparity": threshold_disparity(probabilities, groups)}
        known = score_intervals(probabilities, np.searchsorted(last.classes_, y), found.confidence)
        scored.append(Scored(name, None, scores, known))
    return scored


def threshold_disparity(probabilities: np.ndarray, groups: np.ndarray) -> float:
    """Return by how much two groups differ most in how often a probability is above a threshold, for any threshold.

    Probabilities are (n, classes), groups (n, columns) numbers.

    >>> threshold_disparity(np.array([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.3, 0.7]]), np.array([[0], [1], [1], [1]]))
    1.0
    """
    most = 0.0
    for score in probabilities.T:
        thresholds = np.unique(score)
        for column in groups.T:
            own = (np.sort(score[column == group]) for group in np.unique(column))
            below = np.stack([np.searchsorted(scores, thresholds, side="right") / len(scores) for scores in own])
            most = max(most, float(np.ptp(below, axis=0).max()))
    return most


def estimated_front(encoder: PosteriorEncoder, X: Any, s: Any, groups: GroupEncoder) -> list[dict[str, float]]:
    """Estimate the best accuracy and AUC within limits of the disparity, from rows that the encoder has not seen.

    Of several sensitive columns, each on its own, the one that costs most counts: no representation does better.
    """
    X, s = X[:FRONT_ROWS], s[:FRONT_ROWS]  # in random order
    features = encode_rows([("posterior", encoder)], X, s)
    label, fronts = encoder.label_probabilities(features), []
    for place, (names, number) in enumerate(zip(groups.names_, groups.transform(s).T, strict=True)):
        if encoder.encode_sensitive:
            group = np.eye(len(names))[number]
        else:
            group = encoder.posterior(features, column=place).sum(1)
        fronts.append(optimal_front(label, group[:, group.any(0)], FRONT, **COARSE))
    binding = (min((front.iloc[i] for front in fronts), key=lambda row: row.information) for i in range(len(FRONT)))
    found = pd.DataFrame(binding).rename(columns={"total_variation": "disparity"})[["disparity", "accuracy", "auc"]]
    return found.cummax().drop_duplicates().to_dict("records")  # what is within one limit is within every larger one


def fit_record(fit: Fit, task: Task, source: str, *, fewest_shown: int = 10) -> dict[str, Any]:
    """Return all that is known of a fit to the table `source` as plain lists, numbers and texts.

    The scores of groups of fewer rows than `fewest_shown` are left out: they would show single people.
    """
    X, y, s = task.part(fit.test)
    method, Z = fitted_code(fit.model, X, s)
    encoder = inner_encoder(fit.model[0])
    groups = {name: GroupEncoder(min_group_size=1).fit(task.s[[name]]) for name in task.s}
    numbers = {name: groups[name].transform(s[[name]])[:, 0] for name in groups}
    theta = method.code_probabilities(Z)
    about: list[Any] = [("label", task.label, np.searchsorted(method.classes_, y), method.classes_)]
    about += [("sensitive", name, numbers[name], groups[name].names_[0]) for name in groups]
    bits = []
    for role, name, number, names in about:
        leak = column_leakage(theta, theta, number, name, names)
        whole = {"joint": leak.joint, "lower": leak.lower, "entropy": leak.entropy}
        bits.append({"about": name, "role": role, "each": leak.each_bit, **whole})
    score = method.predict_proba(Z)[:, -1]
    counts = [
        {"column": name, "group": group, "counts": np.histogram(score[number == i], SCORE_BINS, (0, 1))[0].tolist()}
        for name, number in numbers.items()
        for i, group in enumerate(groups[name].names_[0])
    ]
    # What recognises the table, or many of its rows, if they come back to certify the fit; it recognises no single row.
    pieces = (task.part(np.arange(i, min(i + PIECE, len(task.y)))) for i in range(0, len(task.y), PIECE))
    hashes = np.concatenate([row_hashes(encoder.own_columns(fitted_code(fit.model, X, s)[1])) for X, _, s in pieces])
    return {
        "format": FORMAT,
        "source": source,
        "table": table_fingerprint(hashes),
        "sketch": asdict(RowSketch.of(hashes[one_row_each(task.person, len(hashes))])),
        "task": {
            "label": task.label,
            "classes": [str(c) for c in method.classes_],
            "sensitive": list(task.s.columns),
            "groups": task.groups,
            "group_sizes": task.group_sizes,
            "cuts": task.cuts,
            "rows": fit.rows,
            "columns": encoder.describe().splitlines(),
            "notes": task.notes,
        },
        "asked": fit.asked,
        "method": {
            "name": type(method).__name__,
            "varied": fit.varied,
            "value": getattr(method, fit.varied),
            "code_size": method.code_size,
            "hard": method.is_hard,
        },
        "certified": fit.certified,
        "refusal": fit.refusal,
        "certificate": fit.certificate.to_dict(),
        "audit": fit.audit.to_dict(),
        "alternatives": [asdict(scored) for scored in fit.alternatives],
        "tested": fit.tested,
        "bits": bits,
        "scores_by_group": [found for found in counts if sum(found["counts"]) >= fewest_shown],
        "history": method.history_,
        "best_epoch": method.best_epoch_,
        "front": fit.front,
        "concerns": fit.concerns,
        "made": {"date": datetime.date.today().isoformat(), **versions()},
    }
