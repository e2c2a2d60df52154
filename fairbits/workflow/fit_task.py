"""From a task to a model with its certificate, its audit, what it is compared with, and the JSON record of all that."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

from fairbits.auditing.auditor import Audit
from fairbits.certificate import Certificate, SmallGroupWarning, certify
from fairbits.certificate.released_code import fitted_code
from fairbits.encoding import TableEncoder
from fairbits.encoding.recognition import one_row_each
from fairbits.errors import InputError, InputWarning, did_you_mean
from fairbits.estimators import BinaryMIClassifier, FairCodeClassifier, VanishedClassWarning, fit_stack
from fairbits.estimators.base import method_path
from fairbits.estimators.certified import CertifiedClassifier, for_decisions
from fairbits.estimators.codes import CollapsedCodeWarning
from fairbits.estimators.fitting import watch_epochs
from fairbits.estimators.inputs import SensitiveFeatureInXWarning
from fairbits.estimators.posterior import PosteriorEncoder
from fairbits.estimators.promises import CalibrationSums, NotCertifiedError, Promise, released_class
from fairbits.settings import check_settings
from fairbits.tables.task import MERGE, Task
from fairbits.workflow.comparisons import (
    OWN,
    Scored,
    alternatives,
    decision_front,
    estimated_front,
    smallest_useful,
    verdict_changes,
)
from fairbits.workflow.decision_checks import audit_in_words
from fairbits.workflow.option_words import worded
from fairbits.workflow.planning import rounded_up
from fairbits.workflow.rival_models import rival_models

GAMMAS = (0.0, 0.5, 0.8, 0.9, 0.95, 0.99)  # to compare a fixed one with
RANDOM_CODE = {"code_size": 12, "max_epochs": 40}  # unless the user says otherwise
STEPS = ("training", "references", "audit", "front")
OnStep = Callable[[int, int, str, float], None]  # (steps done, all steps, name of this one, share of it that is done)
UNSURE = 0.1  # chance of another verdict from which this one is borderline; `benchmarks.borderline` counts
KINDS = {"max_disparity": "total_variation", "max_odds_disparity": "odds_disparity"}  # the claim about a limit


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """What the user asked for: limits to certify, or a fixed gamma, which trains the paper's random code."""

    max_disparity: float | None = None
    max_information: float | None = None
    max_odds_disparity: float | None = None
    odds_label: str | None = None  # as a text
    promise: str | None = None  # code, class or both; None: what suits the method
    gamma: float | None = None
    code_size: int | None = None  # None: what suits the method
    confidence: float = 0.95
    max_epochs: int | None = None
    encode_sensitive: bool = False
    compare: bool = False  # with other methods
    reference: str | None = None  # the group to whose rate those of others are compared
    favourable: str | None = None  # the favourable class, as a text; None: that of odds_label, or the last one

    def __post_init__(self) -> None:
        limits = any(limit is not None for limit in (self.max_disparity, self.max_information, self.max_odds_disparity))
        if limits == (self.gamma is not None):
            which = "--max-disparity, --max-information, --max-odds-disparity"
            raise InputError(f"Pass limits ({which}) or a --gamma: one of the two.")
        for name, needs in (
            ("--encode-sensitive", self.encode_sensitive),
            ("--for decisions", self.promise == "class"),
        ):
            if needs and not limits:
                raise InputError(f"{name} needs a limit.", remedy="Leave --gamma out.")
        if self.odds_label is not None and self.max_odds_disparity is None:
            raise InputError("--odds-label needs a limit.", remedy="Pass --max-odds-disparity.")
        if self.compare and self.max_disparity is None:
            raise InputError("--compare needs a limit on the disparity.", remedy="Pass --max-disparity.")

    def pipeline(self, groups: str) -> Pipeline:
        """Return the encoder and the method, not fitted."""
        asked = {name: getattr(self, name) for name in RANDOM_CODE if getattr(self, name) is not None}
        if self.gamma is not None:
            code = BinaryMIClassifier(groups=groups, gamma=self.gamma, **(RANDOM_CODE | asked))
            model = Pipeline([("table", TableEncoder()), ("code", code)])
        else:
            overall = self.max_disparity is not None or self.max_information is not None
            model = FairCodeClassifier(
                encode_sensitive=self.encode_sensitive, condition_on_label=not overall, groups=groups
            ).pipeline()
            information = self.max_disparity is None and overall
            model[-1].set_params(**asked, measure="information" if information else "disparity")
            if self.promise == "class" and self.max_information is None:
                for_decisions(model)
        check_settings(model[-1])
        return model


@dataclass(frozen=True)
class Chosen:
    """A model and how it was chosen."""

    model: Pipeline
    certificate: Certificate
    released: Any  # what is audited: the model, or a certified classifier that promises the class alone
    refusal: str | None  # why the limits could not be certified
    path: list[Pipeline]  # that the model is from
    tested: list[dict[str, Any]]  # the bounds of the path in order, and which passed: those before the first failure


@dataclass(frozen=True)
class Fit(Chosen):
    """A chosen model and all that is known about it."""

    asked: dict[str, Any]  # the options
    audit: Audit
    alternatives: list[Scored]
    front: list[dict[str, float]]  # an estimate of what any decision, or any representation, can reach
    rows: dict[str, int]  # of every part of the table
    test: np.ndarray  # numbers of the rows that were not used in training or certifying
    concerns: list[str]

    @property
    def certified(self) -> bool:
        """The limits were certified; with a fixed gamma there are none."""
        return self.refusal is None

    @property
    def verdict(self) -> str:
        """What became of the limits: certified, certified but not useful, not certified, or no limit requested."""
        if self.asked["gamma"] is not None:
            return "no limit requested"
        if self.refusal is not None:
            return "not certified"
        useful = next(one.useful for one in self.alternatives if one.chosen)
        return "certified" if useful else "certified but not useful"

    @property
    def other_verdict(self) -> float:
        """The chance, as these rows suggest, that another random split of the table ends in another verdict."""
        if not self.tested:
            return 0.0
        limits = {kind: self.asked[name] for name, kind in KINDS.items()} | {
            "information": self.asked["max_information"]
        }
        claims = {
            f"{of}_{kind}": limit
            for kind, limit in limits.items()
            for of in ("code", "class")
            if limit is not None and f"{of}_{kind}" in self.tested[0]
        }
        bounds, shown = (
            np.array([[row[how + claim] for claim in claims] for row in self.tested], dtype=float)
            for how in ("", "shown_")
        )
        p_values = np.array([one.p_value for one in self.alternatives if one.name == OWN], dtype=float)
        shares = verdict_changes(bounds, shown, [*claims.values()], self.asked["confidence"], p_values)
        return 1 - shares[self.verdict]

    @property
    def borderline(self) -> bool:
        """Whether more than one in ten other splits of the table would end in another verdict."""
        return self.other_verdict > UNSURE

    @property
    def useful_limit(self) -> float | None:
        """The smallest limit on the disparity at which a useful model would have passed, by the same rows."""
        limits = {name: self.asked[name] for name in ("max_disparity", "max_odds_disparity", "max_information")}
        name = [name for name, limit in limits.items() if limit is not None]
        of = "class" if self.asked["promise"] == "class" else "code"
        bound = f"{of}_{KINDS.get(name[0])}" if len(name) == 1 else None
        if not self.tested or bound not in self.tested[0]:
            return None
        own = [one for one in self.alternatives if one.name == OWN]
        return smallest_useful([row[bound] for row in self.tested], [bool(one.useful) for one in own])

    @property
    def varied(self) -> str:
        """The setting in which the models of the path differ: limit or gamma."""
        return method_path(self.model[-1])


def fit_task(
    task: Task,
    options: FitOptions,
    on_step: OnStep = lambda *_: None,
    *,
    path: Sequence[float] | None = None,
    seed: int = 0,
) -> Fit:
    """Split the rows, fit, certify, audit on the test rows, and compare.

    `path` has the limits to train to, or the gammas to compare a fixed one with; None chooses them. `seed` is that of
    the training of a hard code and of the order of models; a random code never has one.
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
    for name in ("odds_label", "favourable"):
        wanted, known = getattr(options, name), [str(value) for value in np.unique(task.y)]
        if wanted is not None and wanted not in known:
            problem = f"is not among the labels {', '.join(known)}. {did_you_mean(wanted, known)}".strip()
            raise InputError(problem, argument=name, value=wanted)
    method = options.pipeline(task.groups)
    with warnings.catch_warnings(record=True) as caught, step("training"):
        warnings.simplefilter("always")
        if options.gamma is None:
            chosen = _fit_limits(task, method, train, held, options, path, seed)
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
            rivals = rival_models(task, options.max_disparity or 0.1, seed) if options.compare else []
        with step("audit"):
            X, y, s = task.part(test)
            compared: dict[str, Any] = {"unmitigated": plain, "confidence": options.confidence}
            found, audited = audit_in_words(chosen.released, X, y, sensitive_features=s, **compared)
            references = {"unprotected": plain, "logistic regression": linear, "constant": constant}
            prove = partial(_bounds, task, chosen, held)
            scored = alternatives(chosen, references, found, (X, y, s), prove, rivals)
        with step("front"):
            unseen, groups = task.part(np.concatenate([held, test])), chosen.model[-1].group_encoder_  # by the encoder
            if options.promise == "class":
                front = decision_front(encoder, unseen, groups, np.arange(len(unseen[1])) >= len(held))
            else:
                front = estimated_front(encoder, unseen[0], unseen[2], groups)
    # The audit judges collapsed codes and vanished classes by rows that the training has not seen; that the groups are
    # small has been said of the calibration rows.
    concerns = [w.message for w in caught if not issubclass(w.category, (CollapsedCodeWarning, VanishedClassWarning))]
    concerns += [warning for warning in audited if not isinstance(warning, SmallGroupWarning)]
    names = chosen.model[0].get_feature_names_out()
    words = dict.fromkeys(_concern(warning, names) for warning in concerns if isinstance(warning, InputWarning))
    certified = len(held) if task.apart is None else sum(chosen.certificate.bounds[0].rows.values())
    sizes = {"train": len(train), "calibration": certified, "test": len(test)}
    facts: dict[str, Any] = {"asked": asdict(options), "audit": found, "alternatives": scored, "front": front}
    return Fit(**vars(chosen), **facts, rows=sizes, test=test, concerns=[*words])


def _concern(warning: Any, names: np.ndarray) -> str:
    """Return a warning in words, with the names of encoded columns: the method itself knows their places only."""
    if isinstance(warning, SensitiveFeatureInXWarning):
        known = [(o, str(names[o.column]) if isinstance(o.column, int) else o.column) for o in warning.found]
        warning = SensitiveFeatureInXWarning([overlap._replace(column=name) for overlap, name in known])
    return worded(warning)


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
    task: Task,
    method: Pipeline,
    train: np.ndarray,
    held: np.ndarray,
    options: FitOptions,
    path: Sequence[float] | None,
    seed: int,
) -> Chosen:
    """Keep the best model that the calibration rows certify, or the safest one, uncertified."""
    label = {str(value): value for value in np.unique(task.y).tolist()}
    method[-1].set_params(random_state=seed)  # of the training: a hard code draws nothing
    model = CertifiedClassifier(
        method,
        promise=options.promise,
        max_disparity=options.max_disparity,
        max_information=options.max_information,
        max_odds_disparity=options.max_odds_disparity,
        odds_label=None if options.odds_label is None else label[options.odds_label],
        confidence=options.confidence,
        path=path,
        random_state=seed,
    )
    rows, refusal = train if task.apart else np.concatenate([train, held]), None
    X, y, s = task.part(rows)
    try:
        calibration = task.apart or np.arange(len(train), len(rows))
        model.fit(X, y, sensitive_features=s, person=task.people(rows), calibration=calibration)
    except NotCertifiedError as error:
        refusal, best = worded(error), model.candidates_[0]
        if error.rows_needed is not None:
            least = "at least " * (error.bound - error.estimate > error.limit)
            whole = rounded_up(len(task.y) * error.rows_needed / error.rows)
            refusal += f" That is a table of {least}about {whole:,} rows."
        model.estimator_, model.classes_, model.group_encoder_ = best, best[-1].classes_, best[-1].group_encoder_
        model.certificate_ = error.certificate
    released = model if options.promise == "class" else model.estimator_
    tested = model.path_.astype(object).where(model.path_.notna(), None).to_dict("records")
    return Chosen(model.estimator_, model.certificate_, released, refusal, model.candidates_, tested)


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
    return Chosen(path[place], _certified(task, path[place], held, options), path[place], None, path, [])


def _certified(task: Task, model: Pipeline, held: np.ndarray, options: FitOptions) -> Certificate:
    """Return what the calibration rows prove about what a model releases."""
    if task.apart:
        part, labels = options.promise or "code", None if options.max_odds_disparity is None else np.unique(task.y)
        sums = CalibrationSums([model[-1]], task.apart(model), [part], labels, options.confidence)
        return sums.certificates(model[-1])[part]
    X, y, s = task.part(held)
    labels = None if options.max_odds_disparity is None else y
    known: dict[str, Any] = {"sensitive_features": s, "y": labels, "person": task.people(held)}
    source = (released_class(*fitted_code(model, X, s)),) if options.promise == "class" else (model, X)
    return certify(*source, **known, confidence=options.confidence)


def _bounds(task: Task, chosen: Chosen, held: np.ndarray, reference: Pipeline) -> dict[str, float]:
    """Return what the calibration rows prove and show about the decisions of a reference, as of the path."""
    X, y, s = task.part(held)
    last, rows = fitted_code(reference, X, s)
    decided = last.classes_[last.predict_proba(rows).argmax(1)]
    known = {"classes_": last.classes_, "group_encoder_": chosen.model[-1].group_encoder_}
    source, asked = SimpleNamespace(**known, predict=lambda _: decided), chosen.released
    among: dict[str, Any] = {"sensitive_features": s, "y": None if asked.max_odds_disparity is None else y}
    proof = certify(released_class(source, rows), **among, person=task.people(held), confidence=asked.confidence)
    limits = asked.max_disparity, asked.max_information, asked.max_odds_disparity, asked.odds_label
    claims = Promise("class", True, *limits).claims({"class": proof}, len(held))
    return {f"{how}class_{c.kind}": x for c in claims for how, x in (("", c.bound), ("shown_", c.estimate))}
