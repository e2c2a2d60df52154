"""A value whose gradient is known in closed form: autograd never sees the logarithms."""

import torch
from torch import Tensor


def with_gradient(x: Tensor, value: Tensor, gradient: Tensor) -> Tensor:
    """Return ``value``, whose derivative with respect to ``x`` is ``gradient``.

    Parameters
    ----------
    x : any shape
    value : like x with some dimensions of size 1, each value a function of the numbers it would be broadcast to;
        computed without a graph
    gradient : like x, likewise

    Examples
    --------
    >>> x = torch.zeros(1, 1, requires_grad=True)
    >>> with_gradient(x, torch.tensor([[5.0]]), torch.tensor([[7.0]])).backward()
    >>> x.grad.item()
    7.0
    """
    reduced = [i for i, (own, all_) in enumerate(zip(value.shape, x.shape, strict=True)) if own != all_]
    slope = x * gradient
    slope = slope.sum(reduced, keepdim=True) if reduced else slope
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


def in_transform() -> bool:
    """Return whether a torch.func transform is running, where values cannot be looked at."""
    return torch._C._functorch.maybe_current_level() is not None
