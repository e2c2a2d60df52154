"""Binary neurons and layers: what they draw, and the gradient they pretend to have."""

import pytest
import torch

from fairbits.nn import BinaryConv2d, BinaryLinear, DeterministicBinary, StochasticBinary, draw_bits, sign_weights


def test_drawn_frequencies_are_theta():
    layer = StochasticBinary(temperature=0.5, noise_floor=0.1)
    logits = torch.tensor([-3.0, -0.5, 0.0, 1.0])
    noise = torch.rand(200_000, 4, generator=torch.Generator().manual_seed(0))
    code = layer(logits.expand(200_000, 4), noise)
    theta = 0.1 + 0.8 * torch.sigmoid(logits / 0.5)
    torch.testing.assert_close(layer.theta(logits), theta)
    standard_error = (theta * (1 - theta) / 200_000).sqrt()
    assert ((code.mean(0) - theta).abs() < 4 * standard_error).all()


def test_values_are_exactly_bits():
    code = draw_bits(torch.rand(1000, 3, requires_grad=True), torch.rand(1000, 3))
    assert set(code.unique().tolist()) == {0.0, 1.0}


@pytest.mark.parametrize("layer", [StochasticBinary(0.7), DeterministicBinary(0.7)])
def test_straight_through_gradient_is_that_of_theta(layer):
    logits = torch.tensor([-2.0, 0.3, 4.0], requires_grad=True)
    layer(logits).sum().backward()
    sigmoid = torch.sigmoid(logits.detach() / 0.7)
    torch.testing.assert_close(logits.grad, sigmoid * (1 - sigmoid) / 0.7)


def test_evaluation_mode_still_draws():
    layer = StochasticBinary().eval()
    assert 0.4 < layer(torch.zeros(10_000)).mean() < 0.6


def test_fresh_noise_differs_between_calls():
    assert not torch.equal(StochasticBinary()(torch.zeros(100)), StochasticBinary()(torch.zeros(100)))


@pytest.mark.parametrize("options", [{"temperature": 0.0}, {"noise_floor": 0.5}, {"noise_floor": -0.1}])
def test_bad_options_are_named(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        StochasticBinary(**options)


def test_sign_weights_pass_gradients_inside_the_unit_interval():
    weight = torch.tensor([-2.0, -0.5, 0.5, 2.0], requires_grad=True)
    (sign_weights(weight) * torch.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
    assert sign_weights(weight).tolist() == [-1, -1, 1, 1]
    assert weight.grad.tolist() == [0, 2, 3, 0]


def test_binary_linear_uses_signs_only():
    layer, x = BinaryLinear(16, 3, bias=False), torch.randn(5, 16)
    signs = torch.where(layer.weight < 0, -1.0, 1.0)
    torch.testing.assert_close(layer(x), x @ signs.T / 4)


def test_binary_convolution_uses_signs_only():
    layer, x = BinaryConv2d(2, 3, 3, bias=False), torch.randn(4, 2, 6, 6)
    signs = torch.where(layer.weight < 0, -1.0, 1.0)
    torch.testing.assert_close(layer(x), torch.nn.functional.conv2d(x, signs / 18**0.5))
