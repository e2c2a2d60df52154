"""The upward error of few rows, against the error itself."""

import pytest
import torch
from information_layers import random_layer

from fairbits.information import joint_bias, joint_information, neuronwise_bias, neuronwise_information

POPULATION = 20_000


@pytest.fixture(params=[0.5, 2.0], ids=["soft", "mid"])
def population(request):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(POPULATION, 8, generator=generator, dtype=torch.float64)
    weight = torch.randn(8, 4, generator=generator, dtype=torch.float64) / 2
    return torch.sigmoid(request.param * x @ weight), torch.arange(POPULATION) % 3 % 2


@pytest.mark.parametrize(
    ("measure", "bias"), [(joint_information, joint_bias), (neuronwise_information, neuronwise_bias)]
)
def test_it_is_the_mean_excess_of_samples(population, measure, bias):
    theta, groups = population
    generator = torch.Generator().manual_seed(2)
    samples = [torch.randperm(POPULATION, generator=generator)[:400] for _ in range(100)]
    excess = torch.stack([measure(theta[r], groups[r]).sum() for r in samples]).mean() - measure(theta, groups).sum()
    estimate = torch.stack([bias(theta[r], groups[r]).sum() for r in samples]).mean()
    assert estimate.item() == pytest.approx(excess.item(), rel=0.3)


def test_a_constant_code_has_none():
    theta = torch.full((50, 3), 0.3)
    assert joint_bias(theta, torch.arange(50) % 2).item() == pytest.approx(0, abs=1e-6)


def test_of_hard_bits_it_is_miller_and_madow():
    theta, groups = (torch.rand(4000, 1) < 0.5).double(), torch.arange(4000) % 2
    expected = 1 / (2 * 4000 * torch.log(torch.tensor(2.0)).item())
    assert neuronwise_bias(theta, groups).item() == pytest.approx(expected, rel=0.01)
    torch.testing.assert_close(joint_bias(theta, groups), neuronwise_bias(theta, groups).sum())


def test_weights_count_as_copies_do_not():
    """Twice the weight on every row adds no rows: the effective number stays."""
    theta, groups = random_layer(0)
    torch.testing.assert_close(
        joint_bias(theta, groups), joint_bias(theta, groups, weights=torch.full((len(theta),), 2.0))
    )
    torch.testing.assert_close(
        2 * joint_bias(theta.repeat(2, 1), groups.repeat(2)), joint_bias(theta, groups), rtol=1e-6, atol=0
    )
