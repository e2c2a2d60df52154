"""Bounds that must never be crossed, and the sandwich that holds on average."""

import pytest
import torch
from battery import one_quickly
from information_layers import all_words, entropy, random_layer

from fairbits.information import (
    information_bounds,
    information_sandwich,
    joint_information,
    monte_carlo_information,
    neuronwise_information,
)
from fairbits.information.bounds import (
    bhattacharyya,
    blocked_bound,
    divergences,
    informative_bits,
    lower_end,
    mixture_bound,
    pair_bound,
)
from fairbits.information.words import group_weights


def odd_layer(seed):
    """A layer of any size, softness and number of groups; some are hard, some repeat rows, some weigh them."""
    pick = torch.Generator().manual_seed(seed)
    n, m, n_groups = (int(torch.randint(*r, (), generator=pick)) for r in ((4, 60), (1, 8), (2, 6)))
    slope = 10 ** (2 * torch.rand((), generator=pick).item() - 1)
    theta, groups = random_layer(seed, n=max(n, n_groups), m=m, n_groups=n_groups, slope=slope)
    theta = theta.round() if seed % 5 == 0 else theta[torch.arange(len(theta)) % 3] if seed % 7 == 0 else theta
    weights = torch.rand(len(theta), generator=pick, dtype=torch.float64) if seed % 3 == 0 else None
    prior = torch.rand(n_groups, generator=pick, dtype=torch.float64) ** 3 if seed % 2 else None
    return theta, groups, weights, prior


@pytest.mark.parametrize("bound", [pair_bound, mixture_bound])
@pytest.mark.parametrize("seeds", one_quickly([range(40, 60), range(40)]))
def test_never_below_the_exact_information(bound, seeds):
    for seed in seeds:
        theta, groups, weights, prior = odd_layer(seed)
        exact = joint_information(theta, groups, weights=weights, prior=prior)
        row_weights, prior = group_weights(theta, groups, weights=weights, prior=prior)
        for iterations in (1, 5, 100):
            value = bound(theta, row_weights, prior, iterations)
            assert value >= exact - 1e-12, seed
        if bound is pair_bound:
            assert value <= entropy(prior) + 1e-12, seed


def test_pairs_are_exact_on_certain_bits():
    theta, groups = random_layer(1, n=50, m=3, n_groups=3, slope=1e6)
    row_weights, prior = group_weights(theta.round(), groups)
    exact = joint_information(theta.round(), groups)
    assert pair_bound(theta.round(), row_weights, prior).item() == pytest.approx(exact.item(), abs=1e-9)


def test_more_iterations_tighten_a_lot():
    theta, groups = random_layer(1, n=100, m=10, slope=0.5)
    arguments = (theta, *group_weights(theta, groups))
    values = [pair_bound(*arguments, iterations) for iterations in (1, 10, 100)]
    assert values[0] > 1.3 * values[1] > 1.3**2 * values[2]


def test_a_bound_is_not_vacuous():
    theta, groups = random_layer(2, n=200, m=8, slope=0.5)
    assert pair_bound(theta, *group_weights(theta, groups)) < 4 * joint_information(theta, groups)


def test_pairwise_ingredients():
    theta, other = torch.rand(3, 4, dtype=torch.float64), torch.rand(5, 4, dtype=torch.float64)
    words = all_words(4)

    def law(p):
        return (p[:, None] * words + (1 - p[:, None]) * (1 - words)).prod(-1)

    p, q = law(theta)[:, None], law(other)[None]
    torch.testing.assert_close(bhattacharyya(theta, other), (p * q).sqrt().sum(-1))
    torch.testing.assert_close(divergences(theta, other), (p * (p / q).log()).sum(-1))
    certain = torch.tensor([[0.0, 1.0]], dtype=torch.float64)
    assert divergences(torch.tensor([[1e-9, 1.0]], dtype=torch.float64), certain).item() == torch.inf
    assert divergences(certain, certain).item() == 0


@pytest.mark.parametrize("seed", range(4))
def test_blocks_keep_the_bound_valid(seed):
    theta, groups = random_layer(seed, n=90, m=5, n_groups=3, slope=1.0)
    weights = torch.rand(90, dtype=torch.float64)
    row_weights, prior = group_weights(theta, groups, weights=weights)
    exact = joint_information(theta, groups, weights=weights)
    assert exact <= blocked_bound(theta, row_weights, prior, 50, block_rows=16)


def test_a_group_with_fewer_rows_than_blocks():
    """The block then tells about the group, and that part must be added: these codes name their row."""
    theta, groups = all_words(5), torch.zeros(32, dtype=torch.long)
    groups[7] = 1
    exact = joint_information(theta, groups)
    assert exact.item() == pytest.approx(0.2006, abs=1e-4)
    assert blocked_bound(theta, *group_weights(theta, groups), 20, block_rows=8) >= exact - 1e-12


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("slope", "n_groups"), [(0.5, 2), (2.0, 3), (20.0, 2)])
def test_bounds_hold_the_information_of_a_wide_code(slope, n_groups, dtype):
    theta, groups = random_layer(n_groups, n=60, m=18, n_groups=n_groups, slope=slope, dtype=dtype)
    weights = torch.linspace(0, 1, 60)
    lower, upper = information_bounds(theta, groups, weights=weights)
    exact = joint_information(theta.double(), groups, weights=weights)
    assert 0.3 * exact < lower <= exact + 1e-12
    assert exact - 1e-12 <= upper <= torch.log2(torch.tensor(n_groups)) + 1e-12


def test_greedy_bits_avoid_copies():
    theta, groups = random_layer(5, n=200, m=20, slope=4.0)
    best = neuronwise_information(theta, groups).argmax()
    theta = torch.cat([theta[:, [best]].expand(-1, 12).clone() * 0.999, theta], 1)
    row_weights, prior = group_weights(theta, groups)
    bits = informative_bits(theta, row_weights, prior, 6)
    top = neuronwise_information(theta, groups).topk(6).indices
    assert len(set(bits)) == 6
    assert joint_information(theta[:, bits], groups) > 1.3 * joint_information(theta[:, top], groups)


def test_fewer_than_two_groups():
    theta = torch.rand(10, 18)
    nobody, one = torch.zeros(10), torch.zeros(10, dtype=torch.long)
    assert information_bounds(theta, one, n_groups=2) == (0, 0)
    assert information_bounds(theta, torch.arange(10) % 2, weights=nobody) == (0, 0)
    assert information_sandwich(theta, torch.arange(10) % 2, weights=nobody) == (0, 0)
    assert information_sandwich(theta[:, :4], one, n_groups=2) == (0, 0)
    assert monte_carlo_information(theta, one, 10, weights=nobody)[0] == 0


class TestSandwich:
    @pytest.mark.parametrize("slope", one_quickly([2.0, 0.5, 8.0]))
    def test_holds_the_population_in_expectation(self, slope):
        """The rows are draws from a population of 50 kinds of rows, whose information is known exactly."""
        theta, groups = random_layer(7, n=50, m=5, slope=slope)
        prior = torch.tensor([0.5, 0.5])
        truth = joint_information(theta, groups, prior=prior)
        generator = torch.Generator().manual_seed(0)
        ends = []
        for _ in range(150):
            rows = torch.randint(50, (300,), generator=generator)
            ends.append(information_sandwich(theta[rows], groups[rows], prior=prior, generator=generator))
        lower, upper = (torch.stack(end) for end in zip(*ends, strict=True))
        assert lower.mean() < truth < upper.mean()
        assert lower.mean() > 0.4 * truth - 0.02
        assert upper.mean() < 1.3 * truth + 0.02

    def test_drawing_agrees_with_listing(self):
        """Nine constant bits add nothing, but make the code too wide to list."""
        theta, groups = random_layer(3, n=200, m=8, n_groups=3)
        wide = torch.cat([theta, torch.full((200, 9), 0.5, dtype=torch.float64)], 1)
        listed, drawn = (
            lower_end(t, *group_weights(t, groups), 20_000, torch.Generator().manual_seed(1)) for t in (theta, wide)
        )
        assert drawn.item() == pytest.approx(listed.item(), abs=0.01)
        _, upper = information_sandwich(wide, groups, n_draws=20_000)
        assert upper.item() == pytest.approx(joint_information(theta, groups).item(), abs=0.02)

    def test_codes_never_seen_before_teach_nothing(self):
        theta, groups = all_words(7), torch.arange(128) % 2
        lower, upper = information_sandwich(theta, groups)
        assert lower == 0
        assert upper == 1

    def test_a_group_of_one_row(self):
        theta, _ = random_layer(0, n=20)
        groups = torch.zeros(20, dtype=torch.long)
        groups[3] = 1
        lower, upper = information_sandwich(theta, groups)
        assert lower == 0
        assert upper == joint_information(theta, groups)

    def test_weightless_rows_do_not_count(self):
        theta, groups = random_layer(0, n=80)
        weights = torch.arange(80) % 2
        kept = weights == 1
        ends = information_sandwich(theta, groups, weights=weights, generator=torch.Generator().manual_seed(0))
        alone = information_sandwich(theta[kept], groups[kept], generator=torch.Generator().manual_seed(0))
        torch.testing.assert_close(ends, alone)
