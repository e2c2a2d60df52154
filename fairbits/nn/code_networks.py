"""Networks with a code: binary neurons, layers of sign weights, the features in front of a code, and its head."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from fairbits.errors import InputError
from fairbits.information.words import all_words, in_transform, word_columns

# Up to this many bits an expectation over codes is the exact sum over all 2^m words, above it a mean of fixed draws.
EXACT_EXPECTATION_BITS = 10
FIXED_DRAWS = 128
VALIDATION_DRAWS = 16  # of these, to judge an epoch
IMAGES_AT_ONCE = 512  # in evaluation: memory
Inputs = int | tuple[int, ...]  # features of a row, or (channels, height, width) of an image


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


class Linear(nn.Linear):
    """A dense layer that predicts (in torch's inference mode, on a CPU) by oneDNN.

    The numbers of a row are then the same to the last bit, whatever rows it comes with; by MKL, which multiplies
    otherwise, they are not. oneDNN is also twice as fast on some processors.

    >>> layer, rows = Linear(3, 2), torch.rand(9, 3)
    >>> with torch.inference_mode():
    ...     bool((layer(rows)[4:7] == layer(rows[4:7])).all())
    True
    """

    def forward(self, input: Tensor) -> Tensor:
        predicts = torch.is_inference_mode_enabled() and input.device.type == "cpu" and input.dim() == 2
        if not (predicts and input.shape[0] and torch.backends.mkldnn.is_available()):
            return super().forward(input)
        pair = input if input.shape[0] > 1 else input.expand(2, -1)
        return super().forward(pair.to_mkldnn()).to_dense()[: input.shape[0]]


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
    """A convolution whose weights are signs, scaled by 1/sqrt(fan_in); it pads with zeros, whatever `padding_mode`.

    >>> BinaryConv2d(3, 2, 3)(torch.ones(1, 3, 5, 5)).shape
    torch.Size([1, 2, 3, 3])
    """

    def forward(self, input: Tensor) -> Tensor:
        weight = sign_weights(self.weight) * self.weight[0].numel() ** -0.5
        stride, padding, dilation = self.stride, self.padding, self.dilation
        return nn.functional.conv2d(input, weight, self.bias, stride, padding, dilation, self.groups)


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
        layers += [BinaryLinear(n_in, n_out), DeterministicBinary()] if binary else [Linear(n_in, n_out), nn.ReLU()]
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


class CodeOutput(NamedTuple):
    """What a code network computes of a batch."""

    theta: Tensor  # (n, m) Bernoulli parameters, a function of x
    code: Tensor  # (n, m) one draw
    logits: Tensor  # (n, classes) the head's answer to that draw


class HiddenOutput(NamedTuple):
    """What a plain network computes of a batch."""

    hidden: Tensor  # (n, h) the penultimate layer
    logits: Tensor  # (n, classes)


class CodeNet(nn.Module):
    """x -> features -> theta -> code -> head, with one stochastic layer: the code.

    `binary=False` is the paper's "hybrid" net: real layers around the quantised one. `binary=True` binarises weights
    and hidden activations too. There the hidden layers threshold and only the code draws, because theta must be a
    function of x: that is what makes the bits independent given x, and all the formulas hold.

    >>> net = CodeNet(5, (16,), 8, 3)
    >>> out = net(torch.zeros(4, 5), torch.rand(4, 8))
    >>> out.theta.shape, out.logits.shape
    (torch.Size([4, 8]), torch.Size([4, 3]))
    """

    fixed_noise: Tensor

    def __init__(
        self,
        inputs: Inputs,
        hidden_sizes: Sequence[int],
        code_size: int,
        n_classes: int,
        *,
        channels: Sequence[int] = (),
        temperature: float = 1.0,
        noise_floor: float = 0.0,
        binary: bool = False,
    ):
        super().__init__()
        self.features, width = feature_layers(inputs, channels, hidden_sizes, binary=binary)
        linear = BinaryLinear if binary else Linear
        self.logits = linear(width, code_size)
        self.activation = StochasticBinary(temperature, noise_floor)
        self.head = linear(code_size, n_classes)
        draws = torch.empty(FIXED_DRAWS, code_size)
        if not draws.is_meta:  # a network of shapes alone needs no numbers
            draws = torch.quasirandom.SobolEngine(code_size, scramble=True, seed=0).draw(FIXED_DRAWS)
        self.register_buffer("fixed_noise", draws)  # persistent: predictions of wide codes depend on it

    @property
    def noise_size(self) -> int:
        """How many uniforms one row consumes."""
        return self.logits.out_features

    def theta(self, x: Tensor) -> Tensor:
        """Return the Bernoulli parameters of the code, (n, m)."""
        return self.activation.theta(self.logits(self.features(x)))

    def forward(self, x: Tensor, noise: Tensor) -> CodeOutput:
        theta = self.theta(x)
        code = draw_bits(theta, noise)
        return CodeOutput(theta, code, self.head(code))

    def expected(self, theta: Tensor, of: Callable[[Tensor], Tensor], draws: int = FIXED_DRAWS) -> Tensor:
        """Return E[of(head(T)) | theta]: exact up to 10 bits, else over fixed draws for all rows.  (n, classes)"""
        if theta.shape[-1] <= EXACT_EXPECTATION_BITS:
            return (of(self.head(all_words(theta))).mT @ word_columns(theta)).mT
        return of(self.head(self.fixed_codes(theta, draws))).mean(0)

    def fixed_codes(self, theta: Tensor, draws: int = FIXED_DRAWS) -> Tensor:
        """Draw codes by noise that is the same for all rows and calls.  (draws, n, m)"""
        return (self.fixed_noise[:draws].unsqueeze(-2) < theta).to(theta.dtype)


class WordHead(nn.Module):
    """A head that looks each word of bits up in a table of log p(y|t)."""

    log_probabilities: Tensor
    hard: Tensor  # whether the table was counted on thresholded bits

    def __init__(self, code_size: int, n_classes: int):
        super().__init__()
        self.register_buffer("log_probabilities", torch.full((2**code_size, n_classes), -math.log(n_classes)))
        self.register_buffer("hard", torch.zeros(()))

    def forward(self, codes: Tensor) -> Tensor:
        place = 2.0 ** torch.arange(codes.shape[-1] - 1, -1, -1, device=codes.device)
        return self.log_probabilities[(codes @ place).long()]


class HeadedNet(nn.Module):
    """Layers that give so many features, and a linear head on them; it draws nothing."""

    def __init__(self, features: nn.Module, width: int, n_classes: int):
        super().__init__()
        self.features, self.head = features, Linear(width, n_classes)

    def forward(self, x: Tensor, noise: Tensor | None = None) -> HiddenOutput:
        hidden = self.features(x)
        return HiddenOutput(hidden, self.head(hidden))


class PlainNet(HeadedNet):
    """A network without a code, for comparison; its representation is the last layer before the head."""

    def __init__(self, inputs: Inputs, hidden_sizes: Sequence[int], n_classes: int, *, channels: Sequence[int] = ()):
        super().__init__(*feature_layers(inputs, channels, hidden_sizes), n_classes)
