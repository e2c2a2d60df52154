"""Groups from one or more sensitive columns, crossed or each on its own."""

from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from sklearn.exceptions import NotFittedError

from fairbits.encoding.columns import ColumnsMismatchError
from fairbits.encoding.sensitive import (
    SensitiveColumn,
    UnseenGroupError,
    check_length,
    default_names,
    sensitive_columns,
)
from fairbits.errors import InputError


class SmallGroupError(InputError):
    """A `group` of a sensitive `column` has `rows` rows, fewer than `least`."""

    def __init__(self, group: str, column: str, rows: int, least: int, remedy: str):
        super().__init__(f"Group {group!r} of {column!r} has {rows} rows; at least {least} are needed.", remedy=remedy)
        self.group, self.column, self.rows, self.least = group, column, rows, least


@dataclass(eq=False)
class GroupEncoder:
    """Encode `sensitive_features` as group numbers 0..K-1.

    Accepts 1-d and 2-d arrays, lists, columns and frames of pandas, polars and pyarrow, and dicts of columns.
    A column of numbers with more than `max_values` distinct ones is cut at its quantiles, with a warning that
    states the bins. Missing values, a single group, and groups under `min_group_size` raise InputError.

    Parameters
    ----------
    groups : {"intersection", "each"}, cross the columns, or take each on its own.
    n_bins : int, quantile bins of a column of numbers.
    max_values : int, distinct numbers a column may have without being binned.
    min_group_size : int, rows every group must have in fit.

    Attributes
    ----------
    columns_ : list of str, the sensitive columns.
    names_ : list of lists of str, group names per coded column ("intersection" has one coded column).
    sizes_ : list of lists of int, rows per group in fit.
    bins_ : dict, binned column -> edges.

    Examples
    --------
    >>> encoder = GroupEncoder(min_group_size=1)
    >>> encoder.fit({"sex": ["F", "M", "F"], "race": ["B", "B", "W"]}).names_
    [['sex=F, race=B', 'sex=F, race=W', 'sex=M, race=B']]
    >>> encoder.transform({"sex": ["M", "F"], "race": ["B", "W"]}).tolist()
    [[2], [1]]
    """

    groups: str = "intersection"
    n_bins: int = 4
    max_values: int = 10
    min_group_size: int = 10

    def fit(self, sensitive_features: Any, *, n_rows: int | None = None) -> Self:
        """Learn the groups; if you pass `n_rows`, every column must have so many values."""
        self._check_parameters()
        columns = sensitive_columns(sensitive_features)
        check_length(columns, n_rows)
        limits = {"n_bins": self.n_bins, "max_values": self.max_values}
        self.levels_ = [SensitiveColumn.fit(name, values, **limits) for name, values in columns.items()]
        codes = self._column_codes(columns)
        self.cells_ = None
        if self.groups == "intersection":
            self.cells_ = np.unique(np.ravel_multi_index(tuple(codes.T), self._shape))
        self.sizes_ = [np.bincount(c).tolist() for c in self._group_codes(codes).T]
        self._check_sizes()
        return self

    def transform(self, sensitive_features: Any, *, n_rows: int | None = None) -> np.ndarray:
        """Return int64 codes (n, C): C = 1 for "intersection", the number of columns for "each"."""
        if not hasattr(self, "levels_"):
            raise NotFittedError("GroupEncoder has not learnt any groups yet; call fit first")
        columns = self._matched(sensitive_columns(sensitive_features))
        check_length(columns, n_rows)
        return self._group_codes(self._column_codes(columns))

    @property
    def columns_(self) -> list[str]:
        return [level.name for level in self.levels_]

    @property
    def bins_(self) -> dict[str, list[float]]:
        return {level.name: level.edges for level in self.levels_ if level.edges is not None}

    @property
    def names_(self) -> list[list[str]]:
        if self.cells_ is None or len(self.levels_) == 1:
            return [level.group_names() for level in self.levels_]
        return [[self._crossed_name(cell) for cell in self.cells_]]

    def state(self) -> dict[str, Any]:
        """Return parameters and learnt groups as a dict of lists, numbers and texts, ready for JSON.

        >>> encoder = GroupEncoder(min_group_size=1).fit(["F", "M"])
        >>> GroupEncoder.from_state(encoder.state()).transform(["M"]).tolist()
        [[1]]
        """
        return {
            "parameters": asdict(self),
            "levels": [asdict(level) for level in self.levels_],
            "cells": None if self.cells_ is None else self.cells_.tolist(),
            "sizes": self.sizes_,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Return the encoder whose `state()` this is."""
        encoder = cls(**state["parameters"])
        encoder._check_parameters()
        encoder.levels_ = [SensitiveColumn(**level) for level in state["levels"]]
        encoder.cells_ = None if state["cells"] is None else np.array(state["cells"], dtype=np.int64)
        encoder.sizes_ = state["sizes"]
        return encoder

    @property
    def _shape(self) -> tuple[int, ...]:
        return tuple(len(level.labels) for level in self.levels_)

    def _column_codes(self, columns: dict[str, Any]) -> np.ndarray:
        return np.column_stack([level.codes(columns[level.name]) for level in self.levels_]).astype(np.int64)

    def _crossed_name(self, cell: int) -> str:
        codes = np.unravel_index(cell, self._shape)
        return ", ".join(level.titled(int(code)) for level, code in zip(self.levels_, codes, strict=True))

    def _group_codes(self, codes: np.ndarray) -> np.ndarray:
        if self.cells_ is None:
            return codes
        crossed = np.ravel_multi_index(tuple(codes.T), self._shape)
        places = np.searchsorted(self.cells_, crossed).clip(max=len(self.cells_) - 1)
        unseen = crossed[self.cells_[places] != crossed]
        if len(unseen):
            remedy = "Drop these rows, merge categories, or fit with groups='each'."
            raise UnseenGroupError(" x ".join(self.columns_), self._crossed_name(unseen[0]), len(unseen), remedy)
        return places[:, None]

    def _matched(self, columns: dict[str, Any]) -> dict[str, Any]:
        """Return the columns under their names of fit; unnamed ones are taken by position."""
        unnamed, own = default_names(len(self.levels_)), self.columns_
        if set(columns) == set(own):
            return columns
        if len(columns) == len(unnamed) and unnamed in (list(columns), own):
            return dict(zip(own, columns.values(), strict=True))
        found = list(columns)
        problem = f"The sensitive columns are {found}; fit had {own}."
        raise ColumnsMismatchError(problem, found=found, fitted=own, remedy="Pass the columns of fit.")

    def _check_parameters(self) -> None:
        if self.groups not in ("intersection", "each"):
            raise InputError("must be 'intersection' or 'each'.", argument="groups", value=self.groups)
        for name, least in (("n_bins", 2), ("max_values", 2), ("min_group_size", 1)):
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) or value < least:
                raise InputError(f"must be an integer of {least} or more.", argument=name, value=value)

    def _check_sizes(self) -> None:
        crossed = len(self.names_) < len(self.columns_)
        titles = [" x ".join(self.columns_)] if crossed else self.columns_
        for title, names, sizes in zip(titles, self.names_, self.sizes_, strict=True):
            if len(names) < 2:
                raise InputError(
                    f"The sensitive column {title!r} has only one group, {names[0]!r}.",
                    remedy="Pass rows of two or more groups, or leave the column out.",
                )
            small = int(np.argmin(sizes))
            if sizes[small] < self.min_group_size:
                each = "Use groups='each' (every column on its own), merge" if crossed else "Merge"
                remedy = f"{each} categories, or lower min_group_size={self.min_group_size}."
                raise SmallGroupError(names[small], title, sizes[small], self.min_group_size, remedy)
