"""From a task to a model with its certificate, its audit, and what it is compared with."""

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline

from fairbits.certificate import Certificate, SmallGroupWarning, certify
from fairbits.encoding import TableEncoder
from fairbits.errors import InputError, InputWarning
from fairbits.estimators import BinaryMIClassifier, FairCodeClassifier, VanishedClassWarning, fit_stack
from fairbits.estimators.certified import CertifiedClassifier, NotCertifiedError
from fairbits.estimators.codes import CollapsedCodeWarning
from fairbits.estimators.fitting import watch_epochs
from fairbits.estimators.posterior import PosteriorEncoder
from fairbits.settings import check_settings
from fairbits.tables.task import MERGE, Task
from fairbits.workflow.fit_record import Chosen, Fit, alternatives, estimated_front
from fairbits.workflow.option_words import audit_in_words, worded

TEST_FRACTION, CALIBRATION_FRACTION = 0.2, 0.3
SEED = 0  # of the split; the draws of a random code never have one
GAMMAS = (0.0, 0.5, 0.8, 0.9, 0.95, 0.99)  # to compare a fixed one with
RANDOM_CODE = {"code_size": 12, "max_epochs": 40}  # unless the user says otherwise
STEPS = ("training", "references", "audit", "front")
OnStep = Callable[[int, int, str, float], None]  # (steps done, all steps, name of this one, share of it that is done)


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

    rows, test = train_test_split(np.arange(len(task.y)), test_size=TEST_FRACTION, random_state=SEED)
    train, held = train_test_split(rows, test_size=CALIBRATION_FRACTION, random_state=SEED)
    _check_parts(task, {"training": train, "calibration": held, "test": test})
    method = options.pipeline(task.groups)
    with warnings.catch_warnings(record=True) as caught, step("training"):
        warnings.simplefilter("always")
        if options.gamma is None:
            chosen = _fit_limits(task, method, rows, held, options, path)
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
    task: Task, method: Pipeline, rows: np.ndarray, held: np.ndarray, options: FitOptions, path: Sequence[float] | None
) -> Chosen:
    """Keep the best model that the calibration rows certify, or the safest one, uncertified."""
    model = CertifiedClassifier(
        method,
        max_disparity=options.max_disparity,
        max_information=options.max_information,
        confidence=options.confidence,
        path=path,
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
    return certify(model, X, sensitive_features=s, confidence=options.confidence)
