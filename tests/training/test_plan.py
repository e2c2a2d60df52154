"""Batches: every row once, every stratum its share, whatever the counts."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from fairbits.training.plan import StratifiedBatches

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
