"""Torch modules: stochastic binary layers and the networks built of them."""

from fairbits.nn.code_networks import CodeNet, CodeOutput, HiddenOutput, PlainNet, RunningInformation
from fairbits.nn.layers import (
    BinaryConv2d,
    BinaryLinear,
    DeterministicBinary,
    Inputs,
    StochasticBinary,
    dense_layers,
    draw_bits,
    feature_layers,
    sign_weights,
)

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
