"""What losses need of labels and groups: weighed cells, the label's share in a group, weights of independence."""

import math
from collections.abc import Iterable, Sequence
from functools import reduce

import torch
from torch import Tensor

from fairbits.information import weigh_groups
from fairbits.training import joint_groups


def weigh_cells(
    y: Tensor, s: Tensor, weight: Tensor, group_sizes: Sequence[int], n_labels: int | None = None
) -> tuple[tuple, ...]:
    """Weigh the groups of every sensitive column: (groups,), or with `n_labels` (groups, share) within each label.

    Labels, groups (..., columns) and weights may be those of many batches at once.
    """
    columns = [(s[..., c], size) for c, size in enumerate(group_sizes)]
    if n_labels is None:
        return tuple((weigh_groups(groups, weights=weight, n_groups=size),) for groups, size in columns)
    strata = [weight * (y == label) for label in range(n_labels)]
    return tuple((weigh_groups(groups, weights=w, n_groups=k), w.sum(-1)) for groups, k in columns for w in strata)


def add_cells(values: Iterable[Tensor], cells: Iterable[tuple]) -> Tensor:
    """Add up the values of cells (groups,) and, times their share, of cells (groups, share)."""
    return reduce(torch.add, (cell[1] * v if len(cell) > 1 else v for v, cell in zip(values, cells, strict=True)))


def log_label_shares(y: Tensor, s: Tensor, weight: Tensor, sizes: Sequence[int], n_classes: int) -> Tensor:
    """Return log p(y|s), one row's worth of the uniform distribution added to each combination.  (cells, classes)"""
    counts = torch.full((math.prod(sizes), n_classes), 1 / n_classes)
    counts.index_put_((joint_groups(s, sizes), y), weight, accumulate=True)
    return (counts / counts.sum(1, keepdim=True)).log()


def independence_ratio(y: Tensor, s: Tensor, weight: Tensor, n_classes: int, n_groups: int) -> Tensor:
    """Return p(y) p(s) / p(y, s) of rows with these labels, groups and weights, 0 where none is.  (classes, groups)"""
    mass = torch.zeros(n_classes, n_groups).index_put_((y, s), weight, accumulate=True)
    joint = mass / mass.sum()
    return torch.where(joint > 0, joint.sum(1, keepdim=True) * joint.sum(0) / joint, 0)
