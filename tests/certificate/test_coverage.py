"""Coverage by simulation, at length: `make test-slow`."""

import numpy as np
import pytest
from scipy.stats import binom

from fairbits.certificate import certify, confidence_bounds, monte_carlo
from fairbits.datasets import make_shifted_bits

REPEATS = 2000


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fairbits.certificate.SmallGroupWarning")
@pytest.mark.parametrize("bits", [1, 2, 4])
@pytest.mark.parametrize("hard", [False, True], ids=["theta", "drawn bits"])
@pytest.mark.parametrize("delta", [0.0, 0.2], ids=["equal groups", "different groups"])
def test_the_truth_exceeds_its_bound_in_at_most_five_percent(bits, hard, delta):
    missed = np.zeros(3)
    for seed in range(REPEATS):
        data = make_shifted_bits(80, n_bits=bits, delta=delta, random_state=seed)
        if len(np.unique(data.groups)) < 2:
            continue
        theta = data.draw_codes(seed).astype(float) if hard else data.theta
        bound = certify(theta, sensitive_features=data.groups)
        missed += [
            bound.total_variation < data.total_variation - 1e-12,
            bound.balanced_accuracy < (1 + data.total_variation) / 2 - 1e-12,
            bound.information < data.information - 1e-12,
        ]
    assert (missed <= 0.05 * REPEATS).all(), missed / REPEATS


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fairbits.certificate.SmallGroupWarning")
@pytest.mark.parametrize("rows", [30, 300])
@pytest.mark.parametrize("kind", [float, int], ids=["probabilities", "hard code"])
def test_the_worst_case_of_one_hard_bit(rows, kind):
    """Bits near a fair coin, whose variance is the largest there is, through `certify` itself."""
    rng, groups, missed = np.random.default_rng(0), np.repeat([0, 1], rows), 0
    for _ in range(REPEATS):
        bits = (rng.random((2 * rows, 1)) < np.where(groups, 0.4, 0.6)[:, None]).astype(kind)
        missed += certify(bits, sensitive_features=groups).total_variation < 0.2
    print(f"{rows} rows, {kind.__name__}: missed {missed / REPEATS:.2%}")
    assert missed <= binom.isf(1e-3, REPEATS, 0.05)  # the exact bound errs as often as it may


VARIANTS = {
    "three groups": ({"n_groups": 3}, {}, []),
    "all together": ({}, {"simultaneous": True}, []),
    "drawn words": ({}, {}, [(confidence_bounds, "MAX_BITS", 0), (monte_carlo, "DRAWS", 1000)]),
    "drawn cells": ({}, {"coarse": lambda codes: codes.astype(int) @ [2, 1]}, [(confidence_bounds, "MAX_BITS", 0)]),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fairbits.certificate.SmallGroupWarning")
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_way_to_a_bound_covers(variant, monkeypatch):
    """Hard codes of two bits, different groups; the cells are the words, so that their truth is known."""
    population, options, patches = VARIANTS[variant]
    for patch in patches:
        monkeypatch.setattr(*patch)
    missed = np.zeros(2)
    for seed in range(REPEATS):
        data = make_shifted_bits(150, n_bits=2, delta=0.2, random_state=seed, **population)
        bound = certify(data.draw_codes(seed).astype(float), sensitive_features=data.groups, **options)
        missed += [bound.total_variation < data.total_variation, bound.information < data.information]
    print(f"{variant}: missed {missed / REPEATS}")
    assert (missed <= 0.05 * REPEATS).all()
