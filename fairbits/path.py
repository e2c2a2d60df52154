"""A whole frontier at once: one estimator over many gammas."""

import warnings
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold

from fairbits.estimators.fitting import fit_stack
from fairbits.metrics import discrimination, discrimination_curve_area, group_pairwise_accuracy_gap

GAMMAS = tuple(np.linspace(0, 1, 21).round(2).tolist())


class TradeoffPath(MetaEstimatorMixin, BaseEstimator):
    """Fit an estimator for every gamma, and score each on rows it has not seen; all gammas train as one stack.

    Parameters
    ----------
    estimator : a method with a `gamma`, such as `BinaryMIClassifier()`
    gammas : the weights of the penalty; by default 0, 0.05, ..., 1
    cv : folds for the scores, stratified by label and group
    random_state : seed of the folds

    Attributes
    ----------
    estimators_ : list of fitted estimators, one per gamma, trained on all rows
    scores_ : frame with one row per gamma and fold: what `held_out_scores` returns for the rows left out
    """

    def __init__(self, estimator: Any, gammas: Sequence[float] = GAMMAS, *, cv: int = 3, random_state: Any = 0):
        self.estimator, self.gammas, self.cv, self.random_state = estimator, gammas, cv, random_state

    def fit(self, X, y, *, sensitive_features, sample_weight=None, on_epoch=None):
        """Train (cv + 1) models per gamma; arguments as for the estimator's `fit`, sensitive features required."""
        self._check()
        data = {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
        table = {"X": np.asarray(X), "y": np.asarray(y)}
        self.estimators_ = self._models()
        fit_stack(self.estimators_, X, y, **data, on_epoch=_part(on_epoch, 0, 2))
        s = self.estimators_[0].group_encoder_.transform(sensitive_features)
        folds = stratified_folds(table["y"], s, self.cv, self.random_state)
        models = [self._models() for _ in folds]
        rows = [train for train, _ in folds for _ in self.gammas]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # said once, of all rows
            fit_stack(list(chain(*models)), X, y, **data, rows=rows, on_epoch=_part(on_epoch, 1, 2))
        self.scores_ = pd.DataFrame(
            {"gamma": gamma, "fold": fold, **held_out_scores(model, table["X"][test], table["y"][test], s[test])}
            for fold, (_, test) in enumerate(folds)
            for gamma, model in zip(self.gammas, models[fold], strict=True)
        )
        return self

    def _models(self) -> list[Any]:
        return [clone(self.estimator).set_params(gamma=gamma) for gamma in self.gammas]

    def summary(self) -> pd.DataFrame:
        """Return the mean and the standard deviation over folds of every score, one row per gamma."""
        return self.scores_.drop(columns="fold").groupby("gamma").agg(["mean", "std"])

    def _check(self) -> None:
        if "gamma" not in getattr(self.estimator, "stacked_settings", ()):
            raise ValueError(
                f"estimator={self.estimator!r} has no gamma to vary; pass a method with one, such as "
                "BinaryMIClassifier(), not a pipeline: encode the table first."
            )
        if not len(self.gammas):
            raise ValueError("gammas is empty; pass the weights to try, for example [0.1, 0.3, 0.5].")
        if self.cv < 2:
            raise ValueError(f"cv={self.cv!r} must be at least 2 folds.")


def _part(on_epoch, part: int, parts: int):
    """Return a callback for one of several fits that reports the progress of all of them."""
    return on_epoch and (lambda done, most: on_epoch(part * most + done, parts * most))


def stratified_folds(y: np.ndarray, s: np.ndarray, n_folds: int, random_state: Any) -> list:
    """Return (training rows, test rows) of folds in which every (label, group) cell has its share."""
    cells = np.unique(np.column_stack([np.unique(y, return_inverse=True)[1], s]), axis=0, return_inverse=True)[1]
    return list(StratifiedKFold(n_folds, shuffle=True, random_state=random_state).split(cells, cells.ravel()))


def held_out_scores(model: Any, X: np.ndarray, y: np.ndarray, s: np.ndarray) -> dict[str, float]:
    """Return the scores of a fitted estimator on rows X; s (n, columns) are group numbers, the worst column counts.

    auc, accuracy: more is better; gpa, audc, discrimination: less. A method with a code also gets the scores of the
    prediction from one drawn code (one_draw_...) and the information of one draw, in bits: less is better.
    """
    scores = prediction_scores(model.predict_proba(X), model.classes_, y, s)
    if hasattr(model, "decode"):
        drawn = prediction_scores(model.decode(model.transform(X)), model.classes_, y, s)
        scores |= {f"one_draw_{name}": value for name, value in drawn.items()}
        scores["information"] = model.group_information(X, s)
    return scores


def prediction_scores(probabilities: np.ndarray, classes: np.ndarray, y: np.ndarray, s: np.ndarray) -> dict[str, float]:
    """Return AUC, accuracy, GPA, AUDC and yDiscrim of predicted probabilities (n, classes)."""
    score = probabilities[:, 1] if probabilities.shape[1] == 2 else probabilities
    labels = classes[probabilities.argmax(1)]
    return {
        "auc": float(roc_auc_score(y, score, multi_class="ovr")),
        "accuracy": float(accuracy_score(y, labels)),
        "gpa": max(group_pairwise_accuracy_gap(y, score, sensitive_features=column) for column in s.T),
        "audc": max(discrimination_curve_area(score, sensitive_features=column) for column in s.T),
        "discrimination": max(discrimination(labels, sensitive_features=column) for column in s.T),
    }
