"""Mixed tables to one matrix of numbers."""

from collections import Counter
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from fairbits.encoding.column_features import (
    DroppedColumn,
    Feature,
    feature_from_state,
    feature_state,
    fitted_feature,
)
from fairbits.encoding.columns import column_at, is_frame
from fairbits.errors import InputError


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode a mixed pandas, polars or numpy table as a float matrix.

    Numbers and dates are standard-scaled; text, booleans and categoricals become one column per value.
    Missing numbers (infinite ones too) are imputed and marked by a column of their own if fit saw any; a
    missing category is a category. A category unseen in fit counts as `(other)` if rare ones were merged,
    else it is all zeros. Constant columns, and text that differs in nearly every row, are dropped and
    reported.

    Parameters
    ----------
    max_categories : int, at most this many one-hot columns per column, the rarest merged into `(other)`.
    impute : {"mean", "median"}, what a missing number is replaced by.
    identifier_share : float or None, drop a text column with more than `max_categories` distinct values if
        these are at least this share of its rows; None keeps all.
    dtype : numpy.float32 or numpy.float64, of the output.

    Attributes
    ----------
    dropped_ : dict, column name -> reason it was left out.
    features_ : list, what was learnt per input column, None where dropped.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"age": [20, 30, 40], "sex": ["F", "M", "F"], "country": ["NL"] * 3})
    >>> encoder = TableEncoder().fit(table)
    >>> encoder.get_feature_names_out().tolist()
    ['age', 'sex=F', 'sex=M']
    >>> encoder.transform(table).round(2)
    array([[-1.22,  1.  ,  0.  ],
           [ 0.  ,  0.  ,  1.  ],
           [ 1.22,  1.  ,  0.  ]], dtype=float32)
    >>> encoder.dropped_
    {'country': "constant: 'NL' in every row"}
    """

    def __init__(self, *, max_categories=30, impute="mean", identifier_share=0.9, dtype=np.float32):
        self.max_categories = max_categories
        self.impute = impute
        self.identifier_share = identifier_share
        self.dtype = dtype

    def fit(self, X, y=None) -> Self:
        """Learn scales and categories; `y` is ignored."""
        self._check_parameters()
        X = self._validated(X, reset=True)
        self.features_: list[Feature | None] = []
        self.dropped_: dict[str, str] = {}
        for position, name in enumerate(_check_feature_names_in(self)):
            self.features_.append(self._learn(X, position, str(name)))
        self._check_outputs()
        return self

    def transform(self, X):
        """Return the table as a matrix (n, n_features_out)."""
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        out = np.zeros((X.shape[0], sum(self._widths())), dtype=self.dtype)
        start = 0
        for position, (feature, width) in enumerate(zip(self.features_, self._widths(), strict=True)):
            if feature is not None:
                self._read(X, position, feature.write, out[:, start : start + width])
            start += width
        return out

    def get_feature_names_out(self, input_features=None):
        """Return the output names: `age`, `age (missing)`, `sex=Male`, `job=(other)`, `job=(missing)`."""
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        kept = [(name, f) for name, f in zip(names, self.features_, strict=True) if f is not None]
        return np.array([f"{name}{end}" for name, feature in kept for end in feature.suffixes], dtype=object)

    def describe(self) -> str:
        """Return one line per input column: how it is encoded, or why it was dropped.

        >>> print(TableEncoder().fit([[1, "a"], [3, "a"]]).describe())
        x0: number, mean 2, standard deviation 1
        x1: dropped, constant: 'a' in every row
        """
        check_is_fitted(self)
        lines = []
        for name, feature in zip(_check_feature_names_in(self), self.features_, strict=True):
            text = f"dropped, {self.dropped_[name]}" if feature is None else feature.describe()
            lines.append(f"{name}: {text}")
        return "\n".join(lines)

    def state(self) -> dict[str, Any]:
        """Return parameters and fitted state as a dict of lists, floats, texts and None, ready for JSON.

        >>> encoder = TableEncoder().fit([[1.0], [3.0]])
        >>> TableEncoder.from_state(encoder.state()).transform([[3.0]])
        array([[1.]], dtype=float32)
        """
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        return {
            "parameters": {**self.get_params(), "dtype": np.dtype(self.dtype).name},
            "feature_names_in": None if names is None else [str(name) for name in names],
            "features": [feature_state(feature) for feature in self.features_],
            "dropped": dict(self.dropped_),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Return the encoder whose `state()` this is."""
        parameters = state["parameters"]
        encoder = cls(**{**parameters, "dtype": np.dtype(parameters["dtype"]).type})
        encoder._check_parameters()
        encoder.features_ = [feature_from_state(feature) for feature in state["features"]]
        encoder.dropped_ = dict(state["dropped"])
        encoder.n_features_in_ = len(encoder.features_)
        if state["feature_names_in"] is not None:
            encoder.feature_names_in_ = np.array(state["feature_names_in"], dtype=object)
        encoder._check_outputs()
        return encoder

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _widths(self) -> list[int]:
        return [0 if feature is None else len(feature.suffixes) for feature in self.features_]

    def _learn(self, X, position: int, name: str) -> Feature | None:
        rules = {"max_categories": self.max_categories, "impute": self.impute}
        try:
            return self._read(X, position, fitted_feature, **rules, identifier_share=self.identifier_share)
        except DroppedColumn as reason:
            self.dropped_[name] = str(reason)
            return None

    def _read(self, X, position: int, step, *args, **kwargs):
        """Run one step on one column, and name the column in whatever it complains about."""
        try:
            return step(column_at(X, position), *args, **kwargs)
        except (ValueError, TypeError) as error:
            name = _check_feature_names_in(self)[position]
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"X: column {name!r} cannot be encoded: {error}") from error

    def _validated(self, X, *, reset: bool):
        if hasattr(X, "collect"):  # polars' lazy frames
            raise TypeError(f"X is a {type(X).__name__}; pass X.collect()")
        rows = 2 if reset else 1
        if not is_frame(X):
            kind = object if isinstance(X, (list, tuple)) else None  # keeps numbers beside text numbers
            limits = {"ensure_min_samples": rows, "ensure_all_finite": False}
            return validate_data(self, X, reset=reset, dtype=kind, **limits)
        _check_frame(X, rows)
        try:
            return validate_data(self, X, reset=reset, skip_check_array=True)
        except ValueError as error:
            remedy = "" if reset else "\nPass the columns of fit in order: X[list(encoder.feature_names_in_)]."
            raise InputError(f"{error}{remedy}") from error

    def _check_parameters(self) -> None:
        if not isinstance(self.max_categories, (int, np.integer)) or self.max_categories < 2:
            raise InputError(f"max_categories={self.max_categories!r} must be an integer of 2 or more")
        if self.impute not in ("mean", "median"):
            raise InputError(f"impute={self.impute!r} must be 'mean' or 'median'")
        if self.identifier_share is not None and not 0 < self.identifier_share <= 1:
            raise InputError(f"identifier_share={self.identifier_share!r} must be in (0, 1], or None to keep all")
        if np.dtype(self.dtype) not in (np.float32, np.float64):
            raise InputError(f"dtype={self.dtype!r} must be numpy.float32 or numpy.float64")

    def _check_outputs(self) -> None:
        names = self.get_feature_names_out()
        if not len(names):
            raise InputError(f"X: nothing left to encode, every column was dropped: {self.dropped_}")
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            raise InputError(
                f"X would give two output columns named {twice[0]!r}: a column name reads like a value of "
                "another column; rename the column or the value"
            )


def _check_frame(X, rows: int) -> None:
    if X.shape[0] < rows:
        raise InputError(f"X has {X.shape[0]} sample(s) (shape={X.shape}), a minimum of {rows} is required")
    if X.shape[1] == 0:
        raise InputError(f"X has 0 feature(s) (shape={X.shape}), a minimum of 1 is required")
    twice = [name for name, count in Counter(X.columns).items() if count > 1]
    if twice:
        raise InputError(f"X has more than one column named {twice[0]!r}; rename or drop one of them")
