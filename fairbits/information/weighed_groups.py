"""Rows and groups become normalised row weights: a group mean is one matrix product with them."""

from typing import NamedTuple

import torch
from torch import Tensor

from fairbits.errors import InputError

from .given_gradient import in_transform


class WeighedGroups(NamedTuple):
    """Groups made ready for many measurements; every measure takes them in place of group numbers."""

    row_weights: Tensor  # (..., K, n): each present group's row sums to 1, an absent group's is 0
    prior: Tensor  # (..., K)


def group_weights(
    theta: Tensor,
    groups: Tensor | WeighedGroups,
    *,
    weights: Tensor | None = None,
    prior: Tensor | None = None,
    n_groups: int | None = None,
    check_values: bool = False,
) -> WeighedGroups:
    """Return each group's normalised row weights and the groups' probabilities.

    A present group's row of weights sums to 1, so ``row_weights @ theta`` are the group means; an absent
    group has weights 0 and probability 0, and the others are renormalised. Weights and prior are
    constants: no gradient.

    Parameters
    ----------
    theta : (..., n, m) tensor, only shape, dtype and device are used unless values are checked
    groups : (..., n) integers 0..K-1, or `WeighedGroups`, which are returned as they are
    weights : (..., n) non-negative row weights, 1 by default
    prior : (..., K) probabilities of the groups, by default their share of the weight
    n_groups : K, fixed beforehand; needed under ``torch.func.vmap``. When it is given, values are trusted
    check_values : look at the values (a device synchronisation) even when ``n_groups`` is given

    Returns
    -------
    row_weights (..., K, n), prior (..., K)

    Examples
    --------
    >>> row_weights, prior = group_weights(torch.rand(3, 1), torch.tensor([0, 1, 1]))
    >>> row_weights
    tensor([[1.0000, 0.0000, 0.0000],
            [0.0000, 0.5000, 0.5000]])
    >>> prior
    tensor([0.3333, 0.6667])
    """
    if isinstance(groups, WeighedGroups):
        if weights is not None or prior is not None:
            raise InputError("weights and prior are part of WeighedGroups; pass them to weigh_groups.")
        return WeighedGroups(groups.row_weights.to(theta.dtype), groups.prior.to(theta.dtype))
    check_shapes(theta, groups, weights, prior, n_groups)
    if (check_values or n_groups is None) and not in_transform():
        _check_values(theta, groups, weights, prior, n_groups)
    n_groups = _count_groups(groups, prior, n_groups)
    row_weights, prior = weigh_groups(groups, weights=weights, prior=prior, n_groups=n_groups, dtype=theta.dtype)
    lead = theta.shape[:-2]
    return WeighedGroups(row_weights.expand(*lead, *row_weights.shape[-2:]), prior.expand(*lead, n_groups))


@torch.no_grad()
def weigh_groups(
    groups: Tensor,
    *,
    n_groups: int,
    weights: Tensor | None = None,
    prior: Tensor | None = None,
    dtype: torch.dtype = torch.float32,
) -> WeighedGroups:
    """Return what the measures need of the groups, once for many calls; values are trusted.

    Parameters as in `group_weights`; any leading dimensions, for example all batches of an epoch.

    Examples
    --------
    >>> weigh_groups(torch.tensor([0, 1, 1]), n_groups=2).prior
    tensor([0.3333, 0.6667])
    """
    member = groups.unsqueeze(-2) == torch.arange(n_groups, device=groups.device).unsqueeze(-1)
    mass = member.to(dtype)  # (..., K, n)
    if weights is not None:
        mass = mass * weights.to(dtype).unsqueeze(-2)
    total = mass.sum(-1, keepdim=True)  # (..., K, 1)
    share = total if prior is None else prior.to(dtype).unsqueeze(-1) * (total > 0)
    tiny = torch.finfo(dtype).tiny
    return WeighedGroups(
        mass / total.clamp(min=tiny), (share / share.sum(-2, keepdim=True).clamp(min=tiny)).squeeze(-1)
    )


def check_shapes(
    theta: Tensor, groups: Tensor, weights: Tensor | None, prior: Tensor | None, n_groups: int | None
) -> None:
    """Raise a ValueError that names the argument when shapes or types do not fit together."""
    if theta.dim() < 2 or not theta.is_floating_point() or theta.dtype == torch.float16 or 0 in theta.shape:
        raise InputError(
            f"theta must be floating point (not half precision) of shape (..., rows, bits) with at least one of each; "
            f"got {theta.dtype} of shape {tuple(theta.shape)}"
        )
    if groups.is_floating_point() or groups.is_complex():
        raise InputError(f"groups must be integers 0..K-1, got {groups.dtype}; encode them, e.g. groups.long()")
    for name, rows in (("groups", groups), ("weights", weights)):
        if rows is not None and not _fits(rows.shape, theta.shape[:-1]):
            raise InputError(
                f"{name} has shape {tuple(rows.shape)}, but theta of shape {tuple(theta.shape)} "
                f"needs one entry per row: {tuple(theta.shape[:-1])}"
            )
    if prior is not None and n_groups is not None and prior.shape[-1] != n_groups:
        raise InputError(f"prior has {prior.shape[-1]} entries, but n_groups is {n_groups}; give one per group")


def _fits(shape: torch.Size, rows: torch.Size) -> bool:
    """Say whether an argument has one entry per row, for each replica or shared by all of them."""
    return 0 < len(shape) <= len(rows) and shape[-1] == rows[-1] and shape == rows[len(rows) - len(shape) :]


def _check_values(
    theta: Tensor, groups: Tensor, weights: Tensor | None, prior: Tensor | None, n_groups: int | None
) -> None:
    low, high = (value.item() for value in theta.detach().aminmax())
    if not 0 <= low <= high <= 1:
        raise InputError(f"theta must hold probabilities in [0, 1], got {low} to {high}; apply a sigmoid to logits")
    first, last = int(groups.min()), int(groups.max())
    known = n_groups if n_groups is not None else prior.shape[-1] if prior is not None else last + 1
    if first < 0 or last >= known:
        raise InputError(f"groups must lie in 0..{known - 1}, got {first} to {last}; encode them or raise n_groups")
    for name, mass in (("weights", weights), ("prior", prior)):
        if mass is not None and not (mass.isfinite() & (mass >= 0)).all():
            raise InputError(f"{name} must be finite and not negative, got a minimum of {mass.min().item()}")


def _count_groups(groups: Tensor, prior: Tensor | None, n_groups: int | None) -> int:
    if n_groups is not None:
        return n_groups
    if prior is not None:
        return prior.shape[-1]
    if in_transform():
        raise InputError("n_groups is None, but the number of groups cannot depend on data under vmap; give n_groups")
    return int(groups.max()) + 1
