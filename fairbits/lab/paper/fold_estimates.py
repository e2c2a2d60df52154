"""Means with intervals, and correlations."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata, t

from fairbits.report.text_tables import Table

CONFIDENCE = 0.95
MISSING = "–"


@dataclass(frozen=True)
class Estimate:
    """A mean, the half-width of its t-interval (nan without two values) and the number of values."""

    mean: float
    margin: float
    n: int

    def text(self, digits: int = 3, *, signed: bool = False) -> str:
        """Return "mean ± margin", without the margin where there is none.

        >>> Estimate(-0.0001, 0.0125, 3).text(), Estimate(0.5, math.nan, 1).text(signed=True)
        ('0.000 ± 0.013', '+0.500')
        """
        if math.isnan(self.mean):
            return MISSING
        mean = number(self.mean, digits, signed=signed)
        return mean if math.isnan(self.margin) else f"{mean} ± {number(self.margin, digits)}"


def number(value: float, digits: int = 3, *, signed: bool = False) -> str:
    """Return a number with so many decimals; never a negative zero."""
    value = round(value, digits) + 0.0
    return f"{value:+.{digits}f}" if signed else f"{value:.{digits}f}"


def estimate(values: Iterable[float]) -> Estimate:
    """Return the mean of values and the half-width of its 95 % t-interval; values that are nan are left out.

    >>> estimate([1.0, 2.0, 3.0]).text()
    '2.000 ± 2.484'
    """
    kept = np.asarray([value for value in values if not math.isnan(value)], dtype=float)
    n = len(kept)
    mean = float(kept.mean()) if n else math.nan
    if n < 2:
        return Estimate(mean, math.nan, n)
    return Estimate(mean, float(t.ppf((1 + CONFIDENCE) / 2, n - 1) * kept.std(ddof=1) / math.sqrt(n)), n)


def verdict(difference: Estimate) -> str:
    """Return what a difference of distances (less is better) says about the first of the two methods."""
    if math.isnan(difference.margin):
        return "no interval"
    if abs(difference.mean) <= difference.margin:
        return "not distinguishable"
    return "ahead" if difference.mean < 0 else "behind"


def differences_table(name: str, title: str, note: str, found: Iterable[tuple[str, str, Estimate]]) -> Table:
    """Return the table of paired differences between methods; pairs without a common fold are left out."""
    rows = tuple((*pair, str(d.n), d.text(signed=True), verdict(d)) for *pair, d in found if d.n)
    return Table(name, title, ("method", "against", "folds", "difference ↓", "the method is"), rows, (note,))


def mean_points(scores: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """Return the mean of columns per method, and the ends of their intervals within 0 and 1 as ..._low, ..._high."""
    rows = []
    for method, own in scores.groupby("method"):
        row: dict[str, Any] = {"method": method}
        for column in columns:
            found = estimate(own[column])
            margin = found.margin if found.n > 1 else 0.0
            ends = {f"{column}_low": max(found.mean - margin, 0.0), f"{column}_high": min(found.mean + margin, 1.0)}
            row |= {column: found.mean, **ends}
        rows.append(row)
    names = [f"{column}{end}" for column in columns for end in ("", "_low", "_high")]
    return pd.DataFrame(rows, columns=["method", *names])


def correlation(x: Iterable[float], y: Iterable[float]) -> float:
    """Return Pearson's correlation, nan where one of the two does not vary."""
    a, b = (np.asarray(list(values), dtype=float) for values in (x, y))
    if len(a) < 2 or not np.ptp(a) or not np.ptp(b):
        return math.nan
    return float(np.corrcoef(a, b)[0, 1])


def rank_correlation(x: Iterable[float], y: Iterable[float]) -> float:
    """Return Spearman's correlation, nan where one of the two does not vary."""
    return correlation(rankdata(list(x)), rankdata(list(y)))
