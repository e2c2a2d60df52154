"""Code networks: theta is a function of x, expectations are right."""

import itertools

import pytest
import torch

from fairbits.information.words import all_words, word_columns, word_probabilities
from fairbits.nn import CodeNet, RunningInformation


@pytest.mark.parametrize("binary", [False, True])
def test_every_parameter_gets_a_gradient(binary):
    net = CodeNet(5, (16, 16), 6, 3, binary=binary)
    out = net(torch.randn(64, 5), torch.rand(64, 6))
    torch.nn.functional.cross_entropy(out.logits, torch.randint(0, 3, (64,))).backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in net.parameters())


def test_a_fully_binary_net_has_binary_hidden_activations_and_a_deterministic_theta():
    net, x = CodeNet(5, (16,), 6, 2, binary=True), torch.randn(32, 5)
    assert set(net.features(x).unique().tolist()) == {0.0, 1.0}
    torch.testing.assert_close(net.theta(x), net.theta(x), rtol=0, atol=0)


def test_words_and_their_probabilities_are_in_the_same_order():
    theta = torch.rand(7, 4, dtype=torch.float64)
    words = torch.tensor(list(itertools.product((0.0, 1.0), repeat=4)), dtype=torch.float64)
    torch.testing.assert_close(all_words(theta), words)
    expected = torch.stack([(theta * t + (1 - theta) * (1 - t)).prod(-1) for t in words], -1)
    torch.testing.assert_close(word_probabilities(theta), expected)
    assert torch.equal(word_columns(theta).mT, word_probabilities(theta))


@pytest.mark.parametrize(("code_size", "tolerance"), [(6, 0.01), (32, 0.02)])
def test_expected_output_is_the_mean_over_draws(code_size, tolerance):
    """Exact for few bits; for many, a mean over fixed draws that is close for every row."""
    torch.manual_seed(0)
    net, x = CodeNet(3, (16,), code_size, 2), torch.randn(20, 3)
    theta = net.theta(x)
    draws = (torch.rand(20_000, *theta.shape) < theta).float()
    monte_carlo = torch.softmax(net.head(draws), -1).mean(0)
    expected = net.expected(theta, lambda logits: torch.softmax(logits, -1))
    assert (expected - monte_carlo).abs().max() < tolerance


def test_expected_output_does_not_depend_on_the_other_rows():
    net, x = CodeNet(3, (16,), 32, 2), torch.randn(20, 3)
    theta = net.theta(x)
    alone = torch.cat([net.expected(row[None], lambda z: z) for row in theta])
    torch.testing.assert_close(alone, net.expected(theta, lambda z: z), rtol=1e-5, atol=1e-6)


def test_running_information_logs_the_running_value_and_is_exact_in_evaluation():
    torch.manual_seed(0)
    layer = RunningInformation(2, 3, beta=0.9)
    theta, groups = torch.rand(400, 3), torch.arange(400) % 2
    _, first = layer(theta[:200], groups[:200])
    _, second = layer(theta[200:], groups[200:])
    assert layer.tables.sum().item() == pytest.approx(2)
    assert second < first + 0.05
    penalty, value = layer.eval()(theta, groups)
    torch.testing.assert_close(penalty, value)
    before = layer.tables.clone()
    layer(theta, groups)
    torch.testing.assert_close(layer.tables, before)


@pytest.mark.parametrize("inputs", [8, 94])
def test_a_row_has_the_same_logits_whatever_rows_it_comes_with(inputs):
    """To the last bit, so that a row that is served alone gets the code that it has in its table."""
    torch.manual_seed(0)
    net, x = CodeNet(inputs, (64,), 8, 2), torch.randn(500, inputs)
    with torch.inference_mode():
        whole = net.logits(net.features(x))
        for rows in (1, 2, 3, 7, 33, 100):
            assert torch.equal(torch.cat([net.logits(net.features(part)) for part in x.split(rows)]), whole), rows
        assert net.theta(x[:0]).shape == (0, 8)
    with torch.no_grad():
        torch.testing.assert_close(net.logits(net.features(x)), whole)
