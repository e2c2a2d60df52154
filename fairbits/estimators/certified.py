"""A model with a guaranteed disparity: choose along a path of models by what calibration rows prove."""

import math
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils.validation import has_fit_parameter

from fairbits.certificate import SmallGroupWarning, TrainingRowsWarning, certify
from fairbits.certificate.certification import CodedRows
from fairbits.certificate.deviations import HOEFFDING
from fairbits.certificate.released_code import binary_digits, encode_rows
from fairbits.encoding import SeenRows, row_hashes, take_rows
from fairbits.encoding.people import split_people
from fairbits.errors import InputError
from fairbits.estimators.codes import FittedCodeMixin
from fairbits.estimators.fair_code import FairCodeClassifier
from fairbits.estimators.fitting import fit_stack
from fairbits.estimators.inputs import said_elsewhere
from fairbits.estimators.posterior import PosteriorEncoder
from fairbits.rounding import at_most
from fairbits.settings import check_settings, setting

GAMMAS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.99, 0.995, 0.999)
SHARES = (0.05, 0.1, 0.2, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9, 1.0)  # of the limit to prove
SAMPLES = 5  # of the training rows, to order the models
SMALLEST = 1e-12  # probability in the log-loss


class _Claim(NamedTuple):
    """A bound that must be within its limit."""

    of: str  # code or class
    kind: str  # total_variation or information
    bound: float
    estimate: float  # what the rows show
    limit: float
    rows: int

    @property
    def excess(self) -> float:
        """By how much the bound is above the limit, in units of the limit."""
        return self.bound / self.limit - 1


class NotCertifiedError(InputError):
    """The calibration rows prove the limit for no model of the path.

    `limit` and `bound` are those of the safest model, `estimate` is what the rows show, `rows_needed` about how many
    calibration rows would prove the limit (None where more rows would not help).
    """

    def __init__(self, claim: _Claim, confidence: float):
        self.of, self.rows = claim.of, claim.rows
        self.limit, self.bound, self.estimate = claim.limit, claim.bound, claim.estimate
        self.rows_needed: int | None = None
        quantity, power = ("disparity", 2) if claim.kind == "total_variation" else ("leakage", 1)
        remedy = "Add safer models to the path, or raise the limit."
        if claim.estimate < claim.limit:  # the slack shrinks as 1 / rows^(1/power)
            shrink = (claim.bound - claim.estimate) / (claim.limit - claim.estimate)
            self.rows_needed = math.ceil(claim.rows * shrink**power)
            remedy = f"About {self.rows_needed:,} calibration rows would be needed."
        super().__init__(
            f"No model could be certified to a {quantity} of at most {claim.limit:g} at confidence {confidence:g}: the "
            f"{claim.of} of the safest one has a measured {quantity} of {claim.estimate:.4f}, but {claim.rows:,} "
            f"calibration rows can only guarantee {at_most(claim.bound, 4)}.",
            remedy=remedy,
        )


@dataclass(eq=False, repr=False)
class CertifiedClassifier(FittedCodeMixin, MetaEstimatorMixin, BaseEstimator):
    """Fit a path of models and keep the best one that calibration rows prove to be within a limit.

    The training rows put the models in order, from the safest on. Each is certified in turn until the first failure:
    testing in a fixed sequence needs no correction, and the guarantee ``disparity <= max_disparity`` holds at
    `confidence` for all models before it together. The one of them that predicts the calibration labels best is kept. A
    model passes only if everything that you may share keeps the limit: the code (`transform`) and the predicted class
    (`predict`), which of a hard code is a function of it. Of a random code, the guarantee is for anyone who receives
    one draw or the class, not both, of a person, and does not cover `predict_proba`.

    Parameters
    ----------
    estimator : `FairCodeClassifier()` by default; or a method with a code, or a pipeline that ends in one: what stands
        before it is then fitted to the training part alone, as it must be
    max_disparity : limit on the difference in rates between groups of any decision made from the code or the class
    max_information : limit on their leakage, in bits, as well or (max_disparity=None) instead
    confidence : of the guarantee
    path : the limits to train to, or for the paper's methods the gammas; None chooses them
    calibration_fraction : share of the rows kept from training, to certify
    random_state : seed of the split

    Attributes
    ----------
    estimator_ : the chosen model
    certificate_ : its certificate with the guarantee; the bounds in it estimate how far below the limits the model is
    candidates_ : all models of the path, from the safest on; set even if none passes
    path_ : frame of the models that were tested, in order: limit or gamma, bounds of code and class, whether it passed,
        and the log-loss of those that did, in bits
    """

    estimator: Any = None
    _: KW_ONLY
    max_disparity: float | None = setting(0.05, above=0, below=1, optional=True)
    max_information: float | None = setting(None, above=0, below=1, optional=True)
    confidence: float = setting(0.95, above=0, below=1)
    path: Sequence[float] | None = None
    calibration_fraction: float = setting(0.3, above=0, below=1)
    random_state: Any = None

    def fit(self, X: Any, y: Any, *, sensitive_features: Any, person: Any = None, calibration: Any = None) -> Self:
        """Train the path on one part of the rows and certify it on the rest; sensitive features are required.

        `person` has one identifier per row, where people have several rows: all rows of a person are in the same part,
        and count once. `calibration` names the rows to certify on, by place or as a mask, in place of a random share.
        """
        check_settings(self)
        if self.max_disparity is None and self.max_information is None:
            raise InputError("There is no limit to certify.", remedy="Set max_disparity or max_information.")
        if sensitive_features is None:
            raise InputError("A certificate needs the sensitive columns.", remedy="Pass sensitive_features.")
        for name in ("estimator_", "certificate_", "path_", "candidates_"):
            self.__dict__.pop(name, None)
        template = FairCodeClassifier() if self.estimator is None else self.estimator
        template = template.pipeline() if isinstance(template, FairCodeClassifier) else template
        *front, (_, method) = template.steps if isinstance(template, Pipeline) else [("method", template)]
        if getattr(method, "prediction", "expected") != "expected":
            raise InputError("A certified class must be deterministic.", remedy="Use prediction='expected'.")
        if calibration is None:
            rows = split_people(len(y), self.calibration_fraction, self.random_state, person)
        else:
            held = np.arange(len(y))[np.asarray(calibration)]
            rows = np.setdiff1d(np.arange(len(y)), held), held
        (X_train, X_held), (y_train, y_held), (s_train, s_held) = (
            [take_rows(part, r) for r in rows] for part in (X, np.asarray(y), sensitive_features)
        )
        who = None if person is None else take_rows(person, rows[1])
        front = [(name, clone(step)) for name, step in front]
        Z_train, models = self._train(front, method, X_train, y_train, s_train, len(y_held))
        Z_held, Z_later = encode_rows(front, X_held, s_held), encode_rows(front, X_train, s_train)
        whole = isinstance(template, Pipeline)
        self.candidates_ = [Pipeline([*front, ("method", model)]) if whole else model for model in models]
        chosen = self._test(models, Z_held, y_held, s_held, who)
        certificate = certify(chosen, Z_held, sensitive_features=s_held, confidence=self.confidence, person=who)
        promise = self._promise(chosen.is_hard)
        self.certificate_ = replace(certificate, promise=promise, promised_disparity=self.max_disparity)
        for concern in chosen.concerns(Z_train, y_train, s_train):
            warnings.warn(concern, stacklevel=2)
        # The calibration rows have chosen the model: they are not to certify it again.
        chosen.training_rows_ = SeenRows(row_hashes(np.concatenate([np.asarray(Z_later), np.asarray(Z_held)])))
        self.estimator_ = self.candidates_[models.index(chosen)]
        self.classes_, self.n_features_in_ = chosen.classes_, X.shape[1] if hasattr(X, "shape") else len(X[0])
        return self

    def _train(self, front: list, method: Any, X: Any, y: np.ndarray, s: Any, n_held: int) -> tuple[Any, list]:
        """Fit the encoders, then all models; return the rows as these have seen them, and the models, safest first."""
        for _, step in front:
            known = {"sensitive_features": s} if has_fit_parameter(step, "sensitive_features") else {}
            X = step.fit_transform(X, y, **known)
        models = self._models(method)
        said = any(isinstance(step, PosteriorEncoder) or getattr(step, "encode_sensitive", False) for _, step in front)
        with said_elsewhere() if said else nullcontext():
            fit_stack(models, X, y, sensitive_features=s)
        return X, self._order(models, X, s, n_held)

    def _models(self, method: Any) -> list[Any]:
        """Return the method once for every value of the path."""
        name, values = method_path(method), self.path
        if values is None and name == "gamma":
            values = GAMMAS
        elif values is None:
            values = [share * (self.max_disparity or self.max_information or 0.0) for share in SHARES]
        return [clone(method).set_params(**{name: value}) for value in values]

    def _order(self, models: list[Any], X: Any, s: Any, n_held: int) -> list[Any]:
        """Sort from the safest on, by what samples of the training rows as large as the calibration rows show."""
        rng, n = check_random_state(self.random_state), len(X)
        samples = [rng.permutation(n)[:n_held] for _ in range(SAMPLES)]
        parts = [(take_rows(X, rows), take_rows(s, rows)) for rows in samples]
        with warnings.catch_warnings():
            for category in (SmallGroupWarning, TrainingRowsWarning):  # certifying these rows is not the point here
                warnings.simplefilter("ignore", category)
            excess = [
                [max(c.excess for c in self._claims(model, *part, HOEFFDING)) for part in parts] for model in models
            ]
        return [models[i] for i in np.argsort(np.mean(excess, 1), kind="stable")]

    def _test(self, models: list[Any], X: Any, y: np.ndarray, s: Any, person: Any = None) -> Any:
        """Certify in order up to the first failure and return the best that passed."""
        rows, passed, name = [], [], method_path(models[0])
        for model in models:
            claims = self._claims(model, X, s, person=person)
            worst = max(claims, key=lambda claim: claim.excess)
            bounds = {f"{c.of}_{c.kind}": c.bound for c in claims}
            rows.append({name: getattr(model, name), **bounds, "passed": worst.excess <= 0, "log_loss": np.nan})
            if worst.excess > 0:
                break
            own = model.predict_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)]
            rows[-1]["log_loss"] = -float(np.log2(np.maximum(own, SMALLEST)).mean())
            passed.append(model)
        self.path_ = pd.DataFrame(rows)
        if not passed:
            raise NotCertifiedError(worst, self.confidence)
        return passed[int(self.path_.log_loss.argmin())]

    def _claims(self, model: Any, X: Any, s: Any, theorem: str = "shortest", person: Any = None) -> list[_Claim]:
        """Return what must be within its limit for a model to pass: the code, and a class that is no function of it."""
        proof = partial(certify, sensitive_features=s, confidence=self.confidence, theorem=theorem, person=person)
        found = {"code": proof(model, X)}
        if not model.is_hard:
            number = np.searchsorted(model.classes_, model.predict(X))
            digits = torch.from_numpy(binary_digits(number, len(model.classes_)))
            found["class"] = proof(CodedRows(digits, model.group_encoder_, hard=True))
        limits, n = {"total_variation": self.max_disparity, "information": self.max_information}, len(X)
        return [
            _Claim(of, kind, getattr(c, kind), max(getattr(b, f"estimated_{kind}") for b in c.bounds), limit, n)
            for kind, limit in limits.items()
            if limit is not None
            for of, c in found.items()
        ]

    def _promise(self, hard: bool) -> str:
        what, parts = "the code alone" if hard else "one draw of the code, or from the predicted class, alone,", []
        if self.max_disparity is not None:
            rates = f"the rates of any decision made from {what}"
            where = "in the population that the rows come from"
            parts.append(f"{rates} differ between two groups by at most {self.max_disparity:g}, {where}")
        if self.max_information is not None:
            what = "the code" if hard else "one draw of the code, or the predicted class,"
            parts.append(f"{what} reveals at most {self.max_information:g} bits about the groups")
        return f"{'; and '.join(parts)}."


def method_path(method: Any) -> str:
    """Return the setting in which the models of a path differ: the limit that they are trained to, or gamma."""
    return "limit" if "limit" in method.stacked_settings else "gamma"
