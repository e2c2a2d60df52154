"""Rates of a decision in every group and crossing of groups, with exact intervals, and their ratio."""

from itertools import combinations, permutations
from typing import Any

import numpy as np
import pandas as pd

from fairbits.certificate.limits_of_rates import proportion_limits
from fairbits.encoding import GroupEncoder
from fairbits.encoding.group_encoder import sensitive_columns
from fairbits.errors import InputError


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
    columns = sensitive_columns(sensitive_features, n_rows=len(selected))
    found, everyone = [], np.ones(len(selected), dtype=bool)
    kinds = {"selected": (everyone, selected)}  # among whom, and what happened
    if label is not None:
        kinds["base"] = everyone, label
        kinds |= {"true_positive": (label, selected), "false_positive": (~label, selected)}
        kinds["accuracy"] = everyone, selected == label
    for names in (names for n in sorted({1, min(2, len(columns)), len(columns)}) for names in combinations(columns, n)):
        own_columns = {name: columns[name] for name in names}
        encoder = GroupEncoder(min_group_size=1).fit(own_columns, n_rows=len(selected))
        groups = encoder.transform(own_columns)[:, 0]
        own_rates = []
        for number, group in enumerate(encoder.names_[0]):
            own = groups == number
            row: dict[str, Any] = {"column": encoder.titles_[0], "group": group, "rows": int(own.sum())}
            for name, (among, event) in kinds.items():
                n, k = int((own & among).sum()), int((own & among & event).sum())
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
