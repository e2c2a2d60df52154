"""A model whose disparity is promised: choose along a gamma path by what held-out rows prove."""

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import train_test_split
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from fairbits.certificate import Certificate, SmallGroupWarning, TrainingRowsWarning, certify
from fairbits.encoding import GroupEncoder
from fairbits.estimators import BinaryMIClassifier, fit_stack
from fairbits.estimators.fitting import number_cells

GAMMAS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.99)


class NotCertifiedError(ValueError):
    """No model of the path could be proved to keep the limit."""


class CertifiedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Fit a gamma path and keep the most accurate model that held-out rows prove to be within a limit.

    The models are put in an order that is fixed before the calibration rows are looked at, from the safest to the most
    accurate; each is certified in turn until the first failure, and the last one before it is kept. Testing in a fixed
    sequence needs no correction for choosing: the promise ``disparity <= max_disparity`` holds at `confidence`. Two
    things leave the object and a model passes only if both do: the code of one draw (`transform`) and the class
    (`predict`, deterministic); for a receiver of one of them, not of both of the same person. `predict_proba` is not
    covered.

    Parameters
    ----------
    estimator : a method with a code and a gamma; `BinaryMIClassifier()` by default
    max_disparity : the promised limit on the demographic-parity gap of any decision made from the code or the class
    max_information : promise at most so many bits about S as well
    confidence : of the promise
    gammas : the path
    calibration_fraction : rows kept from training, to certify
    random_state : seed of the split

    Attributes
    ----------
    estimator_ : the chosen model
    certificate_ : its certificate; the bound in it is an estimate of how far below the limit it is, not a promise
    path_ : frame of the models in order: gamma, bounds of code and class, whether it was tried and passed
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        max_disparity: float = 0.05,
        max_information: float | None = None,
        confidence: float = 0.95,
        gammas: Sequence[float] = GAMMAS,
        calibration_fraction: float = 0.3,
        random_state: Any = None,
    ):
        self.estimator = estimator
        self.max_disparity, self.max_information, self.confidence = max_disparity, max_information, confidence
        self.gammas, self.calibration_fraction, self.random_state = gammas, calibration_fraction, random_state

    def fit(self, X, y, *, sensitive_features):
        """Train the path on one part of the rows and certify it on the rest; sensitive features are required."""
        for name in ("max_disparity", "confidence", "calibration_fraction"):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)!r} must lie between 0 and 1.")
        if sensitive_features is None:
            raise ValueError("sensitive_features is None; a certificate needs the columns to protect.")
        template = BinaryMIClassifier() if self.estimator is None else self.estimator
        models = [clone(template).set_params(gamma=gamma) for gamma in self.gammas]
        train, calibration = self._split(template, np.asarray(y), sensitive_features)
        named = hasattr(sensitive_features, "columns") or hasattr(sensitive_features, "name")  # frames and series
        s = sensitive_features if named else np.asarray(sensitive_features)
        part = _safe_indexing(X, train)
        fit_stack(models, part, np.asarray(y)[train], sensitive_features=_safe_indexing(s, train))
        ordered = self._order(models, part, _safe_indexing(s, train))
        self._test(ordered, _safe_indexing(X, calibration), _safe_indexing(s, calibration))
        self.classes_, self.n_features_in_ = self.estimator_.classes_, self.estimator_.n_features_in_
        return self

    def _split(self, template: Any, y: np.ndarray, sensitive_features: Any) -> tuple[np.ndarray, np.ndarray]:
        encoder = GroupEncoder(groups=template.groups, n_bins=template.n_bins, min_group_size=template.min_group_size)
        cells = number_cells(encoder.fit(sensitive_features, n_rows=len(y)).transform(sensitive_features))
        return train_test_split(
            np.arange(len(y)), test_size=self.calibration_fraction, stratify=cells, random_state=self.random_state
        )

    def _order(self, models: list[Any], X: Any, s: Any) -> list[Any]:
        """Sort from the safest to the most accurate, by what the training rows show."""
        with warnings.catch_warnings():
            for category in (SmallGroupWarning, TrainingRowsWarning):  # certifying these rows is not the point here
                warnings.simplefilter("ignore", category)
            shown = [self._bounds(model, X, s)[0] for model in models]
        return [models[i] for i in np.argsort(shown, kind="stable")]

    def _test(self, models: list[Any], X: Any, s: Any) -> None:
        """Certify in order up to the first failure and keep the last that passed."""
        rows, best, chosen = [], math.inf, None
        for model in models:
            worst, certificate = self._bounds(model, X, s)
            passed = worst <= self.max_disparity and (
                self.max_information is None or certificate.information <= self.max_information
            )
            rows.append(
                {"gamma": model.gamma, "bound": worst, "information": certificate.information, "passed": passed}
            )
            if not passed:
                best = min(best, worst)
                break
            chosen = (model, certificate)
        self.path_ = pd.DataFrame(rows)
        if chosen is None:
            raise NotCertifiedError(self._refusal(best, certificate))
        self.estimator_, self.certificate_ = chosen

    def _bounds(self, model: Any, X: Any, s: Any) -> tuple[float, Certificate]:
        """Return the larger of the bounds on code and class, and the code's certificate."""
        code = certify(model, X, sensitive_features=s, confidence=self.confidence)
        classes = (model.predict(X)[:, None] == model.classes_[1:]).astype(float)
        columns = zip(model.group_encoder_.transform(s).T, model.groups_, strict=True)
        answers = [
            certify(classes, sensitive_features=np.array(names)[column], confidence=self.confidence).total_variation
            for column, names in columns
        ]
        return max(code.total_variation, *answers), code

    def _refusal(self, best: float, certificate: Certificate) -> str:
        safest = certificate.bounds[0]
        slack = best - safest.estimated_total_variation
        room = self.max_disparity - safest.estimated_total_variation
        n = sum(safest.rows.values())
        advice = (
            f"about {math.ceil(n * (slack / room) ** 2):,} calibration rows would be needed instead of {n:,}"
            if room > 0
            else "more rows would not help: the calibration rows themselves show more than that; add larger gammas"
        )
        return (
            f"No model could be certified to max_disparity={self.max_disparity:g} at confidence {self.confidence:g}: "
            f"the safest has a bound of {best:.4f} on its code and class; {advice}."
        )

    def predict(self, X) -> np.ndarray:
        """Return the class of each row; covered by the promise."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.predict(X)

    def transform(self, X) -> np.ndarray:
        """Draw one code per row; covered by the promise."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.transform(X)

    def predict_proba(self, X) -> np.ndarray:
        """Return class probabilities; **not** covered by the promise, they are a function of the row itself."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.predict_proba(X)
