"""How much a random code of bits tells about a group: pure functions on torch tensors, in bits."""

from .any_width import information_bounds
from .counting import SparseCountsWarning, counted_information
from .entropy import binary_entropy, binary_entropy_from_logits
from .few_row_bias import joint_bias, neuronwise_bias
from .joint import joint_information, running_information, table_information, total_variation, word_tables
from .neuronwise import neuronwise_information, neuronwise_penalty
from .sampling import monte_carlo_information
from .sandwich import information_sandwich
from .weighed_groups import WeighedGroups, weigh_groups
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
