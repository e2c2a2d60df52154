"""How much a random code of bits tells about a group: pure functions on torch tensors, in bits."""

from .bias import joint_bias, neuronwise_bias
from .bounds import information_bounds
from .counting import SparseCountsWarning, counted_information
from .entropy import binary_entropy, binary_entropy_from_logits
from .group_means import WeighedGroups, weigh_groups
from .neuronwise import neuronwise_information, neuronwise_penalty
from .sampling import monte_carlo_information
from .sandwich import information_sandwich
from .tables import joint_information, running_information, table_information, total_variation, word_tables
from .wide import wide_information

__all__ = [
    "SparseCountsWarning",
    "WeighedGroups",
    "binary_entropy",
    "binary_entropy_from_logits",
    "counted_information",
    "information_bounds",
    "information_sandwich",
    "joint_bias",
    "joint_information",
    "monte_carlo_information",
    "neuronwise_bias",
    "neuronwise_information",
    "neuronwise_penalty",
    "running_information",
    "table_information",
    "total_variation",
    "weigh_groups",
    "wide_information",
    "word_tables",
]
