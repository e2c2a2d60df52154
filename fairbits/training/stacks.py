"""R networks of one architecture as one tensor program, and Adam for them."""

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import stack_module_state, vmap

BETAS, EPS = (0.9, 0.999), 1e-8  # Adam's


class Stack:
    """The parameters of R networks in one matrix, and functions of a network mapped over all of them.

    ``map(function, *args)`` calls ``function(net, *args)`` for every replica at once by `torch.func.vmap`; the first
    dimension of arguments and results is the replica.

    >>> stack = Stack([nn.Linear(3, 2) for _ in range(4)])
    >>> stack.map(lambda net, x: net(x), torch.ones(4, 5, 3)).shape
    torch.Size([4, 5, 2])
    """

    def __init__(self, nets: Sequence[nn.Module]):
        self._template = copy.deepcopy(nets[0])
        parameters, buffers = stack_module_state(list(nets))
        self._places = _places(self._template)
        self._shapes = {name: p.shape[1:] for name, p in parameters.items()}
        self.buffers: dict[str, Tensor] = {name: b.clone() for name, b in buffers.items()}
        self.flat = torch.cat([p.detach().flatten(1) for p in parameters.values()], 1)  # (R, P)
        self._bind()

    def __len__(self) -> int:
        return self._size

    def _bind(self) -> None:
        """Make the leaves that autograd sees views of the flat matrix."""
        self._size = len(self.flat)
        if self._size == 1:
            load_replica(self._template, self.flat[0], {name: b[0] for name, b in self.buffers.items()})
            self.leaves: dict[str, Tensor] = dict(self._template.named_parameters())
            return
        parts = self.flat.split([shape.numel() for shape in self._shapes.values()], 1)
        self.leaves = {
            name: part.unflatten(1, shape).detach().requires_grad_()
            for (name, shape), part in zip(self._shapes.items(), parts, strict=True)
        }

    def map(self, function: Callable, *args: Any, chunk: int | None = None) -> Any:
        """Return function(net, *args) of every replica, `chunk` replicas at a time."""
        if len(self) == 1:
            return map_tensors(lambda t: t.unsqueeze(0), self._alone(function, args))
        # A function with randomness of its own would not be the same in a stack as alone: noise is an argument.
        chunk = None if chunk is None or chunk >= len(self) else chunk
        own = [*self.leaves.values(), *self.buffers.values()]

        def one(*tensors: Tensor) -> Any:
            with self._lent(tensors[: len(own)]):
                return function(self._template, *filled(args, tensors[len(own) :]))

        # a flat list of tensors, because vmap takes long to look through a tree
        return vmap(one, randomness="error", chunk_size=chunk)(*own, *tensors_in(args))

    @contextmanager
    def _lent(self, tensors: Sequence[Tensor]) -> Iterator[None]:
        """Let the template hold other parameters and buffers; `functional_call` takes as long as a small network."""
        own = [[(place, name, place[name]) for place, name in held] for held in self._places]
        try:
            for held, tensor in zip(self._places, tensors, strict=True):
                for place, name in held:
                    place[name] = tensor
            yield
        finally:
            for place, name, tensor in chain.from_iterable(own):
                place[name] = tensor

    def _alone(self, function: Callable, args: Any) -> Any:
        """Do the same operations without vmap, which costs a small network more than its step."""
        return function(self._template, *map_tensors(itemgetter(0), args))

    def differentiate(
        self, function: Callable, *args: Any, owned: Callable[[str], bool] | None = None, stacked: bool = True
    ) -> tuple[dict[str, Tensor], Tensor]:
        """Return the terms of a loss, and the derivative of every replica's "total" with respect to its parameters.

        Terms are (R,), the derivative (R, P). `owned` says by its name ("head.weight") whether a parameter takes part;
        the others' derivative is 0. With `stacked` False, arguments are of the only replica, without a dimension for
        it: taking it away is two dozen calls at every step.
        """
        alone = len(self) == 1
        if stacked:
            terms = self._alone(function, args) if alone else self.map(function, *args)
        else:
            terms = function(self._template, *args)
        mine = [name for name in self.leaves if owned is None or owned(name)]
        outputs, weights = terms["total"], None if alone else torch.ones_like(terms["total"])
        leaves = [self.leaves[name] for name in mine]
        found: Sequence[Tensor] = torch.autograd.grad(outputs, leaves, weights, materialize_grads=True)
        if owned is not None:
            known = dict(zip(mine, found, strict=True))
            found = [known[name] if name in known else torch.zeros_like(leaf) for name, leaf in self.leaves.items()]
        gradient = torch.cat([part.reshape(len(self), -1) for part in found], 1)
        return {name: value.detach().view(len(self)) for name, value in terms.items()}, gradient

    def training(self, mode: bool) -> None:
        """Put the networks in training or evaluation mode."""
        self._template.train(mode)

    def state(self, replica: int) -> tuple[Tensor, dict[str, Tensor]]:
        """Return a copy of a replica's parameters (P,) and buffers, as `load_replica` takes them."""
        return self.flat[replica].clone(), {name: b[replica].clone() for name, b in self.buffers.items()}

    def keep(self, replicas: Tensor) -> None:
        """Go on with some of the replicas."""
        self.flat, self.buffers = self.flat[replicas], {name: b[replicas] for name, b in self.buffers.items()}
        self._bind()


def map_tensors(function: Callable[[Tensor], Any], tree: Any) -> Any:
    """Apply a function to every tensor in nested (named) tuples and dicts."""
    if isinstance(tree, Tensor):
        return function(tree)
    if isinstance(tree, dict):
        return {key: map_tensors(function, value) for key, value in tree.items()}
    parts = [map_tensors(function, part) for part in tree]
    return tree._make(parts) if hasattr(tree, "_make") else tuple(parts)


def tensors_in(tree: Any) -> list[Tensor]:
    """List the tensors in nested (named) tuples and dicts."""
    found: list[Tensor] = []
    map_tensors(found.append, tree)
    return found


def filled(tree: Any, tensors: Iterable[Tensor]) -> Any:
    """Put others in the places of the tensors that `tensors_in` lists."""
    rest = iter(tensors)
    return map_tensors(lambda _: next(rest), tree)


def load_replica(net: nn.Module, flat: Tensor, buffers: dict[str, Tensor]) -> None:
    """Let a network's parameters and buffers be views of one replica's: flat (P,), buffers by name."""
    parameters = list(net.parameters())
    for p, part in zip(parameters, flat.split([p.numel() for p in parameters]), strict=True):
        p.data = part.view(p.shape)
    for name, b in net.named_buffers():
        b.data = buffers[name]


def _places(net: nn.Module) -> list[list[tuple[dict, str]]]:
    """Return where a network holds each of its parameters, then each of its buffers; a shared one is in several."""
    held: dict[int, list[tuple[dict, str]]] = {id(t): [] for t in (*net.parameters(), *net.buffers())}
    for module in net.modules():
        for place in (module._parameters, module._buffers):
            for name, tensor in place.items():
                if tensor is not None:
                    held[id(tensor)].append((place, name))
    return list(held.values())


class StackAdam:
    """Adam (Kingma and Ba 2015) with decoupled weight decay on one flat parameter matrix.

    The same numbers as ``torch.optim.AdamW`` for each row, in a dozen operations whatever the number of tensors: for
    small networks the optimiser is otherwise half of a step.

    Parameters (R, P) are updated in place; learning rate and weight decay are (R,). `rate_factor` (R, 1) multiplies
    the learning rates; a schedule sets it between steps.
    """

    def __init__(self, parameters: Tensor, learning_rate: Tensor, weight_decay: Tensor):
        self.parameters = parameters
        # Per-replica scalars live in numpy: arithmetic on a few numbers is several times faster there.
        self.learning_rate = learning_rate.cpu().double().numpy()[:, None]
        self.weight_decay = weight_decay.cpu().double().numpy()[:, None]
        self._decays = bool(self.weight_decay.any())
        self.rate_factor, self.steps = np.ones_like(self.learning_rate), np.zeros_like(self.learning_rate)
        self.mean, self.square = torch.zeros_like(parameters), torch.zeros_like(parameters)

    def step(self, gradient: Tensor, active: Tensor | None = None) -> None:
        """Move one step; replicas whose `active` (R,) is 0 keep parameters and state."""
        state = (self.parameters, self.mean, self.square)
        before = () if active is None else [t.clone() for t in state]
        rate = self.learning_rate * self.rate_factor
        self.steps += 1
        if self._decays:
            self.parameters.mul_(self._column(1 - rate * self.weight_decay))
        self.mean.lerp_(gradient, 1 - BETAS[0])
        self.square.mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
        # mean_hat rate / (sqrt(square_hat) + eps), with all that is one number per replica in the denominator
        factor = (1 - BETAS[0] ** self.steps) / rate
        scale = self._column(factor / np.sqrt(1 - BETAS[1] ** self.steps))
        denominator = self.square.sqrt().mul_(scale).add_(self._column(factor * EPS))
        self.parameters.addcdiv_(self.mean, denominator, value=-1)
        if active is not None:
            for now, old in zip(state, before, strict=True):
                now.copy_(torch.where(active.unsqueeze(-1) > 0, now, old))
            self.steps -= active.cpu().numpy()[:, None] == 0

    def _column(self, values: np.ndarray) -> Tensor | float:
        """Return one number per replica, (R, 1), to be broadcast over its parameters."""
        if len(values) == 1:
            return float(values[0, 0])
        return torch.from_numpy(values.astype(np.float32)).to(self.parameters)

    def keep(self, replicas: Tensor, parameters: Tensor) -> None:
        """Go on with some of the replicas, whose parameters now live in `parameters`."""
        self.parameters = parameters
        self.mean, self.square = self.mean[replicas], self.square[replicas]
        for name in ("learning_rate", "rate_factor", "weight_decay", "steps"):
            setattr(self, name, getattr(self, name)[replicas.cpu().numpy()])
