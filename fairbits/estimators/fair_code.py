"""The estimator to start with: a mixed table in, a few bits per row out, within a limit on what they reveal."""

import warnings
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.metrics import accuracy_score
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from fairbits.certificate import Certificate, certify
from fairbits.certificate.releasing import fitted_code
from fairbits.encoding import BinnedSensitiveFeaturesWarning, GroupEncoder, SeenRows, row_hashes
from fairbits.estimators.exact_code import ExactCodeClassifier
from fairbits.estimators.inputs import SensitiveFeatureInXWarning, read_labels
from fairbits.estimators.posterior import PosteriorEncoder


class FairCodeClassifier(ClassifierMixin, TransformerMixin, BaseEstimator):
    """Turn each row into a few bits that predict the label and reveal little about the sensitive columns.

    Boosted trees and logistic regression estimate p(y,s|x), and no code of x can do better than one of these numbers
    (`PosteriorEncoder`). A small network maps them, beside the columns, to the bits; it is trained on the exact
    information about the label, within a limit on the disparity of any decision made from the code
    (`ExactCodeClassifier`). `predict` reads the class off the code alone.

    Training aims at the limit on its own rows. `CertifiedClassifier` proves one on rows that were kept apart.

    Parameters
    ----------
    limit : on the disparity, the largest difference between two groups in how often they get a decision, 0 to 1
    code_size : bits per row, at most 10
    condition_on_label : limit the disparity among rows of the same label (equalised odds)
    release : "hard", a row always has the same code, or "random", every call draws it
    estimators : the classifiers that estimate p(y,s|x), see `PosteriorEncoder`
    encode_sensitive : let the encoder see the sensitive columns, also in `transform` and `predict`. The code can then
        give every group the same words. For sharing data; not for decisions where using these columns is unlawful
    groups : several sensitive columns form their "intersection", or "each" is protected on its own
    random_state : seed of the fit; draws of a random code are then repeatable, too

    Attributes
    ----------
    estimator_ : the fitted pipeline of encoder and code
    classes_ : the labels

    Examples
    --------
    >>> from fairbits.datasets import make_shifted_bits
    >>> data = make_shifted_bits(400, random_state=0)
    >>> model = FairCodeClassifier(limit=0.1, random_state=0).fit(data.X, data.y, sensitive_features=data.s)
    >>> model.transform(data.X).shape, bool((model.transform(data.X) == model.transform(data.X)).all())
    ((400, 6), True)
    """

    __metadata_request__score: ClassVar = {"sensitive_features": True}  # told or not, it takes them

    def __init__(
        self,
        limit: float = 0.05,
        *,
        code_size: int = 6,
        condition_on_label: bool = False,
        release: str = "hard",
        estimators: Any = "default",
        encode_sensitive: bool = False,
        groups: str | GroupEncoder = "intersection",
        random_state: Any = None,
    ):
        self.limit, self.code_size, self.condition_on_label = limit, code_size, condition_on_label
        self.release, self.estimators, self.encode_sensitive = release, estimators, encode_sensitive
        self.groups, self.random_state = groups, random_state

    def pipeline(self) -> Pipeline:
        """Return the encoder and the method with these settings, not fitted."""
        shared = ("limit", "code_size", "condition_on_label", "release", "groups", "random_state")
        method = ExactCodeClassifier(**{name: getattr(self, name) for name in shared})
        told = {name: getattr(self, name) for name in ("estimators", "encode_sensitive", "groups")}
        return Pipeline([("posterior", PosteriorEncoder(**told)), ("code", method)])

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None) -> Self:
        """Fit to a table X, mixed or of numbers, with labels y.

        Parameters
        ----------
        X : (n, columns) numpy, pandas, polars or pyarrow; text and missing values are welcome
        y : (n,) labels of two or more classes
        sensitive_features : one or several columns
        sample_weight : (n,) non-negative; a row of weight 0 counts as absent. A weight of 3 is not quite the same as
            three copies, whose estimates of p(y,s|x) come from folds of their own (`PosteriorEncoder`)
        """
        given = {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
        labels = read_labels(self, y)
        model = self.pipeline()
        encoder, method = model[0], model[-1]
        rows = encoder.fit_transform(X, labels, **given)
        with warnings.catch_warnings():
            for told in (SensitiveFeatureInXWarning, BinnedSensitiveFeaturesWarning):  # by the encoder, of X itself
                warnings.simplefilter("ignore", told)
            method.fit(rows, labels, **given)
        method.training_rows_ = seen_again(encoder, X, sensitive_features)
        self.estimator_, self.classes_ = model, method.classes_
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(encoder, name):
                setattr(self, name, getattr(encoder, name))
        return self

    def fit_transform(self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fit, and return the code of each row.  (n, code_size) uint8"""
        self.fit(X, y, sensitive_features=sensitive_features, sample_weight=sample_weight)
        return self.transform(X, sensitive_features=sensitive_features)

    def transform(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Return the code of each row: what you may share.  (n, code_size) uint8"""
        method, rows = self._inside(X, sensitive_features)
        return method.transform(rows)

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Return the probability of each class, read off the code; of a random code, averaged over draws."""
        method, rows = self._inside(X, sensitive_features)
        return method.predict_proba(rows)

    def predict(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Return the most probable class of each row."""
        best = self.predict_proba(X, sensitive_features=sensitive_features).argmax(1)
        return self.classes_[best]

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None) -> float:
        """Return the accuracy of `predict`."""
        return accuracy_score(y, self.predict(X, sensitive_features=sensitive_features), sample_weight=sample_weight)

    def decode(self, codes: Any) -> np.ndarray:
        """Return the class probabilities that a recipient reads off codes.  (n, classes)"""
        check_is_fitted(self)
        return self.estimator_[-1].decode(codes)

    def certify(self, X: Any, *, sensitive_features: Any, y: Any = None, **options: Any) -> Certificate:
        """Prove from held-out rows what any recipient can do with the code; options as in `fairbits.certify`."""
        return certify(self, X, sensitive_features=sensitive_features, y=y, **options)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Name the bits: bit0, bit1, ..."""
        check_is_fitted(self)
        return self.estimator_[-1].get_feature_names_out()

    def _inside(self, X: Any, sensitive_features: Any) -> tuple[Any, Any]:
        check_is_fitted(self)
        return fitted_code(self, X, sensitive_features)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        tags.non_deterministic, tags.transformer_tags.preserves_dtype = True, []
        return tags


def seen_again(encoder: Any, X: Any, sensitive_features: Any) -> SeenRows:
    """Return what recognises training rows when they come back: by then, models that have seen them estimate them."""
    known = {"sensitive_features": sensitive_features} if getattr(encoder, "encode_sensitive", False) else {}
    return SeenRows(row_hashes(np.asarray(encoder.transform(X, **known))))
