"""Binary neurons, layers of sign weights, and the features in front of a code: dense, or convolutions for images."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from fairbits.errors import InputError
from fairbits.information.weighed_groups import in_transform


def draw_bits(theta: Tensor, noise: Tensor | float) -> Tensor:
    """Draw T = [noise < theta], with the gradient of theta itself (straight-through).

    With uniform noise T_i ~ Bernoulli(theta_i), independent given theta; noise 1/2 is the threshold.

    >>> draw_bits(torch.tensor([0.2, 0.9]), torch.tensor([0.5, 0.5]))
    tensor([0., 1.])
    """
    return (noise < theta) + (theta - theta.detach())  # exactly 0 or 1, and theta's gradient


class StochasticBinary(nn.Module):
    """A layer of stochastic binary neurons (the paper's Eq. theta).

    forward         T ~ Bernoulli(theta),  theta = eps + (1 - 2 eps) sigmoid(z / temperature)
    pseudo-gradient dT/dz := dtheta/dz = (1 - 2 eps) sigmoid'(z / temperature) / temperature

    It draws in training and in evaluation alike: a thresholded code would be a function of x about which the
    information of the drawn one says nothing. The paper's mean over inputs is ``temperature = fan_in``; the authors'
    code, sigmoid(6 z), is ``temperature = 1/6``; smaller means harder bits. The noise floor eps lies in [0, 0.5): no
    bit is ever surer than 1 - eps.

    >>> StochasticBinary()(torch.tensor([-100.0, 100.0]))
    tensor([0., 1.])
    """

    def __init__(self, temperature: float = 1.0, noise_floor: float = 0.0):
        super().__init__()
        if not temperature > 0:
            raise InputError(f"temperature is {temperature!r}; it divides the logits and must be positive.")
        if not 0 <= noise_floor < 0.5:
            problem = f"noise_floor is {noise_floor!r}; it must lie in [0, 0.5): at 0.5 every bit is a fair coin."
            raise InputError(problem)
        self.temperature, self.noise_floor = temperature, noise_floor

    def theta(self, logits: Tensor) -> Tensor:
        """Return the Bernoulli parameters, same shape as the logits."""
        theta = torch.sigmoid(logits if self.temperature == 1 else logits / self.temperature)
        return theta if self.noise_floor == 0 else self.noise_floor + (1 - 2 * self.noise_floor) * theta

    def forward(self, logits: Tensor, noise: Tensor | None = None) -> Tensor:
        """Draw one code; `noise` are uniforms of the logits' shape, drawn here when not given."""
        return draw_bits(self.theta(logits), torch.rand_like(logits) if noise is None else noise)

    def extra_repr(self) -> str:
        return f"temperature={self.temperature}, noise_floor={self.noise_floor}"


class DeterministicBinary(StochasticBinary):
    """The threshold neuron, deterministic twin of `StochasticBinary`.

    forward         T = [z > 0]
    pseudo-gradient dT/dz := sigmoid'(z / temperature) / temperature

    >>> DeterministicBinary()(torch.tensor([-0.1, 0.3]))
    tensor([0., 1.])
    """

    def forward(self, logits: Tensor, noise: Any = 0.5) -> Tensor:
        return draw_bits(self.theta(logits), noise)


def sign_weights(weight: Tensor) -> Tensor:
    """Binarise weights to +1 / -1, passing the gradient where |w| <= 1.

    forward         sign(w), with sign(0) = +1
    pseudo-gradient 1[|w| <= 1]

    >>> sign_weights(torch.tensor([-0.3, 0.0, 2.0]))
    tensor([-1.,  1.,  1.])
    """
    clipped = weight.clamp(-1, 1)
    return clipped + (torch.where(weight < 0, -1.0, 1.0).to(weight.dtype) - clipped).detach()


class BinaryLinear(nn.Linear):
    """A linear layer whose weights are signs, scaled by 1/sqrt(fan_in).

    The scale keeps the pre-activation's variance at 1 whatever the width, so that neither half of a binary
    activation saturates; it can be folded into the activation's temperature.

    >>> BinaryLinear(4, 2)(torch.ones(1, 4)).shape
    torch.Size([1, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        return nn.functional.linear(input, sign_weights(self.weight) * self.in_features**-0.5, self.bias)


class BinaryConv2d(nn.Conv2d):
    """A convolution whose weights are signs, scaled by 1/sqrt(fan_in).

    >>> BinaryConv2d(3, 2, 3)(torch.ones(1, 3, 5, 5)).shape
    torch.Size([1, 2, 3, 3])
    """

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, sign_weights(self.weight) * self.weight[0].numel() ** -0.5, self.bias)


Inputs = int | tuple[int, ...]  # features of a row, or (channels, height, width) of an image
IMAGES_AT_ONCE = 512  # in evaluation: memory


def feature_layers(
    inputs: Inputs, channels: Sequence[int], hidden_sizes: Sequence[int], *, binary: bool = False
) -> tuple[nn.Module, int]:
    """Return the layers before the representation and the number of features they give.

    Rows of a table go through dense layers; images first through a block of convolution, batch normalisation,
    activation and pooling for every number of `channels`. With `binary`, weights are signs and activations thresholds.

    >>> layers, width = feature_layers((3, 28, 28), (8, 16), (32,))
    >>> layers(torch.zeros(5, 3, 28, 28, dtype=torch.uint8)).shape, width
    (torch.Size([5, 32]), 32)
    """
    if isinstance(inputs, int):
        return dense_layers((inputs, *hidden_sizes), binary=binary), (inputs, *hidden_sizes)[-1]
    images = ConvolutionalFeatures(inputs, channels, binary=binary)
    sizes = (images.width, *hidden_sizes)
    return nn.Sequential(images, *dense_layers(sizes, binary=binary)), sizes[-1]


def dense_layers(sizes: Sequence[int], *, binary: bool = False) -> nn.Sequential:
    """Stack dense layers of the given sizes: ReLU, or sign weights and threshold activations when `binary`."""
    layers: list[nn.Module] = []
    for n_in, n_out in pairwise(sizes):
        layers += [BinaryLinear(n_in, n_out), DeterministicBinary()] if binary else [nn.Linear(n_in, n_out), nn.ReLU()]
    return nn.Sequential(*layers)


def from_bytes(x: Tensor) -> Tensor:
    """Return bytes as numbers from -1 to 1, and floating-point numbers as they are."""
    return x if x.is_floating_point() else x.float() / 127.5 - 1


class ConvolutionalFeatures(nn.Module):
    """Blocks of 3 x 3 convolution, batch normalisation, activation and 2 x 2 max-pooling, flattened."""

    def __init__(self, shape: tuple[int, ...], channels: Sequence[int], *, binary: bool = False):
        super().__init__()
        n_in, height, width = shape
        blocks: list[nn.Module] = []
        for n_out in channels:
            convolution = (BinaryConv2d if binary else nn.Conv2d)(n_in, n_out, 3, padding=1, bias=False)
            blocks += [convolution, nn.BatchNorm2d(n_out), DeterministicBinary() if binary else nn.ReLU()]
            if min(height, width) >= 2:
                blocks.append(nn.MaxPool2d(2))
                height, width = height // 2, width // 2
            n_in = n_out
        self.blocks = nn.Sequential(*blocks)
        self.width = n_in * height * width

    def forward(self, x: Tensor) -> Tensor:
        if self.training or torch.onnx.is_in_onnx_export():
            return self._features(x)
        return torch.cat([self._features(part) for part in x.split(IMAGES_AT_ONCE)])

    def _features(self, x: Tensor) -> Tensor:
        x = from_bytes(x)
        if not in_transform():
            x = x.contiguous(memory_format=torch.channels_last)  # faster; vmap has its own layout
        return self.blocks(x).flatten(1)
