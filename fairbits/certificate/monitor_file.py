"""The state of a monitor as a file: what it holds, and the checks before any of it is used."""

from itertools import combinations
from typing import Annotated, Any, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from fairbits.certificate.anytime import TwoGroups
from fairbits.certificate.confidence_bounds import MAX_BITS, GroupSums
from fairbits.encoding import GroupEncoder
from fairbits.encoding.group_encoder import SensitiveColumn
from fairbits.storage import need

Share = Annotated[float, Field(ge=0, le=1)]
Inside = Annotated[float, Field(gt=0, lt=1)]
Count = Annotated[int, Field(ge=0)]
NEAR = 1 + 1e-9


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
        encoder = GroupEncoder(groups=self.groups, min_group_size=1)
        encoder.levels_, shape = self.sensitive, [len(level.labels) for level in self.sensitive]
        crossed = self.groups == "intersection"
        need((self.cells is not None) == crossed and (crossed or self.groups == "each"), "cells are for crossed groups")
        cells = self.cells or [0]
        rising = cells == sorted(set(cells)) and cells[-1] < np.prod(shape, dtype=float)
        need(rising and (len(shape) > 1 or not crossed or len(cells) == shape[0]), "cells are no combinations")
        encoder.cells_ = None if self.cells is None else np.array(self.cells, dtype=np.int64)
        pairs = [pair.build() for pair in self.pairs]
        need(len(pairs) == len(places(encoder.names_)) > 0, "pairs of other groups")
        return encoder, pairs
