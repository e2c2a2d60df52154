"""How much a random code of bits reveals about a group: pure functions on torch tensors, in bits."""

from fairbits.information.bounds import information_bounds as information_bounds
from fairbits.information.bounds import information_sandwich as information_sandwich
from fairbits.information.exact import binary_entropy as binary_entropy
from fairbits.information.exact import binary_entropy_from_logits as binary_entropy_from_logits
from fairbits.information.exact import group_entropy as group_entropy
from fairbits.information.exact import joint_bias as joint_bias
from fairbits.information.exact import joint_information as joint_information
from fairbits.information.exact import neuronwise_bias as neuronwise_bias
from fairbits.information.exact import neuronwise_information as neuronwise_information
from fairbits.information.exact import neuronwise_penalty as neuronwise_penalty
from fairbits.information.exact import running_information as running_information
from fairbits.information.exact import share_entropy as share_entropy
from fairbits.information.exact import table_information as table_information
from fairbits.information.exact import total_variation as total_variation
from fairbits.information.exact import word_tables as word_tables
from fairbits.information.sampling import SparseCountsWarning as SparseCountsWarning
from fairbits.information.sampling import counted_information as counted_information
from fairbits.information.sampling import monte_carlo_information as monte_carlo_information
from fairbits.information.sampling import wide_information as wide_information
from fairbits.information.weighed_groups import WeighedGroups as WeighedGroups
from fairbits.information.weighed_groups import weigh_groups as weigh_groups
