"""A stack is its replicas one by one: optimiser, parameters, buffers."""

import numpy as np
import pytest
import torch
from torch import nn

from fairbits.training.stacks import Stack, StackAdam


@pytest.mark.parametrize("factors", [[1.0] * 20, [1 - i / 20 for i in range(20)]], ids=["constant", "decaying"])
def test_adam_takes_the_steps_of_torch(factors):
    torch.manual_seed(0)
    rates, decays = torch.tensor([1e-2, 1e-3, 0.1]), torch.tensor([0.0, 0.1, 0.5])
    start, gradients = torch.randn(3, 7), torch.randn(20, 3, 7)
    ours = start.clone()
    adam = StackAdam(ours, rates, decays)
    for gradient, factor in zip(gradients, factors, strict=True):
        adam.rate_factor = np.full((3, 1), factor)
        adam.step(gradient)
    for i in range(3):
        theirs = start[i].clone().requires_grad_()
        reference = torch.optim.AdamW([theirs], lr=rates[i].item(), weight_decay=decays[i].item())
        schedule = torch.optim.lr_scheduler.LambdaLR(reference, [*factors, 0].__getitem__)
        for gradient in gradients:
            theirs.grad = gradient[i]
            reference.step()
            schedule.step()
        torch.testing.assert_close(ours[i], theirs.detach())


def test_an_inactive_replica_does_not_move_nor_age():
    torch.manual_seed(0)
    start, gradients = torch.randn(2, 5), torch.randn(6, 2, 5)
    together, alone = start.clone(), start[1:].clone()
    both = StackAdam(together, torch.full((2,), 0.1), torch.full((2,), 0.1))
    single = StackAdam(alone, torch.full((1,), 0.1), torch.full((1,), 0.1))
    for step, gradient in enumerate(gradients):
        both.step(gradient, torch.tensor([1.0, float(step % 2)]))
        if step % 2:
            single.step(gradient[1:])
    torch.testing.assert_close(together[1:], alone)


class Counting(nn.Module):
    """A network with a buffer that training changes."""

    noise_size = 0

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        if self.training:
            self.seen.add_(x.shape[-2])
        return self.layer(x)


@pytest.mark.parametrize("size", [1, 3])
def test_map_and_gradient_are_those_of_the_networks(size):
    torch.manual_seed(0)
    nets, x = [Counting() for _ in range(size)], torch.randn(size, 5, 3)
    stack = Stack(nets)
    loss = stack.map(lambda net, x: net(x).square().mean(), x)
    terms, gradient = stack.differentiate(lambda net, x: {"total": net(x).square().mean()}, x)
    assert torch.equal(terms["total"], loss)
    for i, net in enumerate(nets):
        own = net(x[i]).square().mean()
        torch.testing.assert_close(loss[i], own)
        parts = torch.autograd.grad(own, list(net.parameters()))
        torch.testing.assert_close(gradient[i], torch.cat([p.flatten() for p in parts]))
    assert stack.buffers["seen"].tolist() == [10.0] * size


class Tied(Counting):
    """A network of which two layers share a weight."""

    def __init__(self):
        super().__init__()
        self.other = nn.Linear(3, 2)
        self.other.weight = self.layer.weight

    def forward(self, x):
        return super().forward(x) * self.other(x)


def test_replicas_share_what_their_layers_share_and_a_failure_leaves_nothing_behind():
    nets, x = [Tied() for _ in range(3)], torch.randn(3, 5, 3)
    stack = Stack(nets)

    def fail(net, x):
        raise ValueError(net(x).shape)

    for _ in range(2):
        mapped = stack.map(lambda net, x: net(x), x)
        for own, net, rows in zip(mapped, nets, x, strict=True):
            torch.testing.assert_close(own, net(rows))
        with pytest.raises(ValueError):
            stack.map(fail, x)
    assert torch.equal(stack._template.layer.weight, nets[0].layer.weight)


def test_keeping_replicas_keeps_their_parameters_and_buffers():
    torch.manual_seed(0)
    nets, x = [Counting() for _ in range(3)], torch.randn(1, 5, 3)
    before = [net(x[0]).detach() for net in nets]
    stack = Stack(nets)
    stack.keep(torch.tensor([2]))
    torch.testing.assert_close(stack.map(lambda net, x: net(x), x)[0].detach(), before[2])
    assert stack.buffers["seen"].tolist() == [10.0]
    torch.testing.assert_close(nets[0](x[0]).detach(), before[0])


def test_the_networks_given_are_left_alone():
    net = Counting()
    weight = net.layer.weight.detach().clone()
    Stack([net]).flat.zero_()
    torch.testing.assert_close(net.layer.weight.detach(), weight)


def test_randomness_inside_a_mapped_function_is_refused():
    with pytest.raises(RuntimeError, match="random"):
        Stack([Counting(), Counting()]).map(lambda net, x: net(x + torch.rand_like(x)), torch.randn(2, 5, 3))
