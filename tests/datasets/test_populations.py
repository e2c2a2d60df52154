from itertools import product

import numpy as np
import pytest

from fairbits.datasets import make_independent, make_shifted_bits, make_xor


def word_law(theta):
    """Return the mean probability of each of the 2^m words over the rows of theta, by enumeration."""
    words = np.array(list(product([0, 1], repeat=theta.shape[1])))
    likelihood = np.where(words[None], theta[:, None], 1 - theta[:, None]).prod(axis=2)
    return likelihood.mean(axis=0)


def truth(laws, prior):
    """Return information as H(T) - H(T|S) and the largest distance, in the plainest possible way."""
    laws = np.array(laws)

    def entropy(p):
        return -sum(v * np.log2(v) for v in p if v > 0)

    information = entropy(prior @ laws) - sum(w * entropy(law) for w, law in zip(prior, laws, strict=True))
    return information, max(abs(a - b).sum() / 2 for a in laws for b in laws)


@pytest.mark.parametrize("w", [-1.3, 0.0, 0.4, 2.0, 5.0])
@pytest.mark.parametrize("n_bits", [2, 3, 5])
def test_xor_against_enumeration(w, n_bits):
    x = np.array(list(product([-1, 1], repeat=n_bits)))
    odd = (x < 0).sum(axis=1) % 2
    theta = 1 / (1 + np.exp(-w * x))
    information, distance = truth([word_law(theta[odd == k]) for k in (0, 1)], np.full(2, 0.5))
    population = make_xor(5, w=w, n_bits=n_bits)
    assert population.information == pytest.approx(information, abs=1e-12)
    assert population.total_variation == pytest.approx(distance, abs=1e-12)
    for i in range(n_bits):
        alone, _ = truth([word_law(theta[odd == k][:, [i]]) for k in (0, 1)], np.full(2, 0.5))
        assert population.neuronwise_information[i] == pytest.approx(alone, abs=1e-12)


@pytest.mark.parametrize(("w", "bits"), [(2, 0.259), (5, 0.898), (10, 0.9986)])
def test_xor_known_values(w, bits):
    assert make_xor(w=w).information == pytest.approx(bits, abs=6e-4)


def test_xor_is_accurate_for_tiny_leakage():
    r = np.tanh(0.05) ** 6
    assert make_xor(w=0.1, n_bits=6).information == pytest.approx(r**2 / (2 * np.log(2)), rel=1e-6)


def test_xor_saturates_without_warning():
    assert make_xor(w=1000).information == 1.0


def test_xor_rows():
    population = make_xor(400, w=3.0, random_state=0)
    x = population.X
    assert set(x.ravel()) == {-1.0, 1.0}
    np.testing.assert_array_equal(population.groups, x[:, 0] != x[:, 1])
    np.testing.assert_allclose(population.theta, 1 / (1 + np.exp(-3 * x)))
    np.testing.assert_array_equal(population.y, x[:, 0] > 0)
    assert population.s is population.groups


@pytest.mark.parametrize("delta", [0.0, 0.2, 0.7, 1.0])
@pytest.mark.parametrize(("n_groups", "prior"), [(2, None), (3, [0.1, 0.3, 0.6]), (4, None)])
def test_shifted_bits_against_enumeration(delta, n_groups, prior):
    population = make_shifted_bits(9, delta=delta, n_bits=6, n_groups=n_groups, prior=prior)
    levels = [0.5 - delta / 2 + delta * k / (n_groups - 1) for k in range(n_groups)]
    laws = [word_law(np.full((1, 6), level)) for level in levels]
    information, distance = truth(laws, population.prior)
    assert population.information == pytest.approx(information, abs=1e-12)
    assert population.total_variation == pytest.approx(distance, abs=1e-12)
    alone, _ = truth([[1 - level, level] for level in levels], population.prior)
    np.testing.assert_allclose(population.neuronwise_information, alone, atol=1e-12)
    np.testing.assert_allclose(population.theta, np.repeat(np.array(levels)[population.groups, None], 6, axis=1))


def test_shifted_bits_at_any_width_stay_below_the_entropy_of_s():
    information = [make_shifted_bits(5, n_bits=m, n_groups=3).information for m in (1, 10, 100, 1000)]
    assert information == sorted(information)
    assert information[-1] == pytest.approx(np.log2(3), abs=0.05)
    assert information[-1] < np.log2(3)


def test_shifted_bits_as_a_learning_problem():
    population = make_shifted_bits(4000, delta=0.6, n_bits=3, random_state=1)
    assert population.X.shape == (4000, 4)
    np.testing.assert_array_equal(population.y, population.X[:, -1] > 0)
    for k, level in enumerate([0.2, 0.8]):
        np.testing.assert_allclose(population.X[population.groups == k, :3].mean(axis=0), level, atol=0.04)
    assert abs(np.corrcoef(population.X[:, -1], population.groups)[0, 1]) < 0.05


def test_independent_tells_nothing():
    population = make_independent(30_000, n_bits=3, n_groups=3, prior=[0.2, 0.3, 0.5], random_state=0)
    assert population.information == population.total_variation == 0
    assert not population.neuronwise_information.any()
    assert population.theta.std(axis=0).min() > 0.2, "theta varies with x"
    laws = [word_law(population.theta[population.groups == k]) for k in range(3)]
    information, distance = truth(laws, population.prior)
    assert information < 5e-4
    assert distance < 0.03


@pytest.mark.parametrize(
    "population",
    [
        make_xor(60_000, w=1.5, n_bits=3, random_state=0),
        make_shifted_bits(60_000, delta=0.3, n_bits=4, n_groups=3, prior=[0.5, 0.2, 0.3], random_state=0),
    ],
    ids=["xor", "shifted_bits"],
)
def test_monte_carlo_agrees(population):
    codes = population.draw_codes(random_state=1)
    words = codes @ (1 << np.arange(codes.shape[1]))
    shares = np.bincount(population.groups) / len(population)
    np.testing.assert_allclose(shares, population.prior, atol=0.01)
    n_words = 1 << codes.shape[1]
    laws = [np.bincount(words[population.groups == k], minlength=n_words) for k in range(len(shares))]
    information, distance = truth([law / law.sum() for law in laws], shares)
    assert information == pytest.approx(population.information, abs=0.004)
    assert distance == pytest.approx(population.total_variation, abs=0.02)


@pytest.mark.parametrize("make", [make_xor, make_independent, make_shifted_bits])
def test_seeds_are_local_and_repeatable(make):
    np.random.seed(0)  # noqa: NPY002
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    first, again, other = (make(50, random_state=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.X, again.X)
    np.testing.assert_array_equal(first.groups, again.groups)
    assert not np.array_equal(first.X, other.X)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002
    np.testing.assert_array_equal(first.draw_codes(7), first.draw_codes(7))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_xor(0), r"n_samples=0 .* at least 1"),
        (lambda: make_xor(2.5), r"n_samples=2.5 .* whole number"),
        (lambda: make_xor(w=float("nan")), r"w=nan .* finite"),
        (lambda: make_xor(w="2"), r"w='2' .* finite"),
        (lambda: make_xor(n_bits=1), r"n_bits=1 .* at least 2"),
        (lambda: make_independent(n_groups=1), r"n_groups=1 .* at least 2"),
        (
            lambda: make_independent(prior=[0.5, 0.6]),
            r"prior=\[0.5, 0.6\] .* 2 positive numbers that sum to 1",
        ),
        (lambda: make_shifted_bits(prior=[1.0]), r"prior=\[1.0\] .* 2 positive"),
        (lambda: make_shifted_bits(delta=1.2), r"delta=1.2 .* at least 0 and at most 1"),
        (lambda: make_shifted_bits(n_bits=True), r"n_bits=True .* at least 1"),
    ],
)
def test_bad_arguments_name_value_and_remedy(call, message):
    with pytest.raises(ValueError, match=message):
        call()
