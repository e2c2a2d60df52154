"""Torch modules: stochastic binary layers and the networks built of them."""

from fairbits.information.exact import RunningInformation as RunningInformation
from fairbits.information.words import word_probabilities as word_probabilities
from fairbits.nn.code_networks import BinaryConv2d as BinaryConv2d
from fairbits.nn.code_networks import BinaryLinear as BinaryLinear
from fairbits.nn.code_networks import CodeNet as CodeNet
from fairbits.nn.code_networks import CodeOutput as CodeOutput
from fairbits.nn.code_networks import DeterministicBinary as DeterministicBinary
from fairbits.nn.code_networks import HiddenOutput as HiddenOutput
from fairbits.nn.code_networks import Inputs as Inputs
from fairbits.nn.code_networks import PlainNet as PlainNet
from fairbits.nn.code_networks import StochasticBinary as StochasticBinary
from fairbits.nn.code_networks import WordHead as WordHead
from fairbits.nn.code_networks import dense_layers as dense_layers
from fairbits.nn.code_networks import draw_bits as draw_bits
from fairbits.nn.code_networks import feature_layers as feature_layers
from fairbits.nn.code_networks import sign_weights as sign_weights
