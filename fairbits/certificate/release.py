"""What leaves the house: how many draws, how much extra noise, which coarsening."""

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairbits.errors import InputError

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
            raise InputError(f"draws={self.draws!r} must be a whole number of at least 1.")
        if not 0 <= self.eps < 0.5:
            raise InputError(f"eps={self.eps!r} must lie in [0, 0.5): at 0.5 every bit is a fair coin.")
        if self.coarse is not None and self.draws > 1:
            raise InputError(f"draws={self.draws} of a coarse code are not certified; release one draw of it.")

    def theta(self, theta: Tensor) -> Tensor:
        """Return the bits' probabilities as released: noise added, draws side by side.  (n, draws * m)"""
        noisy = self.eps + (1 - 2 * self.eps) * theta
        return noisy.repeat(1, self.draws)

    def draw(self, theta: np.ndarray, uniforms: Callable[[int, int], np.ndarray]) -> np.ndarray:
        """Draw what leaves the house: bits (n, draws * m), or cells of the coarse code (n, 1)."""
        released = self.theta(torch.from_numpy(theta)).numpy()
        codes = (uniforms(*released.shape) < released).astype(np.uint8)
        return codes if self.coarse is None else self.cells(codes)[:, None]

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
            cells = self._table(codes.shape[1])[codes.astype(np.int64) @ (1 << np.arange(codes.shape[1] - 1, -1, -1))]
        if cells.shape != (len(codes),) or not np.issubdtype(cells.dtype, np.integer) or cells.min(initial=0) < 0:
            raise InputError("coarse must give each code one whole number of at least 0, the number of its cell.")
        return cells.astype(np.int64)

    def _table(self, m: int) -> np.ndarray:
        table = np.asarray(self.coarse)
        if table.shape != (2**m,):
            raise InputError(f"coarse has shape {table.shape}; a code of {m} bits needs the cells of {2**m} words.")
        return table

    def describe(self) -> str:
        """Say in words what is released."""
        what = "one draw" if self.draws == 1 else f"{self.draws} draws"
        noise = f", every bit flipped with probability {self.eps:g}" if self.eps else ""
        return f"{what} of the {'coarse code' if self.coarse is not None else 'code'} per person{noise}"

    def to_dict(self, m: int) -> dict[str, Any]:
        """Return the release of m bits as plain numbers and texts; a coarse code by its cells and a fingerprint."""
        coarse = None
        if self.coarse is not None:
            cells = self.word_cells(m).numpy() if m <= NAMED_BITS else None  # wider ones are known by their owner alone
            coarse = {
                "cells": None if cells is None else int(cells.max()) + 1,
                "sha256": None if cells is None else hashlib.sha256(cells.tobytes()).hexdigest(),
            }
        return {"draws": int(self.draws), "eps": float(self.eps), "coarse": coarse}


def binary_digits(cells: np.ndarray, n_cells: int) -> np.ndarray:
    """Write numbers below n_cells as bits: another name for the same values, so that what they tell is the same.

    >>> binary_digits(np.array([0, 2, 1]), 3)
    array([[0., 0.],
           [1., 0.],
           [0., 1.]])
    """
    width = max(1, int(n_cells - 1).bit_length())
    return (cells[:, None] >> np.arange(width - 1, -1, -1) & 1).astype(np.float64)
