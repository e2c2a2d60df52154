"""What you should know about a fitted model: a code that is constant, a class it never predicts, a blind penalty."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from fairbits.errors import InputWarning
from fairbits.information import binary_entropy, share_entropy

CONSTANT_BITS = 1e-3  # a bit that reveals less than this about the row is constant
SATURATED = 0.9  # of H(S)


class CollapsedCodeWarning(InputWarning):
    """All bits are the same for every row: the code reveals nothing, not even the label."""


class VanishedClassWarning(InputWarning):
    """The model never predicts one of the classes of the training rows."""


class SaturatedPenaltyWarning(InputWarning):
    """The information measured on batches was almost H(S), its largest value: the penalty had nothing to compare."""


class LessFairWarning(InputWarning):
    """The model is less fair than one without protection."""


def collapsed_code(theta: np.ndarray) -> list[Warning]:
    """Return a warning if no bit of theta (n, m) varies with the row: each I(T_i;X) = h(mean) - mean h is nothing."""
    t = torch.from_numpy(theta)
    about_rows = binary_entropy(t.mean(0)) - binary_entropy(t).mean(0)
    if float(about_rows.max()) >= CONSTANT_BITS:
        return []
    problem = f"The code has collapsed: all {theta.shape[1]} bits are the same for every row, so it predicts nothing."
    return [CollapsedCodeWarning(problem, remedy="Lower gamma, or train longer (max_epochs, warmup_epochs).")]


def vanished_classes(predicted: np.ndarray, classes: Sequence[Any]) -> list[Warning]:
    """Return a warning if some class is never predicted."""
    never = [str(c) for c in classes if c not in set(predicted.tolist())]
    if not never or not len(predicted):
        return []
    problem = f"The model never predicts the class {', '.join(map(repr, never))} on these {len(predicted):,} rows."
    remedy = "Lower gamma, merge rare classes, or compare predict_proba with a threshold of your own."
    return [VanishedClassWarning(problem, remedy=remedy)]


def saturated_penalty(information: float, entropy: float) -> list[Warning]:
    """Return a warning if the information of a batch, in bits, is close to the entropy of the groups."""
    if information <= SATURATED * entropy:
        return []
    problem = (
        f"On training batches the code revealed {information:.3f} of the groups' {entropy:.3f} bits: either each group "
        "has its own code words, or there are more code words than rows in a batch and the penalty is blind."
    )
    return [SaturatedPenaltyWarning(problem, remedy="Raise batch_size or noise_floor, or lower code_size.")]


def worse_than_unmitigated(
    scores: dict[str, float], unmitigated: dict[str, float], groups: np.ndarray
) -> list[Warning]:
    """Return a warning if a fairness score (less is better) is clearly larger than without protection.

    Groups (n, columns) are numbered. Clearly: by more than 1.6 standard errors of a difference of two rates, at their
    largest variance and for the smallest groups; a rule of thumb, not a test.
    """
    smallest = min(np.sort(np.unique(column, return_counts=True)[1])[:2].tolist() for column in groups.T)
    margin = 1.645 * 0.5 * float(np.sqrt(np.sum(1 / np.array(smallest))))
    worse = [
        f"{name} {scores[name]:.3f} against {unmitigated[name]:.3f}"
        for name in ("gpa", "audc", "discrimination")
        if name in unmitigated and scores[name] > unmitigated[name] + margin
    ]
    if not worse:
        return []
    problem = f"The predictions are less fair than those of a model without protection: {', '.join(worse)}."
    return [LessFairWarning(problem, remedy="Try another gamma, more epochs or another seed, and compare again.")]


def conditional_entropy(groups: np.ndarray, y: np.ndarray | None = None) -> float:
    """Return H(S), or H(S|Y), in bits, of numbered groups (n, columns) added over columns."""
    labels = np.zeros(len(groups), np.int64) if y is None else np.unique(y, return_inverse=True)[1]
    total = 0.0
    for label in np.unique(labels):
        for column in groups[labels == label].T:
            share = np.unique(column, return_counts=True)[1] / len(column)
            total += share_entropy(share) * float((labels == label).mean())
    return total
