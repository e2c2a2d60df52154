"""The bounds' formulas, and that they cover what they say."""

import math

import numpy as np
import pytest
import torch
from battery import one_quickly, quick

from fairbits import BinaryMIClassifier
from fairbits.certificate import Release, SmallGroupWarning, certify
from fairbits.certificate.confidence_bounds import empirical_bernstein, information_bound, variance_constant
from fairbits.datasets import make_shifted_bits, make_xor
from fairbits.information import joint_information, total_variation


def test_the_variance_constant_is_the_supremum():
    for smallest in (0.5, 0.3, 0.1, 0.01):
        rho = np.linspace(1e-6, 1 / smallest, 400_001)
        rho = rho[np.abs(rho - 1) > 1e-2]
        ratio = rho * np.log(rho) ** 2 / (rho * np.log(rho) - rho + 1)
        assert variance_constant(smallest) == pytest.approx(ratio.max(), rel=1e-4)


def test_the_information_bound_solves_its_equation():
    rows, delta, estimate = np.array([4000, 1000]), 0.05, 0.01
    prior = rows / rows.sum()
    bound = information_bound(estimate, rows, delta, prior) * math.log(2)
    n, log_delta = rows.sum(), math.log(1 / delta)
    q = (math.log(n) + math.log(1 / prior.min())) / n * log_delta / 3
    k = variance_constant(prior.min()) / n * log_delta
    right = estimate * math.log(2) - math.log1p(-1 / n) + q + math.sqrt(q * q + 2 * k * bound)
    assert bound == pytest.approx(right, rel=1e-12)


def test_the_information_bound_tightens_with_rows():
    few, many = (information_bound(0.01, np.array([n, n]), 0.05) for n in (500, 5000))
    assert 0.01 < many < few <= 1


def test_an_upper_limit_of_a_mean_covers():
    rng = np.random.default_rng(0)
    limits = [empirical_bernstein(rng.beta(0.3, 2, 200), 1.0, 0.05) for _ in range(1000)]
    assert np.mean(np.array(limits) >= 0.3 / 2.3) >= 0.95


@pytest.mark.parametrize("bits", one_quickly([2, 1, 4]))
@pytest.mark.parametrize("hard", [False, True])
def test_coverage_on_codes_of_known_truth(bits, hard):
    """At 95 % the truth exceeds its bound in at most 5 % of samples, with drawn (hard) codes too."""
    missed = np.zeros(3)
    repeats = 150
    for seed in range(repeats):
        data = make_shifted_bits(200, n_bits=bits, delta=0.15, random_state=seed)
        theta = data.draw_codes(seed).astype(float) if hard else data.theta
        bound = certify(theta, sensitive_features=data.groups)
        missed += [
            bound.total_variation < data.total_variation,
            bound.balanced_accuracy < (1 + data.total_variation) / 2,
            bound.information < data.information,
        ]
    assert (missed <= 0.05 * repeats).all()


def test_the_xor_population_is_not_certified_clean():
    data = make_xor(4000, w=5.0, random_state=0)
    certificate = certify(data.theta, sensitive_features=data.groups)
    assert data.neuronwise_information == pytest.approx(0)
    assert certificate.total_variation > data.total_variation > 0.8
    assert certificate.information > data.information > 0.8


def test_exact_and_drawn_estimates_agree(monkeypatch):
    from fairbits.certificate import confidence_bounds

    data = make_shifted_bits(3000, n_bits=6, n_groups=3, delta=0.1, random_state=0)
    exact = certify(data.theta, sensitive_features=data.groups)
    monkeypatch.setattr(confidence_bounds, "MAX_BITS", 0)
    drawn = certify(data.theta, sensitive_features=data.groups, random_state=0)
    assert exact.exact
    assert not drawn.exact
    for name in ("total_variation", "balanced_accuracy", "information"):
        assert 0 < getattr(drawn, name) - getattr(exact, name) < 0.05


def test_the_released_mode_is_the_one_certified():
    data = make_shifted_bits(4000, n_bits=3, delta=0.2, random_state=0)
    theta, groups = torch.tensor(data.theta), torch.tensor(data.groups)
    one = certify(data.theta, sensitive_features=data.groups)
    two = certify(data.theta, sensitive_features=data.groups, draws=2)
    noisy = certify(data.theta, sensitive_features=data.groups, eps=0.3)
    assert noisy.total_variation < one.total_variation < two.total_variation
    assert two.bounds[0].estimated_total_variation == pytest.approx(total_variation(theta.repeat(1, 2), groups).item())
    assert noisy.bounds[0].estimated_information == pytest.approx(joint_information(0.3 + 0.4 * theta, groups).item())


def test_a_coarse_code_by_table_and_by_function():
    data = make_shifted_bits(3000, n_bits=4, delta=0.2, random_state=0)
    first_bit = np.arange(16) // 8
    by_table = certify(data.theta, sensitive_features=data.groups, coarse=first_bit, random_state=0)
    by_function = certify(data.theta, sensitive_features=data.groups, coarse=lambda c: c[:, 0], random_state=0)
    full = certify(data.theta, sensitive_features=data.groups)
    assert by_table.total_variation == pytest.approx(by_function.total_variation, abs=0.02)
    assert by_table.total_variation < full.total_variation - 0.05
    assert "coarse" in by_table.covers


def test_labels_columns_and_many_groups():
    data = make_shifted_bits(6000, n_bits=3, n_groups=3, delta=0.1, random_state=0)
    y = np.arange(6000) % 2
    certificate = certify(data.theta, sensitive_features=data.groups, y=y)
    assert [b.label for b in certificate.bounds] == [None, 0, 1]
    assert certificate.within_labels >= certificate.total_variation - 0.02
    assert sum(certificate.rows.values()) == 6000
    together = certify(data.theta, sensitive_features=data.groups, y=y, simultaneous=True)
    assert together.total_variation > certificate.total_variation
    assert "hold together" in together.covers


def test_the_record_is_plain_and_says_what_it_covers():
    import json

    data = make_shifted_bits(2000, random_state=0)
    certificate = certify(data.theta, sensitive_features=data.groups, y=data.y)
    text = json.dumps(certificate.to_dict())
    assert json.loads(text)["total_variation"] == certificate.total_variation
    assert "one draw" in certificate.covers
    assert any("random numbers" in line for line in certificate.does_not_cover)
    assert "Not covered" in str(certificate)
    with pytest.raises(AttributeError):
        certificate.confidence = 0.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"confidence": 1.0}, "confidence=1.0"),
        ({"draws": 0}, "draws=0"),
        ({"eps": 0.5}, "eps=0.5"),
        ({"draws": 2, "coarse": np.zeros(8, int)}, "coarse"),
        ({"prior": [0.5, 0.6]}, "prior"),
        ({"theorem": "Chebyshev"}, "'shortest', 'Hoeffding'"),
        ({"y": [1, 2]}, "y has 2"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    data = make_shifted_bits(400, n_bits=3, random_state=0)
    with pytest.raises(ValueError, match=message):
        certify(data.theta, sensitive_features=data.groups, **arguments)


def test_not_probabilities_is_an_error():
    with pytest.raises(ValueError, match="probabilities"):
        certify(np.full((50, 2), 1.5), sensitive_features=np.arange(50) % 2)


def test_a_small_group_warns():
    data = make_shifted_bits(400, n_bits=2, random_state=0)
    groups = np.where(np.arange(400) < 5, 2, data.groups)
    with pytest.warns(SmallGroupWarning, match="'2' has 5"):
        certificate = certify(data.theta, sensitive_features=groups)
    assert certificate.total_variation > 0.5


def test_a_release_describes_itself():
    assert Release(3, 0.1).describe() == "3 draws of the code per person, every bit flipped with probability 0.1"


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    y, s = rng.integers(0, 2, (2, 6000))
    X = np.column_stack([2 * y, 2 * s, y + s]) + rng.normal(size=(6000, 3))
    model = quick(BinaryMIClassifier, gamma=0.9, max_epochs=15)
    model.fit(X[:3000], y[:3000], sensitive_features=s[:3000])
    return model.set_params(random_state=None), X[3000:], y[3000:], s[3000:]  # trained with a seed, released without


def test_no_receiver_beats_the_certificate_of_an_estimator(fitted):
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import BernoulliNB

    model, X, y, s = fitted
    certificate = model.certify(X[:1500], sensitive_features=s[:1500], y=y[:1500])
    codes = model.transform(X)
    for receiver in (HistGradientBoostingClassifier(), LogisticRegression(), BernoulliNB()):
        guess = receiver.fit(codes[:1500], y[:1500]).predict(codes[1500:])
        gap = abs(guess[s[1500:] == 0].mean() - guess[s[1500:] == 1].mean())
        assert gap <= certificate.total_variation + 2 * np.sqrt(0.25 * 4 / 1500)
        spy = receiver.fit(codes[:1500], s[:1500]).predict(codes[1500:])
        hits = [(spy == s[1500:])[s[1500:] == group].mean() for group in (0, 1)]
        assert np.mean(hits) <= certificate.balanced_accuracy + 2 * np.sqrt(0.25 / 1500)


def test_a_seeded_model_says_that_its_promise_is_void_for_who_knows_the_seed(fitted):
    model, X, _, s = fitted
    assert not any("seed" in line for line in model.certify(X, sensitive_features=s).does_not_cover)
    model.random_state = 0
    try:
        assert any("seed" in line for line in certify(model, X, sensitive_features=s).does_not_cover)
    finally:
        model.random_state = None
