"""fairlearn's ThresholdOptimizer."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import accuracy_score

from fairbits.errors import InputError
from fairbits.estimators import setting
from fairbits.rivals.adapter import ComparedClassifier, base_learner, both, one_draw, optional_import


@dataclass(kw_only=True, eq=False, repr=False)
class ThresholdOptimizerClassifier(ComparedClassifier):
    """Thresholds of its own for every group, such that all have nearly the same share of positive predictions.

    Fairlearn's `ThresholdOptimizer` under demographic parity: the base learner is fitted without regard to the groups,
    then each group gets the thresholds on its scores, and the chance to use the one or the other, that together are the
    most accurate with rates of positive predictions at most `tol` apart.

    **It is told the group of every row it predicts**, which our methods never are: `predict_proba`, `predict` and
    `score` need `sensitive_features`. With tol 1 it is not the base learner, but uses the groups for accuracy alone.

    What is constrained is the *drawn* label: `predict` and `sampled_proba` draw it, `predict_proba` gives the chances,
    which take at most three values in each group: their AUC is that of a decision, not of a score.

    Parameters
    ----------
    tol : the strength: less is fairer; 1 constrains nothing
    estimator : the base learner, with `predict_proba`; by default a logistic regression. It and the thresholds are
        fitted to the same rows, so one that overfits gets poor thresholds

    The other parameters are those of `ComparedClassifier`.

    References
    ----------
    Hardt, Price and Srebro 2016, "Equality of opportunity in supervised learning".
    """

    tol: float = setting(0.0, at_least=0, at_most=1)
    estimator: Any = None

    title: ClassVar[str] = "fairlearn's ThresholdOptimizer"
    groups_at_prediction: ClassVar[bool] = True

    def train(self, x: np.ndarray, y: np.ndarray, s: np.ndarray, seed: int) -> None:
        self.optimizer_ = optional_import("fairlearn.postprocessing").ThresholdOptimizer(
            estimator=base_learner(self.estimator, seed), predict_method="predict_proba", tol=self.tol
        )
        self.optimizer_.fit(x, y, sensitive_features=s)

    def predict_proba(self, X, *, sensitive_features=None) -> np.ndarray:
        """Return the chance of each class of `classes_`, one row per row of X, whose groups must be told."""
        x = self._rows(X)
        if sensitive_features is None:
            raise InputError(f"sensitive_features is None; {self.title} must be told the group of every row.")
        groups = self.group_encoder_.transform(sensitive_features, n_rows=len(x))[:, 0]
        scores = self.optimizer_.estimator_.predict_proba(x)[:, 1]
        chance = np.zeros(len(x))
        for group, rule in self.optimizer_.interpolated_thresholder_.interpolation_dict.items():
            own = groups == group
            chance[own] = rule.p0 * rule.operation0(scores[own]) + rule.p1 * rule.operation1(scores[own])
        return both(chance)

    def sampled_proba(self, X, *, sensitive_features=None) -> np.ndarray:
        """Return 1 for the class drawn for each row, and 0 for the other.  (n, 2)"""
        return one_draw(self.predict_proba(X, sensitive_features=sensitive_features), self.random_state)

    def predict(self, X, *, sensitive_features=None) -> np.ndarray:
        """Draw the class of each row, whose groups must be told; with an int `random_state` the same at every call."""
        drawn = self.sampled_proba(X, sensitive_features=sensitive_features).argmax(1)
        return self.classes_[drawn]

    def score(self, X, y, sample_weight=None, *, sensitive_features=None) -> float:
        """Return the accuracy of one draw for each row, whose groups must be told."""
        drawn = self.predict(X, sensitive_features=sensitive_features)
        return float(accuracy_score(y, drawn, sample_weight=sample_weight))
