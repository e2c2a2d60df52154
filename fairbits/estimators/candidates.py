"""Any classifiers as candidates for a certified decision: fitted once, and asked once for every row."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import Pipeline

from fairbits.certificate.released_code import last_step
from fairbits.encoding import GroupEncoder, take_rows
from fairbits.estimators.codes import sensitive_keyword

FOLDS = 3  # in which training rows are decided by models that have not seen them


@dataclass(frozen=True, eq=False)
class Decision:
    """A candidate, on rows that hold the decisions of all candidates: decisions that are drawn are drawn once."""

    model: Any  # fitted
    candidate: str  # in words
    place: int  # its column
    classes_: np.ndarray
    group_encoder_: GroupEncoder

    is_hard: ClassVar[bool] = True
    stacked_settings: ClassVar[tuple[str, ...]] = ("candidate",)  # in which the models differ

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the decisions of this candidate."""
        return X[:, self.place]


def in_words(model: Any) -> str:
    """Return the last step of a model and its settings in a line."""
    return " ".join(repr(model[-1] if isinstance(model, Pipeline) else model).split())


def fitted_once(model: Any, X: Any, y: np.ndarray, s: Any) -> Any:
    """Fit a copy of a classifier; the sensitive features go to those of its steps whose `fit` takes them."""
    steps = model.steps if isinstance(model, Pipeline) else [("", model)]
    known = {name: sensitive_keyword(getattr(step, "fit", None), s) for name, step in steps}
    told = {f"{name}__sensitive_features".removeprefix("__"): s for name, takes in known.items() if takes}
    return clone(model).fit(X, y, **told)


def out_of_fold(model: Any, random_state: Any, X: Any, y: np.ndarray, s: Any) -> np.ndarray:
    """Return the decisions about training rows of copies that were fitted to the other folds.  (n,)"""
    found = y.copy()
    for fit, rest in StratifiedKFold(FOLDS, shuffle=True, random_state=random_state).split(y, y):
        fold = fitted_once(model, take_rows(X, fit), y[fit], take_rows(s, fit))
        found[rest] = decisions(fold, take_rows(X, rest), take_rows(s, rest))
    return found


def decisions(model: Any, X: Any, s: Any) -> np.ndarray:
    """Return the classes that a fitted classifier, or a pipeline that ends in one, predicts.  (n,)"""
    method, rows = last_step(model, X, s)
    return np.asarray(method.predict(rows, **sensitive_keyword(method.predict, s)))
