"""Torch modules: stochastic binary layers and the networks built of them."""

from fairbits.nn.code_networks import CodeNet as CodeNet
from fairbits.nn.code_networks import CodeOutput as CodeOutput
from fairbits.nn.code_networks import HiddenOutput as HiddenOutput
from fairbits.nn.code_networks import PlainNet as PlainNet
from fairbits.nn.code_networks import RunningInformation as RunningInformation
from fairbits.nn.code_networks import WordHead as WordHead
from fairbits.nn.code_networks import word_probabilities as word_probabilities
from fairbits.nn.layers import BinaryConv2d as BinaryConv2d
from fairbits.nn.layers import BinaryLinear as BinaryLinear
from fairbits.nn.layers import DeterministicBinary as DeterministicBinary
from fairbits.nn.layers import Inputs as Inputs
from fairbits.nn.layers import StochasticBinary as StochasticBinary
from fairbits.nn.layers import dense_layers as dense_layers
from fairbits.nn.layers import draw_bits as draw_bits
from fairbits.nn.layers import feature_layers as feature_layers
from fairbits.nn.layers import sign_weights as sign_weights
