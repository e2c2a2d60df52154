import math

import numpy as np
import pytest
import torch
from scipy.stats import entropy as scipy_entropy

from fairbits.information import binary_entropy, binary_entropy_from_logits, group_entropy, share_entropy


def test_equals_scipy():
    p = torch.linspace(0, 1, 11, dtype=torch.float64)
    expected = torch.tensor(scipy_entropy(torch.stack([p, 1 - p]).numpy(), base=2))
    torch.testing.assert_close(binary_entropy(p), expected, atol=1e-15, rtol=0)


def test_entropies_of_groups_equal_scipy():
    shares = np.random.default_rng(0).dirichlet(np.ones(5), size=3)
    shares[0] = [0, 0, 1, 0, 0]
    expected = scipy_entropy(shares, base=2, axis=1)
    torch.testing.assert_close(group_entropy(torch.tensor(shares)), torch.tensor(expected), atol=1e-14, rtol=0)
    assert [share_entropy(row) for row in shares] == pytest.approx(expected, abs=1e-14)
    assert share_entropy(shares / 3) == pytest.approx(scipy_entropy(shares.ravel(), base=2), abs=1e-14)


def test_gradient():
    p = torch.tensor([0.01, 0.3, 0.5, 0.99], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(binary_entropy, p)
    z = torch.tensor([-30.0, -1.0, 0.3, 4.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(binary_entropy_from_logits, z)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_finite_at_the_ends(dtype):
    p = torch.tensor([0.0, 1.0], dtype=dtype, requires_grad=True)
    value = binary_entropy(p)
    value.sum().backward()
    assert value.tolist() == [0, 0]
    assert p.grad.isfinite().all()
    assert p.grad[0] > 20
    assert p.grad[1] < -20


def test_logits_survive_a_saturated_sigmoid():
    z = torch.tensor([-200.0, -90.0, -30.0, 0.0, 30.0, 90.0, 200.0], requires_grad=True)
    assert torch.sigmoid(z)[4] == 1
    value = binary_entropy_from_logits(z)
    value.sum().backward()
    assert value.isfinite().all()
    assert z.grad.isfinite().all()
    # h(sigmoid(z)) ~ (|z| + 1) e^-|z| / ln 2 far out, with derivative -z e^-|z| / ln 2
    assert value[4].item() == pytest.approx(31 * math.exp(-30) / math.log(2), rel=1e-5)
    assert z.grad[4].item() == pytest.approx(-30 * math.exp(-30) / math.log(2), rel=1e-5)


def test_logits_agree_with_probabilities():
    z = torch.linspace(-5, 5, 21, dtype=torch.float64)
    torch.testing.assert_close(binary_entropy_from_logits(z), binary_entropy(torch.sigmoid(z)))
