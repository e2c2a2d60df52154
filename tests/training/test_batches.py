"""Batches: every row once, every stratum its share, whatever the counts."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fairbits.training.batches import MixedBatches, StratifiedBatches, expected_draws

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


uneven = torch.tensor([0] * 940 + [1] * 50 + [2] * 10)


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_mixed_batches_draw_rows_as_often_as_expected(share):
    batches = MixedBatches(StratifiedBatches(uneven, 100), uneven, share)
    generator = torch.Generator().manual_seed(0)
    rows = torch.stack([batches.epoch(generator) for _ in range(200)])
    drawn = torch.stack([(uneven[rows] == k).sum() for k in range(3)]) / 200
    draws = expected_draws(uneven, torch.arange(1000), share)
    expected = torch.stack([draws[uneven == k].sum() for k in range(3)])
    torch.testing.assert_close(drawn, expected, rtol=0.03, atol=0)
    torch.testing.assert_close(expected.sum(), torch.tensor(1000.0))
    if share == 1:
        torch.testing.assert_close(expected, torch.full((3,), 1000 / 3))


def test_a_share_of_0_draws_every_row_once():
    rows = MixedBatches(StratifiedBatches(uneven, 64), uneven, 0.0).epoch(torch.Generator().manual_seed(0))
    assert len(rows.unique()) == len(uneven)
    assert (expected_draws(uneven, torch.arange(1000), 0.0) == 1).all()


def test_expected_draws_count_the_training_rows_alone():
    draws = expected_draws(torch.tensor([0, 0, 1, 1, 1]), torch.tensor([0, 2, 3]), 1.0)
    torch.testing.assert_close(draws, torch.tensor([1.5, 1.5, 0.75, 0.75, 0.75]))
