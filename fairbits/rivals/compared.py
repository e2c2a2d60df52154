"""The base of methods that are not trained by our loop: adapters of other libraries, a tree, a projection."""

from importlib import import_module
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from fairbits.encoding import GroupEncoder
from fairbits.encoding.table_encoder import read_numbers
from fairbits.errors import InputError, MissingExtraError
from fairbits.estimators import check_settings
from fairbits.estimators.base import SettingsClassifier
from fairbits.estimators.fitting import fit_seed
from fairbits.estimators.inputs import Table, read_table


class ComparedClassifier(SettingsClassifier):
    """Base of methods for two classes that train in their own way: `train`, and the `chance` of the second class.

    Rows are read as for our own methods: several sensitive columns form their intersections, the order of the rows does
    not matter, and a whole-number weight counts as so many copies of the row. These methods take no other weights.

    Parameters
    ----------
    groups : "intersection", or a `GroupEncoder` that also sets the bins of numbers and the smallest group
    random_state : seed of the fit, and of the draws of a method whose predictions are random; None takes fresh
        randomness from the operating system. The global generators of numpy and torch are left as they were
    """

    groups: str | GroupEncoder = "intersection"
    random_state: Any = None

    #: What the method is called in messages.
    title: ClassVar[str]
    #: Whether predictions need every row's group, which `held_out_scores` then passes; ours never do.
    groups_at_prediction: ClassVar[bool] = False
    # What `read_table` asks of our own methods.
    protects: ClassVar[bool] = True

    def train(self, x: np.ndarray, y: np.ndarray, s: np.ndarray, seed: int) -> None:
        """Fit the method to rows x (n, features), labels y 0 or 1 (n,) and group numbers s (n,)."""
        raise NotImplementedError(f"{type(self).__name__} does not define how it trains.")

    def chance(self, x: np.ndarray) -> np.ndarray:
        """Return the chance of the second class.  (n,)"""
        raise NotImplementedError(f"{type(self).__name__} does not define how it predicts.")

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows X with labels y of two classes.

        Parameters
        ----------
        X : (n, features) numbers; put a `TableEncoder` in front of a mixed table
        y : (n,) labels, any two values
        sensitive_features : one or several columns (array, pandas, polars)
        sample_weight : (n,) non-negative whole numbers; each counts as so many copies of the row
        """
        check_settings(self)
        table = self._table(X, y, sensitive_features, sample_weight)
        encoder: Any = table.group_encoder  # there are sensitive features
        self.group_encoder_, self.groups_ = encoder, encoder.names_
        self.train(table.x.astype(np.float64), table.y, table.s[:, 0], fit_seed(self.random_state))
        self.classes_ = table.classes
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class of `classes_`, one row per row of X."""
        return both(self.chance(self.read_rows(X)))

    def _table(self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any) -> Table:
        if sensitive_features is None:
            problem = f"is not enough: {self.title} needs the columns to protect."
            raise InputError(problem, argument="sensitive_features", value=None)
        table = read_table(self, X, y, sensitive_features, sample_weight)
        if table.x.ndim != 2:
            raise InputError(f"X has shape {table.x.shape}; {self.title} takes tables (n, features).")
        if len(table.classes) > 2:
            raise InputError(f"y has {len(table.classes)} classes, {table.classes.tolist()}; {self.title} takes two.")
        if np.ptp(table.weight) > 0:
            raise InputError(f"{self.title} takes only whole numbers as weights: the copies of each row.")
        return table

    def read_rows(self, X: Any) -> np.ndarray:
        """Return rows for predictions as `train` got them, checked.  (n, features)"""
        check_is_fitted(self)
        return read_numbers(self, X, reset=False).astype(np.float64)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classes_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.non_deterministic = True
        return tags


def both(chance: np.ndarray) -> np.ndarray:
    """Return the probabilities of both classes, given that of the second.  (n, 2)"""
    chance = np.clip(chance, 0, 1)
    return np.column_stack([1 - chance, chance])


def one_draw(probabilities: np.ndarray, random_state: Any) -> np.ndarray:
    """Return 1 for the class drawn by the probabilities (n, 2), and 0 for the other.  (n, 2)"""
    rng = np.random.default_rng(fit_seed(random_state))
    return both(rng.random(len(probabilities)) < probabilities[:, 1])


def base_learner(estimator: Any, seed: int) -> Any:
    """Return a copy of an estimator, by default a logistic regression, with the seed wherever it has none of its own.

    >>> [base_learner(LogisticRegression(random_state=own), 7).random_state for own in (None, 1)]
    [7, 1]
    """
    copy = LogisticRegression(max_iter=1000) if estimator is None else clone(estimator)
    values = copy.get_params().items()
    unset = [name for name, value in values if name.split("__")[-1] == "random_state" and value is None]
    return copy.set_params(**dict.fromkeys(unset, seed))


def optional_import(module: str) -> Any:
    """Import a module of another library; the error names the extra that installs it."""
    library = module.split(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != library:
            raise
        raise MissingExtraError(f"A method of {library}", "compare") from None
