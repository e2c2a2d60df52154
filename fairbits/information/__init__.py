"""How much a random code of bits reveals about a group: pure functions on torch tensors, in bits."""

from fairbits.information.any_width import information_bounds
from fairbits.information.entropy import binary_entropy, binary_entropy_from_logits, group_entropy, share_entropy
from fairbits.information.exact import (
    joint_bias,
    joint_information,
    neuronwise_bias,
    neuronwise_information,
    neuronwise_penalty,
    running_information,
    table_information,
    total_variation,
    word_tables,
)
from fairbits.information.sampling import (
    SparseCountsWarning,
    counted_information,
    monte_carlo_information,
    wide_information,
)
from fairbits.information.sandwich import information_sandwich
from fairbits.information.weighed_groups import WeighedGroups, weigh_groups

__all__ = [
    "SparseCountsWarning",
    "WeighedGroups",
    "binary_entropy",
    "binary_entropy_from_logits",
    "counted_information",
    "group_entropy",
    "information_bounds",
    "information_sandwich",
    "joint_bias",
    "joint_information",
    "monte_carlo_information",
    "neuronwise_bias",
    "neuronwise_information",
    "neuronwise_penalty",
    "running_information",
    "share_entropy",
    "table_information",
    "total_variation",
    "weigh_groups",
    "wide_information",
    "word_tables",
]
