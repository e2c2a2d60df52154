"""A whole frontier at once: one estimator over many gammas or limits."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass
from functools import partial
from itertools import chain
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from fairbits.certificate.released_code import encode_rows
from fairbits.encoding import take_rows
from fairbits.errors import InputError, MissingExtraError
from fairbits.estimators.base import has_path, method_path
from fairbits.estimators.codes import code_disparity, held_out_scores
from fairbits.estimators.fair_code import FairCodeClassifier
from fairbits.estimators.fitting import OnEpoch, fit_stack, fit_steps, stratified_folds
from fairbits.estimators.inputs import new_group_encoder, said_elsewhere
from fairbits.estimators.optimal_front import optimal_front
from fairbits.estimators.posterior import PosteriorEncoder
from fairbits.settings import check_settings, setting

GAMMAS = tuple(np.linspace(0, 1, 21).round(2).tolist())
LIMITS = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0)
FRONT_ROWS = 20_000  # that the optimal front is estimated from, at most


@dataclass(eq=False, repr=False)
class TradeoffPath(MetaEstimatorMixin, BaseEstimator):
    """Fit an estimator for every gamma or limit, and score each on rows it has not seen; all train as one stack.

    Parameters
    ----------
    estimator : a method with a `limit`, such as `FairCodeClassifier()`, or with a `gamma`, such as
        `BinaryMIClassifier()`; or a pipeline that ends in one, such as
        `make_pipeline(TableEncoder(), BinaryMIClassifier())` for a mixed table. Every fold fits its own encoders, once
        for all models
    gammas : the weights of the penalty; None is 0, 0.05, ..., 1
    cv : folds for the scores, stratified by label and group
    random_state : seed of the folds
    on_epoch : called with (epochs done, epochs at most)
    limits : the limits to train to, of a method that has them; None is 0.01, 0.02, ..., 1

    Attributes
    ----------
    estimators_ : list of fitted estimators or pipelines, one per gamma or limit, trained on all rows
    scores_ : frame with one row per gamma or limit and fold: what `held_out_scores` returns for the rows left out,
        unweighted, and of a method with a limit the disparity, the largest of any decision made from the code; with
        `condition_on_label`, among rows of the same label
    front_ : frame of the estimated optimal front (`optimal_front`), disparity, accuracy and auc, for a method with a
        limit on the disparity of a code of a `PosteriorEncoder` that does not see the groups, as that of
        `FairCodeClassifier()`; else None
    """

    estimator: Any
    gammas: Sequence[float] | None = None
    _: KW_ONLY
    cv: int = setting(3, at_least=2, whole=True)
    random_state: Any = 0
    on_epoch: OnEpoch | None = None
    limits: Sequence[float] | None = None

    def fit(self, X: Any, y: Any, *, sensitive_features: Any, sample_weight: Any = None) -> Self:
        """Train (cv + 1) models per gamma or limit; arguments as for the estimator's `fit`, sensitive ones required."""
        *front, (_, method) = self._steps(sensitive_features)
        name, values = self._path(method)
        data = {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
        labels, encoder = np.asarray(y), new_group_encoder(method.groups)
        with said_elsewhere():
            s = encoder.fit(sensitive_features, n_rows=len(labels)).transform(sensitive_features)
        folds = stratified_folds(labels, s, self.cv, self.random_state)
        paths = [[clone(method).set_params(**{name: value}) for value in values] for _ in range(1 + len(folds))]
        fronts: list[list] = [[]] * len(paths)
        self.front_ = None
        if front:
            parts = [np.arange(len(labels)), *(train for train, _ in folds)]
            for place, rows in enumerate(parts):
                fit = partial(fit_stack, paths[place], on_epoch=self._part(place, len(paths)))
                own = {name: take_rows(part, rows) for name, part in data.items()}
                with said_elsewhere() if place else nullcontext():
                    fronts[place], Z = fit_steps(front, take_rows(X, rows), labels[rows], fit, **own)
                if not place:
                    self.front_ = self._estimated_front(fronts[0][-1][1], Z, method, values)
        else:
            fit_stack(paths[0], X, y, **data, on_epoch=self._part(0, 2))
            rows = [train for train, _ in folds for _ in values]
            with said_elsewhere():
                fit_stack(list(chain(*paths[1:])), X, y, **data, rows=rows, on_epoch=self._part(1, 2))
        self.estimators_ = [Pipeline([*fronts[0], ("method", one)]) if front else one for one in paths[0]]
        self.scores_ = pd.DataFrame(
            {name: value, "fold": fold, **_scores(model, rows, labels[test], s[test])}
            for fold, (_, test) in enumerate(folds)
            for rows in [encode_rows(fronts[fold + 1], take_rows(X, test), take_rows(sensitive_features, test))]
            for value, model in zip(values, paths[fold + 1], strict=True)
        )
        return self

    def _estimated_front(self, encoder: Any, Z: Any, method: Any, limits: Sequence[float]) -> pd.DataFrame | None:
        """Return the best accuracy and AUC by disparity, from the estimates of models that have not seen the rows.

        Of several sensitive columns, each on its own, the one that costs most counts: no representation does better.
        """
        of_code = getattr(method, "measure", None) == "disparity" and not method.condition_on_label
        if not (of_code and isinstance(encoder, PosteriorEncoder) and len(encoder.blends_) > 1):
            return None
        rows = check_random_state(self.random_state).permutation(len(Z))[:FRONT_ROWS]
        joints = [encoder.posterior(Z[rows], column=place) for place in range(len(encoder.blends_) - 1)]
        fronts = [optimal_front(joint.sum(2), joint.sum(1), limits, bins=16, starts=1) for joint in joints]
        binding = [min((f.iloc[i] for f in fronts), key=lambda point: point.information) for i in range(len(limits))]
        found = pd.DataFrame(binding).rename(columns={"total_variation": "disparity"})
        found = found[["disparity", "accuracy", "auc"]].sort_values("disparity", ignore_index=True)
        return found.cummax()  # what is within one limit is within every larger one

    def _part(self, part: int, parts: int) -> OnEpoch | None:
        """Return a callback for one of several fits that reports the progress of all."""
        tell = self.on_epoch
        return tell and (lambda done, most: tell(part * most + done, parts * most))

    def summary(self) -> pd.DataFrame:
        """Return the mean and the standard deviation over folds of every score, one row per gamma or limit."""
        check_is_fitted(self, "scores_")
        return self.scores_.drop(columns="fold").groupby(self.scores_.columns[0]).agg(["mean", "std"])

    def plot(self, title: str | None = None) -> Any:
        """Return an altair chart (`fairbits[report]`): accuracy against fairness, and leakage by gamma.

        Of a method with a limit: accuracy against disparity, in front of the estimated optimal front, and the disparity
        by limit.
        """
        check_is_fitted(self, "scores_")
        try:
            from fairbits.estimators.path_chart import path_chart
        except ImportError:
            raise MissingExtraError("TradeoffPath.plot", "report") from None
        last = self.estimator[-1] if isinstance(self.estimator, Pipeline) else self.estimator
        return path_chart(self.scores_, type(last).__name__ if title is None else title, self.front_)

    def _steps(self, sensitive_features: Any) -> list[tuple[str, Any]]:
        """Return the encoders and the method, checked."""
        check_settings(self)
        model = self.estimator.pipeline() if isinstance(self.estimator, FairCodeClassifier) else self.estimator
        steps = model.steps if isinstance(model, Pipeline) else [("method", model)]
        if not has_path(steps[-1][1]):
            problem = f"estimator={self.estimator!r} has no gamma and no limit to vary."
            raise InputError(problem, remedy="Pass a method with one, such as FairCodeClassifier().")
        if sensitive_features is None:
            raise InputError("sensitive_features is None; a trade-off needs the columns to protect.")
        return [(name, step) for name, step in steps if not isinstance(step, str)]  # no "passthrough"

    def _path(self, method: Any) -> tuple[str, Any]:
        """Return what the models differ in, and its values."""
        name = method_path(method)
        other = "gamma" if name == "limit" else "limit"
        if (unused := getattr(self, f"{other}s")) is not None:
            problem = f"{type(method).__name__} has a {name} to vary, and no {other}."
            raise InputError(problem, argument=f"{other}s", value=unused, remedy=f"Pass {name}s.")
        values = getattr(self, f"{name}s")
        if values is None:
            values = LIMITS if name == "limit" else GAMMAS
        if not isinstance(values, (Sequence, np.ndarray)) or not len(values):
            remedy = "Pass a list of those to try, such as [0.1, 0.3, 0.5]."
            raise InputError(f"There are no {name}s to try.", argument=f"{name}s", value=values, remedy=remedy)
        return name, values


def _scores(model: Any, X: Any, y: np.ndarray, s: np.ndarray) -> dict[str, float]:
    """Return the held-out scores, and of a code with a limit its disparity."""
    scores = held_out_scores(model, X, y, s)
    if method_path(model) == "limit":
        labels = y if model.condition_on_label else None
        scores["disparity"] = code_disparity(model.code_probabilities(X), s, labels)
    return scores
