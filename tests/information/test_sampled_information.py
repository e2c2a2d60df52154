"""Monte-Carlo values and local-expectation gradients against the exact ones."""

import pytest
import torch
from information_layers import LN2, all_words, random_layer, row_words

from fairbits.information import (
    joint_information,
    monte_carlo_information,
    neuronwise_information,
    wide_information,
    word_tables,
)
from fairbits.information import sampling as sampling_module
from fairbits.information.sampling import PENALTY_CLAMP, local_expectation
from fairbits.information.words import group_weights


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


class TestMonteCarlo:
    @pytest.mark.parametrize(("slope", "n_groups"), [(0.5, 2), (2.0, 3), (8.0, 2)])
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_within_four_standard_errors(self, slope, n_groups, dtype):
        theta, groups = random_layer(0, n=300, m=12, n_groups=n_groups, slope=slope, dtype=dtype)
        weights = torch.linspace(0, 2, 300)
        prior = torch.softmax(torch.arange(n_groups).float(), 0)
        exact = joint_information(theta, groups, weights=weights, prior=prior)
        estimate, error = monte_carlo_information(theta, groups, 4000, seeded(), weights=weights, prior=prior)
        assert abs(estimate - exact) < 4 * error
        assert 0 < error < 0.02
        assert estimate.dtype == dtype

    def test_the_error_is_honest(self):
        theta, groups = random_layer(1, n=100, m=6)
        exact = joint_information(theta, groups)
        runs = [monte_carlo_information(theta, groups, 200, seeded(i)) for i in range(200)]
        z = torch.stack([(estimate - exact) / error for estimate, error in runs])
        assert abs(z.mean()) < 0.25
        assert 0.8 < z.std() < 1.2

    def test_chunks_change_nothing(self, monkeypatch):
        theta, groups = random_layer(1, n=50, m=30)
        whole = monte_carlo_information(theta, groups, 300, seeded())
        monkeypatch.setattr(sampling_module, "_CHUNK_NUMBERS", 1000)
        torch.testing.assert_close(monte_carlo_information(theta, groups, 300, seeded()), whole)

    def test_wide_and_certain(self):
        theta = torch.zeros(40, 1000)
        theta[20:] = 1
        estimate, error = monte_carlo_information(theta, torch.arange(40) // 20, 50, seeded())
        assert estimate.item() == pytest.approx(1)
        assert error.item() == pytest.approx(0, abs=1e-6)

    def test_a_stack(self):
        layers = [random_layer(seed, m=8) for seed in range(3)]
        theta, groups = (torch.stack(parts) for parts in zip(*layers, strict=True))
        estimate, error = monte_carlo_information(theta, groups, 3000, seeded())
        assert ((estimate - joint_information(theta, groups)).abs() < 4 * error).all()


class TestLocalExpectation:
    @pytest.mark.parametrize("n_groups", [2, 3])
    @pytest.mark.parametrize("slope", [1.0, 8.0])
    def test_mean_over_all_codes_is_the_exact_gradient(self, n_groups, slope):
        theta, groups = random_layer(n_groups, n=15, m=5, n_groups=n_groups, slope=slope)
        theta = theta.clamp(PENALTY_CLAMP, 1 - PENALTY_CLAMP).requires_grad_()
        weights = torch.linspace(0.5, 2, 15, dtype=torch.float64)
        exact = joint_information(theta, groups, weights=weights)
        (expected,) = torch.autograd.grad(exact, theta)
        p = theta.detach()
        row_weights, prior = group_weights(p, groups, weights=weights)
        mean = torch.zeros_like(p)
        for t, chance in zip(all_words(5), row_words(p).T, strict=True):
            _, gradient = local_expectation(p, t.expand_as(p), row_weights, prior)
            mean += chance[:, None] * gradient
        torch.testing.assert_close(mean, expected, atol=1e-12, rtol=0)

    @pytest.mark.parametrize("slope", [0.5, 2.0, 6.0])
    def test_two_hundred_draws_point_the_right_way(self, slope):
        theta, groups = random_layer(4, n=256, m=10, slope=slope)
        theta.requires_grad_()
        (exact,) = torch.autograd.grad(joint_information(theta, groups), theta)
        generator, mean, value = seeded(), torch.zeros_like(theta), 0.0
        for _ in range(200):
            drawn = wide_information(theta, groups, generator=generator)
            mean += torch.autograd.grad(drawn, theta)[0] / 200
            value += drawn.item() / 200
        to_logits = (theta * (1 - theta)).detach()
        cosine = torch.cosine_similarity((mean * to_logits).flatten(), (exact * to_logits).flatten(), 0)
        assert cosine > 0.99
        assert (mean * to_logits).norm().item() == pytest.approx((exact * to_logits).norm().item(), rel=0.1)
        assert value == pytest.approx(joint_information(theta, groups).item(), rel=0.05)

    def test_differentiating_the_drawn_value_gives_nothing(self):
        """The trap: with the codes held fixed, the gradient of ln P_s(t)/P(t) is zero on average."""
        theta, groups = random_layer(0, n=20, m=5)
        theta.requires_grad_()
        tables, prior = word_tables(theta, groups)
        naive = (tables.log() - (prior @ tables).log()) / LN2
        drawn = prior[:, None] * tables.detach()  # the chance of each group and code
        (trap,) = torch.autograd.grad((drawn * naive).sum(), theta)
        (exact,) = torch.autograd.grad(joint_information(theta, groups), theta)
        assert trap.abs().max() < 1e-15
        assert exact.abs().max() > 1e-3

    def test_gradients_pass_the_clamp(self):
        theta = torch.tensor([[0.0, 1.0, 0.3], [1.0, 1.0, 0.6]] * 20).requires_grad_()
        groups = torch.arange(40) % 2
        value = wide_information(theta, groups, generator=seeded())
        value.backward()
        assert value.item() == pytest.approx(1, abs=0.05)
        assert theta.grad.isfinite().all()
        assert (theta.grad[:, 0].abs() > 0).all()

    def test_noise_decides_the_draws(self):
        theta, groups = random_layer(0, m=30)
        noise = torch.rand(theta.shape, generator=seeded(3), dtype=theta.dtype)
        same = wide_information(theta, groups, generator=seeded(3))
        torch.testing.assert_close(wide_information(theta, groups, noise=noise), same)
        assert wide_information(theta, groups, noise=noise.flip(0)) != same

    def test_chunks_change_nothing(self, monkeypatch):
        theta, groups = random_layer(1, n=50, m=30, n_groups=3)
        theta.requires_grad_()
        noise = torch.rand_like(theta)
        whole = wide_information(theta, groups, noise=noise)
        (gradient,) = torch.autograd.grad(whole, theta)
        monkeypatch.setattr(sampling_module, "_CHUNK_NUMBERS", 300)
        cut = wide_information(theta, groups, noise=noise)
        torch.testing.assert_close(cut, whole)
        torch.testing.assert_close(torch.autograd.grad(cut, theta)[0], gradient)

    def test_a_thousand_bits_in_float32(self):
        theta, groups = random_layer(1, n=100, m=1000, slope=3.0, dtype=torch.float32)
        value = wide_information(theta.requires_grad_(), groups, generator=seeded())
        value.backward()
        assert 0.9 < value <= 1 + 1e-5
        assert theta.grad.isfinite().all()

    def test_a_group_alone_tells_nothing(self):
        theta, _ = random_layer(1, m=30)
        theta.requires_grad_()
        value = wide_information(theta, torch.zeros(60, dtype=torch.long), n_groups=2)
        value.backward()
        assert value == 0
        assert (theta.grad == 0).all()


def test_wide_exceeds_no_width():
    theta, groups = random_layer(1, m=24)
    assert neuronwise_information(theta, groups).shape == (24,)
    with pytest.raises(ValueError, match=r"24 bits.*monte_carlo_information"):
        joint_information(theta, groups)
