"""Rates of a decision in every group: exact intervals and ratios, and limits of how far two rates differ.

Also what no bound of a disparity is below, by the rows of the groups alone. docs/certificate.md has the proofs.
"""

import math
from functools import lru_cache
from itertools import combinations, permutations
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import beta, binom

from fairbits.certificate.deviations import (
    DELTAS,
    EXACT,
    MOST_EXACT,
    PRECISION,
    ROUNDING,
    chance_at_most,
    deviation,
    limit_of_difference,
    rarely_shown,
)
from fairbits.encoding import GroupEncoder
from fairbits.encoding.group_encoder import sensitive_columns
from fairbits.errors import InputError

BERGER_BOOS = "exact binomial, Berger and Boos"
REGION = 1 / 20  # share of delta for the region of two rates: near the shortest at all rates, 1.5 % longer at 1/2
KINDS = ("any values", "hard", "binary")  # means over people and random codes; hard codes and classes; two values
HALVINGS = 7  # of the interval that holds the least limit of hard values


def group_rates(
    decision: Any,
    *,
    sensitive_features: Any,
    y: Any = None,
    positive: Any = None,
    reference: Any = None,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """Return how often every group is selected, with exact intervals (Clopper and Pearson), each on its own.

    One row for each group of each sensitive column, of each pair of columns, and of the crossing of all. With labels,
    also the base rate (how many have the favourable label), the rates of true and of false positives, and the accuracy.
    Columns: `column`, `group`, `rows`; for each rate `of` (how many people it is about), the rate itself, `_low` and
    `_high`; `ratio`, of the selection rate to that of the `reference` group, whose limits divide exact limits of the
    two rates: groups are independent, so each of these has the square root of the confidence.

    Parameters
    ----------
    decision : (n,) of two values
    y : (n,) labels, of the same two values
    positive : the favourable value; True, 1, or the last of two in sorted order by default
    reference : the group that others are compared with, by name; in a column without it, the largest
    confidence : of each interval

    Examples
    --------
    >>> found = group_rates([1, 1, 0, 1, 0, 0], sensitive_features=list("aaabbb"))
    >>> found[["group", "rows", "selected", "selected_low", "selected_high", "ratio"]].round(2)
      group  rows  selected  selected_low  selected_high  ratio
    0     a     3      0.67          0.09           0.99    1.0
    1     b     3      0.33          0.01           0.91    0.5
    """
    selected = _chosen(decision, positive, "decision", y)
    label = None if y is None else _chosen(y, positive, "y", decision)
    return rates_of(
        selected, sensitive_features, label, None if label is None else selected == label, reference, confidence
    )


def rates_of(
    selected: np.ndarray,
    sensitive_features: Any,
    label: np.ndarray | None,
    correct: np.ndarray | None,
    reference: Any,
    confidence: float,
    counts: np.ndarray | None = None,
) -> pd.DataFrame:
    """Return the rates of `group_rates`, of who is selected, has the favourable label, and is decided on correctly.

    `counts` say how many people each row stands for.
    """
    counts = np.ones(len(selected), np.int64) if counts is None else counts
    columns = sensitive_columns(sensitive_features, n_rows=len(selected))
    found, everyone = [], np.ones(len(selected), dtype=bool)
    kinds = {"selected": (everyone, selected)}  # among whom, and what happened
    if label is not None:
        kinds["base"] = everyone, label
        kinds |= {"true_positive": (label, selected), "false_positive": (~label, selected)}
    if correct is not None:
        kinds["accuracy"] = everyone, correct
    for names in (names for n in sorted({1, min(2, len(columns)), len(columns)}) for names in combinations(columns, n)):
        own_columns = {name: columns[name] for name in names}
        encoder = GroupEncoder(min_group_size=1).fit(own_columns, n_rows=len(selected))
        groups = encoder.transform(own_columns)[:, 0]
        own_rates = []
        for number, group in enumerate(encoder.names_[0]):
            own = groups == number
            row: dict[str, Any] = {"column": encoder.titles_[0], "group": group, "rows": int(counts[own].sum())}
            for name, (among, event) in kinds.items():
                n, k = (int(counts[some].sum()) for some in (own & among, own & among & event))
                low, high = proportion_limits(k, n, (1 - confidence) / 2)
                row |= {f"{name}_of": n, name: k / n if n else np.nan, f"{name}_low": low, f"{name}_high": high}
            own_rates.append(row)
        found += _with_ratios(own_rates, reference, confidence)
    return pd.DataFrame(found)


def _with_ratios(rates: list[dict[str, Any]], reference: Any, confidence: float) -> list[dict[str, Any]]:
    """Add the ratio of the selection rates of a column's groups to that of the reference group."""
    named = (rate for rate in rates if rate["group"] == str(reference))
    base = next(named, max(rates, key=lambda rate: rate["rows"]))
    counts = ((round(rate["selected"] * rate["rows"]), rate["rows"]) for rate in rates)
    ends = [proportion_limits(k, n, (1 - confidence**0.5) / 2) for k, n in counts]
    least, most = ends[rates.index(base)]
    for rate, (low, high) in zip(rates, ends, strict=True):
        shown = rate["selected"] / base["selected"] if base["selected"] else np.nan
        ratio = (1.0, 1.0, 1.0) if rate is base else (shown, low / most, high / least if least else np.inf)
        rate |= dict(zip(("ratio", "ratio_low", "ratio_high"), ratio, strict=True), reference=rate is base)
    return rates


def selection_ratio(
    decision: Any, *, sensitive_features: Any, positive: Any = None, confidence: float = 0.95
) -> tuple[float, float]:
    """Return the smallest ratio of two groups' selection rates, and a lower bound on it in the population.

    The bound divides the lower limit of one group's rate by the upper limit of the other's, each at half the error. The
    pair of groups whose true ratio is smallest is fixed, though unknown; so taking the least over all pairs costs no
    correction.

    >>> observed, bound = selection_ratio([1, 0] * 500, sensitive_features=np.arange(1000) // 500)
    >>> observed, round(bound, 2)
    (1.0, 0.84)
    """
    rates = group_rates(decision, sensitive_features=sensitive_features, positive=positive, confidence=confidence)
    found = [smallest_ratio(own) for _, own in rates.groupby("column", sort=False)]
    return min(shown for shown, _ in found), min(bound for _, bound in found)


def smallest_ratio(rates: pd.DataFrame, reference: str | None = None) -> tuple[float, float]:
    """Return the smallest ratio of the selection rates of `group_rates` of one column, and its lower bound.

    With a `reference` group, of the others' rates to that of this group.
    """
    pairs = [pair for pair in permutations(rates.itertuples(), 2) if reference in (None, pair[1].group)]
    if not pairs:
        raise InputError("There is only one group.", remedy="Pass rows of at least two.")
    shown = [one.selected / other.selected if other.selected else 1.0 for one, other in pairs]
    return float(min(shown)), float(min(one.selected_low / other.selected_high for one, other in pairs))


def _chosen(values: Any, positive: Any, name: str, others: Any) -> np.ndarray:
    """Return which values are the favourable one of two; decisions and labels have the same two values."""
    array = np.asarray(values)
    distinct = np.unique(array[~pd.isna(array)]).tolist()
    if array.ndim != 1 or not 1 <= len(distinct) <= 2 or pd.isna(array).any():
        problem = f"must be one of two values for every row; it has {len(distinct)} and {pd.isna(array).sum()} missing."
        raise InputError(problem, argument=name, value=f"<{array.shape}>")
    known = np.unique([*distinct, *pd.unique(pd.Series(others).dropna())]).tolist() if others is not None else distinct
    if len(known) > 2:
        raise InputError(f"decision and y have the values {known}.", remedy="Give both the same two values.")
    if positive is None and len(known) == 1 and known[0] not in (0, 1):
        problem = f"{name} is {known[0]!r} in every row: fairbits cannot know whether that is the favourable value."
        raise InputError(problem, remedy="Pass it as positive if it is; else pass False for every row.")
    if positive is None:
        positive = known[-1] if len(known) == 2 else True
    elif positive not in (known if set(known) - {0, 1} else (0, 1)):
        raise InputError(f"is not among the values {known} of {name}.", argument="positive", value=positive)
    return array == positive


def limit_of_rates(counts: np.ndarray, rows: np.ndarray, delta: float) -> tuple[float, str]:
    """Return an upper limit of how far the chances of an event differ in two groups that had it `counts` times (2,).

    Also return the name of the theorem behind it. The limit adapts to rare events; which group has more is not given.

    >>> limit, name = limit_of_rates(np.array([0, 0]), np.array([300, 500]), 0.05)
    >>> round(limit, 3), name
    (0.016, 'exact binomial, Berger and Boos')
    """
    (x, y), (n, other) = counts.tolist(), rows.tolist()
    if not (DELTAS[0] <= delta <= DELTAS[1] and 0 < min(n, other) <= max(n, other) <= MOST_EXACT):
        length, name = deviation(rows, delta)
        return abs(x / max(n, 1) - y / max(other, 1)) + length, name
    same = [(x, n, y, other), (n - x, n, other - y, other)]  # the event and its complement
    return _rates_limit(*min(*same, *((*two[2:], *two[:2]) for two in same)), delta), BERGER_BOOS


def proportion_limits(k: int, n: int, delta: float) -> tuple[float, float]:
    """Return exact lower and upper limits of a chance that came true k times of n, each wrong with chance delta.

    >>> low, high = proportion_limits(0, 59, 0.05)
    >>> low, round(high, 3)
    (0.0, 0.05)
    """
    return float(beta.ppf(delta, k, n - k + 1)) if k else 0.0, float(_upper(k, n, delta))


@lru_cache(65_536)
def _rates_limit(x: int, n: int, y: int, other: int, delta: float) -> float:
    """Return the limit of a difference of two rates within exact limits of both, which use up their share of delta."""
    one, two, level = x / n, y / other, (1 - REGION) * delta
    near = [proportion_limits(k, m, REGION * delta / 4) for k, m in ((x, n), (y, other))]
    (low, high), (floor, ceiling) = ((max(a - 1e-9, 0.0), min(b + 1e-9, 1.0)) for a, b in near)

    def laws(truth: float) -> list[tuple[float, float, int, int, float, float]]:
        """List what must be rare where either group's chance is larger by this, with the range of that chance."""
        first = max(truth, low, floor + truth), min(high, ceiling + truth)
        second = max(truth, floor, low + truth), min(ceiling, high + truth)
        return [(one - two, truth, n, other, *first), (two - one, truth, other, n, *second)]

    def often(shown: float, truth: float, n: int, other: int, least: float, most: float) -> bool:
        p = np.linspace(least, max(least, most), 17)
        return least <= most and bool((chance_at_most(shown, n, p, other, p - truth) > level).any())

    start, end = abs(one - two), max(high - floor, ceiling - low)
    short, long = start, end
    while long - short > max(PRECISION / 2 * (long - start), 1e-9):  # by some of the chances
        middle = (short + long) / 2
        short, long = (middle, long) if any(often(*law) for law in laws(middle)) else (short, middle)
    while long < end:
        long += PRECISION * (long - start)
        if all(rarely_shown(*law, level) for law in laws(long)):  # by all
            break
    return min(long, end)


def smallest_limit(rows: np.ndarray, delta: float, kind: str) -> float:
    """Return what the certified disparity between groups of these rows (K,) is never below, whatever the rows show.

    The two smallest groups decide.

    >>> rows = np.array([300, 16_000])
    >>> [round(smallest_limit(rows, 0.05, kind), 3) for kind in KINDS]
    [0.063, 0.048, 0.004]
    """
    two = np.sort(rows)[:2]
    if not two[0]:
        return 1.0
    if kind == "any values":
        return min(1.0, deviation(two, delta)[0])
    return min(1.0, (_least_of_hard if kind == "hard" else _least_of_rates)(two, delta))


def equal_limit(rows: np.ndarray, delta: float, kind: str, rate: float = 0.0) -> float:
    """Return the bound of what shows no disparity between groups of these rows; if binary, all show this rate.

    >>> rows = np.array([300, 16_000])
    >>> [round(equal_limit(rows, 0.05, "binary", rate), 3) for rate in (0, 0.05, 0.2, 0.5)]
    [0.01, 0.026, 0.042, 0.049]
    """
    two = np.sort(rows)[:2]
    if not two[0]:
        return 1.0
    if kind == "binary":
        count = max(round(rate * int(two[0])), int(rate > 0))  # the larger group shows the same rate
        counts = np.rint(count / two[0] * two).astype(np.int64)
        return min(1.0, limit_of_rates(counts, two, delta)[0] - abs(float(np.subtract(*counts / two))))
    return min(1.0, (limit_of_difference(0.0, two, delta) if kind == "hard" else deviation(two, delta))[0])


def _least_of_hard(rows: np.ndarray, delta: float) -> float:
    """Return a difference that rows without any would often hide: no limit that is proved is below it."""
    most, name = limit_of_difference(0.0, rows, delta)
    if name != EXACT:
        return most
    (n, other), least = rows.tolist(), 0.0
    for _ in range(HALVINGS):
        truth = (least + most) / 2
        p = np.linspace(truth, 1, 65)
        often = (chance_at_most(0.0, n, p, other, p - truth) > delta + 2 * ROUNDING).any()
        least, most = (truth, most) if often else (least, truth)
    return least


def _least_of_rates(rows: np.ndarray, delta: float) -> float:
    """Return what the limits of all outcomes of two groups are not below: outcomes near 0 are looked at one by one."""
    most, name = limit_of_rates(np.zeros(2, dtype=np.int64), rows, delta)
    if name != BERGER_BOOS:
        return most
    (n, other), level, least = rows.tolist(), (1 - REGION) * delta + ROUNDING, most
    x = np.arange(n // 2 + 1)  # the others are complements of these
    long = _upper(x, n, 2 * level) - 1 + _upper(n - x, n, 2 * level) >= 2 * most
    for count in x[~long].tolist():
        low, high = (math.floor(other * (count / n + side * most)) for side in (-1, 1))
        y = np.arange(max(low, 0), min(high + 1, other) + 1)  # further apart than `most`: limits are not below that
        least = min(least, float(_below(count, n, y, other, level).min()))
    return least


def _below(x: int, n: int, y: np.ndarray, other: int, level: float) -> np.ndarray:
    """Return lower bounds of the limits of outcomes x of n and y of other: rates that would often show as little.

    One group's rate is what it shows, the other's as far away as its exact limit: the chance that both show at most
    their difference is at least the product of the chances of each.
    """
    one, two = x / n, y / other
    found = [
        _upper(x, n, level / binom.sf(y - 1, other, two)) - two,
        two - 1 + _upper(n - x, n, level / binom.cdf(y, other, two)),
        _upper(y, other, level / binom.sf(x - 1, n, one)) - one,
        one - 1 + _upper(other - y, other, level / binom.cdf(x, n, one)),
    ]
    return np.maximum(np.max(found, axis=0), np.abs(one - two))


def _upper(k: np.ndarray | int, n: int, delta: np.ndarray | float) -> np.ndarray:
    """Return exact upper limits of chances that came true k times of n (Clopper and Pearson)."""
    return np.where(np.equal(k, n), 1.0, beta.isf(delta, np.add(k, 1), np.maximum(np.subtract(n, k), 1)))
