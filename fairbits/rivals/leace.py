"""LEACE: columns from which no linear model can predict the groups."""

from typing import Any, ClassVar

import numpy as np

from fairbits.rivals.compared import ComparedClassifier, base_learner
from fairbits.settings import setting

COLLINEAR = 1e-9  # of the largest eigenvalue: directions of less variance are left alone
FAINT = 1e-6  # correlation with the groups below which a direction is left alone


class LeaceClassifier(ComparedClassifier):
    """Erase what is linear in the groups, and predict from the rest (LEACE, Belrose et al. 2023).

    x -> x - share W^+ P W (x - E[x]), with W the inverse square root of the covariance of x and P the projection onto
    the columns of W Cov(x, S). With a share of 1 all groups have the same mean, so no linear model of x beats a
    constant at predicting S, and no smaller change of x (in mean square) does that. What is not linear stays.

    Parameters
    ----------
    share : of what is erased; 1 is the published method
    estimator : predicts from the erased columns; by default a logistic regression

    The other parameters are those of `ComparedClassifier`.
    """

    share: float = setting(1.0, at_least=0, at_most=1)
    estimator: Any = None

    title: ClassVar[str] = "LEACE"

    def train(self, x: np.ndarray, y: np.ndarray, s: np.ndarray, seed: int) -> None:
        self.mean_, groups = x.mean(0), np.eye(s.max() + 1)[s]
        self.erased_ = eraser(x - self.mean_, groups - groups.mean(0))
        self.model_ = base_learner(self.estimator, seed).fit(self.erase(x), y)

    def erase(self, x: np.ndarray) -> np.ndarray:
        """Return rows without what is linear in the groups.  (n, features)"""
        return x - self.share * (x - self.mean_) @ self.erased_.T

    def transform(self, X: Any) -> np.ndarray:
        """Return the erased columns: what this method would share."""
        return self.erase(self.read_rows(X))

    def chance(self, x: np.ndarray) -> np.ndarray:
        return self.model_.predict_proba(self.erase(x))[:, 1]


def eraser(x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return the matrix W^+ P W of centred columns x (n, d) and centred groups z (n, K).

    >>> x = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, -1.0], [0.0, 1.0]])
    >>> eraser(x, x[:, :1]).round(3) + 0.0
    array([[1., 0.],
           [0., 0.]])
    """
    values, vectors = np.linalg.eigh(x.T @ x / len(x))
    kept = values > COLLINEAR * values.max()
    root, vectors = np.sqrt(values[kept]), vectors[:, kept]
    whiten, colour = (vectors / root).T, vectors * root  # of the directions that vary
    left, lengths, _ = np.linalg.svd(whiten @ (x.T @ z) / len(x), full_matrices=False)
    left = left[:, lengths > FAINT]
    return colour @ left @ left.T @ whiten
