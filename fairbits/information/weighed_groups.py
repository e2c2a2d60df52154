"""Rows and groups become normalised row weights: a group mean is one matrix product with them."""

from typing import NamedTuple, TypeAlias, TypedDict, Unpack

import torch
from torch import Tensor

from fairbits.errors import InputError

Weights: TypeAlias = Tensor | None  # of rows or of groups


class WeighedGroups(NamedTuple):
    """Groups made ready for many measurements; every measure takes them in place of group numbers."""

    row_weights: Tensor  # (..., K, n): each present group's row sums to 1, an absent group's is 0
    prior: Tensor  # (..., K)


class Weighing(TypedDict, total=False):
    """What every measure takes by name beside theta and the groups."""

    weights: Weights  # (..., n) non-negative row weights, 1 by default
    prior: Weights  # (..., K) probabilities of the groups, by default their share of the weight
    n_groups: int | None  # K, fixed in advance; needed under vmap. If you pass it, values are trusted


Groups: TypeAlias = Tensor | WeighedGroups


def group_weights(theta: Tensor, groups: Groups, *, check: bool = False, **weighing: Unpack[Weighing]) -> WeighedGroups:
    """Return each group's normalised row weights and the groups' probabilities; ``row_weights @ theta`` are its means.

    Groups (..., n) are integers 0..K-1, or `WeighedGroups`, which are returned as they are. An absent group has weights
    0 and probability 0. Of theta (..., n, m) only shape, dtype and device are used, unless its values are checked:
    where `n_groups` is not given, or with `check`.

    >>> row_weights, prior = group_weights(torch.rand(3, 1), torch.tensor([0, 1, 1]))
    >>> row_weights
    tensor([[1.0000, 0.0000, 0.0000],
            [0.0000, 0.5000, 0.5000]])
    >>> prior
    tensor([0.3333, 0.6667])
    """
    weights, prior, n_groups = weighing.get("weights"), weighing.get("prior"), weighing.get("n_groups")
    if isinstance(groups, WeighedGroups):
        if weights is not None or prior is not None:
            raise InputError("weights and prior are part of WeighedGroups.", remedy="Pass them to weigh_groups.")
        return WeighedGroups(groups.row_weights.to(theta.dtype), groups.prior.to(theta.dtype))
    _check_shapes(theta, groups, weights, prior, n_groups)
    trusted = in_transform() or (n_groups is not None and not check)
    if n_groups is None and prior is None and in_transform():
        raise InputError("The number of groups cannot depend on data under vmap.", remedy="Pass n_groups.")
    if n_groups is None:
        n_groups = int(groups.max()) + 1 if prior is None else prior.shape[-1]
    if not trusted:
        _check_values(theta, groups, weights, prior, n_groups)
    row_weights, prior = weigh_groups(groups, weights=weights, prior=prior, n_groups=n_groups, dtype=theta.dtype)
    lead = theta.shape[:-2]
    return WeighedGroups(row_weights.expand(*lead, *row_weights.shape[-2:]), prior.expand(*lead, n_groups))


@torch.no_grad()
def weigh_groups(
    groups: Tensor, *, n_groups: int, weights: Weights = None, prior: Weights = None, dtype: torch.dtype = torch.float32
) -> WeighedGroups:
    """Return what the measures need of groups (..., n), once for many calls; values are trusted.

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
    share = (share / share.sum(-2, keepdim=True).clamp(min=tiny)).squeeze(-1)
    return WeighedGroups(mass / total.clamp(min=tiny), share)


def in_transform() -> bool:
    """Return whether a torch.func transform is running, where values cannot be looked at."""
    return torch._C._functorch.maybe_current_level() is not None


def _check_shapes(theta: Tensor, groups: Tensor, weights: Weights, prior: Weights, n_groups: int | None) -> None:
    if theta.dim() < 2 or not theta.is_floating_point() or theta.dtype == torch.float16 or 0 in theta.shape:
        raise InputError(
            "theta must be floating point (not half precision) of shape (..., rows, bits) with at least one of each; "
            f"got {theta.dtype} of shape {tuple(theta.shape)}."
        )
    if groups.is_floating_point() or groups.is_complex():
        raise InputError(f"groups must be integers 0..K-1, got {groups.dtype}.", remedy="Encode them: groups.long().")
    rows = theta.shape[:-1]
    for name, given in (("groups", groups), ("weights", weights)):
        # one entry per row, for each replica or shared by all of them
        if given is not None and (given.dim() == 0 or given.shape != rows[max(0, len(rows) - given.dim()) :]):
            raise InputError(
                f"{name} has shape {tuple(given.shape)}, but theta of shape {tuple(theta.shape)} "
                f"needs one entry per row: {tuple(rows)}."
            )
    if prior is not None and n_groups is not None and prior.shape[-1] != n_groups:
        raise InputError(f"prior has {prior.shape[-1]} entries, but n_groups is {n_groups}.", remedy="Pass one each.")


def _check_values(theta: Tensor, groups: Tensor, weights: Weights, prior: Weights, n_groups: int) -> None:
    low, high = (value.item() for value in theta.detach().aminmax())
    if not 0 <= low <= high <= 1:
        problem = f"theta must hold probabilities in [0, 1], got {low} to {high}."
        raise InputError(problem, remedy="Apply a sigmoid to logits.")
    first, last = int(groups.min()), int(groups.max())
    if first < 0 or last >= n_groups:
        problem = f"groups must lie in 0..{n_groups - 1}, got {first} to {last}."
        raise InputError(problem, remedy="Encode them, or raise n_groups.")
    for name, mass in (("weights", weights), ("prior", prior)):
        if mass is not None and not (mass.isfinite() & (mass >= 0)).all():
            raise InputError(f"{name} must be finite and not negative, got a minimum of {mass.min().item()}.")
