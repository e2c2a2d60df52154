"""What is released of each person, and the guarded way to release it: one place for all draws that leave."""

import hashlib
import json
import os
import zlib
from collections.abc import Callable, Iterable
from contextlib import nullcontext
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
CHOSEN = ("estimator_", "best_estimator_")  # where a choice among models keeps the one it made
Pieces = Iterable[tuple[Any, pd.DataFrame | None]]


def system_uniforms(n: int, m: int) -> np.ndarray:
    """Return fresh uniforms in [0, 1) from the operating system, (n, m): no seed makes them again."""
    return np.frombuffer(os.urandom(4 * n * m), np.uint32).reshape(n, m) * 2.0**-32


@dataclass(frozen=True)
class Release:
    """What a recipient gets of each person; the numbers of a certificate hold for this and nothing more.

    Parameters
    ----------
    draws : independent codes of the same person
    eps : chance that a bit is flipped on release
    coarse : word -> cell, as a table of 2^m cell numbers (words in the order of counting, first bit most significant)
        or a function of an array of codes (n, m) of 0 and 1; None releases the code itself
    hard : nothing is drawn, a person always has the same code
    """

    draws: int = 1
    eps: float = 0.0
    coarse: Callable[[np.ndarray], np.ndarray] | np.ndarray | None = None
    hard: bool = False

    def __post_init__(self) -> None:
        whole = isinstance(self.draws, Integral) and self.draws >= 1
        for holds, name, problem in (
            (whole, "draws", "must be a whole number of at least 1."),
            (0 <= self.eps < 0.5, "eps", "must be at least 0 and below 0.5, where bits are fair coins."),
            (self.coarse is None or self.draws == 1, "draws", "cannot be certified for a coarse code. Use 1."),
            (not self.hard or self.draws == 1, "draws", "is for random codes: a hard code has no second draw."),
            (not self.hard or self.eps == 0, "eps", "is for random codes: a hard code has no random bits."),
        ):
            if not holds:
                raise InputError(problem, argument=name, value=getattr(self, name))

    def theta(self, theta: Tensor) -> Tensor:
        """Return the bits' probabilities as released: noise added, draws side by side.  (n, draws * m)"""
        return (self.eps + (1 - 2 * self.eps) * theta).repeat(1, self.draws)

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
        return np.ascontiguousarray(packed[:, :8]).view("<i8")

    def word_cells(self, m: int) -> Tensor:
        """Return the cell of every word of m bits, in the order of counting.  (2^m,)"""
        return torch.from_numpy(self.cells(binary_digits(np.arange(2**m), 2**m).astype(np.uint8)))

    def cell_probabilities(self, theta: Tensor, generator: torch.Generator | None) -> Tensor:
        """Return how often each row falls into each cell of the coarse code, from 64 draws.  (n, cells)

        A mean of indicators of independent rows lies in [0, 1] like a probability does, and has the same expectation:
        the certificate needs no correction for it.
        """
        theta, cells = self.theta(theta), []
        for _ in range(COARSE_DRAWS):
            drawn = torch.rand(theta.shape, generator=generator, dtype=theta.dtype) < theta
            cells.append(torch.from_numpy(self.cells(drawn.to(torch.uint8).numpy())))
        cell = torch.stack(cells, 1)  # (n, draws)
        shares = torch.full(cell.shape, 1 / COARSE_DRAWS, dtype=theta.dtype)
        return theta.new_zeros(len(theta), int(cell.max()) + 1).scatter_add_(1, cell, shares)

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
        code = "coarse code" if self.coarse is not None else "code"
        if self.hard:
            return f"the {code} of a person"
        what = "one draw" if self.draws == 1 else f"{self.draws} draws"
        noise = f", every bit flipped with probability {self.eps:g}" if self.eps else ""
        return f"{what} of the {code} per person{noise}"

    def to_dict(self, m: int) -> dict[str, Any]:
        """Return the release of m bits as plain numbers and texts; a coarse code by its cells and a fingerprint."""
        coarse: dict[str, Any] | None = None
        if self.coarse is not None and m > NAMED_BITS:  # naming all words would take too long
            coarse = {"cells": None, "sha256": None}
        elif self.coarse is not None:
            cells = self.word_cells(m).numpy()
            coarse = {"cells": int(cells.max()) + 1, "sha256": hashlib.sha256(cells.tobytes()).hexdigest()}
        return {"draws": int(self.draws), "eps": float(self.eps), "coarse": coarse, "hard": self.hard}


def binary_digits(cells: np.ndarray, n_cells: int) -> np.ndarray:
    """Write numbers below n_cells as bits: the same values under another name, so they reveal the same.

    >>> binary_digits(np.array([0, 2, 1]), 3)
    array([[0., 0.],
           [1., 0.],
           [0., 1.]])
    """
    width = max(1, int(n_cells - 1).bit_length())
    return (cells[:, None] >> np.arange(width - 1, -1, -1) & 1).astype(np.float64)


def fitted_code(source: Any, X: Any, sensitive_features: Any = None) -> tuple[Any, Any]:
    """Return the estimator inside a fitted pipeline or a choice among models, and the rows as it sees them.

    Only encoders with `encode_sensitive` see the sensitive features.
    """
    if isinstance(source, Pipeline):
        for _, step in source.steps[:-1] if X is not None else ():
            known = {"sensitive_features": sensitive_features} if getattr(step, "encode_sensitive", False) else {}
            X = step.transform(X, **known)
        return fitted_code(source[-1], X, sensitive_features)
    for name in CHOSEN:
        inner = getattr(source, name, None)
        if _holds_code(inner):
            return fitted_code(inner, X, sensitive_features)
    return source, X


def _holds_code(model: Any) -> bool:
    known = hasattr(model, "code_probabilities") or isinstance(model, Pipeline)
    return known or any(_holds_code(vars(model)[n]) for n in CHOSEN if n in getattr(model, "__dict__", ()))


def check_certified_kind(method: Any, certificate: Any) -> None:
    """Raise if a certificate is about the hard code and the model releases the random one, or the other way round."""
    if certificate is not None and certificate.release.get("hard", False) != method.is_hard:
        certified, now = ("random", "hard") if method.is_hard else ("hard", "random")
        problem = f"The certificate is about the {certified} code, but the model now releases the {now} one."
        raise InputError(problem, remedy=f"Set release={certified!r} again, or fit and certify the other one.")


class AlreadyReleasedError(InputError):
    """Some of the people have as many codes as the certificate covers."""

    def __init__(self, people: int, rows: int, certified_draws: int, how: str):
        self.people, self.rows, self.certified_draws = people, rows, certified_draws
        who = f"All {rows:,} people" if people == rows > 1 else f"{people:,} of {rows:,} people"
        codes, most = ("a code", "one") if certified_draws == 1 else ("codes", str(certified_draws))
        super().__init__(
            f"{who} already {'has' if people == 1 else 'have'} {codes} (recognised by {how}), and the certificate "
            f"covers only {most} per person.",
            remedy="Pass repeated='reuse' to get the same codes, or 'again' to draw new ones, which it does not cover.",
        )


class OtherReleaseError(InputError):
    """Codes cannot be reused: they were drawn for another kind of release."""

    def __init__(self, people: int):
        self.people = people
        problem = f"{people:,} people have a code from another kind of release, which cannot be reused for this one."
        super().__init__(problem, remedy="Pass the same draws, eps and coarse as before.")


@dataclass(frozen=True)
class Released:
    """The codes of some rows, and how they came about; all of them are in the ledger."""

    codes: np.ndarray  # the bits, (n, draws * bits) uint8, or the cells of a coarse code, (n, 1)
    new: int  # people without a code before
    reused: int
    again: int  # people who had a code before and now have one more
    most_draws: int  # of one person, this release included
    alike: int  # rows identical to an earlier row, treated as other people
    exchangeable: int  # reused codes of identical rows: these people may have swapped codes
    certified_draws: int

    @property
    def covered(self) -> bool:
        """Whether the certificate covers all draws of these people."""
        return self.most_draws <= self.certified_draws


def release(
    model: Any,
    X: Any,
    *,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    sensitive_features: Any = None,
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
    this returns. A hard code is not drawn: it needs no ledger and is returned as it is.

    Parameters
    ----------
    model : a fitted estimator with a code, also in a pipeline or a CertifiedClassifier
    X : the rows
    ledger : path of the ledger, made if there is none, or an open `Ledger`; a model needs one ledger, for all releases.
        A hard code needs none
    sensitive_features : of these rows, for an encoder that sees them (`encode_sensitive`)
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
    method, rows = fitted_code(model, X, sensitive_features)
    if not hasattr(method, "code_probabilities"):
        raise InputError(f"{type(method).__name__} has no code to release.")
    certificate = getattr(model, "certificate_", None)
    check_certified_kind(method, certificate)
    if method.is_hard:
        codes = Release(draws, eps, coarse, hard=True).draw(method.code_probabilities(rows), system_uniforms)
        return Released(codes, len(codes), 0, 0, 1, 0, 0, 1)
    if ledger is None:
        raise InputError("A random code is released with a ledger.", remedy="Pass the path of one as `ledger`.")
    if certified_draws is None:
        certified_draws = draws if certificate is None else certificate.release["draws"]
    names, people, m = None, [], method.code_size
    if person is not None:
        table = pd.DataFrame(person.to_pandas() if hasattr(person, "to_pandas") else person)
        names = table.rename(columns={0: "person"})
        people = [str(name) for name in names.columns]
        if len(names) != len(rows):
            problem = f"There are {len(names):,} identifiers for {len(rows):,} rows."
            raise InputError(problem, remedy="Pass one per row.")
    what = Release(draws, eps, coarse)
    with nullcontext(ledger) if isinstance(ledger, Ledger) else Ledger(ledger, m, people) as opened:
        if opened.people != people:
            raise OtherPeopleError(opened.people)
        if opened.bits != m:
            raise InputError(f"The ledger is for codes of {opened.bits} bits, and the model's have {m}.")
        return release_pieces(method, [(rows, names)], opened, what, repeated, certified_draws)


def release_pieces(method: Any, pieces: Pieces, ledger: Ledger, what: Release, repeated: str, covered: int) -> Released:
    """Release the codes of rows that come in pieces, (rows as the method takes them, identifiers); see `release`.

    `covered` is how many draws per person the certificate covers.
    """
    if repeated not in ("refuse", "reuse", "again"):
        raise InputError("must be 'refuse', 'reuse' or 'again'.", argument="repeated", value=repeated)
    if what.draws > covered and repeated != "again":
        raise InputError(f"is more than the certificate covers ({covered}).", argument="draws", value=what.draws)
    key, numbers, drawn, done = ledger.key, [], [], 0
    for rows, names in pieces:
        numbers.append(ledger.number(_recognised_by(rows, names, done)))
        drawn.append(what.draw(method.code_probabilities(rows), system_uniforms))
        done += len(numbers[-1])
    number, codes, how = pd.Series(np.concatenate(numbers)), np.concatenate(drawn), ", ".join(ledger.people)
    alike = int(number.duplicated().sum())
    if how and alike:
        problem = f"{alike:,} {'row has' if alike == 1 else 'rows have'} the same {how} as an earlier row."
        raise InputError(problem, remedy="Keep one row per person.")
    rows, kind = repeats_apart(number), zlib.crc32(json.dumps(what.to_dict(method.code_size)).encode())
    with ledger.locked():
        if ledger.key != key:
            raise InputError("Another program has just started this ledger.", remedy="Please try again.")
        known = ledger.find(rows)
        before = known["draws"].astype(np.int64)
        spent = int((before + what.draws > covered).sum())
        if repeated == "refuse" and spent:
            raise AlreadyReleasedError(spent, len(rows), covered, how or "the values that the model reads")
        kept = (before > 0) & (repeated == "reuse")
        others = int((known["kind"][kept] != kind).sum())
        if others:
            raise OtherReleaseError(others)
        if kept.any():
            codes[kept] = what.unpacked(known["code"][kept], method.code_size)
        identical = number.duplicated(keep=False) | (ledger.find(number.to_numpy() + ODD)["draws"] > 0)
        ledger.enter(rows[~kept], what.packed(codes[~kept]), draws=what.draws, kind=kind)
    return Released(
        codes=codes,
        new=int((before == 0).sum()),
        reused=int(kept.sum()),
        again=int((~kept & (before > 0)).sum()),
        most_draws=int((before + what.draws * ~kept).max(initial=0)),
        alike=alike,
        exchangeable=int((kept & identical).sum()),
        certified_draws=covered,
    )


def repeats_apart(rows: pd.Series) -> np.ndarray:
    """Give the first, second, ... row of the same number numbers of their own, the same in every table.  (n,)

    >>> first, second, third = repeats_apart(pd.Series([7, 7, 8], dtype=np.uint64))
    >>> int(first), int(third), bool(first == second)
    (7, 8, False)
    """
    return rows.to_numpy() + rows.groupby(rows).cumcount().to_numpy(np.uint64) * ODD  # modulo 2^64


def _recognised_by(rows: Any, names: pd.DataFrame | None, done: int) -> list[bytes]:
    """Return what each person is recognised by: the row's values, or the identifier, which must not be empty."""
    if names is None:
        values = np.asarray(rows, dtype=np.float32) + np.float32(0)  # no -0: equal rows have equal bytes
        return [row.tobytes() for row in values]
    texts = names.apply(lambda column: column.map(label, na_action="ignore")).astype("str").fillna("")
    empty = np.flatnonzero((texts == "").all(axis=1))
    if len(empty):
        columns = ", ".join(map(str, names.columns))
        raise InputError(f"Row {done + empty[0] + 1:,} has no value in {columns}, which identifies people.")
    return ["\x1f".join(row).encode() for row in texts.itertuples(index=False)]
