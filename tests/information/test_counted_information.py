import math
import warnings

import pytest
import torch
from information_layers import LN2, random_layer
from sklearn.metrics import mutual_info_score

from fairbits.information import SparseCountsWarning, counted_information, joint_information


def drawn(seed=0, n=400, m=4, n_groups=3):
    theta, groups = random_layer(seed, n=n, m=m, n_groups=n_groups)
    return torch.bernoulli(theta, generator=torch.Generator().manual_seed(seed)), groups


@pytest.mark.parametrize("dtype", [torch.float64, torch.long, torch.uint8, torch.bool])
def test_equals_scikit_learn(dtype):
    codes, groups = drawn()
    words = codes.long() @ (2 ** torch.arange(4))
    expected = mutual_info_score(words.numpy(), groups.numpy()) / LN2
    assert counted_information(codes.to(dtype), groups).item() == pytest.approx(expected, abs=1e-6)


def test_it_is_the_joint_information_of_certain_bits():
    codes, groups = drawn()
    weights, prior = torch.rand(400), torch.tensor([0.1, 0.2, 0.7])
    counted = counted_information(codes, groups, weights=weights, prior=prior)
    torch.testing.assert_close(counted, joint_information(codes, groups, weights=weights, prior=prior))


def test_bias_of_codes_that_tell_nothing():
    generator, n, m, n_groups = torch.Generator().manual_seed(0), 2048, 4, 3
    values = [
        counted_information(
            torch.randint(2, (n, m), generator=generator), torch.randint(n_groups, (n,), generator=generator)
        )
        for _ in range(100)
    ]
    expected = (2**m - 1) * (n_groups - 1) / (2 * n * math.log(2))
    assert torch.stack(values).mean().item() == pytest.approx(expected, rel=0.15)


def test_warns_and_saturates_when_codes_are_many():
    codes = torch.randint(2, (100, 60), generator=torch.Generator().manual_seed(0))
    groups = torch.arange(100) % 2
    with pytest.warns(SparseCountsWarning, match=r"100 rows for 2\^60") as caught:
        value = counted_information(codes, groups)
    assert value.item() == pytest.approx(1)
    assert caught[0].filename == __file__
    assert issubclass(SparseCountsWarning, UserWarning)


@pytest.mark.parametrize(("n", "silent"), [(79, False), (80, True)])
def test_the_warning_starts_at_a_tenth(n, silent):
    codes, groups = drawn(n=n, m=3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        counted_information(codes, groups)
    assert (not caught) == silent


def test_codes_must_be_bits():
    with pytest.raises(ValueError, match="codes must be 0 or 1"):
        counted_information(torch.tensor([[0.5]]), torch.tensor([0]))
    with pytest.raises(ValueError, match="codes must be 0 or 1"):
        counted_information(torch.zeros(2, 3, 4), torch.zeros(2, 3, dtype=torch.long))
