"""A stack of replicas, a loop over them and vmap agree, in values and in gradients."""

import pytest
import torch
from information_layers import random_layer
from torch.func import grad, vmap

from fairbits.information import (
    binary_entropy,
    joint_information,
    neuronwise_information,
    running_information,
    total_variation,
    wide_information,
    word_tables,
)

R, N, M, K = 4, 40, 5, 3


def joint(theta, groups, weights, noise):
    return joint_information(theta, groups, weights=weights, n_groups=K)


def neuronwise(theta, groups, weights, noise):
    return neuronwise_information(theta, groups, weights=weights, n_groups=K).sum(-1)


def wide(theta, groups, weights, noise):
    return wide_information(theta, groups, weights=weights, n_groups=K, noise=noise)


def distance(theta, groups, weights, noise):
    return total_variation(theta, groups, weights=weights, n_groups=K)


def running(theta, groups, weights, noise):
    tables, prior = word_tables(theta, groups, weights=weights, n_groups=K)
    penalty, new = running_information(tables, prior, torch.zeros_like(tables), 0.9)
    penalty, _ = running_information(tables, prior, new.flip(-1), 0.9)
    return penalty


def certain(theta, groups, weights, noise):
    return binary_entropy(theta).mean((-2, -1))


MEASURES = [joint, neuronwise, wide, distance, running, certain]


@pytest.fixture
def stack():
    layers = [random_layer(seed, n=N, m=M, n_groups=K) for seed in range(R)]
    theta, groups = (torch.stack(parts) for parts in zip(*layers, strict=True))
    weights = torch.rand(R, N, dtype=torch.float64) * (torch.rand(R, N) > 0.2)
    weights[1] = 0  # an empty replica
    weights[2] *= groups[2] != 1  # and one that lacks a group
    return theta.requires_grad_(), groups, weights, torch.rand(R, N, M, dtype=torch.float64)


@pytest.mark.parametrize("measure", MEASURES)
def test_stack_loop_and_vmap_agree(measure, stack):
    theta = stack[0]
    values = [
        measure(*stack),
        torch.stack([measure(*(part[r] for part in stack)) for r in range(R)]),
        vmap(measure, randomness="different")(*stack),
    ]
    gradients = [torch.autograd.grad((v * torch.arange(1, R + 1)).sum(), theta)[0] for v in values]
    gradients.append(vmap(grad(measure))(*stack) * torch.arange(1, R + 1)[:, None, None])
    for value in values[1:]:
        torch.testing.assert_close(value, values[0], atol=1e-14, rtol=1e-10)
    for gradient in gradients[1:]:
        torch.testing.assert_close(gradient, gradients[0], atol=1e-14, rtol=1e-9)
    if measure is not certain:
        assert values[0][1] == 0
        assert (gradients[0][1] == 0).all()
    assert all(g.isfinite().all() for g in gradients)


@pytest.mark.parametrize("measure", [joint, neuronwise, wide])
def test_what_replicas_share_need_not_be_repeated(measure, stack):
    theta, groups, weights, noise = stack
    shared = measure(theta, groups[0], weights[0], noise)
    repeated = measure(theta, groups[:1].expand(R, N), weights[:1].expand(R, N), noise)
    torch.testing.assert_close(shared, repeated)
    mapped = vmap(measure, in_dims=(0, None, None, 0))(theta, groups[0], weights[0], noise)
    torch.testing.assert_close(mapped, repeated)


@pytest.mark.parametrize("measure", [joint, neuronwise, wide])
def test_replicas_along_any_dimension(measure, stack):
    theta, groups, weights, noise = (part.movedim(0, -1) for part in stack)
    mapped = vmap(measure, in_dims=(2, 1, 1, 2))(theta, groups, weights, noise)
    torch.testing.assert_close(mapped, measure(*stack))
    gradient = vmap(grad(measure), in_dims=(2, 1, 1, 2))(theta, groups, weights, noise)
    torch.testing.assert_close(gradient, vmap(grad(measure))(*stack))


def test_two_leading_dimensions(stack):
    theta, groups, weights, _ = (part.unflatten(0, (2, 2)) for part in stack)
    value = joint_information(theta, groups, weights=weights, n_groups=K)
    assert value.shape == (2, 2)
    torch.testing.assert_close(value.flatten(), joint(*stack))
    assert word_tables(theta, groups)[0].shape == (2, 2, K, 2**M)
    assert neuronwise_information(theta, groups).shape == (2, 2, M)


def test_a_prior_per_replica(stack):
    theta, groups, _, _ = stack
    prior = torch.softmax(torch.randn(R, K, dtype=torch.float64), -1)
    together = joint_information(theta, groups, prior=prior)
    alone = [joint_information(t, g, prior=p) for t, g, p in zip(theta, groups, prior, strict=True)]
    torch.testing.assert_close(together, torch.stack(alone))
    mapped = vmap(lambda t, g, p: joint_information(t, g, prior=p))(theta, groups, prior)
    torch.testing.assert_close(mapped, together)


def test_every_replica_draws_its_own_codes():
    theta, groups = random_layer(0, m=20)
    copies = theta.expand(5, *theta.shape)
    for values in (
        wide_information(copies, groups, n_groups=2),
        vmap(lambda t: wide_information(t, groups, n_groups=2), randomness="different")(copies),
    ):
        assert len(set(values.tolist())) == 5


def test_odd_width_and_one_bit_under_vmap():
    for m in (1, 3):
        theta, groups = (torch.stack(part) for part in zip(*(random_layer(s, m=m) for s in (0, 1)), strict=True))
        mapped = vmap(grad(lambda t, g: joint_information(t, g, n_groups=2)))(theta, groups)
        leaf = theta.clone().requires_grad_()
        joint_information(leaf, groups).sum().backward()
        torch.testing.assert_close(mapped, leaf.grad)


def test_the_number_of_groups_must_be_known_under_vmap(stack):
    theta, groups, _, _ = stack
    with pytest.raises(ValueError, match="n_groups"):
        vmap(joint_information)(theta, groups)
