"""Weighed groups of rows, distributions of whole codes as a product of half codes, and gradients in closed form."""

import inspect
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias, TypedDict, Unpack

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn.functional import threshold

from fairbits.errors import InputError

MAX_BITS = 20  # the most that are ever summed over all words
EXACT_BITS = 16  # up to here a sum over all words costs less than what would take its place
_CHUNK_ROWS = 8192
_CHUNK_NUMBERS = 2**23  # numbers in one half product: 32 MB in float32
_SPLIT_WORK = 2**25  # multiplications from which gathering each group's rows pays (measured)

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
    """Prepare groups (..., n) for many calls of the measures; values are not checked.

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


def normalised(weights: Tensor) -> Tensor:
    """Return weights (..., n) scaled to sum to 1; where all are 0, they stay 0.

    >>> normalised(torch.tensor([[1.0, 3.0], [0.0, 0.0]]))
    tensor([[0.2500, 0.7500],
            [0.0000, 0.0000]])
    """
    return weights / weights.sum(-1, keepdim=True).clamp(min=torch.finfo(weights.dtype).tiny)


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


def with_gradient(x: Tensor, value: Tensor, gradient: Tensor) -> Tensor:
    """Return ``value``, whose derivative with respect to ``x`` is ``gradient``: autograd never sees the logarithms.

    ``value``, computed without a graph, is like ``x`` with some dimensions of size 1, each value a function of the
    numbers it would be broadcast to.

    >>> x = torch.zeros(1, 1, requires_grad=True)
    >>> with_gradient(x, torch.tensor([[5.0]]), torch.tensor([[7.0]])).backward()
    >>> x.grad.item()
    7.0
    """
    slope = (x * gradient).sum_to_size(value.shape)
    if slope.requires_grad and not in_transform():
        slope.register_hook(_refuse_second_order)
    return value + (slope - slope.detach())  # the value itself, and the slope's gradient


def _refuse_second_order(upstream: Tensor) -> None:
    """Raise in a backward pass that records itself, to which the given gradient is a constant."""
    if torch.is_grad_enabled():
        raise RuntimeError(
            "You can differentiate fairbits' information measures only once, because their gradients are given in "
            "closed form. Call backward or grad without create_graph=True."
        )


def mean_words(theta: Tensor, row_weights: Tensor) -> Tensor:
    """Return the weighted sums of p(t|x) over the rows, for every word t and every group.

    P_s(t) = sum_j w_sj prod_i theta_ji^{t_i} (1 - theta_ji)^{1 - t_i}; with t = (u, v) split in half, A_s^T B of half
    products A and B. Theta (..., n, m) and row_weights (..., K, n), constants, give (..., K, 2^m), words in the
    order of ``itertools.product((0, 1), repeat=m)``.
    """
    return _MeanWords.apply(theta, row_weights)


class _Batched(Function):
    """A function that takes leading dimensions: under vmap, the new dimension moves to the front."""

    def __init_subclass__(cls) -> None:
        # torch inspects the signature at every call, which takes longer than the arithmetic of a small batch
        cls.forward.__dict__["__signature__"] = inspect.signature(cls.forward)

    @classmethod
    def vmap(cls, info: Any, in_dims: tuple[int | None, ...], *tensors: Tensor) -> tuple[Tensor, int]:
        first = [
            x.expand(info.batch_size, *x.shape) if dim is None else x.movedim(dim, 0)
            for x, dim in zip(tensors, in_dims, strict=True)
        ]
        return cls.apply(*first), 0


class _MeanWords(_Batched):
    @staticmethod
    def forward(theta: Tensor, row_weights: Tensor) -> Tensor:
        n_bits, n_groups = theta.shape[-1], row_weights.shape[-2]
        words = theta.new_zeros(*theta.shape[:-2], n_groups, 1 << n_bits // 2, 1 << n_bits - n_bits // 2)
        for groups, rows, w in _parts(theta, row_weights):
            left, right = _halves(_products(_bits_first(theta[..., rows, :]))[-1], n_bits)
            words[..., groups, :, :] += (_weighted(left, w) @ right.mT).unflatten(-2, (w.shape[-2], -1))
        return words.flatten(-2)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
        return _MeanWordsGradient.apply(*ctx.saved_tensors, upstream), None


class _MeanWordsGradient(_Batched):
    """The backward pass of _MeanWords, a function of its own so that vmap of grad finds a rule for it too."""

    @staticmethod
    def forward(theta: Tensor, row_weights: Tensor, upstream: Tensor) -> Tensor:
        """Recompute the half products and push the upstream gradient (..., K, 2^m) through them to theta."""
        n_bits, gradient = theta.shape[-1], torch.zeros_like(theta)
        for groups, rows, w in _parts(theta, row_weights):
            bits = _bits_first(theta[..., rows, :])
            products = _products(bits)
            left, right = _halves(products[-1], n_bits)
            above = upstream[..., groups, :].reshape(*theta.shape[:-2], w.shape[-2] << n_bits // 2, -1)
            d_left = (above @ right).unflatten(-2, (w.shape[-2], -1)).mul_(w.unsqueeze(-2)).sum(-3)
            d_right = above.mT @ _weighted(left, w)
            if n_bits % 2:
                d_left = torch.cat([d_left, torch.zeros_like(d_left)], -2)
            d_bits = _products_gradient(bits, products, torch.stack([d_left, d_right], -3))
            gradient[..., rows, :] = d_bits.flatten(-3, -2)[..., n_bits % 2 :, :].mT
        return gradient

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        pass


def _parts(theta: Tensor, row_weights: Tensor) -> Iterator[tuple[slice, Any, Tensor]]:
    """Split the work into (groups, rows, weights of these groups on these rows), few enough rows for the memory.

    Much work is split by group, so that K groups cost no more than one. Little work, and a stack of
    replicas, whose groups are at different rows, keeps all rows and multiplies by the weights.
    """
    n_groups, n_rows = row_weights.shape[-2:]
    if theta.dim() > 2 or row_weights.numel() << theta.shape[-1] < _SPLIT_WORK:
        for rows in _chunks(theta, n_groups, n_rows):
            yield slice(None), rows, row_weights[..., rows]
        return
    for s, w in enumerate(row_weights):
        members = w.nonzero().squeeze(-1)
        for part in _chunks(theta, 1, len(members)):
            yield slice(s, s + 1), members[part], w[members[part]].unsqueeze(0)


def _chunks(theta: Tensor, n_groups: int, n_rows: int) -> list[slice]:
    replicas, half = theta.shape[:-2].numel(), (theta.shape[-1] + 1) // 2
    size = max(256, min(_CHUNK_ROWS, _CHUNK_NUMBERS // (replicas * n_groups << half)))
    return [slice(start, start + size) for start in range(0, n_rows, size)]


def _bits_first(theta: Tensor) -> Tensor:
    """Turn (..., n, m) into halves (..., 2, h, n), rows last for speed; an odd width gets a first bit 0."""
    bits = theta.mT
    if theta.shape[-1] % 2:
        bits = torch.cat([torch.zeros_like(bits[..., :1, :]), bits], -2)
    return bits.unflatten(-2, (2, -1)).contiguous()


def _halves(products: Tensor, n_bits: int) -> tuple[Tensor, Tensor]:
    return products[..., 0, : 1 << n_bits // 2, :], products[..., 1, :, :]


def _weighted(left: Tensor, row_weights: Tensor) -> Tensor:
    return (left.unsqueeze(-3) * row_weights.unsqueeze(-2)).flatten(-3, -2)  # (..., K 2^a, n)


def _products(bits: Tensor) -> list[Tensor]:
    """Return the word probabilities of the last 1, 2, ..., h bits of (..., h, n): (..., 2^i, n) each."""
    negligible = (1e8 * torch.finfo(bits.dtype).tiny) ** 0.5  # two halves multiplied stay normal numbers
    cells = torch.stack([1 - bits, bits], -2)  # (..., h, 2, n)
    products = [cells[..., -1, :, :]]
    for i in range(bits.shape[-2] - 2, -1, -1):
        product = (cells[..., i, :, None, :] * products[-1].unsqueeze(-3)).flatten(-3, -2)
        products.append(threshold(product, negligible, 0.0, inplace=True))
    return products


def _products_gradient(bits: Tensor, products: list[Tensor], upstream: Tensor) -> Tensor:
    """Push (..., 2^h, n) back to the bits (..., h, n), peeling off the first bit of the word each time."""
    gradients = []
    for i in range(bits.shape[-2]):
        zero, one = upstream.unflatten(-2, (2, -1)).unbind(-3)
        slope = one - zero
        rest = products[-2 - i] if i + 1 < len(products) else None
        gradients.append((slope if rest is None else slope * rest).sum(-2))
        upstream = torch.addcmul(zero, slope, bits[..., i, None, :])
    return torch.stack(gradients, -2)


def word_probabilities(theta: Tensor) -> Tensor:
    """Return each row's probability of every code word, in the order of `all_words`.  (..., n, 2^m)"""
    words = torch.ones_like(theta[..., :1])
    for bit in theta.unsqueeze(-2).unbind(-1):  # (..., n, 1) each
        words = torch.stack([words * (1 - bit), words * bit], -1).flatten(-2)
    return words


def word_columns(theta: Tensor) -> Tensor:
    """Return what `word_probabilities` does with rows innermost: faster, but a gradient would be summed differently.

    (..., 2^m, n)
    """
    bits = theta.mT
    words, cells = torch.ones_like(bits[..., :1, :]), torch.stack([1 - bits, bits], -2)
    for cell in cells.unbind(-3):  # (..., 2, n) each
        words = (words.unsqueeze(-2) * cell.unsqueeze(-3)).flatten(-3, -2)
    return words


def all_words(like: Tensor) -> Tensor:
    """List the 2^m code words in the order of `word_probabilities`, first bit most significant.  (2^m, m)"""
    m = like.shape[-1]
    bits = torch.arange(2**m, device=like.device).unsqueeze(-1) >> torch.arange(m - 1, -1, -1, device=like.device)
    return (bits & 1).to(like.dtype)
