"""The information of a wide code, block of bits by block, each exactly."""

from torch import Tensor
from torch.nn.functional import pad

from fairbits.information.exact import joint_bias, joint_information
from fairbits.information.words import WeighedGroups

BLOCK_BITS = 8


def code_blocks(theta: Tensor, groups: WeighedGroups) -> tuple[Tensor, WeighedGroups]:
    """Cut theta (n, m) into blocks of 8 bits (blocks, n, 8), with the groups repeated for each.

    A last block of fewer bits is filled up with bits that are always 0 and reveal nothing.
    """
    row_weights, prior = groups
    blocks = pad(theta, (0, -theta.shape[-1] % BLOCK_BITS)).unflatten(-1, (-1, BLOCK_BITS)).movedim(-2, -3)
    lead = blocks.shape[:-2]
    return blocks, WeighedGroups(
        row_weights.unsqueeze(-3).expand(*lead, *row_weights.shape[-2:]), prior.unsqueeze(-2).expand(*lead, -1)
    )


def block_information(theta: Tensor, groups: WeighedGroups) -> Tensor:
    """Return the sum of I(T_b;S) over consecutive blocks b of 8 bits, in bits, exactly, at any width.

    Up to 8 bits this is `joint_information`. Of a wider code it is, like the sum over single bits, a surrogate: blocks
    may repeat each other, or reveal more together. But no synergy within a block escapes it, and its error on few rows
    is that of codes of 8 bits, while the joint information of a code of 64 bits is close to H(S) on any batch.

    >>> import torch
    >>> from fairbits.information import weigh_groups
    >>> theta = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]).repeat(1, 8)  # 16 bits
    >>> block_information(theta, weigh_groups(torch.tensor([0, 1, 1, 0]), n_groups=2))
    tensor(2.)
    """
    return joint_information(*code_blocks(theta, groups)).sum(-1)


def block_bias(theta: Tensor, groups: WeighedGroups) -> Tensor:
    """Estimate by how much `block_information` of these rows exceeds the population's, as `joint_bias` does: bits.

    >>> import torch
    >>> from fairbits.information import weigh_groups
    >>> theta = torch.rand(200, 12, generator=torch.Generator().manual_seed(0))
    >>> block_bias(theta, weigh_groups(torch.arange(200) % 2, n_groups=2))
    tensor(0.0341)
    """
    return joint_bias(*code_blocks(theta, groups)).sum(-1)
