"""A certificate for all times: batch by batch a limit is proved, contradicted, or open."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd

from fairbits.certificate.anytime import MonitorContent, TwoGroups, Watched, places
from fairbits.certificate.certificate_record import at_least, at_most, percent
from fairbits.certificate.certificate_state import read_content
from fairbits.certificate.certification import CodedRows, coded_rows, numbered_rows
from fairbits.certificate.confidence_bounds import MAX_BITS, GroupSums, group_sums
from fairbits.certificate.released_code import Release, fitted_code
from fairbits.encoding import GroupEncoder
from fairbits.encoding.columns import label
from fairbits.errors import InputError
from fairbits.settings import check_value
from fairbits.storage import file_errors, replace_file

PROVED, OPEN, CONTRADICTED = "proved", "open", "contradicted"
KEPT = ("limit", "confidence", "draws", "levels", "groups", "about", "by_person", "kind", "decisions", "batches")


class CertificateMonitor:
    """Watch a limit on the disparity batch by batch: at any time it is proved, contradicted, or open.

    Each statement is wrong with probability at most 1 - confidence over the whole stream, however often you look and
    whenever you stop. docs/certificate.md has the proof. The rows of a batch must be new people, drawn independently,
    who played no part in training or choosing the model. "Proved" is about the one population that all batches come
    from. "Contradicted" needs no such thing: the disparity was above the limit in at least one batch. Once said, either
    stays; if the population changes after "proved", the verdict becomes "contradicted" when that is certain. The first
    batch only says where to look for a contradiction.

    Parameters
    ----------
    limit : on the disparity (total variation) between any two groups, between 0 and 1
    confidence : of each statement
    draws : of a random code, that a recipient has of each person
    levels : the cuts at which scores are rounded, as in `certify`
    groups : of decisions with several sensitive columns: their "intersection", or "each" on its own
    about : a name of what is watched, kept with the state

    Examples
    --------
    >>> monitor, rng = CertificateMonitor(0.1), np.random.default_rng(0)
    >>> for _ in range(4):
    ...     monitor = monitor.add(rng.integers(0, 2, 2000), sensitive_features=rng.integers(0, 2, 2000))
    >>> monitor.verdict, round(monitor.at_most, 3)
    ('proved', 0.038)
    """

    def __init__(
        self,
        limit: float,
        *,
        confidence: float = 0.95,
        draws: int = 1,
        levels: Sequence[float] | None = None,
        groups: str = "intersection",
        about: str = "",
    ):
        for name, value in (("limit", limit), ("confidence", confidence)):
            check_value(name, value, above=0, below=1)
        self.limit, self.confidence, self.groups, self.about = float(limit), float(confidence), groups, about
        self.draws, self.levels = Release(draws).draws, None if levels is None else [float(cut) for cut in levels]
        self.by_person: bool | None = None
        self.kind: tuple[int, bool, bool] | None = None  # bits of a code, whether it is hard, or decisions
        self.decisions: list[str] = []
        self.batches: list[str] = []
        self._history: list[tuple[int, float, float]] = []
        self._encoder: GroupEncoder | None = None
        self._pairs: list[TwoGroups] = []

    def add(
        self, source: Any, X: Any = None, *, sensitive_features: Any, person: Any = None, batch: str | None = None
    ) -> Self:
        """Add a batch of rows, which played no part in training, tuning or choosing the model.

        Parameters
        ----------
        source : what is released about the rows, as in `certify`: the same model, or decisions of the same kind
        X : the rows, for a model
        sensitive_features : their groups; of decisions, the first batch says which groups there are
        person : one identifier per row, where people have several rows; all rows of a person must be in one batch
        batch : its name; a name is refused the second time
        """
        if batch and batch in self.batches:
            raise InputError(f"Batch {batch!r} was added before.", remedy="Add every batch once.")
        encoder = self._encoder or getattr(fitted_code(source, None)[0], "group_encoder_", None)
        if encoder is None and not isinstance(source, CodedRows):
            encoder = GroupEncoder(groups=self.groups, min_group_size=1).fit(sensitive_features)
        coded = coded_rows(source, X, sensitive_features, self.levels, encoder)
        kind = (0 if coded.decision else coded.theta.shape[1], coded.hard, coded.decision)
        names, by_person = coded.encoder.names_, person is not None
        if self._encoder and (self.kind, self.by_person, self._encoder.names_) != (kind, by_person, names):
            problem = "This batch has another kind of code, other groups, or a person column where others had none."
            raise InputError(problem, remedy="Pass every batch in the same form.")
        found, decisions = self._sums(coded, sensitive_features, person)
        self.kind, self.by_person, self.decisions = kind, by_person, decisions
        self._encoder, self.groups = coded.encoder, coded.encoder.groups
        two_groups = places(names)
        self._pairs = self._pairs or [TwoGroups.empty(found[0].words.shape[1]) for _ in two_groups]
        watched = Watched(self.limit, 1 - self.confidence, len(self._pairs))
        for pair, (column, *two) in zip(self._pairs, two_groups, strict=True):
            pair.add(GroupSums(found[column].words[two], found[column].people[two]), watched)
        self.batches.append(batch or "")
        self._history.append((self.rows + int(found[0].people.sum()), self.at_least, self.at_most))
        return self

    def _sums(self, coded: CodedRows, sensitive_features: Any, person: Any) -> tuple[list[GroupSums], list[str]]:
        """Return the sums of every column, with a place for every decision so far, and these."""
        rows = numbered_rows(coded, sensitive_features, None, person)
        release = Release(self.draws, hard=coded.hard)
        if rows.theta.shape[1] * self.draws > MAX_BITS:
            raise InputError(
                f"The code has too many words: at most {MAX_BITS} bits are possible.", remedy="Use fewer bits."
            )
        named = None if coded.named is None else [label(value) for value in coded.named]
        decisions = self.decisions + sorted(set(named or []) - set(self.decisions))
        found = []
        for column, names in enumerate(coded.encoder.names_):
            theta, groups, who = rows.stratum(column, None)
            sums = group_sums(theta, groups, len(names), release, person=who)
            assert sums is not None  # at most MAX_BITS
            if named is not None:
                words = np.zeros((len(names), len(decisions)))
                words[:, [decisions.index(name) for name in named]] = sums.words[:, : len(named)]
                sums = sums._replace(words=words)
            found.append(sums)
        return found, decisions

    @property
    def at_least(self) -> float:
        """A lower bound on the disparity, in some batch at least."""
        return max((pair.at_least for pair in self._pairs), default=0.0)

    @property
    def at_most(self) -> float:
        """An upper bound on the disparity, of the population that all batches come from."""
        return max((pair.at_most for pair in self._pairs), default=1.0)

    @property
    def rows(self) -> int:
        """Rows so far; people, where people have several."""
        return self._history[-1][0] if self._history else 0

    @property
    def verdict(self) -> str:
        """What is known of the limit: "proved", "open" or "contradicted"."""
        return self._verdict(self.at_least, self.at_most)

    def _verdict(self, low: float, high: float) -> str:
        return CONTRADICTED if low > self.limit else PROVED if high <= self.limit else OPEN

    @property
    def history(self) -> pd.DataFrame:
        """The rows so far, the bounds and the verdict after every batch."""
        frame = pd.DataFrame(self._history, columns=["rows", "at_least", "at_most"])
        return frame.assign(verdict=[self._verdict(low, high) for _, low, high in self._history])

    @property
    def waiting(self) -> list[str]:
        """Groups without rows so far, which nothing can be proved of."""
        if self._encoder is None:
            return []
        titles, names = self._encoder.titles_, self._encoder.names_
        pairs = zip(self._pairs, places(names), strict=True)
        found = {(c, (s, r)[int(p.waiting.people[0] > 0)]) for p, (c, s, r) in pairs if not p.weight}
        return [f"{titles[c]}: {names[c][s]}" for c, s in sorted(found)]

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict and how it came about as plain lists, numbers and texts, ready for JSON."""
        names = ("verdict", "limit", "confidence", "rows", "at_least", "at_most", "waiting")
        return {name: getattr(self, name) for name in names} | {"history": self.history.to_dict("records")}

    def __str__(self) -> str:
        said, n = self.verdict, len(self._history)
        _, hard, decision = self.kind or (0, False, False)
        code = Release(self.draws, hard=hard).describe()
        rates = "the decision" if decision else f"any decision made from {code}"
        differ = f"the rates of {rates} differ between two groups by"
        sure, limit = f"at {percent(self.confidence)} confidence", f"{self.limit:g}"
        words = {
            PROVED: f"{sure}, in the population that these batches come from, {differ} at most {limit}.",
            CONTRADICTED: f"{sure}, {differ} more than {limit} in the population of at least one batch.",
            OPEN: f"these batches neither prove nor contradict the limit of {limit}.",
        }
        rows = "people" if self.by_person else "rows"
        count = f"{n} batch{'es' * (n != 1)}, {self.rows:,} {rows}"
        lines = [f"{said.capitalize()} ({count}): {words[said]}"]
        low, high = at_least(self.at_least, 4), at_most(self.at_most, 4)
        if self.at_least > self.at_most:
            lines.append(
                f"The population changed: the disparity is at least {low} in some batch, and was at most {high} before "
                "it."
            )
        else:
            lines.append(f"Disparity: at least {low} and at most {high}.")
        lines.append(f"Each bound holds {sure}, however often you look.")
        lines += [f"No rows yet from: {', '.join(self.waiting)}."] if self.waiting else []
        return "\n".join(lines)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a JSON file, whole or not at all; it has sums and no rows."""
        known = {name: getattr(self, name) for name in KEPT} | {"history": self._history}
        with file_errors(Path(path)):
            replace_file(Path(path), MonitorContent.of(self._encoder, self._pairs, known).model_dump_json())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a state that `save` wrote; it goes on with the next batch."""
        content = read_content(MonitorContent, path)
        monitor = cls(content.limit)
        for name in KEPT:
            setattr(monitor, name, getattr(content, name))
        monitor._history, (monitor._encoder, monitor._pairs) = content.history, content.build()
        return monitor
