"""Bounds on a disparity that hold at all times together: rows come in batches, and you may look after each.

docs/certificate.md has the theorem and its proof. A batch with n and m rows of two groups weighs w = n m / (n + m); so
the weighted mean of the batches' differences has a variance of at most 1 / (4 W), with W the sum of the weights.
"""

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr

from fairbits.certificate.confidence_bounds import GroupSums

PRECISION = 1e-6  # of a lower bound
ROUNDING = 1e-9  # added to the boundary


class Watched(NamedTuple):
    """What is watched: a limit on the disparity, the chance of error, and the number of pairs of groups."""

    limit: float
    delta: float
    pairs: int = 1

    @property
    def planned(self) -> float:
        """The weight of about as many rows as can prove the limit: the slack is then half of it."""
        return (2 * math.log(1 / self.delta) + math.log1p(2 * math.log(1 / self.delta))) / self.limit**2


@lru_cache(4096)
def anytime_slack(weight: float, limit: float, delta: float) -> float:
    """Return how far a weighted mean of differences may fall below its expectation, ever, at this sum of weights.

    With probability 1 - delta it does so at no time. It is shortest, in units of the standard deviation, near the
    weight at which it is half of the limit.

    >>> round(anytime_slack(800.0, 0.1, 0.05), 4)  # 1,600 rows in each of two groups; Hoeffding, at one time: 0.0433
    0.0489
    """
    level = math.log(0.5 / delta) + math.log1p(weight * limit**2) / 2
    highest = math.sqrt(2 * (level + math.log(2)))
    z = brentq(lambda z: z * z / 2 + float(log_ndtr(z)) - level, 0.0, highest) + ROUNDING
    return float(z * math.sqrt(weight + limit**-2) / (2 * weight))


def log_evidence(gains: np.ndarray, weights: np.ndarray, level: float, limit: float) -> np.ndarray:
    """Return the log of the evidence that the disparity was above a level in some batch; below it, rarely large.

    Parameters
    ----------
    gains : (..., batches) up to each batch, the sum of weighted differences on sets that were chosen before the batch
    weights : (batches,) up to each batch, the sum of weights
    """
    gain, weight = (sums[..., -1:] - sums + np.diff(sums, prepend=0) for sums in (gains, weights))  # since each start
    z = 2 * (gain - level * weight) / np.sqrt(weight + limit**-2)
    start = np.arange(1, len(weights) + 1)  # the evidence since start k counts 1 / (k (k + 1))
    logs = z * z / 2 + log_ndtr(z) + math.log(2) - np.log1p(weight * limit**2) / 2 - np.log(start * (start + 1.0))
    largest = logs.max(-1, keepdims=True)
    return largest[..., 0] + np.log(np.exp(logs - largest).sum(-1))


@dataclass
class TwoGroups:
    """What the batches of two groups show; rows of one group wait until there are some of the other."""

    waiting: GroupSums
    table: np.ndarray  # (words,) sum of weight * (share in the first group - share in the second)
    recent: np.ndarray  # (words,) the same, with earlier batches forgotten: it chooses the set for the next batch
    weight: float = 0.0
    gains: list[float] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    at_least: float = 0.0  # the largest lower bound so far
    at_most: float = 1.0  # the smallest upper bound so far

    @classmethod
    def empty(cls, words: int) -> "TwoGroups":
        """Return the state before any row."""
        return cls(_nobody(words), np.zeros(words), np.zeros(words))

    @property
    def shown(self) -> float:
        """The disparity of the rows themselves."""
        return float(np.abs(self.table).sum()) / 2 / self.weight if self.weight else 1.0

    def add(self, sums: GroupSums, watched: Watched) -> None:
        """Add the sums (2, words) of the rows of a batch, which may have more words than those before."""
        words = max(sums.words.shape[1], len(self.table))
        self.table, self.recent = _wide(self.table, words), _wide(self.recent, words)
        waiting, new = (part._replace(words=_wide(part.words, words)) for part in (self.waiting, sums))
        sums = waiting.merge(new)
        if not sums.people.all():
            self.waiting = sums
            return
        n, m = sums.people.tolist()
        weight = n * m / (n + m)
        step = weight * (sums.shares[0] - sums.shares[1])
        if self.weight:  # else no set was chosen before
            self.gains.append(sum(self.gains[-1:]) + float(step[self.recent > 0].sum()))
            self.weights.append(sum(self.weights[-1:]) + weight)
            self._raise_lower_bound(watched)
        self.recent = step + self.recent * (watched.planned / (watched.planned + weight))
        self.table, self.weight = self.table + step, self.weight + weight
        self.waiting = _nobody(len(self.table))
        self.at_most = min(self.at_most, self.shown + anytime_slack(self.weight, watched.limit, watched.delta))

    def _raise_lower_bound(self, watched: Watched) -> None:
        """Find the largest level that the evidence contradicts; it falls as the level rises."""
        gains, weights, enough = np.array(self.gains), np.array(self.weights), math.log(watched.pairs / watched.delta)

        def beyond(level: float) -> float:
            return float(log_evidence(gains, weights, level, watched.limit)) - enough

        if beyond(self.at_least) > 0:  # never at a level of 1
            found = brentq(beyond, self.at_least, 1.0, xtol=PRECISION / 2)
            self.at_least = max(self.at_least, found - PRECISION)


def _wide(table: np.ndarray, words: int) -> np.ndarray:
    """Add zeros for words that were not known before."""
    more = words - table.shape[-1]
    return np.concatenate([table, np.zeros((*table.shape[:-1], more))], -1) if more else table


def _nobody(words: int) -> GroupSums:
    return GroupSums(np.zeros((2, words)), np.zeros(2, dtype=np.int64))
