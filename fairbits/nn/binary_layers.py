"""Linear and convolutional layers with real or sign-binarised weights."""

import torch
from torch import Tensor, nn


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
    """A linear layer whose weights are signs, scaled by 1/sqrt(fan_in); `binary=False` leaves them real.

    The scale keeps the pre-activation's variance at 1 whatever the width, so that neither half of a binary
    activation saturates; it can be folded into the activation's temperature.

    >>> BinaryLinear(4, 2)(torch.ones(1, 4)).shape
    torch.Size([1, 2])
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True, *, binary: bool = True):
        super().__init__(in_features, out_features, bias)
        self.binary = binary

    def forward(self, input: Tensor) -> Tensor:
        if not self.binary:
            return super().forward(input)
        return nn.functional.linear(input, sign_weights(self.weight) * self.in_features**-0.5, self.bias)


class BinaryConv2d(nn.Conv2d):
    """A convolution whose weights are signs, scaled by 1/sqrt(fan_in); `binary=False` leaves them real.

    >>> BinaryConv2d(3, 2, 3)(torch.ones(1, 3, 5, 5)).shape
    torch.Size([1, 2, 3, 3])
    """

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, *, binary: bool = True, **conv):
        super().__init__(in_channels, out_channels, kernel_size, **conv)
        self.binary = binary

    def forward(self, input: Tensor) -> Tensor:
        if not self.binary:
            return super().forward(input)
        fan_in = self.weight[0].numel()
        return self._conv_forward(input, sign_weights(self.weight) * fan_in**-0.5, self.bias)
