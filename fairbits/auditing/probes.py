"""Probes, classifiers that try to recover the sensitive groups from a representation, and intervals of their scores."""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binomtest, norm, rankdata
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array
from threadpoolctl import threadpool_limits

from fairbits.certificate.decision_rates import proportion_limits
from fairbits.certificate.deviations import hoeffding_deviation
from fairbits.errors import InputError

QUICK_ROWS = 20_000  # with these rows the quick probes take seconds


PROBES: dict[str, Callable[[int, np.ndarray], Any]] = {  # made from a seed and the groups (n,) of the training rows
    "logistic": lambda seed, s: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "boosting": lambda seed, s: HistGradientBoostingClassifier(early_stopping=False, random_state=seed),
    "forest": lambda seed, s: RandomForestClassifier(1000, n_jobs=1, random_state=seed),  # the paper's probe
    "mlp": lambda seed, s: make_pipeline(StandardScaler(), _network(seed, s)),
    "neighbours": lambda seed, s: make_pipeline(StandardScaler(), KNeighborsClassifier(math.isqrt(len(s)), n_jobs=1)),
}
QUICK = ("logistic", "boosting")
FULL = tuple(PROBES)


@dataclass(frozen=True)
class ProbeResult:
    """What one probe finds in one view of a representation about one sensitive column; all scores on test rows."""

    model: str
    view: str  # what the probe was given
    column: str  # what it had to find
    rows: int
    auc: float  # of more than two groups the mean of each against the rest
    auc_low: float  # two-sided interval
    auc_high: float
    balanced_accuracy: float  # mean over groups of the share of rows recognised
    balanced_accuracy_low: float  # two-sided interval
    balanced_accuracy_high: float
    proved_balanced_accuracy: float  # one-sided lower bound, valid at any number of rows
    permuted_auc: float  # mean of the AUC for permuted test groups
    permuted_auc_high: float  # its 95 % quantile
    p_value: float  # of an AUC this large if the representation revealed nothing
    shuffled_auc: float  # of the probe trained on shuffled groups: 0.5 on average, if few bits further off by chance


def run_probes(
    Z: Any,
    groups: Any,
    *,
    view: str,
    column: str,
    models: Sequence[str] = QUICK,
    confidence: float = 0.95,
    n_permutations: int = 200,
    random_state: int = 0,
) -> list[ProbeResult]:
    """Train probes on half of the rows and score them on the other half, one result per probe.

    Parameters
    ----------
    Z : (n, d) representation
    groups : (n,) group numbers 0..K-1
    view, column : names that the results carry
    models : names of `PROBES`
    confidence : of each interval on its own, and of the proved accuracies of all models together
    random_state : seed; the halves depend on it and the groups only, so views of the same rows are split alike

    Examples
    --------
    >>> from fairbits.datasets import make_shifted_bits
    >>> data = make_shifted_bits(2000, delta=0.5, random_state=0)
    >>> (found,) = run_probes(data.draw_codes(0), data.groups, view="one draw", column="sex", models=["logistic"])
    >>> found.rows, round(found.auc, 2), found.proved_balanced_accuracy > 0.7
    (1001, 0.94, True)
    """
    if isinstance(models, str) or not len(models) or not set(models) <= set(PROBES):
        raise InputError(f"must be a list of names out of {list(PROBES)}.", argument="models", value=models)
    if not 0 < confidence < 1:
        raise InputError("must lie between 0 and 1, such as 0.95.", argument="confidence", value=confidence)
    if n_permutations < 1:
        raise InputError("must be at least 1.", argument="n_permutations", value=n_permutations)
    Z, s = check_array(Z, dtype=float), _checked_groups(groups)
    if len(Z) != len(s):
        raise InputError(f"Z has {len(Z)} rows and groups has {len(s)}.", remedy="Pass one group number per row.")
    first = halves(s, random_state)
    train, test = (Z[first], s[first]), (Z[~first], s[~first])
    slack = hoeffding_deviation(np.bincount(test[1]), 1 / (s.max() + 1), (1 - confidence) / len(models))
    found = {name: _scores(name, train, test, confidence, slack, n_permutations, random_state) for name in models}
    return [ProbeResult(name, view, column, **scores) for name, scores in found.items()]


def halves(groups: np.ndarray, random_state: int) -> np.ndarray:
    """Draw half of every group, (n,) bool; of an odd number of rows the smaller half."""
    rows = np.random.default_rng(random_state).permutation(len(groups))
    drawn = np.zeros(len(groups), dtype=bool)
    drawn[rows] = pd.Series(rows).groupby(groups[rows]).cumcount() % 2 == 1
    return drawn


def _scores(
    name: str, train: Any, test: Any, confidence: float, slack: float, n_permutations: int, random_state: Any
) -> dict[str, Any]:
    """Train a probe on rows and groups, and return its scores on others; slack is what sampling may add to them."""
    rng = np.random.default_rng([random_state, *name.encode()])
    seed, (Z, known), (Z_test, s) = int(rng.integers(2**31)), train, test
    posterior, shuffled = (_posterior(name, seed, Z, groups, Z_test) for groups in (known, rng.permutation(known)))
    scores, ranks = one_vs_rest(posterior), rankdata(one_vs_rest(posterior), axis=0)
    auc, (auc_low, auc_high) = macro_auc(ranks, s), auc_interval(scores, s, confidence)
    permuted = np.array([macro_auc(ranks, rng.permutation(s)) for _ in range(n_permutations)])
    decision = (posterior / np.bincount(known)).argmax(1)  # as if all groups were equally frequent
    counts, hits = np.bincount(s), np.bincount(s, weights=decision == s)
    accuracy, (low, high) = float(np.mean(hits / counts)), balanced_accuracy_interval(hits, counts, confidence)
    return {
        "rows": len(s),
        "auc": auc,
        "auc_low": auc_low,
        "auc_high": auc_high,
        "balanced_accuracy": accuracy,
        "balanced_accuracy_low": low,
        "balanced_accuracy_high": high,
        "proved_balanced_accuracy": max(accuracy - slack, 1 / len(counts)),
        "permuted_auc": float(permuted.mean()),
        "permuted_auc_high": float(np.quantile(permuted, 0.95)),
        "p_value": float((1 + np.sum(permuted >= auc - 1e-12)) / (1 + n_permutations)),
        "shuffled_auc": macro_auc(rankdata(one_vs_rest(shuffled), axis=0), s),
    }


def _posterior(name: str, seed: int, Z: np.ndarray, s: np.ndarray, Z_test: np.ndarray) -> np.ndarray:
    """Return a fitted probe's probabilities of the groups for test rows, the same for equal rows, (n, K)."""
    distinct, row = np.unique(Z_test, axis=0, return_inverse=True)
    # One thread: on a busy machine the threads of boosting wait for one another, minutes instead of a second.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the scores show how far it got
        return PROBES[name](seed, s).fit(Z, s).predict_proba(distinct)[row]


def _network(seed: int, s: np.ndarray) -> MLPClassifier:
    """Return a network that stops by a tenth of the rows, if every group can give some of them."""
    stops = bool(np.bincount(s).min() >= 2 and len(s) >= 10 * (s.max() + 1))
    return MLPClassifier((64,), n_iter_no_change=15, early_stopping=stops, random_state=seed)


def _checked_groups(groups: Any) -> np.ndarray:
    s = np.asarray(groups)
    if s.ndim != 1 or not len(s) or s.dtype.kind not in "iu" or s.min() < 0:
        raise InputError(f"groups must be one column of numbers 0..K-1; it is {s.dtype} of shape {s.shape}.")
    if not s.any():
        raise InputError("All rows are of group 0; a probe needs two groups.")
    s = s.astype(np.int64)
    small = {group: n for group, n in enumerate(np.bincount(s).tolist()) if n < 2}
    if small:
        problem = f"A probe needs 2 rows or more of every group; these have fewer, as {{group: rows}}: {small}."
        raise InputError(problem, remedy="Merge them with other groups, or leave their rows out.")
    return s


def one_vs_rest(posterior: np.ndarray) -> np.ndarray:
    """Return a score of each group against the rest, (n, K); of two groups, exactly opposite ones."""
    return posterior[:, 1:] * [-1, 1] if posterior.shape[1] == 2 else posterior


def macro_auc(ranks: np.ndarray, groups: np.ndarray) -> float:
    """Return the mean over groups of the AUC of a group against the rest, from ranks of the scores, (n, K).

    >>> macro_auc(rankdata(one_vs_rest(np.array([[0.8, 0.2], [0.5, 0.5], [0.5, 0.5]])), axis=0), np.array([0, 0, 1]))
    0.75
    """
    counts = np.bincount(groups)
    sums = np.bincount(groups, weights=ranks[np.arange(len(groups)), groups])
    return float(np.mean((sums - counts * (counts + 1) / 2) / (counts * (len(groups) - counts))))


def auc_interval(scores: np.ndarray, groups: np.ndarray, confidence: float) -> tuple[float, float]:
    """Return a two-sided confidence interval of the macro AUC of scores (n, K), for a probe that is given.

    DeLong's variance, the sum over rows of (placement - AUC)^2 / rows^2, where a row's placement is the share of the
    other side that it is ordered right with; for more than two groups a row counts with the sum of its terms against
    every group. Each group is given two more rows, one with all placements 0 and one with 1, so that no interval has
    zero width, nor is narrower than DeLong's.
    """
    k = scores.shape[1]
    auc, terms, ends = 0.0, np.zeros(len(groups)), np.zeros((2, k))
    for group, score in enumerate(scores.T):
        own = groups == group
        below = rankdata(score)  # rows of the other side below a row, ties counting half
        for side in (own, ~own):
            below[side] -= rankdata(score[side])
        placement = np.where(own, below / np.sum(~own), 1 - below / np.sum(own))
        mean, n = placement[own].mean(), own.sum()
        auc += mean / k
        terms += (placement - mean) / np.where(own, n, len(own) - n) / k
        ends += np.array([[0 - mean], [1 - mean]]) / np.where(np.arange(k) == group, n, len(own) - n) / k
    margin = norm.isf((1 - confidence) / 2) * math.sqrt(np.sum(terms**2) + np.sum(ends**2))
    return max(float(auc - margin), 0.0), min(float(auc + margin), 1.0)


def balanced_accuracy_interval(hits: np.ndarray, counts: np.ndarray, confidence: float) -> tuple[float, float]:
    """Return a two-sided confidence interval of the mean over groups of hits / counts, (K,) each.

    Wilson's interval in each group; the distances of its ends add in squares (Zou and Donner 2008).

    >>> low, high = balanced_accuracy_interval(np.array([50, 50]), np.array([50, 50]), 0.95)
    >>> round(low, 3), round(high, 3)
    (0.95, 1.0)
    """
    shares = [binomtest(int(k), int(n)).proportion_ci(confidence, "wilson") for k, n in zip(hits, counts, strict=True)]
    rate, ends = hits / counts, np.array(shares)
    below, above = np.linalg.norm(ends - rate[:, None], axis=0) / len(counts)
    return float(rate.mean() - below), float(rate.mean() + above)


def score_intervals(probabilities: np.ndarray, labels: np.ndarray, confidence: float) -> dict[str, tuple[float, float]]:
    """Return two-sided confidence intervals of the accuracy and the AUC of predicted probabilities (n, classes).

    Labels (n,) are numbers of the true classes. The accuracy has an exact interval (Clopper and Pearson); the AUC that
    of `auc_interval`, which is left out if a class has no rows.

    >>> found = score_intervals(np.array([[0.8, 0.2]] * 50 + [[0.3, 0.7]] * 50), np.arange(100) // 50, 0.95)
    >>> {name: (round(low, 3), round(high, 3)) for name, (low, high) in found.items()}
    {'accuracy': (0.964, 1.0), 'auc': (0.945, 1.0)}
    """
    right = int(np.sum(probabilities.argmax(1) == labels))
    found = {"accuracy": proportion_limits(right, len(labels), (1 - confidence) / 2)}
    if (np.bincount(labels, minlength=probabilities.shape[1]) > 0).all():
        found["auc"] = auc_interval(one_vs_rest(probabilities), labels, confidence)
    return found
