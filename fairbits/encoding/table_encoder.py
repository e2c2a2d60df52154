"""Mixed tables to one matrix of numbers, and matrices as scikit-learn checks them."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Self

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
from fairbits.encoding.group_encoder import GroupEncoder, SensitiveColumn
from fairbits.errors import InputError, InputTypeError
from fairbits.settings import check_settings, setting


class NothingToEncodeError(InputError):
    """Every column of a table was dropped; `dropped` has the reasons by column."""

    def __init__(self, dropped: dict[str, str]):
        reasons = "; ".join(f"{name} ({reason})" for name, reason in dropped.items())
        problem = f"Nothing is left to encode, every column was dropped: {reasons}."
        super().__init__(problem, remedy="Add columns whose values repeat and differ between rows.")
        self.dropped = dropped


def float_type(value: Any) -> str | None:
    """Return what is wrong with the type of the output, or None."""
    return None if np.dtype(value) in (np.float32, np.float64) else "must be numpy.float32 or numpy.float64"


@dataclass(kw_only=True, eq=False, repr=False)
class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode a mixed pandas, polars, pyarrow or numpy table as a float matrix.

    Numbers and dates are standard-scaled; text, booleans and categoricals become one column per value. Missing numbers
    (infinite ones too) are imputed and marked by a column of their own if fit saw any; a missing category is a
    category. A category unseen in fit counts as `(other)` if rare ones were merged, else it is all zeros. Constant
    columns, and text that differs in nearly every row, are dropped and reported.

    Parameters
    ----------
    max_categories : int, at most this many one-hot columns per column, the rarest merged into `(other)`.
    min_category_rows : int, categories of fewer rows are merged into `(other)`, and columns with fewer values dropped,
        so that a model carries no value of single people; in a table of n rows, at most n // 10 are asked for.
    impute : {"mean", "median"}, what a missing number is replaced by.
    identifier_share : float or None, drop a text column with more than `max_categories` distinct values if these are at
        least this share of its rows; None keeps all.
    dtype : numpy.float32 or numpy.float64, of the output.
    encode_sensitive : bool, also encode the groups of `sensitive_features`, which `fit` and `transform` then need. For
        people who share codes and know everyone's group; not for decisions where using it is unlawful.

    Attributes
    ----------
    dropped_ : dict, column name -> reason it was left out.
    features_ : list, what was learnt per input column, None where dropped.
    group_encoder_ : of the groups among the inputs, None without them.

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

    max_categories: int = setting(30, at_least=2, whole=True)
    min_category_rows: int = setting(10, at_least=1, whole=True)
    impute: str = setting("mean", one_of=("mean", "median"))
    identifier_share: float | None = setting(0.9, above=0, at_most=1, optional=True)
    dtype: Any = setting(np.float32, check=float_type)  # noqa: RUF009
    encode_sensitive: bool = setting(False, one_of=(False, True))

    # With metadata routing, an encoder gets no sensitive features unless you ask for them.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sensitive_features": False}
    __metadata_request__transform: ClassVar[dict[str, bool]] = {"sensitive_features": False}

    def fit(self, X: Any, y: Any = None, *, sensitive_features: Any = None) -> Self:
        """Learn scales and categories, and with `encode_sensitive` the groups; `y` is ignored."""
        check_settings(self)
        table = self._validated(X, reset=True)
        self.group_encoder_: GroupEncoder | None = None
        if self.encode_sensitive:
            encoder = GroupEncoder(groups="each", min_group_size=1)
            self.group_encoder_ = encoder.fit(self._needed(sensitive_features), n_rows=table.shape[0])
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
        self.check_outputs()
        return self

    def fit_transform(self, X: Any, y: Any = None, *, sensitive_features: Any = None) -> Any:
        """Fit, and return the table as a matrix (n, n_features_out)."""
        known = {"sensitive_features": sensitive_features} if self.encode_sensitive else {}
        return self.fit(X, y, **known).transform(X, **known)

    def transform(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Return the table as a matrix (n, n_features_out)."""
        check_is_fitted(self)
        table = self._validated(X, reset=False)
        out, start = np.zeros((table.shape[0], len(self.get_feature_names_out())), dtype=self.dtype), 0
        for position, name, feature in self._kept():
            end = start + len(feature.suffixes)
            with _about(name):
                feature.write(one_column(table[:, position]), out[:, start:end])
            start = end
        out[:, start:] = self.sensitive_indicators(sensitive_features, len(out))
        return out

    def sensitive_codes(self, sensitive_features: Any, n_rows: int) -> np.ndarray:
        """Return the group numbers that stand beside the table: none without `encode_sensitive`.  (columns, n)"""
        if self.group_encoder_ is None:
            return np.zeros((0, n_rows), np.int64)
        return self.group_encoder_.transform(self._needed(sensitive_features), n_rows=n_rows).T

    def sensitive_indicators(self, sensitive_features: Any, n_rows: int) -> np.ndarray:
        """Return a column of 0 and 1 for every group that stands beside the table.  (n, groups)"""
        codes = self.sensitive_codes(sensitive_features, n_rows)
        each = [np.eye(len(level.labels))[own] for level, own in zip(self._levels, codes, strict=True)]
        return np.hstack([np.zeros((n_rows, 0)), *each])

    def _needed(self, sensitive_features: Any) -> Any:
        if sensitive_features is None:
            problem = "encode_sensitive=True puts the groups among the inputs, but sensitive_features is None."
            raise InputError(problem, remedy="Pass the sensitive columns of these rows as sensitive_features.")
        return sensitive_features

    def levels(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Return one column per column that was kept, for trees: numbers as they are, categories numbered, NaN missing.

        >>> TableEncoder().fit([[1, "b"], [3, "a"]]).levels([[5, "a"], [None, "c"]])
        array([[ 5.,  0.],
               [nan, nan]])
        """
        check_is_fitted(self)
        table, columns = self._validated(X, reset=False), []
        for position, name, feature in self._kept():
            with _about(name):
                columns.append(feature.level(one_column(table[:, position])))
        return np.column_stack([*columns, *self.sensitive_codes(sensitive_features, table.shape[0])])

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the output names: `age`, `age (missing)`, `sex=Male`, `job=(other)`, `job=(missing)`."""
        check_is_fitted(self)
        names = [f"{name}{end}" for _, name, feature in self._kept(input_features) for end in feature.suffixes]
        return np.array([*names, *self.indicator_names], dtype=object)

    def own_columns(self, rows: Any) -> np.ndarray:
        """Return what this encoder has made of rows, without estimates before it: the same numbers in whatever pieces.

        The last digits of estimates depend on how many rows are multiplied at once.
        """
        return np.asarray(rows)[:, -len(self.get_feature_names_out()) :]

    @property
    def sensitive_names(self) -> list[str]:
        """The sensitive columns among the inputs: none without `encode_sensitive`."""
        return [level.name for level in self._levels]

    @property
    def indicator_names(self) -> list[str]:
        """The output columns of `sensitive_indicators`."""
        return [f"{level.name} (sensitive)={name}" for level in self._levels for name in level.group_names()]

    @property
    def _levels(self) -> list[SensitiveColumn]:
        return [] if self.group_encoder_ is None else self.group_encoder_.levels_

    def describe(self) -> str:
        """Return one line per input column: how it is encoded, or why it was dropped.

        >>> print(TableEncoder().fit([[1, "a"], [3, "a"]]).describe())
        x0: number, mean 2, standard deviation 1
        x1: dropped, constant: 'a' in every row
        """
        check_is_fitted(self)
        texts = {name: f"dropped, {reason}" for name, reason in self.dropped_.items()}
        texts |= {name: feature.describe() for _, name, feature in self._kept()}
        return "\n".join(" ".join(f"{name}: {texts[name]}".split()) for name in self._input_names())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _input_names(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the input columns, `x0`, `x1`, ... if they have none."""
        return OneToOneFeatureMixin.get_feature_names_out(self, input_features)

    def _kept(self, input_features: Any = None) -> list[tuple[int, str, Feature]]:
        """Return position, name and feature of every input column that was not dropped."""
        names = self._input_names(input_features)
        return [(i, names[i], feature) for i, feature in enumerate(self.features_) if feature is not None]

    def _validated(self, X: Any, *, reset: bool) -> Any:
        """Return a frame of narwhals or an array, with the columns of fit; other columns of a frame are ignored."""
        frame, rows, fitted = as_frame(X), 2 if reset else 1, list(getattr(self, "feature_names_in_", []))
        if not reset and fitted and isinstance(frame, nw.DataFrame) and set(fitted) < set(frame.columns):
            frame = frame.select(fitted)
            X = frame.to_native()
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
            if reset or not is_frame or frame.columns == fitted:
                raise InputError(str(error)) from error
            remedy = "\nPass the columns of fit in order: X[list(encoder.feature_names_in_)]."
            raise ColumnsMismatchError(str(error), found=frame.columns, fitted=fitted, remedy=remedy) from error
        return frame if is_frame else array

    def check_outputs(self) -> None:
        """Raise if there are no output columns, or two of one name."""
        names = Counter(self.get_feature_names_out())
        if not names:
            raise NothingToEncodeError(self.dropped_)
        name, count = names.most_common(1)[0]
        if count > 1:
            problem = f"Two output columns would be named {name!r}: a column name reads like a value of another column."
            raise InputError(problem, remedy="Rename the column or the value.")


def inner_encoder(encoder: Any) -> TableEncoder:
    """Return what knows the columns of a table: the encoder itself, or the one inside a `PosteriorEncoder`."""
    return getattr(encoder, "table_encoder_", encoder)


@contextmanager
def _about(name: str) -> Iterator[None]:
    """Name the column in whatever is wrong with it."""
    try:
        yield
    except (ValueError, TypeError) as error:
        kind = InputTypeError if isinstance(error, TypeError) else InputError
        raise kind(f"Column {name!r} cannot be encoded: {str(error).rstrip('.')}.") from error


def read_numbers(estimator: Any, X: Any, y: Any = "no_validation", **options: Any) -> Any:
    """Return X, or X and y, as scikit-learn validates them: rows as float32, images as bytes or float32."""
    images = getattr(X, "ndim", 2) == 4
    dtype = X.dtype if images and X.dtype == np.uint8 else np.float32
    try:
        return validate_data(estimator, X, y, dtype=dtype, allow_nd=images, **options)
    except ValueError as error:
        if "could not convert string" not in str(error):
            raise
        remedy = f"Encode it first, for example make_pipeline(TableEncoder(), {type(estimator).__name__}())."
        raise InputError(f"X holds text ({error}).", remedy=remedy) from None
