"""Classifiers that estimate p(y|x), and p(s|x,y) for every label y, as log-ratios."""

from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import has_fit_parameter

from fairbits.encoding.columns import as_frame
from fairbits.errors import InputError

SMALLEST = 1e-6  # probability, before its logarithm is taken


class Learner(NamedTuple):
    """A classifier and the form in which it sees the rows: as "numbers", as "levels" for trees, or as they are."""

    name: str
    classifier: Any
    sees: str = "rows"

    @property
    def is_frozen(self) -> bool:
        """Whether somebody else has fitted the classifier, to the label."""
        return isinstance(self.classifier, FrozenEstimator)

    def fitted(self, n_classes: int, rows: Any, targets: np.ndarray, weight: Any) -> list[Any]:
        """Return a classifier of the label, and for each sensitive column one of the group, which also sees the label.

        Targets (n, 1 + columns) are the numbers of labels and groups.
        """
        if self.is_frozen:
            return [self.classifier]
        if any(len(np.unique(target)) < 2 for target in targets.T):
            problem = "One of the folds has all rows but those of one class, or of one group."
            raise InputError(problem, remedy="Merge rare classes and groups, or pass more rows of them.")
        weighs = weight is not None and has_fit_parameter(self.classifier, "sample_weight")
        options = {"sample_weight": weight} if weighs else {}
        label, *groups = targets.T
        models = [clone(self.classifier).fit(rows, label, **options)]
        if groups:
            informed = beside(rows, np.eye(n_classes)[label, 1:], "label")
            models += [clone(self.classifier).fit(informed, group, **options) for group in groups]
        return models

    def log_ratios(self, models: list[Any], rows: Any, classes: np.ndarray, groups: list[list[str]]) -> np.ndarray:
        """Return log p / p of the first, of the classes and then of each column's groups, given each label."""
        of_label, *of_groups = models
        known = of_label.classes_  # numbers of the classes, unless somebody else fitted it
        if self.is_frozen:
            unknown = [label for label in known.tolist() if label not in classes.tolist()]
            if unknown:
                problem = f"The FrozenEstimator knows the class {unknown[0]!r}, which y does not have."
                raise InputError(problem, remedy="Pass the labels that it was fitted to.")
            known = np.searchsorted(classes, known)
        parts = [_ratios(of_label, rows, known, len(classes))]
        n = len(parts[0])
        for model, names in zip(of_groups, groups, strict=False):
            given = [beside(rows, np.tile(label[1:], (n, 1)), "label") for label in np.eye(len(classes))]
            each = [_ratios(model, informed, model.classes_, len(names)) for informed in given]
            parts.append(np.stack(each, -1).reshape(n, -1))  # by group, then by label
        return np.hstack(parts)


def beside(rows: Any, columns: np.ndarray, name: str) -> Any:
    """Return rows with columns of numbers beside them, named "label 0" or "group 0" and so on in a frame."""
    frame = as_frame(rows)
    if isinstance(frame, nw.DataFrame):
        space = nw.get_native_namespace(frame)
        new = [nw.new_series(f"{name} {i}", column, backend=space) for i, column in enumerate(columns.T)]
        return frame.with_columns(*new).to_native()
    return np.column_stack([rows, columns])


def _ratios(model: Any, rows: Any, known: np.ndarray, n: int) -> np.ndarray:
    """Return log p - log p of the first of n classes, of which the model knows some.  (rows, n - 1)"""
    found = model.predict_proba(rows)
    probabilities = np.zeros((len(found), n))
    probabilities[:, known] = found
    logs = np.log(np.maximum(probabilities, SMALLEST))
    return logs[:, 1:] - logs[:, :1]
