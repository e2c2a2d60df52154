"""Mixed tables to one matrix of numbers."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, Self

import narwhals as nw
import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from fairbits.encoding.columns import (
    FEATURES,
    ColumnsMismatchError,
    DroppedColumn,
    Feature,
    as_frame,
    column_kind,
    one_column,
)
from fairbits.errors import InputError, InputTypeError


class NothingToEncodeError(InputError):
    """Every column of a table was dropped; `dropped` has the reasons by column."""

    def __init__(self, dropped: dict[str, str]):
        reasons = "; ".join(f"{name} ({reason})" for name, reason in dropped.items())
        super().__init__(f"Nothing is left to encode, every column was dropped: {reasons}.")
        self.dropped = dropped


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode a mixed pandas, polars, pyarrow or numpy table as a float matrix.

    Numbers and dates are standard-scaled; text, booleans and categoricals become one column per value. Missing numbers
    (infinite ones too) are imputed and marked by a column of their own if fit saw any; a missing category is a
    category. A category unseen in fit counts as `(other)` if rare ones were merged, else it is all zeros. Constant
    columns, and text that differs in nearly every row, are dropped and reported.

    Parameters
    ----------
    max_categories : int, at most this many one-hot columns per column, the rarest merged into `(other)`.
    impute : {"mean", "median"}, what a missing number is replaced by.
    identifier_share : float or None, drop a text column with more than `max_categories` distinct values if these are at
        least this share of its rows; None keeps all.
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
        self.max_categories, self.impute = max_categories, impute
        self.identifier_share, self.dtype = identifier_share, dtype

    def fit(self, X, y=None) -> Self:
        """Learn scales and categories; `y` is ignored."""
        self._check_parameters()
        table = self._validated(X, reset=True)
        self.features_: list[Feature | None] = []
        self.dropped_: dict[str, str] = {}
        for position, name in enumerate(self._input_names()):
            try:
                with _about(name):
                    values = one_column(table[:, position])
                    self.features_.append(FEATURES[column_kind(values)].fit(values, self))
            except DroppedColumn as reason:
                self.features_.append(None)
                self.dropped_[str(name)] = str(reason)
        self._check_outputs()
        return self

    def transform(self, X):
        """Return the table as a matrix (n, n_features_out)."""
        check_is_fitted(self)
        table = self._validated(X, reset=False)
        out, start = np.zeros((table.shape[0], len(self.get_feature_names_out())), dtype=self.dtype), 0
        for position, name, feature in self._kept():
            end = start + len(feature.suffixes)
            with _about(name):
                feature.write(one_column(table[:, position]), out[:, start:end])
            start = end
        return out

    def get_feature_names_out(self, input_features=None):
        """Return the output names: `age`, `age (missing)`, `sex=Male`, `job=(other)`, `job=(missing)`."""
        check_is_fitted(self)
        names = [f"{name}{end}" for _, name, feature in self._kept(input_features) for end in feature.suffixes]
        return np.array(names, dtype=object)

    def describe(self) -> str:
        """Return one line per input column: how it is encoded, or why it was dropped.

        >>> print(TableEncoder().fit([[1, "a"], [3, "a"]]).describe())
        x0: number, mean 2, standard deviation 1
        x1: dropped, constant: 'a' in every row
        """
        check_is_fitted(self)
        texts = {name: f"dropped, {reason}" for name, reason in self.dropped_.items()}
        texts |= {name: feature.describe() for _, name, feature in self._kept()}
        return "\n".join(f"{name}: {texts[name]}" for name in self._input_names())

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
            "features": [None if feature is None else asdict(feature) for feature in self.features_],
            "dropped": dict(self.dropped_),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Return the encoder whose `state()` this is."""
        encoder = cls(**state["parameters"])
        encoder.dtype = np.dtype(encoder.dtype).type
        encoder._check_parameters()
        for kind in {feature.get("kind") for feature in state["features"] if feature is not None} - set(FEATURES):
            raise InputError(f"must be one of {sorted(FEATURES)}, as state() writes.", argument="kind", value=kind)
        encoder.features_ = [None if f is None else FEATURES[f["kind"]](**f) for f in state["features"]]
        encoder.dropped_ = dict(state["dropped"])
        encoder.n_features_in_ = len(encoder.features_)
        if state["feature_names_in"] is not None:
            encoder.feature_names_in_ = np.array(state["feature_names_in"], dtype=object)
        encoder._check_outputs()
        return encoder

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _input_names(self, input_features=None) -> np.ndarray:
        """Return the names of the input columns, `x0`, `x1`, ... if they have none."""
        return OneToOneFeatureMixin.get_feature_names_out(self, input_features)

    def _kept(self, input_features=None) -> list[tuple[int, str, Feature]]:
        """Return position, name and feature of every input column that was not dropped."""
        names = self._input_names(input_features)
        return [(i, names[i], feature) for i, feature in enumerate(self.features_) if feature is not None]

    def _validated(self, X: Any, *, reset: bool) -> Any:
        """Return a frame of narwhals or an array, with the columns of fit."""
        frame, rows = as_frame(X), 2 if reset else 1
        is_frame, options = isinstance(frame, nw.DataFrame), dict[str, Any](skip_check_array=True)
        if is_frame and (frame.shape[0] < rows or not frame.shape[1]):
            raise InputError(f"The table has the shape {frame.shape}; it needs {rows} row(s) and 1 column at least.")
        if not is_frame:
            kind = object if isinstance(X, (list, tuple)) else None  # keeps numbers beside text numbers
            options = {"ensure_min_samples": rows, "ensure_all_finite": False, "dtype": kind}
        try:
            array = validate_data(self, X, reset=reset, **options)
        except TypeError as error:
            raise InputTypeError(str(error)) from error
        except ValueError as error:
            fitted = list(getattr(self, "feature_names_in_", []))
            if reset or not is_frame or frame.columns == fitted:
                raise InputError(str(error)) from error
            remedy = "\nPass the columns of fit in order: X[list(encoder.feature_names_in_)]."
            raise ColumnsMismatchError(str(error), found=frame.columns, fitted=fitted, remedy=remedy) from error
        return frame if is_frame else array

    def _check_parameters(self) -> None:
        n, share = self.max_categories, self.identifier_share
        if not isinstance(n, (int, np.integer)) or n < 2:
            raise InputError("must be an integer of 2 or more.", argument="max_categories", value=n)
        if self.impute not in ("mean", "median"):
            raise InputError("must be 'mean' or 'median'.", argument="impute", value=self.impute)
        if share is not None and not 0 < share <= 1:
            raise InputError("must be in (0, 1], or None to keep all.", argument="identifier_share", value=share)
        if np.dtype(self.dtype) not in (np.float32, np.float64):
            raise InputError("must be numpy.float32 or numpy.float64.", argument="dtype", value=self.dtype)

    def _check_outputs(self) -> None:
        names = Counter(self.get_feature_names_out())
        if not names:
            raise NothingToEncodeError(self.dropped_)
        name, count = names.most_common(1)[0]
        if count > 1:
            problem = f"Two output columns would be named {name!r}: a column name reads like a value of another column."
            raise InputError(problem, remedy="Rename the column or the value.")


@contextmanager
def _about(name: str) -> Iterator[None]:
    """Name the column in whatever is wrong with it."""
    try:
        yield
    except (ValueError, TypeError) as error:
        kind = InputTypeError if isinstance(error, TypeError) else InputError
        raise kind(f"Column {name!r} cannot be encoded: {str(error).rstrip('.')}.") from error
