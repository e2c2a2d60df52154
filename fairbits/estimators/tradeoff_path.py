"""A whole frontier at once: one estimator over many gammas."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import chain
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils.validation import check_is_fitted

from fairbits.encoding import take_rows
from fairbits.errors import InputError
from fairbits.estimators.diagnostics import held_out_scores, stratified_folds
from fairbits.estimators.fitting import OnEpoch, fit_stack
from fairbits.estimators.inputs import new_group_encoder, said_elsewhere
from fairbits.settings import check_settings, setting

GAMMAS = tuple(np.linspace(0, 1, 21).round(2).tolist())


@dataclass(eq=False, repr=False)
class TradeoffPath(MetaEstimatorMixin, BaseEstimator):
    """Fit an estimator for every gamma, and score each on rows it has not seen; all gammas train as one stack.

    Parameters
    ----------
    estimator : a method with a `gamma`, such as `BinaryMIClassifier()`
    gammas : the weights of the penalty; by default 0, 0.05, ..., 1
    cv : folds for the scores, stratified by label and group
    random_state : seed of the folds
    on_epoch : called with (epochs done, epochs at most)

    Attributes
    ----------
    estimators_ : list of fitted estimators, one per gamma, trained on all rows
    scores_ : frame with one row per gamma and fold: what `held_out_scores` returns for the rows left out, unweighted
    """

    estimator: Any
    gammas: Sequence[float] = GAMMAS
    _: KW_ONLY
    cv: int = setting(3, at_least=2, whole=True)
    random_state: Any = 0
    on_epoch: OnEpoch | None = None

    def fit(self, X: Any, y: Any, *, sensitive_features: Any, sample_weight: Any = None) -> Self:
        """Train (cv + 1) models per gamma; arguments as for the estimator's `fit`, sensitive features required."""
        self._check(sensitive_features)
        data = {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
        labels, encoder = np.asarray(y), new_group_encoder(self.estimator.groups)
        with said_elsewhere():
            s = encoder.fit(sensitive_features, n_rows=len(labels)).transform(sensitive_features)
        folds = stratified_folds(labels, s, self.cv, self.random_state)
        estimators, *models = (
            [clone(self.estimator).set_params(gamma=gamma) for gamma in self.gammas] for _ in range(1 + len(folds))
        )
        fit_stack(estimators, X, y, **data, on_epoch=self._half(0))
        rows = [train for train, _ in folds for _ in self.gammas]
        with said_elsewhere():
            fit_stack(list(chain(*models)), X, y, **data, rows=rows, on_epoch=self._half(1))
        self.estimators_ = estimators
        self.scores_ = pd.DataFrame(
            {"gamma": gamma, "fold": fold, **held_out_scores(model, take_rows(X, test), labels[test], s[test])}
            for fold, (_, test) in enumerate(folds)
            for gamma, model in zip(self.gammas, models[fold], strict=True)
        )
        return self

    def _half(self, part: int) -> OnEpoch | None:
        """Return a callback for one of two fits that reports the progress of both."""
        tell = self.on_epoch
        return tell and (lambda done, most: tell(part * most + done, 2 * most))

    def summary(self) -> pd.DataFrame:
        """Return the mean and the standard deviation over folds of every score, one row per gamma."""
        check_is_fitted(self, "scores_")
        return self.scores_.drop(columns="fold").groupby("gamma").agg(["mean", "std"])

    def _check(self, sensitive_features: Any) -> None:
        check_settings(self)
        if "gamma" not in getattr(self.estimator, "stacked_settings", ()):
            raise InputError(
                f"estimator={self.estimator!r} has no gamma to vary; pass a method with one, such as "
                "BinaryMIClassifier(), not a pipeline: encode the table first."
            )
        if not isinstance(self.gammas, (Sequence, np.ndarray)) or not len(self.gammas):
            raise InputError(f"gammas={self.gammas!r} must be a list of the weights to try, such as [0.1, 0.3, 0.5].")
        if sensitive_features is None:
            raise InputError("sensitive_features is None; a trade-off needs the columns to protect.")
