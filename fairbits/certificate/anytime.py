"""Bounds on a disparity that hold at all times together: rows come in batches, and you may look after each.

docs/certificate.md has the theorem and its proof. A batch with n and m rows of two groups weighs w = n m / (n + m); so
the weighted mean of the differences of the batches has a variance of at most 1 / (4 W), with W the sum of the weights.
"""

import math
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator
from scipy.optimize import brentq
from scipy.special import log_ndtr

from fairbits.certificate.confidence_bounds import MAX_BITS, GroupSums
from fairbits.encoding import GroupEncoder
from fairbits.encoding.group_encoder import SensitiveColumn
from fairbits.storage import need

PRECISION = 1e-6  # of a lower bound
ROUNDING = 1e-9  # added to the boundary

Share = Annotated[float, Field(ge=0, le=1)]
Inside = Annotated[float, Field(gt=0, lt=1)]
Count = Annotated[int, Field(ge=0)]
NEAR = 1 + 1e-9


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


def places(names: list[list[str]]) -> list[tuple[int, int, int]]:
    """Return the column and the two groups of every pair.

    >>> places([["F", "M"], ["x", "y", "z"]])
    [(0, 0, 1), (1, 0, 1), (1, 0, 2), (1, 1, 2)]
    """
    return [(column, s, r) for column, own in enumerate(names) for s, r in combinations(range(len(own)), 2)]


class PairContent(BaseModel):
    """Two groups."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    waiting: list[list[Annotated[float, Field(ge=0)]]]  # empty if nobody waits
    people: Annotated[list[Count], Field(min_length=2, max_length=2)]  # who wait
    table: list[float]
    recent: list[float]
    weight: Annotated[float, Field(ge=0)]
    gains: list[float]
    weights: list[float]
    at_least: Share
    at_most: Share

    @classmethod
    def of(cls, pair: TwoGroups) -> Self:
        """Return what a file holds of two groups."""
        known = {name: getattr(pair, name) for name in ("weight", "gains", "weights", "at_least", "at_most")}
        people, words = pair.waiting.people.tolist(), pair.waiting.words.tolist()
        tables = {"table": pair.table.tolist(), "recent": pair.recent.tolist()}
        return cls(waiting=words if any(people) else [], people=people, **tables, **known)

    def build(self) -> TwoGroups:
        """Return the two groups; raise ValueError if the numbers do not fit together."""
        words, table = len(self.table), np.array(self.table)
        need(len(self.recent) == words, "tables of different lengths")
        waits = any(self.people)
        need({len(own) for own in self.waiting} == ({words} if waits else set()), "words of others wait")
        waiting = np.array(self.waiting) if waits else np.zeros((2, words))
        need(waiting.shape == (2, words) and not all(self.people), "rows wait for nobody")
        need(np.allclose(waiting.sum(1), self.people), "sums that wait do not add up to their people")
        need(abs(table.sum()) <= 1e-6 * max(self.weight, 1), "a table of differences does not add up to 0")
        need(np.abs(table).sum() <= 2 * self.weight * NEAR, "a table is larger than its weight")
        need(len(self.gains) == len(self.weights), "gains without weights")
        steps, gains = (np.diff([0.0, *sums]) for sums in (self.weights, self.gains))
        need(bool((steps > 0).all() and (np.abs(gains) <= steps * NEAR).all()), "gains beyond their weights")
        need(sum(self.weights[-1:]) <= self.weight * NEAR, "weights beyond their sum")
        known = self.weight, list(self.gains), list(self.weights), self.at_least, self.at_most
        return TwoGroups(GroupSums(waiting, np.array(self.people)), table, np.array(self.recent), *known)


class MonitorContent(BaseModel):
    """A monitor."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    format: Annotated[int, Field(ge=1, le=1)] = 1
    limit: Inside
    confidence: Inside
    draws: Annotated[int, Field(ge=1, le=MAX_BITS)]
    levels: list[float] | None
    groups: str
    about: str
    by_person: bool | None
    kind: tuple[Count, bool, bool] | None
    decisions: list[str]
    batches: list[str]
    history: list[tuple[Count, Share, Share]]
    sensitive: Annotated[list[SensitiveColumn], Field(max_length=64)]
    cells: list[Count] | None
    pairs: list[PairContent]

    @classmethod
    def of(cls, encoder: GroupEncoder | None, pairs: list[TwoGroups], known: dict[str, Any]) -> Self:
        """Return what a file holds of a monitor."""
        cells = None if encoder is None or encoder.cells_ is None else encoder.cells_.tolist()
        sensitive = [] if encoder is None else encoder.levels_
        return cls(**known, sensitive=sensitive, cells=cells, pairs=[PairContent.of(pair) for pair in pairs])

    @model_validator(mode="after")
    def _fits(self) -> Self:
        _, pairs = self.build()
        rows, least, most = ([row[i] for row in self.history] for i in range(3))
        need(len(self.batches) == len(rows) and rows == sorted({0, *rows})[1:], "batches without rows")
        need(least == sorted(least) and most == sorted(most, reverse=True), "bounds that get worse")
        last = max((p.at_least for p in pairs), default=0.0), max((p.at_most for p in pairs), default=1.0)
        need(not rows or (least[-1], most[-1]) == last, "bounds of other batches")
        need((self.kind is None) == (not rows) == (self.by_person is None) == (not pairs), "rows without groups")
        return self

    def build(self) -> tuple[GroupEncoder | None, list[TwoGroups]]:
        """Return the groups and their pairs; raise ValueError if they do not fit together."""
        if not self.sensitive:
            need(not self.pairs, "pairs without groups")
            return None, []
        encoder = GroupEncoder(groups=self.groups, min_group_size=1).restore(self.sensitive, self.cells)
        pairs = [pair.build() for pair in self.pairs]
        need(len(pairs) == len(places(encoder.names_)) > 0, "pairs of other groups")
        return encoder, pairs
