"""What is released of each person's code, and where a fitted model keeps it."""

import hashlib
import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from fairbits.errors import InputError

NAMED_BITS = 16  # up to here a coarse code is named in the record by all its words
COARSE_DRAWS = 64  # codes drawn per row to learn how often it falls into each cell
CHOSEN = ("estimator_", "best_estimator_")  # where a choice among models keeps the one it made


def system_uniforms(n: int, m: int) -> np.ndarray:
    """Return fresh uniforms in [0, 1), (n, m), by OpenSSL's generator for keys: no seed makes them again."""
    return np.frombuffer(ssl.RAND_bytes(4 * n * m), np.uint32).reshape(n, m) * 2.0**-32


@dataclass(frozen=True)
class Release:
    """What a recipient gets for each person; the numbers of a certificate hold for this and nothing more.

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

    def theta(self, theta: np.ndarray) -> np.ndarray:
        """Return the bits' probabilities as released: noise added, draws side by side.  (n, draws * m)"""
        noisy = self.eps + (1 - 2 * self.eps) * theta if self.eps else theta
        return np.tile(noisy, (1, self.draws)) if self.draws > 1 else noisy

    def draw(self, theta: np.ndarray, uniforms: Callable[[int, int], np.ndarray]) -> np.ndarray:
        """Draw what is released: bits (n, draws * m), or cells of the coarse code (n, 1)."""
        released = self.theta(theta)
        codes = (released > (0.5 if self.hard else uniforms(*released.shape))).view(np.uint8)
        return codes if self.coarse is None else self.cells(codes)[:, None]

    def packed(self, codes: np.ndarray) -> np.ndarray:
        """Return what `draw` gives as bytes, for the ledger.  (n, bytes) uint8"""
        return np.packbits(codes, axis=1) if self.coarse is None else codes.astype("<i8").view(np.uint8)

    def unpacked(self, packed: np.ndarray, m: int) -> np.ndarray:
        """Return what `packed` was made from, a code of m bits."""
        if self.coarse is None:
            return np.unpackbits(packed, axis=1, count=m * self.draws)
        return np.ascontiguousarray(packed[:, :8]).view("<i8")

    def word_cells(self, m: int) -> np.ndarray:
        """Return the cell of every word of m bits, in the order of counting.  (2^m,)"""
        return self.cells(binary_digits(np.arange(2**m), 2**m).astype(np.uint8))

    def cell_probabilities(self, theta: np.ndarray, rng: Any = None) -> np.ndarray:
        """Return how often each row falls into each cell of the coarse code, from 64 draws.  (n, cells)

        A mean of indicators of independent rows lies in [0, 1] like a probability does, and has the same expectation:
        the certificate needs no correction for it.
        """
        theta, rng = self.theta(theta), np.random.default_rng(rng)
        drawn = [self.cells((rng.random(theta.shape) < theta).astype(np.uint8)) for _ in range(COARSE_DRAWS)]
        cells, rows = np.stack(drawn, 1), np.arange(len(theta))[:, None]
        chances = np.zeros((len(theta), int(cells.max()) + 1))
        np.add.at(chances, (rows, cells), 1 / COARSE_DRAWS)
        return chances

    def cells(self, codes: np.ndarray) -> np.ndarray:
        """Return the cell of each code (n, m).  (n,)"""
        if callable(self.coarse):
            cells = np.asarray(self.coarse(codes))
        else:
            m, table = codes.shape[1], np.asarray(self.coarse)
            if table.shape != (2**m,):
                problem = f"The coarse code has shape {table.shape}, but a code of {m} bits has {2**m} words."
                raise InputError(problem, remedy="Pass one cell number per word.")
            cells = table[binary_number(codes)]
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
            cells = self.word_cells(m)
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


def binary_number(bits: np.ndarray) -> np.ndarray:
    """Return the number that each row of bits (n, m) writes, the first bit most significant.  (n,)

    >>> binary_number(np.array([[0, 0], [1, 0], [0, 1]]))
    array([0, 2, 1])
    """
    return bits.astype(np.int64) @ (1 << np.arange(bits.shape[1] - 1, -1, -1))


def encode_rows(steps: Iterable[tuple[str, Any]], X: Any, sensitive_features: Any = None) -> Any:
    """Return rows as fitted steps of a pipeline encode them; only those with `encode_sensitive` see the groups."""
    for _, step in steps:
        if isinstance(step, str):  # "passthrough" of scikit-learn
            continue
        known = {"sensitive_features": sensitive_features} if getattr(step, "encode_sensitive", False) else {}
        X = step.transform(X, **known)
    return X


def has_code(model: Any) -> bool:
    """Return whether a model, or the last step of a pipeline, has a code."""
    return hasattr(model[-1] if isinstance(model, Pipeline) else model, "code_probabilities")


def last_step(model: Any, X: Any, s: Any) -> tuple[Any, Any]:
    """Return the classifier at the end of a pipeline, and the rows as it sees them."""
    if isinstance(model, Pipeline):
        return model[-1], encode_rows(model.steps[:-1], X, s)
    return model, X


def fitted_code(source: Any, X: Any, sensitive_features: Any = None) -> tuple[Any, Any]:
    """Return the estimator inside a fitted pipeline or a choice among models, and the rows as it sees them."""
    if isinstance(source, Pipeline):
        rows = None if X is None else encode_rows(source.steps[:-1], X, sensitive_features)
        return fitted_code(source[-1], rows, sensitive_features)
    for name in CHOSEN:
        inner = getattr(source, name, None)
        if _holds_code(inner):
            return fitted_code(inner, X, sensitive_features)
    return source, X


def _holds_code(model: Any) -> bool:
    known = hasattr(model, "code_probabilities") or (isinstance(model, Pipeline) and _holds_code(model[-1]))
    return known or any(_holds_code(vars(model)[n]) for n in CHOSEN if n in getattr(model, "__dict__", ()))


def check_certified_kind(method: Any, certificate: Any) -> None:
    """Raise if a certificate is about the hard code and the model releases the random one, or the other way round."""
    if certificate is None or certificate.release.get("decision"):
        return
    if certificate.release.get("hard", False) != method.is_hard:
        certified, now = ("random", "hard") if method.is_hard else ("hard", "random")
        problem = f"The certificate is about the {certified} code, but the model now releases the {now} one."
        raise InputError(problem, remedy=f"Set release={certified!r} again, or fit and certify the other one.")


def certified_decision(model: Any) -> bool:
    """Return whether a model's certificate is about its class alone, and not about a code."""
    certificate = getattr(model, "certificate_", None)
    return certificate is not None and bool(certificate.release.get("decision"))


def need_certified_code(model: Any) -> None:
    """Raise if the class of a model is certified, and not its code."""
    if certified_decision(model):
        problem = "The certificate is about the predicted class alone: a code of this model is not covered."
        raise InputError(problem, remedy="Use predict, or fit a model with a code and promise='code'.")
