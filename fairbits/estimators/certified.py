"""A model with a guaranteed disparity: choose along a gamma path by what calibration rows prove."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, TransformerMixin, clone
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from fairbits.certificate import SmallGroupWarning, TrainingRowsWarning, certify
from fairbits.certificate.certification import CodedRows
from fairbits.certificate.releasing import binary_digits
from fairbits.encoding import SeenRows, row_hashes, take_rows
from fairbits.errors import InputError
from fairbits.estimators.binary import BinaryMIClassifier
from fairbits.estimators.fitting import fit_stack
from fairbits.settings import check_settings, setting

GAMMAS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.99, 0.995, 0.999)


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
        remedy = "Add larger gammas, or raise the limit."
        if claim.estimate < claim.limit:  # the slack shrinks as 1 / rows^(1/power)
            shrink = (claim.bound - claim.estimate) / (claim.limit - claim.estimate)
            self.rows_needed = math.ceil(claim.rows * shrink**power)
            remedy = f"About {self.rows_needed:,} calibration rows would be needed."
        super().__init__(
            f"No model could be certified to a {quantity} of at most {claim.limit:g} at confidence {confidence:g}: the "
            f"{claim.of} of the safest one has a measured {quantity} of {claim.estimate:.4f}, but {claim.rows:,} "
            f"calibration rows can only guarantee {math.ceil(claim.bound * 1e4) / 1e4:.4f}.",
            remedy=remedy,
        )


@dataclass(eq=False, repr=False)
class CertifiedClassifier(ClassifierMixin, TransformerMixin, MetaEstimatorMixin, BaseEstimator):
    """Fit a gamma path and keep the most accurate model that calibration rows prove to be within a limit.

    The training rows put the models in order, from the safest to the most accurate. Each is certified in turn until the
    first failure, and the last one before it is kept. Testing in a fixed sequence needs no correction for choosing: the
    guarantee ``disparity <= max_disparity`` holds at `confidence`. A model passes only if both things that you may
    share keep the limit: the code of one draw (`transform`) and the predicted class (`predict`). The guarantee is for
    anyone who receives one of them, not both, of a person. It does not cover `predict_proba`.

    Parameters
    ----------
    estimator : a method with a code and a gamma, or a pipeline that ends in one: what stands before it is then fitted
        to the training part alone, as it must be; `BinaryMIClassifier()` by default
    max_disparity : limit on the difference in rates between groups of any decision made from the code or the class
    max_information : limit on their leakage, in bits, as well or (max_disparity=None) instead
    confidence : of the guarantee
    gammas : the path
    calibration_fraction : share of the rows kept from training, to certify
    random_state : seed of the split

    Attributes
    ----------
    estimator_ : the chosen model
    certificate_ : its certificate with the guarantee; the bounds in it estimate how far below the limits the model is
    candidates_ : all models of the path, from the safest to the most accurate; set even if none passes
    path_ : frame of the models that were tested, in order: gamma, bounds of code and class, whether it passed
    """

    estimator: Any = None
    _: KW_ONLY
    max_disparity: float | None = setting(0.05, above=0, below=1, optional=True)
    max_information: float | None = setting(None, above=0, below=1, optional=True)
    confidence: float = setting(0.95, above=0, below=1)
    gammas: Sequence[float] = GAMMAS
    calibration_fraction: float = setting(0.3, above=0, below=1)
    random_state: Any = None

    def fit(self, X: Any, y: Any, *, sensitive_features: Any) -> Self:
        """Train the path on one part of the rows and certify it on the rest; sensitive features are required."""
        check_settings(self)
        if self.max_disparity is None and self.max_information is None:
            raise InputError("There is no limit to certify.", remedy="Set max_disparity or max_information.")
        if sensitive_features is None:
            raise InputError("A certificate needs the sensitive columns.", remedy="Pass sensitive_features.")
        for name in ("estimator_", "certificate_", "path_", "candidates_"):
            self.__dict__.pop(name, None)
        template = BinaryMIClassifier() if self.estimator is None else self.estimator
        front, method = (template[:-1], template[-1]) if isinstance(template, Pipeline) else (None, template)
        if getattr(method, "prediction", "expected") != "expected":
            raise InputError("A certified class must be deterministic.", remedy="Use prediction='expected'.")
        rows = train_test_split(np.arange(len(y)), test_size=self.calibration_fraction, random_state=self.random_state)
        (X_train, X_held), (y_train, _), (s_train, s_held) = (
            [take_rows(part, r) for r in rows] for part in (X, np.asarray(y), sensitive_features)
        )
        if front is not None:
            front = clone(front).fit(X_train, y_train)
            X_train, X_held = front.transform(X_train), front.transform(X_held)
        models = [clone(method).set_params(gamma=gamma) for gamma in self.gammas]
        fit_stack(models, X_train, y_train, sensitive_features=s_train)
        models = self._order(models, X_train, s_train)
        self.candidates_ = [m if front is None else Pipeline([*front.steps, ("method", m)]) for m in models]
        chosen = self._test(models, X_held, s_held)
        certificate = certify(chosen, X_held, sensitive_features=s_held, confidence=self.confidence)
        self.certificate_ = replace(certificate, promise=self._promise())
        for concern in chosen.concerns(X_train, y_train, s_train):
            warnings.warn(concern, stacklevel=2)
        # The calibration rows have chosen the model: they are not to certify it again.
        chosen.training_rows_ = SeenRows(row_hashes(np.concatenate([np.asarray(part) for part in (X_train, X_held)])))
        self.estimator_ = self.candidates_[models.index(chosen)]
        self.classes_, self.n_features_in_ = chosen.classes_, X.shape[1] if hasattr(X, "shape") else len(X[0])
        return self

    def _order(self, models: list[Any], X: Any, s: Any) -> list[Any]:
        """Sort from the safest to the most accurate, by what the training rows show."""
        with warnings.catch_warnings():
            for category in (SmallGroupWarning, TrainingRowsWarning):  # certifying these rows is not the point here
                warnings.simplefilter("ignore", category)
            shown = [max(claim.excess for claim in self._claims(model, X, s)) for model in models]
        return [models[i] for i in np.argsort(shown, kind="stable")]

    def _test(self, models: list[Any], X: Any, s: Any) -> Any:
        """Certify in order up to the first failure and return the last that passed."""
        rows, kept = [], None
        for model in models:
            claims = self._claims(model, X, s)
            worst = max(claims, key=lambda claim: claim.excess)
            bounds = {f"{c.of}_{c.kind}": c.bound for c in claims}
            rows.append({"gamma": model.gamma, **bounds, "passed": worst.excess <= 0})
            if worst.excess > 0:
                break
            kept = model
        self.path_ = pd.DataFrame(rows)
        if kept is None:
            raise NotCertifiedError(worst, self.confidence)
        return kept

    def _claims(self, model: Any, X: Any, s: Any) -> list[_Claim]:
        """Return what must be within its limit for a model to pass: of the code and of the class."""
        code = certify(model, X, sensitive_features=s, confidence=self.confidence)
        number = np.searchsorted(model.classes_, model.predict(X))
        digits = torch.from_numpy(binary_digits(number, len(model.classes_)))
        coded = CodedRows(digits, model.group_encoder_)
        answer = certify(coded, sensitive_features=s, confidence=self.confidence)
        limits, n = {"total_variation": self.max_disparity, "information": self.max_information}, len(digits)
        return [
            _Claim(of, kind, getattr(found, kind), max(getattr(b, f"estimated_{kind}") for b in found.bounds), limit, n)
            for kind, limit in limits.items()
            if limit is not None
            for of, found in (("code", code), ("class", answer))
        ]

    def _promise(self) -> str:
        parts = []
        if self.max_disparity is not None:
            rates = "the rates of any decision made from one draw of the code, or from the predicted class,"
            parts.append(f"{rates} differ between two groups by at most {self.max_disparity:g}")
        if self.max_information is not None:
            draw = "one draw of the code, or the predicted class,"
            parts.append(f"{draw} reveals at most {self.max_information:g} bits about the groups")
        return f"{'; and '.join(parts)}."

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each row; the guarantee covers it."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.predict(X)

    def transform(self, X: Any) -> np.ndarray:
        """Draw one code per row; the guarantee covers one draw per person."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.transform(X)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return class probabilities, a function of the row itself: the guarantee does **not** cover them."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.predict_proba(X)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Name the bits: bit0, bit1, ..."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.get_feature_names_out()
