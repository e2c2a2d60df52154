"""Look at fitted models: scores on rows held out, a warning where fairness got worse, and a whole path of gammas."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import chain
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.validation import check_is_fitted

from fairbits.encoding import take_rows
from fairbits.errors import InputError, InputWarning
from fairbits.estimators.fitting import OnEpoch, fit_stack, number_cells
from fairbits.estimators.inputs import new_group_encoder, said_elsewhere
from fairbits.information.sampling import code_information
from fairbits.metrics.gaps import prediction_scores
from fairbits.settings import check_settings, setting

GAMMAS = tuple(np.linspace(0, 1, 21).round(2).tolist())


class LessFairWarning(InputWarning):
    """The model is less fair than one without protection."""


def held_out_scores(model: Any, X: Any, y: np.ndarray, s: np.ndarray, codes: Any = None) -> dict[str, float]:
    """Return the scores of a fitted estimator on rows X; s (n, columns) are group numbers, the worst column counts.

    auc, accuracy: more is better; gpa, audc, discrimination: less. A method with a code also gets the scores of the
    prediction from one drawn code (one_draw_..., of `codes` or fresh ones) and the information of one draw, in bits:
    less is better. A rival whose labels are drawn gets the scores of one draw, too.

    Our methods predict without s. A rival that cannot (`groups_at_prediction`, see `fairbits.rivals`) gets s and must
    have been fitted to the same numbers.
    """
    known = {"sensitive_features": s} if getattr(model, "groups_at_prediction", False) else {}
    scores = prediction_scores(model.predict_proba(X, **known), model.classes_, y, s)
    if hasattr(model, "sampled_proba") and not getattr(model, "is_hard", False):
        shown = model.sampled_proba(X, **known) if codes is None else model.decode(codes)
        drawn = prediction_scores(shown, model.classes_, y, s)
        scores |= {f"one_draw_{name}": value for name, value in drawn.items()}
    if hasattr(model, "decode"):
        theta = model.code_probabilities(X)
        scores["information"] = code_information(theta, s)
        if model.condition_on_label:
            scores["information_within_labels"] = code_information(theta, s, y)
    return scores


def stratified_folds(y: np.ndarray, s: np.ndarray, n_folds: int, random_state: Any) -> list:
    """Return (training rows, test rows) of folds in which every (label, group) cell has its share."""
    cells = number_cells(np.unique(y, return_inverse=True)[1], s)
    sizes = np.bincount(cells)[cells]
    row = int(sizes.argmin())
    if sizes[row] < n_folds:
        raise InputError(
            f"{n_folds} folds need as many rows of every label in every group; the cell of row {row} has {sizes[row]} "
            f"(label {y[row]}). Use fewer folds, or merge groups or labels."
        )
    return list(StratifiedKFold(n_folds, shuffle=True, random_state=random_state).split(cells, cells))


def worse_than_unmitigated(scores: dict[str, float], plain: dict[str, float], groups: np.ndarray) -> list[Warning]:
    """Return a warning if a fairness score (less is better) is clearly larger than that of an unmitigated model.

    Groups (n, columns) are numbered. Clearly: by more than 1.6 standard errors of a difference of two rates, at their
    largest variance and for the smallest groups; a rule of thumb, not a test.
    """
    smallest = min(np.sort(np.unique(column, return_counts=True)[1])[:2].tolist() for column in groups.T)
    margin = 1.645 * 0.5 * float(np.sqrt(np.sum(1 / np.array(smallest))))
    worse = [
        f"{name} {scores[name]:.3f} against {plain[name]:.3f}"
        for name in ("gpa", "audc", "discrimination")
        if name in plain and scores[name] > plain[name] + margin
    ]
    problem = f"The predictions are less fair than those of a model without protection: {', '.join(worse)}."
    remedy = "Try another gamma, more epochs or another seed, and compare again."
    return [LessFairWarning(problem, remedy=remedy)] if worse else []


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
