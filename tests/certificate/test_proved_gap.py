"""What new rows prove from below: below the truth at its confidence, and near it with many rows."""

import numpy as np
import pytest
import torch
from battery import one_quickly

from fairbits.certificate import Release, certify, proved_gap
from fairbits.datasets import make_shifted_bits

REPEATS = 400


def proved(data, delta=0.05, **options):
    k = int(data.groups.max()) + 1
    return proved_gap(torch.from_numpy(data.theta), np.asarray(data.groups), k, delta, **options)


@pytest.mark.parametrize("options", [{"n_bits": 2}, {"n_bits": 4}, {"n_bits": 2, "n_groups": 3}], ids=str)
@pytest.mark.parametrize("delta", one_quickly([0.05, 0.0, 0.3]))
def test_it_is_above_the_truth_in_at_most_the_share_it_says(options, delta):
    """At confidence 0.8, which hard bits come nearest to: errors of a bound that is right to the point are seen."""
    missed = np.zeros(2)
    for seed in range(REPEATS):
        data = make_shifted_bits(200, delta=delta, random_state=seed, **options)
        codes = torch.from_numpy(data.draw_codes(seed).astype(float))
        found = proved_gap(codes, np.asarray(data.groups), options.get("n_groups", 2), 0.2)
        missed += [found.total_variation > data.total_variation + 1e-12, found.information > data.information + 1e-12]
    assert (missed <= 0.2 * REPEATS).all(), missed / REPEATS


def test_a_choice_by_the_measured_rows_would_be_seen():
    """The half that chooses must not measure: the plug-in gap of equal groups is far above nothing."""
    data = make_shifted_bits(200, n_bits=4, delta=0.0, random_state=0)
    shown = certify(data.draw_codes(0).astype(float), sensitive_features=data.groups)
    assert shown.bounds[0].estimated_total_variation > 0.1
    assert proved(data).total_variation == 0


@pytest.mark.parametrize("n_groups", [2, 3])
def test_with_many_rows_it_is_near_the_truth_and_below_the_bound(n_groups):
    data = make_shifted_bits(40_000, n_bits=3, delta=0.3, n_groups=n_groups, random_state=0)
    found = proved(data)
    bound = certify(data.theta, sensitive_features=data.groups)
    assert data.total_variation - 0.04 < found.total_variation < data.total_variation
    assert found.total_variation < bound.total_variation
    assert 0.2 * data.information < found.information < data.information


def test_cells_of_a_coarse_code_prove_no_more_than_the_words():
    data = make_shifted_bits(20_000, n_bits=3, delta=0.3, random_state=0)
    parity = Release(coarse=lambda codes: codes.astype(np.int64).sum(1) % 2)
    majority = Release(coarse=lambda codes: (codes.astype(np.int64).sum(1) >= 2).astype(np.int64))
    assert proved(data, release=parity, random_state=0).total_variation < 0.1
    half = proved(data, release=majority, random_state=0).total_variation
    assert 0.2 < half < proved(data).total_variation + 0.01


def test_more_draws_tell_more():
    data = make_shifted_bits(20_000, n_bits=2, delta=0.1, random_state=0)
    assert proved(data, release=Release(4)).total_variation > proved(data).total_variation + 0.05


def test_a_group_of_one_row_and_a_missing_one_prove_nothing():
    theta = torch.full((50, 2), 0.5)
    assert proved_gap(theta, np.zeros(50, np.int64), 2, 0.05) == (0.0, 0.0)
    groups = np.zeros(50, np.int64)
    groups[0] = 2
    assert proved_gap(theta, groups, 3, 0.05) == (0.0, 0.0)


def test_shares_hold_for_all_groups_together_also_those_that_did_not_come():
    data = make_shifted_bits(4000, n_bits=2, delta=0.3, random_state=0)
    theta, groups = torch.from_numpy(data.theta), np.asarray(data.groups)
    two, three = (proved_gap(theta, groups, k, 0.05) for k in (2, 3))
    assert three.total_variation == two.total_variation
    assert 0 < three.information < two.information


def test_a_code_too_wide_to_list_needs_cells():
    with pytest.raises(ValueError, match="pass a coarse code"):
        proved_gap(torch.full((50, 30), 0.5), np.arange(50) % 2, 2, 0.05)
