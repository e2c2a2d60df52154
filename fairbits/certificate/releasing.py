"""What is released of each person, and the guarded way to release it: one place for all draws that leave."""

import hashlib
import json
import os
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.pipeline import Pipeline
from torch import Tensor

from fairbits.certificate.ledger import Ledger, OtherPeopleError
from fairbits.encoding.columns import label
from fairbits.errors import InputError

ODD = np.uint64(0x9E3779B97F4A7C15)  # an odd number: no two repeats get the same number
NAMED_BITS = 16  # up to here a coarse code is named in the record by all its words
COARSE_DRAWS = 64  # codes drawn per row to learn how often it falls into each cell


def system_uniforms(n: int, m: int) -> np.ndarray:
    """Return fresh uniforms in [0, 1) from the operating system, (n, m): no seed makes them again."""
    return np.frombuffer(os.urandom(4 * n * m), np.uint32).reshape(n, m) * 2.0**-32


@dataclass(frozen=True)
class Release:
    """What a receiver gets of each person; the numbers of a certificate hold for this and nothing more.

    Parameters
    ----------
    draws : independent codes of the same person
    eps : chance that a bit is flipped on release
    coarse : word -> cell, as a table of 2^m cell numbers (words in the order of counting, first bit most significant)
        or a function of an array of codes (n, m) of 0 and 1; None releases the code itself
    """

    draws: int = 1
    eps: float = 0.0
    coarse: Callable[[np.ndarray], np.ndarray] | np.ndarray | None = None

    def __post_init__(self) -> None:
        if not (isinstance(self.draws, Integral) and self.draws >= 1):
            raise InputError("must be a whole number of at least 1.", argument="draws", value=self.draws)
        if not 0 <= self.eps < 0.5:
            raise InputError(
                "must be at least 0 and below 0.5, where bits are fair coins.", argument="eps", value=self.eps
            )
        if self.coarse is not None and self.draws > 1:
            raise InputError(
                "cannot be certified for a coarse code.", argument="draws", value=self.draws, remedy="Use 1."
            )

    def theta(self, theta: Tensor) -> Tensor:
        """Return the bits' probabilities as released: noise added, draws side by side.  (n, draws * m)"""
        noisy = self.eps + (1 - 2 * self.eps) * theta
        return noisy.repeat(1, self.draws)

    def draw(self, theta: np.ndarray, uniforms: Callable[[int, int], np.ndarray]) -> np.ndarray:
        """Draw what is released: bits (n, draws * m), or cells of the coarse code (n, 1)."""
        released = self.theta(torch.from_numpy(theta)).numpy()
        codes = (uniforms(*released.shape) < released).astype(np.uint8)
        return codes if self.coarse is None else self.cells(codes)[:, None]

    def packed(self, codes: np.ndarray) -> np.ndarray:
        """Return what `draw` gives as bytes, for the ledger.  (n, bytes) uint8"""
        return np.packbits(codes, axis=1) if self.coarse is None else codes.astype("<i8").view(np.uint8)

    def unpacked(self, packed: np.ndarray, m: int) -> np.ndarray:
        """Return what `packed` was made from, a code of m bits."""
        if self.coarse is None:
            return np.unpackbits(packed, axis=1, count=m * self.draws)
        return np.ascontiguousarray(packed).view("<i8")

    def word_cells(self, m: int) -> Tensor:
        """Return the cell of every word of m bits, in the order of counting.  (2^m,)"""
        words = np.arange(2**m)[:, None] >> np.arange(m - 1, -1, -1) & 1
        return torch.from_numpy(self.cells(words.astype(np.uint8)))

    def cell_probabilities(self, theta: Tensor, generator: torch.Generator | None) -> Tensor:
        """Return how often each row falls into each cell of the coarse code, from 64 draws.  (n, cells)

        A mean of indicators of independent rows lies in [0, 1] like a probability does, and has the same expectation:
        the certificate needs no correction for it.
        """
        theta = self.theta(theta)
        counts = []
        for _ in range(COARSE_DRAWS):
            noise = torch.rand(theta.shape, generator=generator, dtype=theta.dtype)
            counts.append(self.cells((noise < theta).to(torch.uint8).numpy()))
        cells = np.stack(counts, 1)  # (n, draws)
        n_cells = int(cells.max()) + 1
        frequency = np.stack([np.bincount(row, minlength=n_cells) for row in cells]) / COARSE_DRAWS
        return torch.from_numpy(frequency).to(theta.dtype)

    def cells(self, codes: np.ndarray) -> np.ndarray:
        """Return the cell of each code (n, m).  (n,)"""
        if callable(self.coarse):
            cells = np.asarray(self.coarse(codes))
        else:
            m, table = codes.shape[1], np.asarray(self.coarse)
            if table.shape != (2**m,):
                problem = f"The coarse code has shape {table.shape}, but a code of {m} bits has {2**m} words."
                raise InputError(problem, remedy="Pass one cell number per word.")
            cells = table[codes.astype(np.int64) @ (1 << np.arange(m - 1, -1, -1))]
        if cells.shape != (len(codes),) or not np.issubdtype(cells.dtype, np.integer) or cells.min(initial=0) < 0:
            raise InputError("The coarse code must give each code a cell, a whole number of at least 0.")
        return cells.astype(np.int64)

    def describe(self) -> str:
        """Return what is released, in words."""
        what = "one draw" if self.draws == 1 else f"{self.draws} draws"
        noise = f", every bit flipped with probability {self.eps:g}" if self.eps else ""
        return f"{what} of the {'coarse code' if self.coarse is not None else 'code'} per person{noise}"

    def to_dict(self, m: int) -> dict[str, Any]:
        """Return the release of m bits as plain numbers and texts; a coarse code by its cells and a fingerprint."""
        coarse = None
        if self.coarse is not None:
            cells = self.word_cells(m).numpy() if m <= NAMED_BITS else None  # naming wider ones would take too long
            coarse = {
                "cells": None if cells is None else int(cells.max()) + 1,
                "sha256": None if cells is None else hashlib.sha256(cells.tobytes()).hexdigest(),
            }
        return {"draws": int(self.draws), "eps": float(self.eps), "coarse": coarse}


def binary_digits(cells: np.ndarray, n_cells: int) -> np.ndarray:
    """Write numbers below n_cells as bits: the same values under another name, so they reveal the same.

    >>> binary_digits(np.array([0, 2, 1]), 3)
    array([[0., 0.],
           [1., 0.],
           [0., 1.]])
    """
    width = max(1, int(n_cells - 1).bit_length())
    return (cells[:, None] >> np.arange(width - 1, -1, -1) & 1).astype(np.float64)


def fitted_code(source: Any, X: Any) -> tuple[Any, Any]:
    """Return the estimator inside a fitted pipeline or a choice among models, and the rows as it sees them."""
    if isinstance(source, Pipeline):
        return fitted_code(source[-1], source[:-1].transform(X) if X is not None and len(source) > 1 else X)
    for name in ("estimator_", "best_estimator_"):
        inner = getattr(source, name, None)
        if hasattr(inner, "code_probabilities") or isinstance(inner, Pipeline):
            return fitted_code(inner, X)
    return source, X


class AlreadyReleasedError(InputError):
    """Some of the people have as many codes as the certificate covers."""

    def __init__(self, people: int, rows: int, certified_draws: int, recognised_by: str):
        self.people, self.rows, self.certified_draws = people, rows, certified_draws
        who = f"All {rows:,} people" if people == rows > 1 else f"{people:,} of {rows:,} people"
        have, most = "has" if people == 1 else "have", "one" if certified_draws == 1 else str(certified_draws)
        codes = "a code" if certified_draws == 1 else "codes"
        super().__init__(
            f"{who} already {have} {codes} (recognised by {recognised_by}), and the certificate covers only {most} per "
            "person.",
            remedy="Pass repeated='reuse' to get the same codes, or 'again' to draw new ones, which it does not cover.",
        )


class OtherReleaseError(InputError):
    """Codes cannot be reused: they were drawn for another kind of release."""

    def __init__(self, people: int):
        self.people = people
        super().__init__(
            f"{people:,} people have a code from another kind of release, which cannot be reused for this one.",
            remedy="Pass the same draws, eps and coarse as before.",
        )


@dataclass(frozen=True)
class Released:
    """The codes of some rows, and how they came about; all of them are in the ledger."""

    packed: np.ndarray  # (n, bytes)
    release: Release
    bits: int  # of the model's code
    new: int  # people without a code before
    reused: int
    again: int  # people who had a code before and now have one more
    most_draws: int  # of one person, this release included
    alike: int  # rows identical to an earlier row, treated as other people
    exchangeable: int  # reused codes of identical rows: these people may have swapped codes
    certified_draws: int

    def __len__(self) -> int:
        return len(self.packed)

    @property
    def codes(self) -> np.ndarray:
        """The bits, (n, draws * bits) uint8, or the cells of a coarse code, (n, 1)."""
        return self.part(0, len(self))

    def part(self, start: int, stop: int) -> np.ndarray:
        """Return the codes of some rows."""
        return self.release.unpacked(self.packed[start:stop], self.bits)

    @property
    def covered(self) -> bool:
        """Whether the certificate covers all draws of these people."""
        return self.most_draws <= self.certified_draws


def release(
    model: Any,
    X: Any,
    *,
    ledger: str | os.PathLike[str] | Ledger,
    person: Any = None,
    repeated: str = "refuse",
    draws: int = 1,
    eps: float = 0.0,
    coarse: Any = None,
    certified_draws: int | None = None,
) -> Released:
    """Draw a code for every person and enter it in a ledger, which refuses a second draw of the same person.

    A certificate covers a fixed number of draws per person, of whatever kind. `transform` has no memory; this has. The
    random numbers are the operating system's, whatever the model's random_state, and every code is on the disk before
    this returns.

    Parameters
    ----------
    model : a fitted estimator with a code, also in a pipeline or a CertifiedClassifier
    X : the rows
    ledger : path of the ledger, made if there is none, or an open `Ledger`; a model needs one ledger, for all releases
    person : one identifier per row, or a table of several columns. None: rows with the same values are the same person
        from one call to the next, and different people within a call
    repeated : what to do about people who have as many codes as the certificate covers: "refuse", "reuse" the last code
        of everybody who has one, or draw "again", which the certificate does not cover
    draws, eps, coarse : what is released, as in `certify` and `Release`
    certified_draws : draws per person that the certificate covers; by default those of the model's own certificate, or
        `draws`

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from fairbits import BinaryMIClassifier
    >>> X, s = np.eye(2).repeat(50, 0), np.arange(100) % 2
    >>> model = BinaryMIClassifier(gamma=0, random_state=0).fit(X, X[:, 0], sensitive_features=s)
    >>> with TemporaryDirectory() as folder:
    ...     first = release(model, X, ledger=f"{folder}/released.ledger")
    ...     again = release(model, X, ledger=f"{folder}/released.ledger", repeated="reuse")
    >>> first.new, again.reused, bool((first.codes == again.codes).all())
    (100, 100, True)
    """
    method, rows = fitted_code(model, X)
    if not hasattr(method, "code_probabilities"):
        raise InputError(f"{type(method).__name__} has no random code to release.")
    if certified_draws is None:
        certificate = getattr(model, "certificate_", None)
        certified_draws = draws if certificate is None else certificate.release["draws"]
    names = None
    if person is not None:
        names = pd.DataFrame(person.to_pandas() if hasattr(person, "to_pandas") else person).rename(
            columns={0: "person"}
        )
        if len(names) != len(rows):
            raise InputError(
                f"There are {len(names):,} identifiers for {len(rows):,} rows.", remedy="Pass one per row."
            )
    people = [] if names is None else [str(name) for name in names.columns]
    what = Release(draws, eps, coarse)
    options: dict[str, Any] = {"repeated": repeated, "certified_draws": certified_draws}
    if isinstance(ledger, Ledger):
        if ledger.people != people:
            raise OtherPeopleError(ledger.people)
        if ledger.bits != method.code_size:
            raise InputError(f"The ledger is for codes of {ledger.bits} bits, and the model's have {method.code_size}.")
        return release_pieces(method, [(rows, names)], ledger, what, **options)
    with Ledger(ledger, method.code_size, people) as opened:
        return release_pieces(method, [(rows, names)], opened, what, **options)


def release_pieces(
    method: Any,
    pieces: Iterable[tuple[Any, pd.DataFrame | None]],
    ledger: Ledger,
    what: Release,
    *,
    repeated: str,
    certified_draws: int,
) -> Released:
    """Release the codes of rows that come in pieces, (rows as the method takes them, identifiers); see `release`."""
    if repeated not in ("refuse", "reuse", "again"):
        raise InputError("must be 'refuse', 'reuse' or 'again'.", argument="repeated", value=repeated)
    if what.draws > certified_draws and repeated != "again":
        raise InputError(
            f"is more than the certificate covers ({certified_draws}).", argument="draws", value=what.draws
        )
    key, numbers, drawn, done = ledger.key, [], [], 0
    for rows, names in pieces:
        content = _row_contents(rows) if names is None else _identifiers(names, done)
        numbers.append(ledger.number(content))
        drawn.append(what.packed(what.draw(method.code_probabilities(rows), system_uniforms)))
        done += len(content)
    rows, packed = np.concatenate(numbers), np.concatenate(drawn)
    alike = len(rows) - len(np.unique(rows))
    if ledger.people and alike:
        rows_have, names = "row has" if alike == 1 else "rows have", ", ".join(ledger.people)
        raise InputError(
            f"{alike:,} {rows_have} the same {names} as an earlier row.", remedy="Keep one row per person."
        )
    m = method.code_size
    kind = zlib.crc32(json.dumps(what.to_dict(m)).encode())
    numbered = repeats_apart(rows)
    with ledger.locked():
        if ledger.key != key:
            raise InputError("Another program has just started this ledger.", remedy="Please try again.")
        known = ledger.find(numbered)
        before = known["draws"].astype(np.int64)
        spent = int((before + what.draws > certified_draws).sum())
        if repeated == "refuse" and spent:
            how = ", ".join(ledger.people) or "the values that the model reads"
            raise AlreadyReleasedError(spent, len(rows), certified_draws, how)
        kept = (before > 0) & (repeated == "reuse")
        if (known["kind"][kept] != kind).any():
            raise OtherReleaseError(int((known["kind"][kept] != kind).sum()))
        if kept.any():
            packed[kept] = known["code"][kept][:, : packed.shape[1]]
        shared = _shared(rows, ledger)
        ledger.enter(numbered[~kept], packed[~kept], draws=what.draws, kind=kind)
    after = before + what.draws * ~kept
    return Released(
        packed=packed,
        release=what,
        bits=m,
        new=int((before == 0).sum()),
        reused=int(kept.sum()),
        again=int((~kept & (before > 0)).sum()),
        most_draws=int(after.max(initial=0)),
        alike=alike,
        exchangeable=int((kept & shared).sum()),
        certified_draws=certified_draws,
    )


def repeats_apart(rows: np.ndarray) -> np.ndarray:
    """Give the first, second, ... row of the same number numbers of their own, the same in every table.  (n,)

    >>> first, second, third = repeats_apart(np.array([7, 7, 8], np.uint64))
    >>> int(first), int(third), bool(first == second)
    (7, 8, False)
    """
    repeat = pd.Series(rows).groupby(rows).cumcount().to_numpy(np.uint64)
    return rows + repeat * ODD  # modulo 2^64


def _shared(rows: np.ndarray, ledger: Ledger) -> np.ndarray:
    """Return which rows, numbered before repeats are set apart, are identical to others here or in the ledger.  (n,)"""
    _, place, count = np.unique(rows, return_inverse=True, return_counts=True)
    return (count[place] > 1) | (ledger.draws(rows + ODD) > 0)


def _row_contents(rows: Any) -> list[bytes]:
    values = np.asarray(rows, dtype=np.float32) + np.float32(0)  # no -0: equal rows have equal bytes
    return [row.tobytes() for row in values]


def _identifiers(names: pd.DataFrame, done: int) -> list[bytes]:
    """Return who the people are as bytes; every person must have an identifier."""
    texts = names.apply(lambda column: column.map(label, na_action="ignore")).astype("str").fillna("")
    empty = (texts == "").all(axis=1).to_numpy()
    if empty.any():
        row = done + int(np.flatnonzero(empty)[0]) + 1
        raise InputError(f"Row {row:,} has no value in {', '.join(map(str, names.columns))}, which identifies people.")
    return ["\x1f".join(row).encode() for row in texts.itertuples(index=False)]
