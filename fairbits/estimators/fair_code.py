"""The estimator to start with: a mixed table in, a few bits per row out, within a limit on what they reveal."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from fairbits.certificate.released_code import encode_rows
from fairbits.encoding import GroupEncoder, SeenRows, row_hashes
from fairbits.estimators.codes import FittedCodeMixin
from fairbits.estimators.exact_code import ExactCodeClassifier
from fairbits.estimators.fitting import fit_steps
from fairbits.estimators.inputs import copy_feature_names, read_labels
from fairbits.estimators.linear_code import LinearCodeClassifier
from fairbits.estimators.posterior import PosteriorEncoder


@dataclass(eq=False, repr=False)
class FairCodeClassifier(FittedCodeMixin, BaseEstimator):
    """Turn each row into a few bits that predict the label and reveal little about the sensitive columns.

    Boosted trees and logistic regression estimate p(y,s|x), and no code of x can do better than one of these numbers
    (`PosteriorEncoder`). A hard code gives each row the word with the highest score, linear in them, which is the form
    of the best code (`LinearCodeClassifier`). The bits of a random code, or of an encoder that sees the groups, come
    from a small network (`ExactCodeClassifier`). Both are trained on the exact information about the label, within a
    limit on the disparity of any decision made from the code. `predict` reads the class off the code alone.

    Training aims at the limit on its own rows. `CertifiedClassifier` proves one on rows that were kept apart.

    Parameters
    ----------
    limit : on the disparity, the largest difference between two groups in how often they get a decision, 0 to 1
    code_size : bits per row, at most 10; None is 4 for words with linear scores and 6 for bits of a network
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
    ((400, 4), True)
    """

    limit: float = 0.05
    _: KW_ONLY
    code_size: int | None = None
    condition_on_label: bool = False
    release: str = "hard"
    estimators: Any = "default"
    encode_sensitive: bool = False
    groups: str | GroupEncoder = "intersection"
    random_state: Any = None

    def pipeline(self) -> Pipeline:
        """Return the encoder and the method with these settings, not fitted."""
        told = {name: getattr(self, name) for name in ("estimators", "encode_sensitive", "groups")}
        names = ("limit", "condition_on_label", "groups", "random_state")
        shared = {name: getattr(self, name) for name in names}
        shared |= {} if self.code_size is None else {"code_size": self.code_size}
        if self.release == "hard" and not self.encode_sensitive:
            encoder, method = PosteriorEncoder(features="probabilities", **told), LinearCodeClassifier(**shared)
        else:
            encoder, method = PosteriorEncoder(**told), ExactCodeClassifier(release=self.release, **shared)
        return Pipeline([("posterior", encoder), ("code", method)])

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
        *front, (name, method) = self.pipeline().steps
        front, _ = fit_steps(front, X, labels, method.fit, **given)
        # Rows that come back are estimated by models that have seen them.
        method.training_rows_ = SeenRows(row_hashes(np.asarray(encode_rows(front, X, sensitive_features))))
        self.estimator_, self.classes_ = Pipeline([*front, (name, method)]), method.classes_
        copy_feature_names(self, self.estimator_[0])
        return self

    def fit_transform(self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fit, and return the code of each row.  (n, code_size) uint8"""
        self.fit(X, y, sensitive_features=sensitive_features, sample_weight=sample_weight)
        return self.transform(X, sensitive_features=sensitive_features)

    def decode(self, codes: Any) -> np.ndarray:
        """Return the class probabilities that a recipient reads off codes.  (n, classes)"""
        check_is_fitted(self)
        return self.estimator_[-1].decode(codes)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        tags.non_deterministic = True
        return tags
