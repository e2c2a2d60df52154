"""Batches: every row once, every stratum its share, whatever the counts."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fairbits.training.plan import StratifiedBatches, split_rows

strata = st.lists(st.integers(0, 3), min_size=1, max_size=200).map(torch.tensor)


@given(strata, st.integers(1, 64), st.integers(0, 2**31))
def test_an_epoch_holds_every_row_once(groups, batch_size, seed):
    batches = StratifiedBatches(groups, batch_size)
    rows = batches.epoch(torch.Generator().manual_seed(seed))
    assert sorted(rows[batches.mask > 0].tolist()) == list(range(len(groups)))
    sizes = batches.mask.sum(1)
    assert sizes.max() <= batch_size
    assert sizes.max() - sizes.min() <= 1


@given(strata, st.integers(1, 64))
def test_every_batch_has_its_share_of_every_stratum(groups, batch_size):
    batches = StratifiedBatches(groups, batch_size)
    rows = batches.epoch(torch.Generator().manual_seed(0))
    for k in groups.unique():
        count = ((groups[rows] == k) * batches.mask).sum(1)
        share = (groups == k).float().mean() * batches.mask.sum(1)
        assert ((count - share).abs() <= len(groups.unique()) + 1e-4).all()


def test_epochs_differ_and_the_generator_repeats_them():
    batches = StratifiedBatches(torch.arange(100) % 2, 10)
    generator = torch.Generator().manual_seed(1)
    first, second = batches.epoch(generator), batches.epoch(generator)
    assert not torch.equal(first, second)
    assert torch.equal(first, batches.epoch(torch.Generator().manual_seed(1)))


@given(strata, st.floats(0, 0.9), st.integers(0, 1000))
def test_split_is_a_partition_with_proportional_strata(groups, fraction, seed):
    train, held = split_rows(groups, fraction, torch.Generator().manual_seed(seed))
    assert sorted([*train.tolist(), *held.tolist()]) == list(range(len(groups)))
    assert len(held) == round(fraction * len(groups))
    for k in groups.unique():
        assert abs((groups[held] == k).sum() - fraction * (groups == k).sum()) <= 2


@pytest.mark.parametrize("n", [6150, 17094, 45222])
def test_the_last_held_out_row_is_one_of_the_rows(n, monkeypatch):
    """The largest uniform below 1, for which float32 rounds the last spot up to n."""
    monkeypatch.setattr(torch, "rand", lambda *shape, **_: torch.full(shape, 1 - 2.0**-24))
    train, held = split_rows(torch.zeros(n, dtype=torch.long), 0.1, torch.Generator().manual_seed(0))
    assert len(held) == round(0.1 * n)
    assert sorted([*train.tolist(), *held.tolist()]) == list(range(n))
