"""Rows and groups become normalised row weights: a group mean is one matrix product with them."""

import torch
from torch import Tensor


def group_weights(
    theta: Tensor,
    groups: Tensor,
    *,
    weights: Tensor | None = None,
    prior: Tensor | None = None,
    n_groups: int | None = None,
    check_values: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return each group's normalised row weights and the groups' probabilities.

    A present group's row of weights sums to 1, so ``row_weights @ theta`` are the group means; an absent
    group has weights 0 and probability 0, and the others are renormalised. Weights and prior are
    constants: no gradient.

    Parameters
    ----------
    theta : (..., n, m) tensor, only shape, dtype and device are used unless values are checked
    groups : (..., n) integers 0..K-1
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
    check_shapes(theta, groups, weights, prior, n_groups)
    if (check_values or n_groups is None) and not _transformed():
        _check_values(theta, groups, weights, prior, n_groups)
    n_groups = _count_groups(groups, prior, n_groups)
    with torch.no_grad():
        member = groups.unsqueeze(-2) == torch.arange(n_groups, device=theta.device).unsqueeze(-1)
        mass = member.to(theta.dtype)
        if weights is not None:
            mass = mass * weights.to(theta.dtype).unsqueeze(-2)
        mass = mass.expand(*theta.shape[:-2], *mass.shape[-2:])  # (..., K, n)
        total = mass.sum(-1)  # (..., K)
        share = total if prior is None else prior.to(theta.dtype) * (total > 0)
        return mass / _nonzero(total).unsqueeze(-1), share / _nonzero(share.sum(-1, keepdim=True))


def check_shapes(
    theta: Tensor, groups: Tensor, weights: Tensor | None, prior: Tensor | None, n_groups: int | None
) -> None:
    """Raise a ValueError that names the argument when shapes or types do not fit together."""
    if theta.dim() < 2 or not theta.is_floating_point() or 0 in theta.shape:
        raise ValueError(
            f"theta must be floating point of shape (..., rows, bits) with at least one of each; "
            f"got {theta.dtype} of shape {tuple(theta.shape)}"
        )
    if groups.is_floating_point() or groups.is_complex():
        raise ValueError(f"groups must be integers 0..K-1, got {groups.dtype}; encode them, e.g. groups.long()")
    for name, rows in (("groups", groups), ("weights", weights)):
        if rows is not None and not _fits(rows.shape, theta.shape[:-1]):
            raise ValueError(
                f"{name} has shape {tuple(rows.shape)}, but theta of shape {tuple(theta.shape)} "
                f"needs one entry per row: {tuple(theta.shape[:-1])}"
            )
    if prior is not None and n_groups is not None and prior.shape[-1] != n_groups:
        raise ValueError(f"prior has {prior.shape[-1]} entries, but n_groups is {n_groups}; give one per group")


def _fits(shape: torch.Size, rows: torch.Size) -> bool:
    """Say whether an argument has one entry per row, for each replica or shared by all of them."""
    return 0 < len(shape) <= len(rows) and shape[-1] == rows[-1] and shape == rows[len(rows) - len(shape) :]


def _check_values(
    theta: Tensor, groups: Tensor, weights: Tensor | None, prior: Tensor | None, n_groups: int | None
) -> None:
    low, high = (value.item() for value in theta.detach().aminmax())
    if not 0 <= low <= high <= 1:
        raise ValueError(f"theta must hold probabilities in [0, 1], got {low} to {high}; apply a sigmoid to logits")
    first, last = int(groups.min()), int(groups.max())
    known = n_groups if n_groups is not None else prior.shape[-1] if prior is not None else last + 1
    if first < 0 or last >= known:
        raise ValueError(f"groups must lie in 0..{known - 1}, got {first} to {last}; encode them or raise n_groups")
    for name, mass in (("weights", weights), ("prior", prior)):
        if mass is not None and not (mass.isfinite() & (mass >= 0)).all():
            raise ValueError(f"{name} must be finite and not negative, got a minimum of {mass.min().item()}")


def _count_groups(groups: Tensor, prior: Tensor | None, n_groups: int | None) -> int:
    if n_groups is not None:
        return n_groups
    if prior is not None:
        return prior.shape[-1]
    if _transformed():
        raise ValueError("n_groups is None, but the number of groups cannot depend on data under vmap; give n_groups")
    return int(groups.max()) + 1


def _transformed() -> bool:
    """Say whether a torch.func transform is running, where values cannot be looked at."""
    return torch._C._functorch.maybe_current_level() is not None


def _nonzero(x: Tensor) -> Tensor:
    return torch.where(x > 0, x, 1)
