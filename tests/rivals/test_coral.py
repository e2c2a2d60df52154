"""CORAL against the covariances of numpy."""

import numpy as np
import pytest
import torch

from fairbits.information import weigh_groups
from fairbits.rivals.coral import covariance_distance

X = torch.randn(60, 4, generator=torch.Generator().manual_seed(0))
S = torch.arange(60) % 2


def test_the_distance_is_that_of_numpys_covariances():
    one, other = (np.cov(X[g == S].numpy().T, bias=True) for g in (0, 1))
    expected = ((one - other) ** 2).sum() / 16
    assert float(covariance_distance(X, weigh_groups(S, n_groups=2))) == pytest.approx(expected, rel=1e-4)


def test_means_and_absent_groups_do_not_matter():
    groups = weigh_groups(S, n_groups=2)
    moved = X + 5.0 * S.unsqueeze(-1)
    assert torch.allclose(covariance_distance(moved, groups), covariance_distance(X, groups), atol=1e-4)
    assert torch.allclose(covariance_distance(X, weigh_groups(S, n_groups=3)), covariance_distance(X, groups))
