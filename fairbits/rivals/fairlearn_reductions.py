"""fairlearn's ExponentiatedGradient."""

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fairbits.estimators import setting
from fairbits.rivals.adapter import ComparedClassifier, base_learner, both, one_draw, optional_import


@dataclass(kw_only=True, eq=False, repr=False)
class ExponentiatedGradientClassifier(ComparedClassifier):
    """A lottery of classifiers whose groups have nearly the same share of positive predictions.

    Fairlearn's `ExponentiatedGradient` under `DemographicParity`: the most accurate lottery of base learners, each
    fitted to relabelled and reweighted rows, such that every group's rate of positive predictions is within
    `difference_bound` of the rate of all. S is needed in `fit` only.

    What is constrained is the *drawn* label: `predict` and `sampled_proba` draw a base learner for every row.
    `predict_proba` gives its chances, whose larger one may break the constraint. These chances take few different
    values, one for every set of base learners, so their AUC is that of a few decisions, not of a score.

    Parameters
    ----------
    difference_bound : the strength: less is fairer; 1 constrains nothing
    estimator : the base learner, with `fit(X, y, sample_weight)`; by default a logistic regression
    max_iter : most fits of the base learner, and some more for the linear programmes in between
    mixture : what `predict_proba` averages over the lottery: the base learners' "labels", the chances of the drawn
        prediction; or their "probabilities", a finer score that nothing constrains

    The other parameters are those of `ComparedClassifier`.

    References
    ----------
    Agarwal et al. 2018, "A reductions approach to fair classification".
    """

    difference_bound: float = setting(0.01, at_least=0, at_most=1)
    estimator: Any = None
    max_iter: int = setting(50, at_least=1, whole=True)
    mixture: str = setting("labels", one_of=("labels", "probabilities"))

    title: ClassVar[str] = "fairlearn's ExponentiatedGradient"

    def train(self, x: np.ndarray, y: np.ndarray, s: np.ndarray, seed: int) -> None:
        reductions = optional_import("fairlearn.reductions")
        model = reductions.ExponentiatedGradient(
            base_learner(self.estimator, seed),
            reductions.DemographicParity(difference_bound=self.difference_bound),
            max_iter=self.max_iter,
        )
        with warnings.catch_warnings():  # of pandas, about how fairlearn uses it
            warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"fairlearn\.")
            model.fit(x, y, sensitive_features=s)
        self.lottery_ = [(float(w), model.predictors_[i]) for i, w in model.weights_.items() if w > 0]

    def chance(self, x: np.ndarray) -> np.ndarray:
        return self._mean(x, self.mixture)

    def sampled_proba(self, X) -> np.ndarray:
        """Return 1 for the class that a base learner drawn for each row predicts, and 0 for the other.  (n, 2)"""
        return one_draw(both(self._mean(self._rows(X), "labels")), self.random_state)

    def predict(self, X) -> np.ndarray:
        """Draw the class of each row; with an int `random_state` the same at every call."""
        drawn = self.sampled_proba(X).argmax(1)
        return self.classes_[drawn]

    def _mean(self, x: np.ndarray, mixture: str) -> np.ndarray:
        """Return the lottery's mean label, or probability of the second class.  (n,)"""
        values = [p.predict(x) if mixture == "labels" else second_class(p, x) for _, p in self.lottery_]
        weights = np.array([w for w, _ in self.lottery_])
        return weights @ np.array(values) / weights.sum()


def second_class(predictor: Any, x: np.ndarray) -> np.ndarray:
    """Return a predictor's probability of class 1, which it may never have seen.  (n,)"""
    return predictor.predict_proba(x) @ (predictor.classes_ == 1)
