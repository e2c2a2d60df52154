"""A promise kept by choosing in a fixed sequence."""

import numpy as np
import pytest

from fairbits import BinaryMIClassifier
from fairbits.certified import CertifiedClassifier, NotCertifiedError


def table(n=12_000, seed=0):
    rng = np.random.default_rng(seed)
    y, s = rng.integers(0, 2, (2, n))
    return np.column_stack([3 * y, 2 * s, y + s]) + rng.normal(size=(n, 3)), y, s


def quick(**settings):
    estimator = BinaryMIClassifier(max_epochs=8, min_steps=300, hidden_sizes=(16,), code_size=4, random_state=0)
    return CertifiedClassifier(estimator, gammas=(0.0, 0.5, 0.9, 0.97), random_state=0, **settings)


@pytest.fixture(scope="module")
def fitted():
    X, y, s = table()
    return quick(max_disparity=0.1).fit(X, y, sensitive_features=s)


def test_the_promise_holds_on_fresh_rows_for_code_and_class(fitted):
    X, y, s = table(seed=1)
    gap = abs(fitted.predict(X)[s == 0].mean() - fitted.predict(X)[s == 1].mean())
    assert gap <= 0.1
    assert fitted.estimator_.certify(X, sensitive_features=s).bounds[0].estimated_total_variation <= 0.1
    assert (fitted.predict(X) == y).mean() > 0.8


def test_it_keeps_the_last_model_before_the_first_failure(fitted):
    passed = fitted.path_.passed.tolist()
    assert passed == sorted(passed, reverse=True)
    assert passed.count(False) <= 1
    assert fitted.estimator_.gamma == fitted.path_[fitted.path_.passed].gamma.iloc[-1]


def test_a_failure_is_never_skipped(monkeypatch):
    """A later model that would pass is not looked at."""
    X, y, s = table(3000)
    bounds = iter([0.01, 0.02, 0.03, 0.04, 0.05, 0.5, 0.01, 0.01])  # the order, then the tests
    model = quick(max_disparity=0.1)
    original = CertifiedClassifier._bounds
    monkeypatch.setattr(CertifiedClassifier, "_bounds", lambda self, *rows: (next(bounds), original(self, *rows)[1]))
    model.fit(X, y, sensitive_features=s)
    assert model.path_.passed.tolist() == [True, False]
    assert model.estimator_.gamma == model.path_.gamma.iloc[0]


def test_where_nothing_passes_it_says_how_far_it_got():
    X, y, s = table(3000)
    with pytest.raises(NotCertifiedError, match=r"max_disparity=0.001.*bound of 0\.\d+.*(rows|gammas)"):
        quick(max_disparity=0.001).fit(X, y, sensitive_features=s)


def test_information_can_be_limited_too(fitted):
    X, y, s = table()
    limit = fitted.path_.information.iloc[0] * 1.0001  # what the safest model reaches, and no other
    strict = quick(max_disparity=0.1, max_information=limit).fit(X, y, sensitive_features=s)
    assert strict.certificate_.information <= limit
    assert strict.path_.passed.sum() <= fitted.path_.passed.sum()


def test_bad_arguments_are_named():
    X, y, s = table(500)
    with pytest.raises(ValueError, match=r"max_disparity=5"):
        quick(max_disparity=5).fit(X, y, sensitive_features=s)
    with pytest.raises(ValueError, match="sensitive_features is None"):
        quick().fit(X, y, sensitive_features=None)
