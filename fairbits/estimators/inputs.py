"""From the arguments of `fit` to validated arrays in a canonical order."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, check_array, column_or_1d

from fairbits.encoding import GroupEncoder, SeenRows, index_hashes, row_hashes, sensitive_columns, sensitive_in_table
from fairbits.encoding.group_encoder import BinnedSensitiveFeaturesWarning
from fairbits.encoding.recognition import Overlap
from fairbits.encoding.table_encoder import read_numbers
from fairbits.errors import InputError, InputWarning

MAX_REPEATS = 10  # whole-number weights become copies of rows up to this many times the table


class MissingSensitiveFeaturesWarning(InputWarning):
    """You fitted a method that protects sensitive features without any: it protects nothing."""


class SensitiveFeatureInXWarning(InputWarning):
    """A sensitive column, or one that is one-to-one with it, is among the inputs."""

    def __init__(self, found: Sequence[Overlap]):
        self.found = [*found]
        problem = f"A sensitive feature is among the inputs: {'; '.join(map(str, found))}."
        super().__init__(
            problem, remedy="Drop it from X. To let the encoder see it on purpose, use encode_sensitive=True."
        )


def new_group_encoder(groups: str | GroupEncoder) -> GroupEncoder:
    """Return a fresh encoder as an estimator's `groups` asks for: "intersection", "each", or an encoder to copy."""
    return replace(groups) if isinstance(groups, GroupEncoder) else GroupEncoder(groups=groups)


@contextmanager
def said_elsewhere() -> Iterator[None]:
    """Silence what another fit to the same sensitive columns warns of."""
    with warnings.catch_warnings():
        for said in (SensitiveFeatureInXWarning, BinnedSensitiveFeaturesWarning):
            warnings.simplefilter("ignore", said)
        yield


def copy_feature_names(estimator: Any, fitted: Any) -> None:
    """Let an estimator have the number and the names of the columns that another one was fitted to."""
    for name in ("n_features_in_", "feature_names_in_"):
        vars(estimator).pop(name, None)  # of an earlier fit
        if hasattr(fitted, name):
            setattr(estimator, name, getattr(fitted, name))


@dataclass(frozen=True)
class Table:
    """The rows of a fit: copies made, zero weights dropped, sorted by content so that row order does not matter."""

    x: np.ndarray  # (n, features) float32, or images (n, channels, height, width), bytes or float32
    y: np.ndarray  # (n,) class index, -1 for a row without a label
    s: np.ndarray  # (n, columns) group index; no columns without sensitive features
    weight: np.ndarray  # (n,) float32, mean 1
    source: np.ndarray  # (n,) the user's row
    classes: np.ndarray
    group_encoder: GroupEncoder | None
    hashes: np.ndarray  # of the user's rows, to recognise them
    index: np.ndarray | None

    def seen(self, own: np.ndarray) -> SeenRows:
        """Return what recognises the user's rows behind some of these."""
        rows = np.unique(self.source[own])
        return SeenRows(self.hashes[rows], None if self.index is None else self.index[rows])


def read_table(
    estimator: Any, X: Any, y: Any, sensitive_features: Any, sample_weight: Any, unlabelled: Any = None
) -> Table:
    """Validate what you passed to `fit`; errors name the argument, the value and the remedy."""
    original = X
    X, y = read_numbers(estimator, X, y)
    check_classification_targets(y)
    source, weight = _copies(np.ones(len(X)) if sample_weight is None else read_weights(sample_weight, len(X)))
    y = y[source]
    known = np.ones(len(y), dtype=bool) if unlabelled is None else y != unlabelled
    number = np.full(len(y), -1, np.int64)
    classes, number[known] = number_classes(y[known])
    table = original if hasattr(original, "columns") else X
    used, place = np.unique(source, return_inverse=True)
    encoder, s = _read_groups(estimator, table, sensitive_features, len(X), used)
    order = canonical_order(X[source], number, s[place], weight)
    kept, marks = source[order], (row_hashes(X), index_hashes(original))
    return Table(X[kept], number[order], s[place[order]], weight[order], kept, classes, encoder, *marks)


def read_labels(estimator: Any, y: Any) -> np.ndarray:
    """Return labels as an array (n,), checked."""
    if y is None:
        problem = f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        raise InputError(problem, remedy="Pass one label per row.")
    labels = column_or_1d(y, warn=True)
    assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    return labels


def number_classes(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes, two or more, and the number of each label's."""
    classes, number = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        found = f"y has only one class, {classes.tolist()} (after dropping rows of weight 0 or without a label)."
        raise InputError(found, remedy="A classifier needs rows of at least two classes.")
    return classes, number


def read_weights(sample_weight: Any, n: int) -> np.ndarray:
    """Return the weights of n rows, checked."""
    weight = check_array(sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    if weight.shape != (n,):
        raise InputError(f"sample_weight has shape {weight.shape} for {n} rows.", remedy="Pass one weight per row.")
    if (weight < 0).any():
        raise InputError("Negative values in data passed to `sample_weight`.", remedy="Weights are 0 or above.")
    if not weight.any():
        raise InputError("Sample weights must contain at least one non-zero number.")
    return weight


def _read_groups(
    estimator: Any, X: Any, sensitive: Any, n: int, used: np.ndarray
) -> tuple[GroupEncoder | None, np.ndarray]:
    """Return the encoder, fitted to the rows used out of n, and their group numbers."""
    if sensitive is None:
        if estimator.protects:
            title = type(estimator).__name__
            problem = f"{title} was fitted without sensitive features: the penalty is off and nothing is protected."
            missing = MissingSensitiveFeaturesWarning(problem, remedy="Pass sensitive_features=... to fit.")
            warnings.warn(missing, stacklevel=5)
        return None, np.zeros((len(used), 0), np.int64)
    columns = {name: pd.Series(values).iloc[used] for name, values in sensitive_columns(sensitive, n).items()}
    encoder = new_group_encoder(estimator.groups).fit(columns)
    if getattr(X, "ndim", 2) == 2:  # polars has no ndim
        warn_of_sensitive(X, sensitive, stacklevel=6)
    return encoder, encoder.transform(columns)


def warn_of_sensitive(X: Any, sensitive: Any, *, stacklevel: int) -> None:
    """Warn if a sensitive column is among the columns of X."""
    found = sensitive_in_table(X, sensitive)
    if found:
        warnings.warn(SensitiveFeatureInXWarning(found), stacklevel=stacklevel)


def _copies(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to use and their weights: whole-number weights become copies, zero-weight rows go.

    Whole numbers are divided by their greatest common divisor first: the same weight on every row copies nothing.
    """
    used = np.flatnonzero(weight)
    if len(used) and np.array_equal(weight, np.round(weight)) and weight.max() < 2**31:
        copies = weight.astype(np.int64) // np.gcd.reduce(weight[used].astype(np.int64))
        if copies.sum() <= MAX_REPEATS * max(len(weight), 1_000):
            source = np.repeat(np.arange(len(weight)), copies)
            return source, np.ones(len(source), np.float32)
    scale = weight[used].max(initial=1e-300)  # first, so that the mean cannot overflow
    relative = weight[used] / scale
    return used, (relative / relative.mean()).astype(np.float32)


def canonical_order(x: np.ndarray, *columns: np.ndarray) -> np.ndarray:
    """Return an order of the rows that depends on their content only: by their bytes."""
    parts = [np.ascontiguousarray(a).reshape(len(x), -1).view(np.uint8) for a in (x, *columns) if a.size]
    return np.hstack(parts).view(f"V{sum(p.shape[1] for p in parts)}").ravel().argsort(kind="stable")
