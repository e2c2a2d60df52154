"""Odd but legal inputs give numbers; illegal ones an error that names the argument."""

import pytest
import torch
from information_layers import random_layer

from fairbits.information import (
    information_bounds,
    information_sandwich,
    joint_information,
    monte_carlo_information,
    neuronwise_information,
    total_variation,
    wide_information,
)
from fairbits.information.words import group_weights

MEASURES = [joint_information, neuronwise_information, total_variation, wide_information]


@pytest.mark.parametrize("measure", MEASURES)
class TestOddGroups:
    def both(self, measure, theta, groups, **options):
        theta = theta.clone().requires_grad_()
        if measure is wide_information:
            options.setdefault("noise", torch.linspace(0, 1, theta.numel()).view_as(theta))
        value = measure(theta, groups, **options).sum()
        return value, torch.autograd.grad(value, theta)[0]

    def test_an_absent_group_is_left_out(self, measure):
        theta, groups = random_layer(0)
        there = self.both(measure, theta, groups)
        prior = torch.tensor([0.3, 0.3, 0.4], dtype=torch.float64)
        torch.testing.assert_close(self.both(measure, theta, groups, n_groups=3), there)
        torch.testing.assert_close(self.both(measure, theta, 2 * groups), there)
        shares = torch.bincount(groups) / len(groups)
        even = self.both(measure, theta, groups, prior=prior)
        assert shares.tolist() == [0.5, 0.5]
        torch.testing.assert_close(even, there)

    def test_a_single_group_tells_nothing(self, measure):
        theta, _ = random_layer(0)
        for options in ({}, {"n_groups": 3}, {"prior": torch.tensor([0.5, 0.5])}):
            value, gradient = self.both(measure, theta, torch.zeros(60, dtype=torch.long), **options)
            assert value == 0
            assert (gradient == 0).all()

    def test_no_weight_at_all(self, measure):
        theta, groups = random_layer(0)
        value, gradient = self.both(measure, theta, groups, weights=torch.zeros(60))
        assert value == 0
        assert (gradient == 0).all()

    def test_groups_of_one_row(self, measure):
        theta, _ = random_layer(0, n=4, slope=50.0)
        value, gradient = self.both(measure, theta, torch.arange(4))
        assert 0 <= value.item() < float("inf")
        assert gradient.isfinite().all()

    def test_weightless_rows_do_not_count(self, measure):
        theta, groups = random_layer(0)
        weights = torch.rand(60, dtype=torch.float64) * (torch.arange(60) % 3 > 0)
        kept = weights > 0
        options = {"weights": weights} | ({"noise": torch.rand(60, 4)} if measure is wide_information else {})
        value, gradient = self.both(measure, theta, groups, **options)
        options = {name: option[kept] for name, option in options.items()}
        alone, its_gradient = self.both(measure, theta[kept], groups[kept], **options)
        torch.testing.assert_close(value, alone)
        torch.testing.assert_close(gradient[kept], its_gradient)
        assert (gradient[~kept] == 0).all()

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_keeps_the_type(self, measure, dtype):
        theta, groups = random_layer(0, dtype=dtype)
        value, gradient = self.both(measure, theta, groups.int(), weights=torch.ones(60).double())
        assert value.dtype == gradient.dtype == dtype

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"theta": torch.rand(3)}, r"theta must be .* got torch.float32 of shape \(3,\)"),
            ({"theta": torch.ones(3, 2, dtype=torch.long)}, "theta must be floating point"),
            ({"theta": torch.rand(0, 2)}, "at least one"),
            ({"theta": torch.full((3, 2), 1.5)}, r"theta must hold probabilities in \[0, 1\], got 1.5"),
            ({"theta": torch.full((3, 2), torch.nan)}, "theta must hold probabilities"),
            ({"groups": torch.tensor([0, 1])}, r"groups has shape \(2,\).*\(3,\)"),
            ({"groups": torch.zeros(2, 3, dtype=torch.long)}, "groups has shape"),
            ({"groups": torch.tensor([0.0, 1.0, 1.0])}, "groups must be integers"),
            ({"groups": torch.tensor([0, -1, 1])}, r"groups must lie in 0..1, got -1 to 1"),
            ({"prior": torch.tensor([1.0])}, r"groups must lie in 0..0, got 0 to 1"),
            ({"prior": torch.tensor([1.5, -0.5])}, "prior must be finite and not negative"),
            ({"prior": torch.rand(3), "n_groups": 2}, "prior has 3 entries, but n_groups is 2"),
            ({"weights": torch.ones(4)}, r"weights has shape \(4,\)"),
            ({"weights": torch.tensor([1.0, -1.0, 1.0])}, "weights must be finite and not negative.*-1"),
        ],
    )
    def test_errors_name_the_argument(self, measure, change, message):
        arguments = {"theta": torch.rand(3, 2), "groups": torch.tensor([0, 1, 1])} | change
        with pytest.raises(ValueError, match=message):
            measure(**arguments)


@pytest.mark.parametrize("extra", [{}, {"n_groups": 2}])
def test_evaluation_always_looks_at_the_values(extra):
    theta, groups = torch.full((4, 2), 2.0), torch.tensor([0, 1, 0, 1])
    for measure in (information_bounds, information_sandwich):
        with pytest.raises(ValueError, match="theta must hold probabilities"):
            measure(theta, groups, **extra)
    with pytest.raises(ValueError, match="theta must hold probabilities"):
        monte_carlo_information(theta, groups, 10, **extra)


def test_other_errors():
    theta, groups = torch.rand(4, 2), torch.tensor([0, 1, 0, 1])
    with pytest.raises(ValueError, match="n_draws is 1"):
        monte_carlo_information(theta, groups, 1)
    with pytest.raises(ValueError, match=r"noise has shape \(4, 3\)"):
        wide_information(theta, groups, noise=torch.rand(4, 3))
    for measure in (information_bounds, information_sandwich):
        with pytest.raises(ValueError, match="once per replica"):
            measure(theta[None], groups)


def test_weights_and_prior_are_constants():
    theta, groups = random_layer(0)
    weights = torch.ones(60, dtype=torch.float64, requires_grad=True)
    row_weights, prior = group_weights(theta, groups, weights=weights)
    assert not row_weights.requires_grad
    assert not prior.requires_grad
    torch.testing.assert_close(row_weights.sum(-1), torch.ones(2, dtype=torch.float64))
