"""From inputs to features: dense layers for the rows of a table, convolutions for images."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from fairbits.information.given_gradient import in_transform
from fairbits.nn.activations import DeterministicBinary
from fairbits.nn.binary_layers import BinaryConv2d, BinaryLinear

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
        sizes = (inputs, *hidden_sizes)
        return dense_layers(sizes, binary=binary), sizes[-1]
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
    """Blocks of 3 x 3 convolution, batch normalisation, activation and 2 x 2 max-pooling, flattened.

    Bytes become numbers from -1 to 1; images of floating-point numbers are taken as they are.
    """

    def __init__(self, shape: tuple[int, ...], channels: Sequence[int], *, binary: bool = False):
        super().__init__()
        n_in, height, width = shape
        blocks: list[nn.Module] = []
        for n_out in channels:
            convolution = BinaryConv2d if binary else nn.Conv2d
            activation = DeterministicBinary() if binary else nn.ReLU()
            blocks += [convolution(n_in, n_out, 3, padding=1, bias=False), nn.BatchNorm2d(n_out), activation]
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
