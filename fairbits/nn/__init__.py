"""Torch modules: stochastic binary layers and the networks built of them."""

from fairbits.nn.activations import DeterministicBinary, StochasticBinary, draw_bits
from fairbits.nn.binary_layers import BinaryConv2d, BinaryLinear, sign_weights
from fairbits.nn.extractors import Inputs, dense_layers, feature_layers
from fairbits.nn.networks import CodeNet, CodeOutput, HiddenOutput, PlainNet
from fairbits.nn.running import RunningInformation

__all__ = [
    "BinaryConv2d",
    "BinaryLinear",
    "CodeNet",
    "CodeOutput",
    "DeterministicBinary",
    "HiddenOutput",
    "Inputs",
    "PlainNet",
    "RunningInformation",
    "StochasticBinary",
    "dense_layers",
    "draw_bits",
    "feature_layers",
    "sign_weights",
]
