"""Coverage by simulation, at length: `make test-slow`."""

import numpy as np
import pytest

from fairbits.certificate import certify
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
