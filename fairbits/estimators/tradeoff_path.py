"""A whole frontier at once: one estimator over many gammas."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass
from itertools import chain
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from fairbits.certificate.released_code import encode_rows
from fairbits.encoding import take_rows
from fairbits.errors import InputError, MissingExtraError
from fairbits.estimators.codes import held_out_scores
from fairbits.estimators.fitting import OnEpoch, fit_stack, stratified_folds
from fairbits.estimators.inputs import new_group_encoder, said_elsewhere
from fairbits.settings import check_settings, setting

GAMMAS = tuple(np.linspace(0, 1, 21).round(2).tolist())


@dataclass(eq=False, repr=False)
class TradeoffPath(MetaEstimatorMixin, BaseEstimator):
    """Fit an estimator for every gamma, and score each on rows it has not seen; all gammas train as one stack.

    Parameters
    ----------
    estimator : a method with a `gamma`, such as `BinaryMIClassifier()`, or a pipeline that ends in one, such as
        `make_pipeline(TableEncoder(), BinaryMIClassifier())` for a mixed table; every fold fits its own encoders
    gammas : the weights of the penalty; by default 0, 0.05, ..., 1
    cv : folds for the scores, stratified by label and group
    random_state : seed of the folds
    on_epoch : called with (epochs done, epochs at most)

    Attributes
    ----------
    estimators_ : list of fitted estimators or pipelines, one per gamma, trained on all rows
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
        *front, (_, method) = self._steps(sensitive_features)
        data = {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
        labels, encoder = np.asarray(y), new_group_encoder(method.groups)
        with said_elsewhere():
            s = encoder.fit(sensitive_features, n_rows=len(labels)).transform(sensitive_features)
        folds = stratified_folds(labels, s, self.cv, self.random_state)
        paths = [[clone(method).set_params(gamma=gamma) for gamma in self.gammas] for _ in range(1 + len(folds))]
        if front:
            parts = [np.arange(len(labels)), *(train for train, _ in folds)]
            fronts = [self._train(front, paths, place, X, labels, data, rows) for place, rows in enumerate(parts)]
        else:
            fronts = [[]] * len(paths)
            fit_stack(paths[0], X, y, **data, on_epoch=self._part(0, 2))
            rows = [train for train, _ in folds for _ in self.gammas]
            with said_elsewhere():
                fit_stack(list(chain(*paths[1:])), X, y, **data, rows=rows, on_epoch=self._part(1, 2))
        self.estimators_ = [Pipeline([*fronts[0], ("method", one)]) if front else one for one in paths[0]]
        self.scores_ = pd.DataFrame(
            {"gamma": gamma, "fold": fold, **held_out_scores(model, rows, labels[test], s[test])}
            for fold, (_, test) in enumerate(folds)
            for rows in [encode_rows(fronts[fold + 1], take_rows(X, test), take_rows(sensitive_features, test))]
            for gamma, model in zip(self.gammas, paths[fold + 1], strict=True)
        )
        return self

    def _train(
        self, front: list, paths: list[list], place: int, X: Any, y: np.ndarray, data: dict[str, Any], rows: np.ndarray
    ) -> list[tuple[str, Any]]:
        """Fit encoders and the models of one place to some rows; return the encoders."""
        fitted, own = [], {name: take_rows(values, rows) for name, values in data.items()}
        Z = take_rows(X, rows)
        with said_elsewhere() if place else nullcontext():
            for name, step in front:
                known = has_fit_parameter(step, "sensitive_features")
                fitted.append((name, encoder := clone(step)))
                named = {"sensitive_features": own["sensitive_features"]} if known else {}
                Z = encoder.fit_transform(Z, y[rows], **named)
            fit_stack(paths[place], Z, y[rows], **own, on_epoch=self._part(place, len(paths)))
        return fitted

    def _part(self, part: int, parts: int) -> OnEpoch | None:
        """Return a callback for one of several fits that reports the progress of all."""
        tell = self.on_epoch
        return tell and (lambda done, most: tell(part * most + done, parts * most))

    def summary(self) -> pd.DataFrame:
        """Return the mean and the standard deviation over folds of every score, one row per gamma."""
        check_is_fitted(self, "scores_")
        return self.scores_.drop(columns="fold").groupby("gamma").agg(["mean", "std"])

    def plot(self, title: str | None = None) -> Any:
        """Return an altair chart of accuracy against fairness, and of the leakage by gamma (`fairbits[report]`)."""
        check_is_fitted(self, "scores_")
        try:
            from fairbits.estimators.path_chart import path_chart
        except ImportError:
            raise MissingExtraError("TradeoffPath.plot", "report") from None
        last = self.estimator[-1] if isinstance(self.estimator, Pipeline) else self.estimator
        return path_chart(self.scores_, type(last).__name__ if title is None else title)

    def _steps(self, sensitive_features: Any) -> list[tuple[str, Any]]:
        """Return the encoders and the method, checked."""
        check_settings(self)
        steps = self.estimator.steps if isinstance(self.estimator, Pipeline) else [("method", self.estimator)]
        if "gamma" not in getattr(steps[-1][1], "stacked_settings", ()):
            problem = f"estimator={self.estimator!r} has no gamma to vary."
            raise InputError(problem, remedy="Pass a method with one, such as BinaryMIClassifier().")
        if not isinstance(self.gammas, (Sequence, np.ndarray)) or not len(self.gammas):
            raise InputError(f"gammas={self.gammas!r} must be a list of the weights to try, such as [0.1, 0.3, 0.5].")
        if sensitive_features is None:
            raise InputError("sensitive_features is None; a trade-off needs the columns to protect.")
        return [(name, step) for name, step in steps if not isinstance(step, str)]  # no "passthrough"
