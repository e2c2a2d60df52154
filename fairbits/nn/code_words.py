"""All words of a code: their probabilities, and the joint information of batches of them."""

import torch
from torch import Tensor, nn

from fairbits.information import WeighedGroups, running_information, table_information, word_tables


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
