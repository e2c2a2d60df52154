"""What `TableEncoder` learns about one column: a few floats or a list of texts, and how to write it out."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from fairbits.encoding.columns import as_codes, as_microseconds, as_numbers, column_kind, label
from fairbits.errors import InputError

FEWEST_NUMBERED_ROWS = 100


class DroppedColumn(Exception):
    """Why a column is left out; `TableEncoder.fit` catches it."""


@dataclass(frozen=True)
class NumberFeature:
    """A number, or a date or duration in seconds, scaled: (x - center) / scale; `fill` replaces what is not finite.

    A `scale` of 0 is a column with one value and gaps: only the missing-indicator is written.
    """

    kind: Literal["number", "date"]
    center: float
    scale: Annotated[float, Field(ge=0)]
    fill: float
    indicator: bool

    @classmethod
    def fit(cls, kind: Literal["number", "date"], values: Any, impute: str) -> "NumberFeature":
        x = _read(kind, values)
        seen = x[np.isfinite(x)]
        if not len(seen):
            raise DroppedColumn("no value: every row is missing or infinite")
        gaps = len(seen) < len(x)
        center, scale = moments(seen)
        if scale == 0 and not gaps:
            raise DroppedColumn(f"constant: {label(center)} in every row")
        if numbers_the_rows(seen):
            raise DroppedColumn(f"identifier: the numbers {label(seen.min())} to {label(seen.max())}, each once")
        fill = center if impute == "mean" else float(np.median(seen))
        return cls(kind, center, scale, fill, indicator=gaps)

    @property
    def suffixes(self) -> list[str]:
        return [""] * (self.scale > 0) + [" (missing)"] * self.indicator

    def write(self, values: Any, out: np.ndarray) -> None:
        x = _read(self.kind, values)
        seen = np.isfinite(x)
        if self.indicator:
            out[:, -1] = ~seen
        if self.scale > 0:
            limit = np.finfo(out.dtype).max
            with np.errstate(over="ignore"):
                out[:, 0] = np.clip((np.where(seen, x, self.fill) - self.center) / self.scale, -limit, limit)

    def describe(self) -> str:
        mean, fill, spread = f"{self.center:g}", f"{self.fill:g}", f"{self.scale:g}"
        if self.kind == "date":
            mean, fill = (str(np.datetime64(int(x), "s").astype("datetime64[D]")) for x in (self.center, self.fill))
            spread = f"{self.scale / 86_400:.1f} days"
        gaps = f", missing as {fill} and marked" if self.indicator else ""
        return f"{self.kind}, mean {mean}, standard deviation {spread}{gaps}"


def _read(kind: str, values: Any) -> np.ndarray:
    now = column_kind(values)
    if kind == "number" and now == "date":
        raise InputError("held numbers in fit and holds dates now.", remedy="Pass numbers again.")
    if kind == "date" and now != "date" and not pd.isna(values).all():
        raise InputError("held dates in fit and does not now.", remedy="Use pandas.to_datetime first.")
    return as_numbers(values) if kind == "number" else as_microseconds(values) / 1e6


def numbers_the_rows(x: np.ndarray) -> bool:
    """Return whether a column just counts its rows: consecutive whole numbers, each once, in 100 rows or more.

    >>> numbers_the_rows(np.arange(100.0)), numbers_the_rows(np.arange(100.0) * 2)
    (True, False)
    """
    if len(x) < FEWEST_NUMBERED_ROWS or x.max() - x.min() != len(x) - 1:
        return False
    return bool(np.array_equal(np.sort(x), np.arange(x.min(), x.max() + 1)))


def moments(x: np.ndarray) -> tuple[float, float]:
    """Return mean and standard deviation; exact 0 for a constant, no overflow at the ends of float64."""
    low, high = x.min(), x.max()
    half = high / 2 - low / 2
    if half == 0:
        return float(low), 0.0
    middle = low + half
    z = (x - middle) / half  # within [-1, 1]
    return float(middle + half * z.mean()), float(half * z.std())


@dataclass(frozen=True)
class CategoryFeature:
    """One-hot texts, then `(other)` for the merged rare ones, then `(missing)`, each only if fit saw any.

    Texts unseen in fit count as `(other)` where it exists and are all zeros where it does not. Merged texts
    are not kept: a model file should not carry the rare values of the people it was trained on.
    """

    kind: Literal["category"]
    categories: list[str]
    other: bool
    missing: bool

    @classmethod
    def fit(cls, values: Any, max_categories: int, identifier_share: float | None) -> "CategoryFeature":
        codes, distinct = as_codes(values)
        seen = int(np.count_nonzero(codes >= 0))
        if not seen:
            raise DroppedColumn("no value: every row is missing")
        share = np.inf if identifier_share is None else identifier_share
        if len(distinct) > max_categories and len(distinct) >= share * seen:
            raise DroppedColumn(f"identifier: {len(distinct)} distinct values in {seen} rows")
        counts = np.bincount(codes[codes >= 0], minlength=len(distinct))
        counts = pd.Series(counts, index=[label(v) for v in distinct], dtype=np.int64).groupby(level=0).sum()
        missing = seen < len(codes)
        if len(counts) == 1 and not missing:
            raise DroppedColumn(f"constant: {counts.index[0]!r} in every row")
        other = len(counts) > max_categories
        if other:  # equal counts stay in alphabetical order, so that the choice does not depend on row order
            counts = counts.sort_values(ascending=False, kind="stable")[: max_categories - 1]
        return cls("category", sorted(map(str, counts.index)), other, missing)

    @property
    def suffixes(self) -> list[str]:
        return ["=" + c for c in self.categories] + ["=(other)"] * self.other + ["=(missing)"] * self.missing

    def write(self, values: Any, out: np.ndarray) -> None:
        codes, distinct = as_codes(values)
        places = {category: i for i, category in enumerate(self.categories)}
        unseen = len(places) if self.other else -1
        absent = out.shape[1] - 1 if self.missing else -1
        place = np.array([places.get(label(v), unseen) for v in distinct] + [absent])[codes]  # (n,)
        rows = np.flatnonzero(place >= 0)
        out[rows, place[rows]] = 1

    def describe(self) -> str:
        rare = ", rare ones merged" if self.other else ""
        return f"category, {len(self.categories)} kept{rare}{', missing is one more' if self.missing else ''}"


Feature = NumberFeature | CategoryFeature
KINDS: dict[str, type[Feature]] = {"category": CategoryFeature, "date": NumberFeature, "number": NumberFeature}


def fitted_feature(values: Any, *, max_categories: int, impute: str, identifier_share: float | None) -> Feature:
    """Learn one column; raise `DroppedColumn` with the reason if nothing can be learnt from it."""
    kind = column_kind(values)
    if kind == "category":
        return CategoryFeature.fit(values, max_categories, identifier_share)
    return NumberFeature.fit("date" if kind == "date" else "number", values, impute)
