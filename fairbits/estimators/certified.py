"""A model with a guaranteed disparity: choose along a path of models by what calibration rows prove."""

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from fairbits.certificate import Certificate, SmallGroupWarning, TrainingRowsWarning, certify
from fairbits.certificate.deviations import HOEFFDING, normal_deviation
from fairbits.certificate.released_code import encode_rows, has_code, last_step, need_certified_code
from fairbits.encoding import GroupEncoder, SeenRows, row_hashes, take_rows
from fairbits.encoding.recognition import person_numbers, split_people
from fairbits.errors import InputError
from fairbits.estimators.base import has_path, method_path
from fairbits.estimators.candidates import Decision, decisions, fitted_once, in_words, out_of_fold
from fairbits.estimators.codes import FittedCodeMixin
from fairbits.estimators.exact_code import MISTAKE
from fairbits.estimators.fair_code import FairCodeClassifier
from fairbits.estimators.fitting import fit_stack, fit_steps
from fairbits.estimators.inputs import new_group_encoder, said_elsewhere
from fairbits.estimators.linear_code import LinearCodeClassifier
from fairbits.estimators.promises import (
    Calibration,
    CalibrationRows,
    CalibrationSums,
    Claim,
    NotCertifiedError,
    Pieces,
    Promise,
    check_labels,
    released_class,
    warn_of_labels,
)
from fairbits.settings import check_settings, setting

GAMMAS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.99, 0.995, 0.999)
SHARES = (0.05, 0.1, 0.2, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9, 1.0)  # of the limit to prove
BEYOND = (1.25, 1.5, 2.0, 3.0)  # times the limit: a class differs less between the groups than its code does
FEW, TIGHT = 4, 4  # words of further linear codes, and for how many of the tightest limits: every word costs proof
FEWEST, SCARCE = 2, 0.05  # words of still further ones, where half the limit is lost to chance at this level
ALIKE = 0.1  # p-value up to which one decision rule is more accurate than another
SAMPLES = 5  # of the training rows, to order the models


@dataclass(eq=False, repr=False)
class CertifiedClassifier(FittedCodeMixin, MetaEstimatorMixin, BaseEstimator):
    """Fit a path of models and keep the best one that calibration rows prove to be within limits.

    The training rows put the models in order, from the safest on; a hard code that is no better there than a safer one
    is left out, because it could only fail. Each is certified in turn until the first failure:
    testing in a fixed sequence needs no correction, and the guarantee that every limit is kept holds at `confidence`
    for all models before it together. The one of them that predicts the calibration labels best is kept: by what
    codes are trained for, log-loss plus half the error rate, or by accuracy where the class alone is guaranteed. Of
    rules for decisions it is the least protected one, unless another is significantly more accurate on these rows. That
    is deliberate, and costs no confidence: the guarantee holds for whichever of them is chosen, by whatever rows.

    `promise` says what must keep the limits. "code": one draw of the code (`transform`); of a hard code the class is a
    function of it and covered, too. "class": the predicted class alone (`predict`); the code and `predict_proba` are
    not covered, and `transform` is refused. "both": of a random code, the guarantee is for anyone who receives one draw
    or the class of a person, not both, and does not cover `predict_proba`.

    Parameters
    ----------
    estimator : `FairCodeClassifier()` by default; or a method with a code, or a pipeline that ends in one: what stands
        before it is then fitted to the training part alone, as it must be. To guarantee the class alone, also any other
        classifier, or a list of candidates, unfitted: `fit` and `predict` get the sensitive features if they take
        them. A method with a code and a limit or gamma stands for its whole path. Random decisions are certified as
        drawn once per person
    promise : "code", "class" or "both"; None is "code" for a hard code, "both" for a random one, "class" without a code
    max_disparity : limit on the difference in rates between groups of any decision made from what is guaranteed
    max_information : limit on its leakage, in bits, as well or (max_disparity=None) instead
    max_odds_disparity : limit on the disparity among people with the same label (equalised odds), as well or instead;
        with this limit alone, a `FairCodeClassifier` is trained within labels
    odds_label : the only label that `max_odds_disparity` is about, such as the favourable one (equal opportunity)
    confidence : of the guarantee
    path : the limits to train to, or for the paper's methods the gammas; None chooses them, and trains linear codes
        from both starts, where the limit is tight also codes of four words
    calibration_fraction : share of the rows kept from training, to certify
    random_state : seed of the split

    Attributes
    ----------
    estimator_ : the chosen model
    certificate_ : its certificate with the guarantee; the bounds in it estimate how far below the limits the model is
    candidates_ : the models of the path that were certified or could have been, from the safest on; set even if none
        passes
    passed_ : those of them that passed: the same guarantee holds for each, and for all together. `save` keeps the
        chosen one alone, without `candidates_` and `passed_`: save others by themselves
    path_ : frame of all models, in order: limit, gamma or candidate, bounds of code and class and what the calibration
        rows show, whether it and all before it passed, and the loss (log-loss in bits plus half the error rate) or the
        accuracy on these rows. The guarantee is for those that passed; bounds of later ones hold one by one only

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from sklearn.linear_model import LogisticRegression
    >>> from fairbits.datasets import make_shifted_bits
    >>> data = make_shifted_bits(4000, random_state=0)
    >>> model = CertifiedClassifier([LogisticRegression(), DummyClassifier()], max_disparity=0.2, random_state=0)
    >>> model.fit(data.X, data.y, sensitive_features=data.s).path_.candidate.tolist()
    ['DummyClassifier()', 'LogisticRegression()']
    """

    estimator: Any = None
    _: KW_ONLY
    promise: str | None = setting(None, one_of=(None, "code", "class", "both"))
    max_disparity: float | None = setting(0.05, above=0, below=1, optional=True)
    max_information: float | None = setting(None, above=0, below=1, optional=True)
    max_odds_disparity: float | None = setting(None, above=0, below=1, optional=True)
    odds_label: Any = None
    confidence: float = setting(0.95, above=0, below=1)
    path: Sequence[float] | None = None
    calibration_fraction: float = setting(0.3, above=0, below=1)
    random_state: Any = None

    def fit(self, X: Any, y: Any, *, sensitive_features: Any, person: Any = None, calibration: Any = None) -> Self:
        """Train the path on one part of the rows and certify it on the rest; sensitive features are required.

        `person` has one identifier per row, where people have several rows: all rows of a person are in the same part,
        and count once. `calibration` names the rows to certify on, by place or as a mask, in place of a random share;
        or it is a function that yields pieces of other rows, as many as you like, for a pipeline of the fitted encoders
        and a model: rows as the model takes them, labels and sensitive features. All rows that you pass then train.
        """
        check_settings(self)
        templates = self._templates()
        for needed, name in ((sensitive_features, "sensitive_features"), (y, "y")):
            if needed is None:
                what = "the sensitive columns" if name == "sensitive_features" else "labels"
                raise InputError(f"A certificate needs {what}.", remedy=f"Pass {name}.")
        for name in ("estimator_", "certificate_", "path_", "candidates_", "passed_"):
            self.__dict__.pop(name, None)
        pieces = calibration if callable(calibration) else None
        rows = (np.arange(len(y)), np.arange(0)) if pieces else self._split(len(y), person, calibration)
        train, held = (tuple(take_rows(p, r) for p in (X, np.asarray(y), sensitive_features)) for r in rows)
        check_labels(self.max_odds_disparity, self.odds_label, np.asarray(y), train[1] if pieces else held[1])
        who = None if person is None else take_rows(person, rows[1])
        Z_train, models, fitted, known = self._fit_path(templates, train, held, who, pieces)
        order = self._order(models, Z_train, train[2], known.rows, train[1])
        models, self.candidates_ = ([several[i] for i in order] for several in (models, fitted))
        chosen = self._test(models, known)
        self.passed_ = self.candidates_[: int(self.path_.passed.sum())]
        self.estimator_ = self.candidates_[models.index(chosen)]
        certificate = next(iter(known.certificates(chosen).values()))
        promise = str(self._promise(chosen))
        self.certificate_ = replace(certificate, promise=promise, promised_disparity=self.max_disparity)
        for concern in chosen.concerns(Z_train, train[1], train[2]) if has_code(chosen) else ():
            warnings.warn(concern, stacklevel=2)
        # The calibration rows have chosen the model: they are not to certify it again.
        method, seen = last_step(self.estimator_, X, sensitive_features)
        if np.asarray(seen).dtype.kind in "biuf":
            method.training_rows_ = SeenRows(row_hashes(np.asarray(seen)))
        self.classes_, self.group_encoder_ = chosen.classes_, chosen.group_encoder_
        self.n_features_in_ = X.shape[1] if hasattr(X, "shape") else len(X[0])
        return self

    def _split(self, n: int, person: Any, calibration: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows that train and those that certify."""
        if calibration is None:
            return split_people(n, self.calibration_fraction, self.random_state, person)
        apart = np.unique(np.arange(n)[np.asarray(calibration)])
        rows = np.setdiff1d(np.arange(n), apart), apart
        _check_people(person, rows)
        return rows

    def _fit_path(
        self, templates: list, train: tuple, held: tuple, who: Any, pieces: Pieces | None
    ) -> tuple[Any, list, list, Calibration]:
        """Fit all models; return the training rows as they see them, the models, their pipelines, calibration rows."""
        if not is_path(templates[0]) or isinstance(self.estimator, (list, tuple)):
            if pieces:
                raise InputError("Calibration rows in pieces are for a method with a code.", remedy="Pass the rows.")
            Z_train, Z_held, models = self._decide(templates, train, held)
            return Z_train, models, [model.model for model in models], self._in_memory(Z_held, held, who)
        front, Z_train, models = self._train(templates[0], *train)
        whole = isinstance(templates[0], Pipeline)
        fitted = [Pipeline([*front, ("method", model)]) if whole else model for model in models]
        if pieces is None:
            return Z_train, models, fitted, self._in_memory(encode_rows(front, held[0], held[2]), held, who)
        labels = None if self.max_odds_disparity is None else np.unique(train[1])
        found = pieces(Pipeline([*front, ("method", models[0])]))
        known = CalibrationSums(models, found, self._promise(models[0]).parts, labels, self.confidence)
        return Z_train, models, fitted, known

    def _in_memory(self, Z: Any, held: tuple, who: Any) -> CalibrationRows:
        prove = partial(self._certificates, X=Z, s=held[2], y=held[1], person=who)
        return CalibrationRows(Z, held[1], prove)

    def transform(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Return the code of each row, what you may share; refused where the class alone is guaranteed."""
        check_is_fitted(self)
        need_certified_code(self)
        return super().transform(X, sensitive_features=sensitive_features)

    def _inside(self, X: Any, sensitive_features: Any) -> tuple[Any, Any]:
        check_is_fitted(self)
        if has_code(self.estimator_):
            return super()._inside(X, sensitive_features)
        return last_step(self.estimator_, X, sensitive_features)

    def _templates(self) -> list[Any]:
        """Return what is to be fitted, after a look at whether it can keep what is asked."""
        limits = self.max_odds_disparity, self.max_disparity, self.max_information
        if limits == (None, None, None):
            remedy = "Set max_disparity, max_information or max_odds_disparity."
            raise InputError("There is no limit to certify.", remedy=remedy)
        listed = isinstance(self.estimator, (list, tuple))
        templates = list(self.estimator) if listed else [self.estimator]
        if not templates:
            raise InputError("The list of candidates is empty.", argument="estimator", value=self.estimator)
        for i, template in enumerate(templates):
            if template is None or isinstance(template, FairCodeClassifier):
                templates[i] = (template or FairCodeClassifier()).pipeline()
                templates[i][-1].condition_on_label |= limits[1:] == (None, None)
                if self.promise == "class" and self.max_information is None:
                    for_decisions(templates[i])
            method = templates[i][-1] if isinstance(templates[i], Pipeline) else templates[i]
            if not hasattr(method, "fit") or not hasattr(method, "predict"):
                raise InputError("is not a classifier.", argument="estimator", value=method)
            if getattr(method, "prediction", "expected") != "expected":
                raise InputError("A certified class must be deterministic.", remedy="Use prediction='expected'.")
            if self.promise in ("code", "both") and (listed or not is_path(method)):
                problem = "A list of candidates" if listed else f"{type(method).__name__}"
                lacks = "code to guarantee" if listed or not has_code(method) else "limit or gamma to choose a code by"
                raise InputError(f"{problem} has no {lacks}.", remedy="Pass promise='class'.")
            warn_of_labels(getattr(method, "condition_on_label", None), *limits)
        return templates

    def _train(self, template: Any, X: Any, y: np.ndarray, s: Any) -> tuple[list, Any, list]:
        """Fit the encoders, then all models; return the encoders, the rows as encoded by them, and the models."""
        *front, (_, method) = template.steps if isinstance(template, Pipeline) else [("method", template)]
        stacks = self._stacks(method, self._expected_rows(method, s, len(y)))

        def fit(*rows: Any, **data: Any) -> None:
            for stack in stacks:
                fit_stack(stack, *rows, **data)

        return *fit_steps(front, X, y, fit, sensitive_features=s), [model for stack in stacks for model in stack]

    def _decide(self, templates: list, train: tuple, held: tuple) -> tuple[np.ndarray, np.ndarray, list[Decision]]:
        """Fit all candidates; return their decisions about training and calibration rows, and who made which."""
        known = np.unique(train[1]), GroupEncoder().fit(train[2], n_rows=len(train[1]))
        shown, found, models = [], [], []
        for template in templates:
            if is_path(template):
                front, Z, path = self._train(template, *train)
                Z_held = encode_rows(front, held[0], held[2])
                for method in path:
                    shown.append(method.predict(Z))
                    found.append(method.predict(Z_held))
                    models.append(Pipeline([*front, ("method", method)]))
            else:
                shown.append(out_of_fold(template, self.random_state, *train))
                models.append(fitted_once(template, *train))
                found.append(decisions(models[-1], held[0], held[2]))
        made = [Decision(model, in_words(model), place, *known) for place, model in enumerate(models)]
        return np.column_stack(shown), np.column_stack(found), made

    def _expected_rows(self, method: Any, s: Any, n: int) -> np.ndarray:
        """Return about how many rows of each group calibrate, by the training rows, where groups are the smallest."""
        with said_elsewhere():
            groups = (
                new_group_encoder(getattr(method, "groups", "intersection")).fit(s, n_rows=n).transform(s, n_rows=n)
            )
        share = self.calibration_fraction / (1 - self.calibration_fraction)
        return share * min((np.bincount(column) for column in groups.T), key=min)

    def _stacks(self, method: Any, rows: np.ndarray) -> list[list[Any]]:
        """Return the method once for every value of the path, in stacks that train as one; rows calibrate by group."""
        name, values = method_path(method), self.path
        if values is None and name == "gamma":
            values = GAMMAS
        elif values is None:
            within = self.max_odds_disparity if method.condition_on_label else None
            limit = within or self.max_disparity or self.max_odds_disparity or self.max_information or 0.0
            values = [share * limit for share in SHARES]
            if self.promise == "class":
                values = [*values, *(min(share * limit, 1.0) for share in BEYOND), 1.0]
        models = [clone(method).set_params(**{name: value}) for value in values]
        if self.path is not None or self.promise == "class" or not isinstance(method, LinearCodeClassifier):
            return [models]
        tight, words = models[:TIGHT], few_words(max(values), rows)
        few = [clone(model).set_params(max_words=min(w, method.max_words)) for w in words for model in tight]
        return [
            [clone(model).set_params(start=start) for model in several]
            for start, several in (("labels", [*models, *few]), ("optimum", models))
        ]

    def _order(self, models: list[Any], X: Any, s: Any, n_held: int, y: Any = None) -> np.ndarray:
        """Return the places of the models from the safest on, by samples of as many training rows as calibrate.

        Of a path that was not given, a hard code with a larger loss there than a safer one is left out.
        """
        rng, n = check_random_state(self.random_state), len(X)
        samples = [rng.permutation(n)[:n_held] for _ in range(SAMPLES)]
        taken = ([None if part is None else take_rows(part, rows) for part in (X, s, y)] for rows in samples)
        parts = [(x, groups, labels, HOEFFDING) for x, groups, labels in taken]
        with warnings.catch_warnings():
            for category in (SmallGroupWarning, TrainingRowsWarning):  # certifying these rows is not the point here
                warnings.simplefilter("ignore", category)
            excess = [
                [max(c.excess for c in self._claims(m, self._certificates(m, *part), n_held)) for part in parts]
                for m in models
            ]
        order = np.argsort(np.mean(excess, 1), kind="stable")
        if y is None or self.path is not None or self._promise(models[0]).of == "class" or not models[0].is_hard:
            return order
        seen = CalibrationRows(X, y)
        losses = np.array([code_loss(models[i], seen) for i in order])
        return order[losses < np.minimum.accumulate(np.concatenate([[np.inf], losses[:-1]]))]

    def _test(self, models: list[Any], known: Calibration) -> Any:
        """Certify in order and return the best of those before the first failure."""
        rows, failed, name = [], None, method_path(models[0])
        score = "accuracy" if self._promise(models[0]).of == "class" else "loss"
        for model in models:
            claims = self._claims(model, known.certificates(model), known.rows)
            worst = max(claims, key=lambda claim: claim.excess)
            bounds = {f"{c.of}_{c.kind}": c.bound for c in claims}
            shown = {f"shown_{c.of}_{c.kind}": c.estimate for c in claims}
            if failed is None and worst.excess > 0:
                failed = worst
            value = known.accuracy(model) if score == "accuracy" else code_loss(model, known)
            rows.append({name: getattr(model, name), **bounds, **shown, "passed": failed is None, score: value})
        self.path_ = pd.DataFrame(rows)
        scores = self.path_[score][self.path_.passed]
        if failed is not None and scores.empty:
            raise NotCertifiedError(failed, self.confidence, next(iter(known.certificates(models[0]).values())))
        best = models[int(scores.argmax() if score == "accuracy" else scores.argmin())]
        if getattr(best, "objective", None) != "accuracy":
            return best
        # Protection does not make a rule more accurate, so small differences are chance.
        alike = [m for m in models[: len(scores)] if known.p_value(best, m) > ALIKE]
        return max(alike, key=lambda model: (model.limit, scores[models.index(model)]))

    def _claims(self, model: Any, found: dict[str, Certificate], rows: int) -> list[Claim]:
        """Return what must be within its limit for a model to pass, by its certificates on so many rows."""
        return self._promise(model).claims(found, rows)

    def _certificates(
        self, model: Any, X: Any, s: Any, y: Any = None, theorem: str = "shortest", person: Any = None
    ) -> dict[str, Certificate]:
        """Certify the parts of a model that keep the limits, within labels if a limit is about them."""
        labels = None if self.max_odds_disparity is None else y
        proof = partial(certify, sensitive_features=s, y=labels, confidence=self.confidence, theorem=theorem)
        released = {"code": lambda: (model, X), "class": lambda: (released_class(model, X),)}
        return {part: proof(*released[part](), person=person) for part in self._promise(model).parts}

    def _promise(self, model: Any) -> Promise:
        """Return what is guaranteed of a model."""
        usual = "class" if not hasattr(model, "code_probabilities") else "code" if model.is_hard else "both"
        limits = self.max_disparity, self.max_information, self.max_odds_disparity, self.odds_label
        return Promise(self.promise or usual, model.is_hard, *limits)


def is_path(template: Any) -> bool:
    """Return whether a model, or the last step of a pipeline, has a code and a limit or gamma to vary."""
    return has_code(template) and has_path(template[-1] if isinstance(template, Pipeline) else template)


def code_loss(model: Any, known: Calibration) -> float:
    """Return what codes are trained for: log-loss in bits plus half the error rate."""
    return known.log_loss(model) + MISTAKE * (1 - known.accuracy(model))


def for_decisions(template: Any) -> None:
    """Let a pipeline that ends in a linear code train for the accuracy of its class, where nobody gets the code."""
    if isinstance(template[-1], LinearCodeClassifier):
        template[-1].objective = "accuracy"


def _check_people(person: Any, rows: tuple[np.ndarray, np.ndarray]) -> None:
    """Raise if somebody has rows in both parts, which would not be independent."""
    if person is None:
        return
    numbers = person_numbers(person, sum(map(len, rows)))
    if both := len(np.intersect1d(*(numbers[part] for part in rows))):
        problem = f"{both:,} people have rows for training and for calibration."
        raise InputError(problem, remedy="Put all rows of a person in one part, or leave calibration out.")


def few_words(limit: float, rows: np.ndarray) -> tuple[int, ...]:
    """Return how many words further codes have, of which every one costs proof, for groups of so many rows.

    >>> few_words(0.05, np.array([5400, 10900])), few_words(0.05, np.array([520, 14550]))
    ((4,), (4, 2))
    """
    n, other = [*np.sort(rows)[:2], 0, 0][:2]
    scarce = min(n, other) > 0 and normal_deviation(n, other, SCARCE) > limit / 2
    return (FEW, FEWEST) if scarce else (FEW,)
