"""What one draw of a code tells about numbered groups, as a number for reports."""

import numpy as np
import torch

from fairbits.information import joint_information, monte_carlo_information
from fairbits.information.words import MAX_BITS

EXACT_COST = 2**32  # rows times code words up to which the information of a table is summed exactly


def code_information(theta: np.ndarray, groups: np.ndarray, y: np.ndarray | None = None) -> float:
    """Return the information of one draw about numbered groups (n, columns), in bits; within labels if y is given."""
    labels = np.zeros(len(theta)) if y is None else np.asarray(y)
    strata = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    return max(sum(len(r) / len(theta) * _information(theta[r], column[r]) for r in strata) for column in groups.T)


def _information(theta: np.ndarray, groups: np.ndarray) -> float:
    n, m = theta.shape
    t, s = torch.from_numpy(theta), torch.from_numpy(np.unique(groups, return_inverse=True)[1])
    if m <= MAX_BITS and n * 2**m <= EXACT_COST:
        return float(joint_information(t, s))
    generator = torch.Generator().manual_seed(0)
    return float(monte_carlo_information(t, s, 2_000, generator=generator)[0])
