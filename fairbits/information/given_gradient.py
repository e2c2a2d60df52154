"""A value whose gradient is known in closed form: autograd never sees the logarithms."""

import inspect
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def with_gradient(x: Tensor, value: Tensor, gradient: Tensor) -> Tensor:
    """Return ``value``, whose derivative with respect to ``x`` is ``gradient``.

    Parameters
    ----------
    x : (..., a, b)
    value : (...), computed from x without a graph
    gradient : (..., a, b), likewise

    Examples
    --------
    >>> x = torch.zeros(1, 1, requires_grad=True)
    >>> with_gradient(x, torch.tensor(5.0), torch.tensor([[7.0]])).backward()
    >>> x.grad.item()
    7.0
    """
    return _GivenGradient.apply(x, value, gradient)


def batch_first(batch_size: int, dims: tuple[int | None, ...], tensors: tuple[Tensor, ...]) -> list[Tensor]:
    """Move the dimension that vmap added to the front, where natively batched functions want it."""
    return [
        x.expand(batch_size, *x.shape) if dim is None else x.movedim(dim, 0)
        for x, dim in zip(tensors, dims, strict=True)
    ]


def signature_once(function: type) -> type:
    """Decorate an autograd function: torch asks for forward's signature at every call, here it finds it ready made.

    Inspecting takes longer than the arithmetic of a small batch.
    """
    function.forward.__signature__ = inspect.signature(function.forward)  # type: ignore[attr-defined]
    return function


@signature_once
class _GivenGradient(torch.autograd.Function):
    @staticmethod
    def forward(x: Tensor, value: Tensor, gradient: Tensor) -> Tensor:
        return value.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ctx.save_for_backward(inputs[2])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = ctx.saved_tensors
        return upstream[..., None, None] * gradient, None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *tensors: Tensor) -> tuple[Tensor, int]:
        return _GivenGradient.apply(*batch_first(info.batch_size, in_dims, tensors)), 0
