"""What a code, or one draw of a random one, reveals about a sensitive column, in bits; needs no torch for tables."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from fairbits.certificate.group_sums import group_sums
from fairbits.certificate.released_code import Release
from fairbits.errors import InputError
from fairbits.information.shown_tables import held_out_information, share_entropy, shown_information

LISTED_BITS = 16  # up to here all words of a random code are listed


@dataclass(frozen=True)
class Leakage:
    """What the released representation reveals about one sensitive column, in bits."""

    column: str
    rows: dict[str, int]  # per group
    entropy: float  # H(S), the most that can be revealed
    each_bit: tuple[float, ...] | None  # I(T_i;S)
    total: float | None  # their sum: neither above nor below the joint information in general
    joint: float | None  # I(T;S) of these rows; above the population's in expectation
    lower: float | None  # below the population's in expectation


def column_leakage(
    law: np.ndarray | None, bits: np.ndarray | None, groups: np.ndarray, title: str, names: Any, seed: int = 0
) -> Leakage:
    """Return what a code, or one draw of a random one, reveals about the groups (n,) of a column, numbers of names.

    `law` and `bits` are those of a `Subject`.
    """
    present, numbers, counts = np.unique(groups, return_inverse=True, return_counts=True)
    if len(present) < 2:
        problem = f"All rows have the same group of {title!r}, {names[present[0]]!r}."
        raise InputError(problem, remedy="Pass rows of at least two groups.")
    each = lower = joint = None
    prior = counts / len(groups)
    if bits is not None:
        ones = np.stack([bits[numbers == group].mean(0) for group in range(len(prior))])  # (K, m)
        each = tuple(shown_information(np.stack([1 - ones, ones]).transpose(2, 1, 0), prior).tolist())
    if law is not None:
        lower, joint = _sandwich(law, numbers, prior, seed)
    rows = dict(zip((names[group] for group in present), counts.tolist(), strict=True))
    return Leakage(title, rows, share_entropy(prior), each, sum(each) if each else None, joint, lower)


def _sandwich(law: np.ndarray, groups: np.ndarray, prior: np.ndarray, seed: int) -> tuple[float, float]:
    """Return (lower, upper) around the population's information, as `information_sandwich` does, in bits."""
    hard = bool(np.isin(law, (0, 1)).all())
    if law.shape[1] > LISTED_BITS and not hard:
        import torch

        from fairbits.information import information_sandwich

        generator = torch.Generator().manual_seed(seed)
        found = information_sandwich(torch.from_numpy(law), torch.from_numpy(groups), generator=generator)
        return float(found[0]), float(found[1])
    rows, k = _torch_permutation(len(groups), seed), len(prior)
    second = np.zeros_like(groups)  # the rows of every group are dealt out to two halves in turn
    second[rows[groups[rows].argsort(kind="stable")][1::2]] = 1
    sums = group_sums(law, groups + k * second, 2 * k, Release(hard=hard))
    assert sums is not None  # all words are listed, or nothing is drawn
    upper = shown_information((sums.words[:k] + sums.words[k:]) / (prior[:, None] * len(groups)), prior)
    if not sums.people.all():
        return 0.0, float(upper)
    one, other = sums.shares[:k], sums.shares[k:]
    ends = [held_out_information(*halves, prior, len(groups)) for halves in ((one, other), (other, one))]
    return sum(ends) / 2, float(upper)


def _torch_permutation(n: int, seed: int) -> np.ndarray:
    """Return what `torch.randperm` draws from a seed, where torch need not be there: both draw as MT19937 does."""
    drawn = np.random.RandomState(seed & 0xFFFFFFFF).randint(2**32, size=n - 1, dtype=np.uint32)
    rows = list(range(n))
    for place, other in enumerate((np.arange(n - 1) + drawn % np.arange(n, 1, -1)).tolist()):
        rows[place], rows[other] = rows[other], rows[place]
    return np.array(rows)
