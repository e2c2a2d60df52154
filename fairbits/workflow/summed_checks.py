"""A large table as sums: what its rows show about a model, part by part, on any worker, in constant memory."""

import copy
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from fairbits.certificate import Certificate, CertificateState, ProvedGap
from fairbits.certificate.certification import CodedRows
from fairbits.certificate.lower_bounds import gap_of_sums
from fairbits.encoding.recognition import ComparedRows, RowSketch, person_numbers, row_hashes
from fairbits.errors import InputWarning
from fairbits.estimators.promises import released_class
from fairbits.tables.counted_rows import PeopleFiles
from fairbits.tables.fitted_model import FittedModel, RowPiece, RowReader, open_model
from fairbits.tables.table_file import Table, TableFile, TablePart
from fairbits.workers import do_jobs
from fairbits.workflow.option_words import worded
from fairbits.workflow.recertified import (
    NOT_FRESH,
    Recertified,
    classes_of,
    compared_limits,
    limiting_label,
    verdict_of,
)

STREAMED_ROWS = 500_000  # from here on a table is summed up part by part
Halves = list[CertificateState]  # of the rows, at random: one chooses what to measure, the other measures it


class SumJob(NamedTuple):
    """A part of a table, to be summed up by any worker."""

    model: str  # the folder
    part: TablePart
    number: int
    label: str | None  # the column of the labels, where a limit is within them
    reading: tuple[tuple[str, str | None], ...]  # separator and encoding


@dataclass
class RowSums:
    """What some rows of a table show: sums of the code, the class or both, and whether they are rows of the fit."""

    halves: dict[str, Halves]
    seen: ComparedRows | None
    rows: int = 0

    @classmethod
    def nothing(cls, model: FittedModel, label: str | None, *, by_person: bool = False) -> Self:
        """Return the sums of no rows."""
        sketch = (model.record or {}).get("sketch")
        kept = model.limit.of if model.limit is not None else ("code",)
        labels = None if label is None else model.method.classes_
        return cls(
            {of: [_state(model, of, labels, by_person) for _ in range(2)] for of in kept},
            None if sketch is None else ComparedRows(RowSketch(**sketch)),
        )

    def add(self, model: FittedModel, piece: RowPiece, y: Any, rng: np.random.Generator, person: Any = None) -> None:
        """Add rows, each to one of the halves; or all rows of these people, each person to one of the halves."""
        half = rng.integers(2, size=len(piece.X))
        if person is not None:
            half = half[person_numbers(person, len(half))]
        self.rows += len(piece.X)
        for of, states in self.halves.items():
            coded = released_rows(model, piece.X, of)
            for number, state in enumerate(states):
                own = half == number
                part = coded._replace(theta=coded.theta[own])
                known = {"y": None if y is None else y[own], "person": None if person is None else person[own]}
                state.add(part, sensitive_features=piece.s[own], **known)  # type: ignore[index]

    def merge(self, other: "RowSums") -> Self:
        """Add the rows of another part."""
        for of, states in self.halves.items():
            for mine, theirs in zip(states, other.halves[of], strict=True):
                mine.merge(theirs)
        if self.seen is not None and other.seen is not None:
            self.seen.merge(other.seen)
        self.rows += other.rows
        return self

    def certificate(self, of: str, confidence: float) -> Certificate:
        """Return what all rows prove."""
        first, second = self.halves[of]
        return copy.copy(first).merge(second).finish(confidence)

    def gap(self, titles: Sequence[str], of: str, place: int, label: Any, delta: float) -> ProvedGap:
        """Return the lower bounds that all rows prove."""
        choosing, measuring = (state.sums(titles[place], label) for state in self.halves[of])
        return gap_of_sums(choosing, measuring, delta)

    def to_dict(self) -> dict[str, Any]:
        """Return the sums as plain lists, numbers and texts, ready for JSON."""
        halves = {
            of: [json.loads(state.to_json(min_group_size=0)) for state in states] for of, states in self.halves.items()
        }
        return {"rows": self.rows, "halves": halves, "seen": None if self.seen is None else self.seen.to_dict()}

    def read(self, content: dict[str, Any], path: Path) -> Self:
        """Add the sums that `to_dict` returned; errors name the path."""
        halves = {
            of: [CertificateState.from_json(json.dumps(state), path) for state in states]
            for of, states in content["halves"].items()
        }
        seen = None
        if self.seen is not None and content["seen"] is not None:
            seen = ComparedRows.of_dict(self.seen.sketch, content["seen"])
        return self.merge(RowSums(halves, seen, content["rows"]))


def released_rows(model: FittedModel, X: np.ndarray, of: str | None = None) -> CodedRows:
    """Return what a model releases about rows: its code, or the class; by default what is certified."""
    if of == "class" or (of is None and model.decides):
        return released_class(model.method, X)
    return CodedRows(model.method.code_probabilities(X).astype(np.float64), model.groups, hard=model.is_hard)


def _state(model: FittedModel, of: str, labels: Any, by_person: bool) -> CertificateState:
    if of == "class":
        classes = model.method.classes_.tolist()
        return CertificateState(classes, groups=model.groups, labels=labels, by_person=by_person)
    return CertificateState(model.method, labels=labels, by_person=by_person)


@lru_cache(1)
def _opened(folder: str) -> FittedModel:
    return open_model(Path(folder))


def sum_part(job: SumJob) -> tuple[RowSums, dict[str, Any]]:
    """Sum up a part of a table; return also what its reader has counted."""
    import torch

    torch.set_num_threads(1)  # on a busy machine threads wait for each other
    model, part = _opened(job.model), job.part
    table = TableFile(part.path, groups=(part.first, part.last), **dict(job.reading))
    reader, sums = RowReader(model, table, groups=True), RowSums.nothing(model, job.label)
    rng = np.random.default_rng([0, job.number])
    for piece, y in _labelled(reader, sums, job.label):
        sums.add(model, piece, y, rng)
    sums.halves = {of: [state.without_model() for state in states] for of, states in sums.halves.items()}
    return sums, reader.counts()


def summed_people(
    model: FittedModel, table: Table, person: Sequence[str], label: str | None
) -> tuple[RowSums, RowReader]:
    """Sum up a table in which people have several rows, and each counts once: those of some people at a time."""
    limiting, reader = limiting_label(model, table, label), RowReader(model, table, groups=True)
    sums, files = RowSums.nothing(model, limiting, by_person=True), PeopleFiles(table)
    for piece, y in _labelled(reader, sums, limiting, person):
        files.write(piece.typed[list(person)], piece.X, piece.s, y)
    rng = np.random.default_rng(0)
    for people, (X, s, y) in files.read():
        sums.add(model, RowPiece(X, people, people, s, np.ones(len(X), bool)), y, rng, people)
    return sums, reader


def _labelled(
    reader: RowReader, sums: RowSums, label: str | None, more: Sequence[str] = ()
) -> Iterator[tuple[RowPiece, Any]]:
    """Yield rows of known groups, and labels where a limit is within them; see whether they are rows of the fit."""
    model, table = reader.model, reader.table
    fit_label = (model.record or {}).get("task", {}).get("label")
    named = [name for name in dict.fromkeys([label, fit_label]) if name in table.names]
    for piece in reader.pieces(typed=[*dict.fromkeys([*named, *more])]):
        if not len(piece.X):
            continue
        if sums.seen is not None:
            own = model.encoder.own_columns(piece.X)
            fitted = piece.typed[fit_label].notna().to_numpy() if fit_label in named else slice(None)
            sums.seen.add(row_hashes(own[fitted]))  # the fit leaves rows without a label out
        y = None
        if label is not None:
            labels = classes_of(model, piece.typed[label], table)
            has = labels.notna().to_numpy()
            piece = piece._replace(X=piece.X[has], s=piece.s[has], typed=piece.typed[has])  # type: ignore[index]
            y = labels[has].to_numpy(model.method.classes_.dtype)
        yield piece, y


def sum_jobs(model: FittedModel, table: Table, label: str | None = None) -> list[SumJob]:
    """Return the parts of a table as jobs."""
    limiting, folder = limiting_label(model, table, label), str(model.place)
    parts = enumerate(table.parts())
    return [SumJob(folder, part, number, limiting, tuple(table.reading.items())) for number, part in parts]


def summed_up(
    model: FittedModel, table: Table, jobs: Sequence[SumJob], *, label: str | None = None, **how: Any
) -> tuple[RowSums, RowReader]:
    """Sum up parts of a table and put them together in order; `how` is for `do_jobs`."""
    found: dict[int, tuple[RowSums, dict[str, Any]]] = {}
    do_jobs(jobs, sum_part, lambda job, result, _: found.__setitem__(job.number, result), **how)
    sums = RowSums.nothing(model, limiting_label(model, table, label))
    reader = RowReader(model, table, groups=True)
    for number in sorted(found):  # sums of fractions depend on the order
        sums.merge(found[number][0])
        reader.add_counts(found[number][1])
    return sums, reader


def recertify_sums(model: FittedModel, sums: RowSums, reader: RowReader, confidence: float) -> Recertified:
    """Certify what a model releases from sums of rows that must not have been used in its fit."""
    groups = reader.finish().groups
    assert groups is not None
    limit, notes = model.limit, [*reader.notes, *groups.notes]
    promised = limit is not None and limit.promised
    if sums.seen is not None and sums.seen.recognised:
        return Recertified(None, NOT_FRESH, [], promised, sums.rows, notes)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        proofs = {of: sums.certificate(of, confidence) for of in sums.halves}
    notes += [worded(w.message) for w in caught if isinstance(w.message, InputWarning)]
    compared = []
    if limit is not None and limit.draws == 1:
        labels = list(
            dict.fromkeys(bound.label for bound in next(iter(proofs.values())).bounds if bound.label is not None)
        )
        below: Callable[..., ProvedGap] = partial(sums.gap, model.groups.titles_)
        compared = compared_limits(limit, model.groups.titles_, labels, proofs, below)
    certificate = next(iter(proofs.values()))
    return Recertified(certificate, verdict_of(compared), compared, promised, sums.rows, notes)
