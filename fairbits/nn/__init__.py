"""Torch modules: stochastic binary layers and the networks built of them."""

from fairbits.nn.activations import DeterministicBinary, StochasticBinary, draw_bits
from fairbits.nn.layers import BinaryConv2d, BinaryLinear, sign_weights
from fairbits.nn.networks import CodeNet, CodeOutput, HiddenOutput, PlainNet
from fairbits.nn.running import RunningInformation

__all__ = [
    "BinaryConv2d",
    "BinaryLinear",
    "CodeNet",
    "CodeOutput",
    "DeterministicBinary",
    "HiddenOutput",
    "PlainNet",
    "RunningInformation",
    "StochasticBinary",
    "draw_bits",
    "sign_weights",
]
