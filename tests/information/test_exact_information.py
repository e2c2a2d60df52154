"""Joint and neuronwise information against their definitions, and the gradients against calculus."""

import pytest
import torch
from information_layers import LN2, all_words, entropy, random_layer, slow_information, slow_tables, xor_layer
from sklearn.metrics import mutual_info_score
from torch.utils._python_dispatch import TorchDispatchMode

from fairbits.information import (
    binary_entropy,
    joint_information,
    neuronwise_information,
    running_information,
    table_information,
    total_variation,
    word_tables,
)
from fairbits.information import words as words_module


@pytest.mark.parametrize("w", [0.1, 2.0, 5.0, 10.0])
def test_bits_that_tell_only_together(w):
    theta, groups = xor_layer(w)
    q = torch.sigmoid(torch.tensor(-w, dtype=torch.float64))
    assert neuronwise_information(theta, groups).sum().item() == pytest.approx(0, abs=1e-12)
    expected = 1 - binary_entropy(2 * q * (1 - q))
    assert joint_information(theta, groups).item() == pytest.approx(expected.item(), abs=1e-12)


def test_the_sum_over_bits_may_miss_everything():
    """Parities of m bits hold one bit, two parities of two bits each hold two; no bit shows any of it."""
    for m in (3, 6):
        theta = all_words(m)
        parity = theta.sum(-1).long() % 2
        assert neuronwise_information(theta, parity).sum().item() == pytest.approx(0, abs=1e-12)
        assert joint_information(theta, parity).item() == pytest.approx(1, abs=1e-12)
    words = all_words(4).long()
    groups = 2 * (words[:, 0] ^ words[:, 1]) + (words[:, 2] ^ words[:, 3])
    assert neuronwise_information(words.double(), groups).sum().item() == pytest.approx(0, abs=1e-12)
    assert joint_information(words.double(), groups).item() == pytest.approx(2, abs=1e-12)


def test_the_sum_over_bits_may_count_one_bit_many_times():
    theta = torch.tensor([[0.9] * 8, [0.1] * 8], dtype=torch.float64)
    assert neuronwise_information(theta, torch.tensor([0, 1])).sum() > 4
    assert joint_information(theta, torch.tensor([0, 1])) <= 1


@pytest.mark.parametrize("m", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("slope", [0.5, 8.0])
def test_equals_enumeration(m, slope):
    theta, groups = random_layer(m, n=41, m=m, n_groups=3, slope=slope)
    weights = torch.linspace(0.1, 2, 41, dtype=torch.float64)
    tables, prior = word_tables(theta, groups, weights=weights)
    slow, slow_prior = slow_tables(theta, groups, weights)
    torch.testing.assert_close(tables, slow, atol=1e-15, rtol=1e-12)
    torch.testing.assert_close(prior, slow_prior)
    value = joint_information(theta, groups, weights=weights)
    assert value.item() == pytest.approx(slow_information(slow, slow_prior).item(), abs=1e-13)
    counts = (1e9 * slow_prior[:, None] * slow).round().long()  # scikit-learn counts in integers
    in_nats = mutual_info_score(None, None, contingency=counts.numpy())
    assert value.item() == pytest.approx(in_nats / LN2, abs=1e-7)


def test_a_fixed_prior_replaces_the_groups_shares():
    theta, groups = random_layer(0, m=5, n_groups=3)
    prior = torch.tensor([0.7, 0.1, 0.2], dtype=torch.float64)
    slow, _ = slow_tables(theta, groups)
    value = joint_information(theta, groups, prior=prior)
    assert value.item() == pytest.approx(slow_information(slow, prior).item(), abs=1e-13)


def test_neuronwise_is_the_joint_of_each_bit():
    theta, groups = random_layer(3, m=6, n_groups=4)
    joint = torch.stack([joint_information(theta[:, [i]], groups) for i in range(6)])
    torch.testing.assert_close(neuronwise_information(theta, groups), joint)
    mu = torch.stack([theta[groups == s].mean(0) for s in range(4)])
    pi = torch.bincount(groups) / len(groups)
    expected = binary_entropy(pi.double() @ mu) - pi.double() @ binary_entropy(mu)
    torch.testing.assert_close(neuronwise_information(theta, groups), expected, atol=1e-8, rtol=0)


@pytest.mark.parametrize("seed", range(5))
def test_joint_minus_sum_is_a_difference_of_total_correlations(seed):
    theta, groups = random_layer(seed, m=5, n_groups=3, slope=4.0)
    tables, prior = word_tables(theta, groups)
    words = all_words(5)

    def total_correlation(p):
        return binary_entropy(p @ words).sum() - entropy(p)

    within = sum(pi * total_correlation(p) for pi, p in zip(prior, tables, strict=True))
    gap = joint_information(theta, groups) - neuronwise_information(theta, groups).sum()
    assert gap.item() == pytest.approx((within - total_correlation(prior @ tables)).item(), abs=1e-13)


@pytest.mark.parametrize("m", [1, 2, 5])
@pytest.mark.parametrize("measure", [joint_information, neuronwise_information])
def test_gradcheck(measure, m):
    theta, groups = random_layer(m, n=9, m=m, n_groups=3, slope=1.0)
    weights = torch.linspace(0.5, 2, 9, dtype=torch.float64)

    def value(t):
        return measure(t, groups, weights=weights, prior=torch.tensor([0.2, 0.3, 0.5]), n_groups=3)

    assert torch.autograd.gradcheck(value, theta.requires_grad_(), atol=1e-8)


def test_tables_take_any_upstream_gradient():
    theta, groups = random_layer(0, n=7, m=5, n_groups=2)
    assert torch.autograd.gradcheck(lambda t: word_tables(t, groups)[0], theta.requires_grad_(), atol=1e-8)
    assert torch.autograd.gradcheck(lambda t: total_variation(t, groups), theta, atol=1e-8)


def test_neuronwise_gradient_in_closed_form():
    theta, groups = random_layer(1, n=50, m=3)
    theta.requires_grad_()
    neuronwise_information(theta, groups).sum().backward()
    mu = torch.stack([theta[groups == s].mean(0) for s in range(2)])
    expected = (torch.logit(mu)[groups] - torch.logit(theta.mean(0))) / LN2 / 50
    torch.testing.assert_close(theta.grad, expected.detach(), atol=1e-15, rtol=1e-10)


def test_a_second_derivative_is_refused_not_wrong():
    theta, groups = random_layer(0, m=3)
    theta.requires_grad_()
    with pytest.raises(RuntimeError, match="once"):
        torch.autograd.grad(joint_information(theta, groups), theta, create_graph=True)


@pytest.mark.parametrize("odd", [0, 1])
def test_chunks_and_group_splits_change_nothing(monkeypatch, odd):
    theta, groups = random_layer(2, n=700, m=6 + odd, n_groups=3)
    weights = (torch.arange(700) % 5).double()  # some rows weigh nothing

    def value_and_gradient():
        leaf = theta.clone().requires_grad_()
        value = joint_information(leaf, groups, weights=weights)
        return value.detach(), torch.autograd.grad(value, leaf)[0]

    plain = value_and_gradient()
    monkeypatch.setattr(words_module, "_CHUNK_ROWS", 256)
    torch.testing.assert_close(value_and_gradient(), plain, atol=1e-15, rtol=1e-12)
    monkeypatch.setattr(words_module, "_SPLIT_WORK", 0)
    torch.testing.assert_close(value_and_gradient(), plain, atol=1e-15, rtol=1e-12)
    assert (plain[1][weights == 0] == 0).all()


def test_memory_stays_small():
    theta, groups = torch.rand(50_000, 12, requires_grad=True), torch.randint(2, (50_000,))

    class Largest(TorchDispatchMode):
        numbers = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            for x in out if isinstance(out, (list, tuple)) else [out]:
                if isinstance(x, torch.Tensor):
                    Largest.numbers = max(Largest.numbers, x.untyped_storage().nbytes())
            return out

    with Largest():
        joint_information(theta, groups).backward()
    assert Largest.numbers < 10e6  # the half products of all rows would take 26 MB each


@pytest.mark.parametrize("shift", [2e-4, 2e-3, 2e-2])
def test_float32_is_accurate_at_tiny_information(shift):
    n, m = 20_000, 10
    groups = torch.arange(n) % 2
    x = torch.randn(n, m, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    theta = torch.sigmoid(0.3 * (x - x.view(-1, 2, m).mean(1).repeat_interleave(2, 0)).abs())
    theta = (theta + shift * groups[:, None] / 4).float()  # pairs of rows that differ by the shift only
    for measure in (joint_information, neuronwise_information):
        exact, single = measure(theta.double(), groups).sum(), measure(theta, groups).sum()
        assert exact < 1e-3
        assert single.item() == pytest.approx(exact.item(), rel=0.02)
        assert single.dtype == torch.float32
    if shift == 2e-4:
        assert exact < 5e-8


@pytest.mark.parametrize("slope", [1.0, 8.0, 30.0])
@pytest.mark.parametrize("m", [7, 12])
def test_float32_gradients_of_hard_codes(slope, m):
    """Products of nearly certain bits underflow in float32; what is lost must not matter to the logits."""
    theta, groups = random_layer(0, n=200, m=m, slope=slope, dtype=torch.float32)
    gradients = []
    for dtype in (torch.float32, torch.float64):
        leaf = theta.detach().to(dtype).requires_grad_()
        joint_information(leaf, groups).backward()
        gradients.append((leaf.grad * leaf * (1 - leaf)).detach().double())
    single, double = gradients
    assert (single - double).norm() < 1e-4 * double.norm()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_bits_that_are_certain(dtype):
    theta = torch.tensor([[0, 1, 0.5], [1, 1, 0.5], [0, 0, 1], [1, 0, 0]], dtype=dtype, requires_grad=True)
    groups = torch.tensor([0, 0, 1, 1])
    for measure in (joint_information, neuronwise_information):
        value = measure(theta, groups).sum()
        (gradient,) = torch.autograd.grad(value, theta)
        assert value.item() == pytest.approx(1)
        assert gradient.isfinite().all()


def test_a_code_that_a_group_never_uses_has_no_slope():
    tables = torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]], requires_grad=True)
    table_information(tables, torch.tensor([0.5, 0.5])).backward()
    assert tables.grad.tolist() == [[0.5, 0, 0], [0, 0, 0.5]]


def test_total_variation():
    theta, groups = random_layer(5, m=5, n_groups=4)
    tables, _ = slow_tables(theta, groups)
    pairs = [(tables[s] - tables[r]).abs().sum() / 2 for s in range(4) for r in range(s)]
    assert total_variation(theta, groups).item() == pytest.approx(max(pairs).item(), abs=1e-14)


@pytest.mark.parametrize("slope", [0.2, 2.0, 20.0])
def test_total_variation_and_information_hold_each_other(slope):
    layer, prior = random_layer(6, slope=slope), torch.tensor([0.5, 0.5])
    distance, information = total_variation(*layer), joint_information(*layer, prior=prior)
    assert 1 - binary_entropy((1 - distance) / 2) - 1e-12 <= information <= distance + 1e-12


class TestRunning:
    def test_without_memory_it_is_the_exact_information(self):
        theta, groups = random_layer(0, m=5, n_groups=3)
        theta.requires_grad_()
        tables, prior = word_tables(theta, groups)
        penalty, new = running_information(tables, prior, torch.rand_like(tables), 0.0)
        (gradient,) = torch.autograd.grad(penalty, theta)
        value = joint_information(theta, groups)
        torch.testing.assert_close(penalty, value)
        torch.testing.assert_close(gradient, torch.autograd.grad(value, theta)[0], atol=1e-15, rtol=1e-10)
        torch.testing.assert_close(new, tables.detach())

    def test_the_first_batch_starts_the_tables(self):
        tables, prior = word_tables(*random_layer(0))
        _, new = running_information(tables, prior, torch.zeros_like(tables), 0.9)
        torch.testing.assert_close(new, tables)

    def test_blend(self):
        tables, prior = word_tables(*random_layer(0))
        old, _ = word_tables(*random_layer(1))
        penalty, new = running_information(tables, prior, old, 0.9)
        torch.testing.assert_close(new, 0.9 * old + 0.1 * tables)
        slope = (new / (prior @ new)).log2()
        assert penalty.item() == pytest.approx((prior[:, None] * tables * slope).sum().item())

    def test_an_absent_group_keeps_its_table(self):
        theta, groups = random_layer(0, n_groups=3)
        old, _ = word_tables(theta, groups)
        rest = groups != 1
        tables, prior = word_tables(theta[rest], groups[rest], n_groups=3)
        penalty, new = running_information(tables, prior, old, 0.9)
        torch.testing.assert_close(new[1], old[1])
        assert penalty.isfinite()

    def test_the_memory_has_no_gradient(self):
        theta, groups = random_layer(0)
        tables, prior = word_tables(theta.requires_grad_(), groups)
        old = torch.rand_like(tables).requires_grad_()
        penalty, new = running_information(tables, prior, old, 0.5)
        assert not new.requires_grad
        assert torch.autograd.grad(penalty, old, allow_unused=True) == (None,)
