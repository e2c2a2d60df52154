"""A coarse code: few cells that keep what the code says about the label, for codes too wide to certify."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from fairbits.certificate.releasing import fitted_code
from fairbits.errors import InputError


@dataclass(frozen=True)
class CoarseCode:
    """Codes (n, m) to the numbers of their cells (n,): the centre nearest to the head's class probabilities."""

    estimator: Any
    centres: np.ndarray  # (cells, classes)

    def __call__(self, codes: np.ndarray) -> np.ndarray:
        distance = self.estimator.decode(codes)[:, None, :] - self.centres
        return (distance**2).sum(-1).argmin(1)


def fit_coarse_code(estimator: Any, X_train: Any, n_cells: int) -> CoarseCode:
    """Cluster what the head makes of training codes into cells, to release those instead of the code.

    ``estimator.draw(X, coarse=cells)`` draws them and ``certify(..., coarse=cells)`` certifies them: with few
    cells the bound is tight even where the code itself has far more words than there are rows. The rows must be
    training rows, not those that certify.

    Parameters
    ----------
    estimator : fitted, with a code, also at the end of a pipeline
    X_train : rows it was trained on
    n_cells : at least 2
    """
    if not (isinstance(n_cells, int) and n_cells >= 2):
        raise InputError(f"n_cells={n_cells!r} must be a whole number of at least 2.")
    estimator, X_train = fitted_code(estimator, X_train)
    theta = estimator.code_probabilities(X_train)
    codes = np.random.default_rng(0).random(theta.shape) < theta
    points, counts = np.unique(estimator.decode(codes), axis=0, return_counts=True)
    if len(points) < n_cells:
        problem = f"n_cells={n_cells}, but the training rows have only {len(points)} different codes; ask for fewer."
        raise InputError(problem)
    centres = KMeans(n_cells, n_init=4, random_state=0).fit(points, sample_weight=counts).cluster_centers_
    return CoarseCode(estimator, centres[centres[:, -1].argsort()])
