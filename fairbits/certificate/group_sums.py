"""Rows become sums: how much of every group falls on every word. A certificate needs nothing else of them."""

from typing import Any, NamedTuple, Self

import numpy as np

from fairbits.certificate.released_code import Release
from fairbits.errors import InputError

MAX_BITS = 20  # the most whose words are all listed
CHUNK = 2**22  # numbers in the products of a part of the rows


class GroupSums(NamedTuple):
    """Sums over the people of every group, so that the sums of two tables of people add up."""

    words: np.ndarray  # (K, words): of the chances that a person's release is the word
    people: np.ndarray  # (K,)

    @property
    def shares(self) -> np.ndarray:
        """How often each group has each word, (K, words)."""
        return self.words / np.maximum(self.people, 1)[:, None]

    def merge(self, other: Self) -> "GroupSums":
        """Return the sums of both."""
        return GroupSums(self.words + other.words, self.people + other.people)


def group_sums(
    theta: np.ndarray,
    groups: np.ndarray,
    n_groups: int,
    release: Release,
    *,
    person: np.ndarray | None = None,
    rng: Any = None,
) -> GroupSums | None:
    """Return the sums of rows with bits of chances theta (n, m) and groups (n,); None if there are too many words.

    Of several rows with the same number of a person (n,) the mean counts. The words of a hard code that is too wide are
    numbered as they come.
    """
    weights, people = _people(person, groups, n_groups)
    m = theta.shape[1] * release.draws
    if release.hard:
        codes = theta.astype(np.uint8)
        cells = release.cells(codes) if release.coarse is not None else _numbers(codes)
        width = 2**m if release.coarse is None and m <= MAX_BITS else int(cells.max(initial=0)) + 1
        place = groups * width + cells
        words = np.bincount(place, weights, minlength=n_groups * width).astype(np.float64).reshape(n_groups, width)
    elif m <= MAX_BITS:
        words = _mean_words(release.theta(theta), groups, n_groups, weights)
        if release.coarse is not None:
            cells = release.word_cells(m)
            words = np.stack([np.bincount(cells, own) for own in words])
    elif release.coarse is not None:
        chances = release.cell_probabilities(theta, rng)
        members = (groups == np.arange(n_groups)[:, None]).astype(np.float64)
        words = (members if weights is None else members * weights) @ chances
    else:
        return None
    return GroupSums(words, people)


def _people(person: np.ndarray | None, groups: np.ndarray, n_groups: int) -> tuple[np.ndarray | None, np.ndarray]:
    """Return the rows' weights, one for all rows of a person together, and the people of every group."""
    if person is None:
        return None, np.bincount(groups, minlength=n_groups)
    _, first, number = np.unique(person, return_index=True, return_inverse=True)
    torn = np.unique(number[groups != groups[first][number]])
    if len(torn):
        problem = (
            f"{len(torn):,} people have rows in two groups." if len(torn) > 1 else "A person has rows in two groups."
        )
        raise InputError(problem, remedy="Correct the groups, or leave these people out.")
    return 1 / np.bincount(number)[number], np.bincount(groups[first], minlength=n_groups)


def _numbers(codes: np.ndarray) -> np.ndarray:
    """Return the number of every word of (n, m) bits, the first bit most significant; of wide codes any number."""
    m = codes.shape[1]
    if m <= MAX_BITS:
        return codes.astype(np.int64) @ (1 << np.arange(m - 1, -1, -1))
    return np.unique(np.packbits(codes, axis=1), axis=0, return_inverse=True)[1].ravel()


def _mean_words(theta: np.ndarray, groups: np.ndarray, n_groups: int, weights: np.ndarray | None) -> np.ndarray:
    """Return sums of p(t|x) over the rows of every group, (K, 2^m): products of half codes, multiplied."""
    m = theta.shape[1]
    words = np.zeros((n_groups, 2 ** (m // 2), 2 ** (m - m // 2)))
    size = max(256, CHUNK >> (m - m // 2))
    for group in range(n_groups):
        rows = np.flatnonzero(groups == group)
        for part in np.array_split(rows, len(rows) // size + 1):
            left, right = _products(theta[part, : m // 2]), _products(theta[part, m // 2 :])
            words[group] += (left if weights is None else left * weights[part, None]).T @ right
    return words.reshape(n_groups, -1)


def _products(theta: np.ndarray) -> np.ndarray:
    """Return the chances of all words of bits (n, m), the first bit most significant.  (n, 2^m)"""
    chances = np.ones((len(theta), 1))
    for bit in theta.T[..., None]:
        chances = np.stack([chances * (1 - bit), chances * bit], -1).reshape(len(theta), 2 * chances.shape[1])
    return chances
