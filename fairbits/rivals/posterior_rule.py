"""What the rules on estimated posteriors share: fitting p(y,s|x), and reading rows, labels and groups."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fairbits.encoding import GroupEncoder
from fairbits.errors import InputError
from fairbits.estimators.base import SettingsClassifier
from fairbits.estimators.fitting import fit_seed
from fairbits.estimators.inputs import new_group_encoder, number_classes
from fairbits.estimators.posterior import PosteriorEncoder
from fairbits.settings import check_settings, setting


class PosteriorRule(SettingsClassifier):
    """Base of the rules; a rule is chosen (`choose`) by the training rows' posteriors, estimated out of fold.

    Parameters
    ----------
    limit : largest disparity that the rule may have on the training rows
    estimators, cv : as in `PosteriorEncoder`; or "given" if X is what a `PosteriorEncoder(features="probabilities")`
        returned, which rules with many limits can share
    groups : several sensitive columns form their "intersection"; or a `GroupEncoder` of intersections
    random_state : seed of the folds; None takes a fresh one from the operating system
    """

    limit: float = setting(0.05, at_least=0, at_most=1)
    estimators: Any = "default"
    cv: int = setting(5, at_least=2, whole=True)
    groups: str | GroupEncoder = "intersection"
    random_state: Any = None

    def choose(self, joint: np.ndarray, y: np.ndarray, s: np.ndarray) -> None:
        """Choose the rule by rows with posteriors p(y,s|x) (n, C, K), labels and groups as numbers (n,)."""
        raise NotImplementedError(f"{type(self).__name__} does not define how it chooses.")

    def first_within(self, candidates: Iterable[tuple[Any, float]]) -> Any:
        """Return the first candidate of a disparity within the limit, or else the one that comes closest."""
        best, least = None, np.inf
        for candidate, disparity in candidates:
            if disparity < least:
                best, least = candidate, disparity
            if disparity <= self.limit:
                break
        return best

    def fit(self, X: Any, y: Any, *, sensitive_features: Any) -> Self:
        """Fit to rows X with labels y.

        Parameters
        ----------
        X : (n, features) table, mixed or of numbers; or the estimates, if they are given
        y : (n,) labels
        sensitive_features : one or several columns (array, pandas, polars); needed here only, never for predictions
        """
        check_settings(self)
        self.check_labels(np.unique(np.asarray(y)))
        if self.estimators == "given":
            self.encoder_, self.n_features_in_ = None, np.shape(X)[1]
            self.classes_, labels = number_classes(np.asarray(y))
            self.group_encoder_ = new_group_encoder(self.groups).fit(sensitive_features, n_rows=len(X))
            joint = self._given(X)
        else:
            seed = fit_seed(self.random_state)
            encoder = PosteriorEncoder(
                self.estimators, cv=self.cv, columns=False, groups=self.groups, random_state=seed
            )
            joint = encoder.posterior(encoder.fit_transform(X, y, sensitive_features=sensitive_features))
            labels = np.searchsorted(encoder.classes_, np.asarray(y))
            self.encoder_, self.group_encoder_ = encoder, encoder.group_encoder_
            self.classes_, self.n_features_in_ = encoder.classes_, encoder.n_features_in_
        if len(self.group_encoder_.names_) > 1:
            problem = f"{type(self).__name__} takes the intersections of several sensitive columns."
            raise InputError(problem, remedy="Use groups='intersection', or pass one column.")
        self.choose(joint, labels, self.group_encoder_.transform(sensitive_features)[:, 0])
        return self

    def check_labels(self, classes: np.ndarray) -> None:
        """Raise if the rule cannot predict these classes; the encoder sees to it that there are two."""

    def posterior(self, X: Any) -> np.ndarray:
        """Return the estimates of p(y,s|x): for audits, not for release.  (n, C, K)"""
        check_is_fitted(self, "encoder_")
        return self._given(X) if self.encoder_ is None else self.encoder_.posterior(self.encoder_.transform(X))

    def _given(self, X: Any) -> np.ndarray:
        """Return p(y,s|x) of an encoder's probabilities.  (n, C, K)"""
        shape, found = (len(self.classes_), len(self.group_encoder_.names_[0])), np.shape(X)[1]
        if found != shape[0] * shape[1]:
            problem = f"X has {found} columns; p(y,s|x) of {shape[0]} labels and {shape[1]} groups"
            raise InputError(f"{problem} has {shape[0] * shape[1]}.", remedy="Leave estimators='default' for a table.")
        return np.asarray(X, dtype=np.float64).reshape(-1, *shape)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags
