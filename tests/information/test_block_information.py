"""Blocks of a wide code: sums of exact information, and what a batch can and cannot say of 64 bits."""

import pytest
import torch
from battery import problem, quick

from fairbits import BinaryMIClassifier
from fairbits.estimators import fit_stack
from fairbits.information import (
    block_bias,
    block_information,
    code_blocks,
    joint_bias,
    joint_information,
    weigh_groups,
    wide_information,
)
from fairbits.nn import RunningInformation


def code(n, m, n_groups=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    s = torch.randint(0, n_groups, (n,), generator=generator)
    groups = weigh_groups(s, n_groups=n_groups, weights=torch.rand(n, generator=generator))
    return torch.rand(n, m, generator=generator), groups


@pytest.mark.parametrize("m", [1, 5, 8])
def test_a_block_is_the_whole_code_up_to_8_bits(m):
    theta, groups = code(50, m)
    torch.testing.assert_close(block_information(theta, groups), joint_information(theta, groups))
    torch.testing.assert_close(block_bias(theta, groups), joint_bias(theta, groups))


@pytest.mark.parametrize("m", [16, 20])
def test_blocks_add_up(m):
    theta, groups = code(40, m)
    parts = theta.split(8, -1)
    torch.testing.assert_close(block_information(theta, groups), sum(joint_information(t, groups) for t in parts))
    torch.testing.assert_close(block_bias(theta, groups), sum(joint_bias(t, groups) for t in parts))


def test_a_stack_of_codes_is_its_codes_one_by_one():
    """As many replicas as blocks: the groups of one must not meet the blocks of another."""
    codes = [code(30, 16, seed=seed) for seed in (0, 1)]
    theta, weights, prior = (torch.stack(part) for part in zip(*((t, *g) for t, g in codes), strict=True))
    stacked = torch.func.vmap(lambda t, w, p: block_information(t, type(codes[0][1])(w, p)))(theta, weights, prior)
    torch.testing.assert_close(stacked, torch.stack([block_information(*c) for c in codes]))


def test_the_gradient_is_that_of_the_blocks():
    theta, groups = code(20, 16)
    theta.requires_grad_()
    (found,) = torch.autograd.grad(block_information(theta, groups), theta)
    expected = [
        torch.autograd.grad(joint_information(t, groups), theta, retain_graph=True)[0] for t in theta.split(8, -1)
    ]
    torch.testing.assert_close(found, sum(expected))


def test_running_blocks_of_a_wide_code_know_that_nothing_is_revealed():
    """Of a batch of 256, the whole code of 64 bits seems to reveal much; the truth is 0."""
    theta = torch.sigmoid(3 * torch.randn(40, 256, 64, generator=torch.Generator().manual_seed(0)))
    groups = weigh_groups(torch.arange(256) % 10, n_groups=10)
    drawn = wide_information(theta[0], groups, generator=torch.Generator().manual_seed(0))
    running = RunningInformation(10, 8, beta=0.98, blocks=8)
    for batch in theta:
        penalty, seen = (value.sum(-1) for value in running(*code_blocks(batch, groups)))
    assert drawn > 1.5
    assert seen / 8 < 0.5 * block_information(theta[0], groups) / 8 < 0.5 * drawn
    assert penalty < seen


@pytest.mark.parametrize("wide", ["blocks", "draws"])
def test_wide_codes_train_and_validate_by_either(wide):
    X, y, s = problem(200)
    (model,) = fit_stack([quick(BinaryMIClassifier, code_size=20, wide=wide, gamma=0.5)], X, y, sensitive_features=s)
    last = model.history_[-1]
    assert 0 <= last["information"] < (3 if wide == "blocks" else 1.001)
    assert len(model.net_.running) == 1 if wide == "blocks" else not hasattr(model.net_, "running")
