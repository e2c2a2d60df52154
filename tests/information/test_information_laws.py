"""What holds for every layer, whatever its weights: tried on layers that hypothesis picks."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from information_layers import entropy, random_layer

from fairbits.information import (
    information_bounds,
    joint_information,
    neuronwise_information,
    table_information,
    total_variation,
    word_tables,
)

TOLERANCE = 1e-12
layers = st.builds(
    random_layer,
    st.integers(0, 2**31),
    n=st.integers(6, 40),
    m=st.integers(2, 6),
    n_groups=st.integers(2, 4),
    slope=st.sampled_from([0.2, 2.0, 20.0, 1000.0]),
)
seeds = st.integers(0, 2**31)
laws = settings(max_examples=30, deadline=None, derandomize=True)


def shuffled(n, seed):
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed))


@laws
@given(layers)
def test_between_zero_and_both_entropies(layer):
    theta, groups = layer
    tables, prior = word_tables(theta, groups)
    value = joint_information(theta, groups)
    assert -TOLERANCE <= value <= min(entropy(prior), entropy(prior @ tables)) + TOLERANCE
    assert (neuronwise_information(theta, groups) <= value + TOLERANCE).all()
    assert 0 <= total_variation(theta, groups) <= 1 + TOLERANCE


@laws
@given(layers, seeds)
def test_order_of_rows_bits_and_groups_does_not_matter(layer, seed):
    theta, groups = layer
    rows, bits = shuffled(len(theta), seed), shuffled(theta.shape[1], seed)
    names = shuffled(int(groups.max()) + 1, seed)
    for measure in (joint_information, total_variation, lambda *a: neuronwise_information(*a).sum()):
        expected = measure(theta, groups)
        for other in ((theta[rows], groups[rows]), (theta[:, bits], groups), (theta, names[groups])):
            torch.testing.assert_close(measure(*other), expected, atol=TOLERANCE, rtol=0)


@laws
@given(layers, seeds)
def test_integer_weights_are_repeats(layer, seed):
    theta, groups = layer
    repeats = torch.randint(0, 4, groups.shape, generator=torch.Generator().manual_seed(seed))
    repeats[: int(groups.max()) + 1] += 1
    n_groups = int(groups.max()) + 1
    for measure in (joint_information, total_variation, neuronwise_information):
        weighted = measure(theta, groups, weights=repeats, n_groups=n_groups)
        repeated = measure(theta.repeat_interleave(repeats, 0), groups.repeat_interleave(repeats), n_groups=n_groups)
        torch.testing.assert_close(weighted, repeated, atol=TOLERANCE, rtol=0)


@laws
@given(layers, st.floats(0, 0.5))
def test_processing_cannot_add(layer, noise):
    theta, groups = layer
    value = joint_information(theta, groups)
    assert joint_information(noise + (1 - 2 * noise) * theta, groups) <= value + TOLERANCE
    assert joint_information(theta[:, 1:], groups) <= value + TOLERANCE
    assert joint_information(theta, (groups > 0).long()) <= value + TOLERANCE


@laws
@given(layers)
def test_chain_rule(layer):
    theta, groups = layer
    tables, prior = word_tables(theta, groups)
    first, _ = word_tables(theta[:, :1], groups)
    rest = tables.unflatten(1, (2, -1)).movedim(1, 0)  # P_s(t_1, rest), t_1 in front
    total = table_information(first, prior)
    for joint, start in zip(rest, first.unbind(1), strict=True):
        mass = prior * start
        conditional = joint / torch.where(start > 0, start, 1)[:, None]
        total += mass.sum() * table_information(conditional, mass / mass.sum().clamp(min=1e-300))
    torch.testing.assert_close(total, joint_information(theta, groups), atol=TOLERANCE, rtol=0)


@laws
@given(layers)
def test_more_draws_tell_more(layer):
    theta, groups = layer
    theta = theta[:, :4]
    values = [joint_information(theta.repeat(1, draws), groups) for draws in (1, 2, 3, 4)]
    assert (torch.stack(values).diff() >= -TOLERANCE).all()


@laws
@given(layers)
def test_two_draws_are_theta_twice(layer):
    theta, groups = layer
    one = torch.stack([word_tables(row[None], torch.tensor([0]))[0][0] for row in theta])
    twice = (one[:, :, None] * one[:, None, :]).flatten(1)
    expected = torch.stack([twice[groups == s].mean(0) for s in range(int(groups.max()) + 1)])
    tables, _ = word_tables(theta.repeat(1, 2), groups)
    torch.testing.assert_close(tables, expected, atol=1e-14, rtol=0)


@laws
@given(layers)
def test_bounds_of_a_narrow_code_are_exact(layer):
    lower, upper = information_bounds(*layer)
    assert lower == upper
    torch.testing.assert_close(lower, joint_information(*layer))
