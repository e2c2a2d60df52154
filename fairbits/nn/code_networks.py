"""Code networks: feature extractor, code and head; and the joint information of their batches."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from fairbits.information import WeighedGroups, running_information, table_information, word_tables
from fairbits.nn.layers import BinaryLinear, Inputs, StochasticBinary, draw_bits, feature_layers

# Up to this many bits an expectation over codes is the exact sum over all 2^m words, above it a mean of fixed draws.
EXACT_EXPECTATION_BITS = 10
FIXED_DRAWS = 128


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
        linear = BinaryLinear if binary else nn.Linear
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
            return word_probabilities(theta) @ of(self.head(all_words(theta)))
        return of(self.head(self.fixed_codes(theta, draws))).mean(0)

    def fixed_codes(self, theta: Tensor, draws: int = FIXED_DRAWS) -> Tensor:
        """Draw codes by noise that is the same for all rows and calls.  (draws, n, m)"""
        return (self.fixed_noise[:draws].unsqueeze(-2) < theta).to(theta.dtype)


def word_probabilities(theta: Tensor) -> Tensor:
    """Return each row's probability of every code word, in the order of `all_words`.  (..., n, 2^m)"""
    words = torch.ones_like(theta[..., :1])
    for bit in theta.unsqueeze(-2).unbind(-1):  # (..., n, 1) each
        words = torch.stack([words * (1 - bit), words * bit], -1).flatten(-2)
    return words


def all_words(like: Tensor) -> Tensor:
    """List the 2^m code words in the order of `word_probabilities`, first bit most significant.  (2^m, m)"""
    m = like.shape[-1]
    bits = torch.arange(2**m, device=like.device).unsqueeze(-1) >> torch.arange(m - 1, -1, -1, device=like.device)
    return (bits & 1).to(like.dtype)


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


class PlainNet(nn.Module):
    """A network without a code, for comparison; its representation is the last layer before the head."""

    noise_size = 0

    def __init__(self, inputs: Inputs, hidden_sizes: Sequence[int], n_classes: int, *, channels: Sequence[int] = ()):
        super().__init__()
        self.features, width = feature_layers(inputs, channels, hidden_sizes)
        self.head = nn.Linear(width, n_classes)

    def forward(self, x: Tensor, noise: Tensor | None = None) -> HiddenOutput:
        hidden = self.features(x)
        return HiddenOutput(hidden, self.head(hidden))


class RunningInformation(nn.Module):
    """Exact joint information with running tables in training, of the rows given in evaluation; bits.

    Like batch normalisation it averages over batches in training: the information of one small batch errs upwards, and
    that error's gradient wipes out what the code says about x (`running_information` has the formula).

    Returns (penalty, information): the first carries the gradient, the second is the value to log.
    """

    tables: Tensor

    def __init__(self, n_groups: int, code_size: int, beta: float = 0.98):
        super().__init__()
        self.beta = beta
        self.register_buffer("tables", torch.zeros(n_groups, 2**code_size), persistent=False)

    def forward(self, theta: Tensor, groups: Tensor | WeighedGroups) -> tuple[Tensor, Tensor]:
        tables, prior = word_tables(theta, groups, n_groups=self.tables.shape[-2])
        if not self.training:
            information = table_information(tables, prior)
            return information, information.detach()
        penalty, running = running_information(tables, prior, self.tables, self.beta)
        self.tables.copy_(running)
        return penalty, table_information(running, prior).detach()
