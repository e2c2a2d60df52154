"""A promise kept by choosing in a fixed sequence."""

import numpy as np
import pandas as pd
import pytest
from battery import quick
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairbits import BinaryMIClassifier, certify
from fairbits.certificate import TrainingRowsWarning
from fairbits.estimators import CollapsedCodeWarning
from fairbits.estimators.certified import SAMPLES, CertifiedClassifier
from fairbits.estimators.promises import NotCertifiedError


def table(n=12_000, seed=0):
    rng = np.random.default_rng(seed)
    y, s = rng.integers(0, 2, (2, n))
    return np.column_stack([3 * y, 2 * s, y + s]) + rng.normal(size=(n, 3)), y, s


def small(*, max_epochs=8, min_steps=300, **settings):
    estimator = quick(BinaryMIClassifier, max_epochs=max_epochs, min_steps=min_steps, code_size=4)
    return CertifiedClassifier(estimator, path=(0.0, 0.5, 0.9, 0.97), random_state=0, **settings)


def brief(**settings):
    """Return one for tests of the choice alone, whatever the quality of the models."""
    return small(max_epochs=2, min_steps=0, **settings)


@pytest.fixture(scope="module")
def fitted():
    X, y, s = table()
    return small(max_disparity=0.1).fit(X, y, sensitive_features=s)


def test_the_promise_holds_on_fresh_rows_for_code_and_class(fitted):
    X, y, s = table(seed=1)
    gap = abs(fitted.predict(X)[s == 0].mean() - fitted.predict(X)[s == 1].mean())
    assert gap <= 0.1
    assert fitted.estimator_.certify(X, sensitive_features=s).bounds[0].estimated_total_variation <= 0.1
    assert (fitted.predict(X) == y).mean() > 0.8


def test_it_keeps_the_model_that_predicts_best_of_those_before_the_first_failure(fitted):
    passed = fitted.path_.passed.tolist()
    assert passed == sorted(passed, reverse=True)
    assert passed.count(False) <= 1
    before = fitted.path_[fitted.path_.passed]
    assert fitted.estimator_.gamma == before.gamma[before.loss.idxmin()]


def test_a_failure_is_never_skipped(monkeypatch):
    """A later model that would pass does not."""
    X, y, s = table(3000)
    order = [bound for bound in (0.01, 0.02, 0.03, 0.04) for _ in range(SAMPLES)]
    bounds = iter([*order, 0.05, 0.5, 0.01, 0.01])  # then the tests
    model = brief(max_disparity=0.1)
    original = CertifiedClassifier._claims

    def scripted(self, *rows, **more):
        return [original(self, *rows, **more)[0]._replace(bound=next(bounds))]

    monkeypatch.setattr(CertifiedClassifier, "_claims", scripted)
    model.fit(X, y, sensitive_features=s)
    assert model.path_.passed.tolist() == [True, False, False, False]
    assert model.estimator_.gamma == model.path_.gamma.iloc[0]


def test_where_nothing_passes_it_says_how_far_it_got():
    X, y, s = table(3000)
    with pytest.raises(NotCertifiedError, match=r"disparity of at most 0.001.*guarantee 0\.\d+.*(needed|path)"):
        brief(max_disparity=0.001).fit(X, y, sensitive_features=s)


def test_information_can_be_limited_too(fitted):
    X, y, s = table()
    alone = brief(max_disparity=None, max_information=0.9).fit(X, y, sensitive_features=s)
    limit = max(alone.path_.code_information[0], alone.path_.class_information[0]) * 1.0001  # the safest reaches it
    strict = brief(max_disparity=0.1, max_information=limit).fit(X, y, sensitive_features=s)
    assert strict.certificate_.information <= limit
    assert strict.path_.passed.sum() <= fitted.path_.passed.sum()
    assert f"{limit:g} bits" in str(strict.certificate_)


def test_the_class_is_held_to_the_information_limit_too():
    """A code of two soft bits tells little; the class made from its probabilities tells much."""
    rng = np.random.default_rng(0)
    s = rng.integers(0, 2, 8000)
    y = np.where(rng.random(8000) < 0.75, s, 1 - s)
    X = np.column_stack([2 * s, 2 * y]) + rng.normal(size=(8000, 2))
    method = BinaryMIClassifier(code_size=2, temperature=10, max_epochs=10, random_state=0)
    model = CertifiedClassifier(method, path=(0.3,), max_disparity=None, max_information=0.12, random_state=0)
    with pytest.raises(NotCertifiedError, match=r"leakage of at most 0\.12.*the class"):
        model.fit(X, y, sensitive_features=s)
    assert model.path_.code_information[0] < 0.12


def test_what_is_promised_is_said_and_the_rest_is_an_estimate(fitted):
    text = str(fitted.certificate_)
    assert "Guaranteed at 95% confidence" in text
    assert "differ between two groups by at most 0.1" in text
    assert "estimates for the chosen model" in text
    assert "chosen by looking" not in text
    assert fitted.certificate_.total_variation <= 0.1


def test_a_failed_refit_leaves_no_model():
    X, y, s = table(3000)
    model = brief(max_disparity=0.5).fit(X, y, sensitive_features=s)
    with pytest.raises(NotCertifiedError):
        model.set_params(max_disparity=0.001).fit(X, y, sensitive_features=s)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_what_stands_before_the_method_learns_from_the_training_part_alone():
    X, y, s = table(3000)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    inner = brief().estimator
    model = brief(max_disparity=0.5).set_params(estimator=make_pipeline(StandardScaler(), inner))
    model.fit(frame, y, sensitive_features={"sex": s})
    assert model.estimator_[0].n_samples_seen_ == 2100
    assert model.predict(frame).shape == (3000,)
    assert list(model.set_output(transform="pandas").transform(frame).columns) == ["bit0", "bit1", "bit2", "bit3"]
    with pytest.warns(TrainingRowsWarning):  # its own calibration rows among them
        certify(model, frame, sensitive_features=s)


def test_a_collapsed_model_is_told():
    X, y, s = table(3000)
    model = brief(max_disparity=0.2)
    model.estimator.set_params(temperature=1000)
    with pytest.warns(CollapsedCodeWarning):
        model.fit(X, y, sensitive_features=s)


def test_bad_arguments_are_named():
    X, y, s = table(500)
    with pytest.raises(ValueError, match=r"max_disparity=5"):
        small(max_disparity=5).fit(X, y, sensitive_features=s)
    with pytest.raises(ValueError, match="Pass sensitive_features"):
        small().fit(X, y, sensitive_features=None)
    with pytest.raises(ValueError, match="no limit to certify"):
        small(max_disparity=None).fit(X, y, sensitive_features=s)
    with pytest.raises(ValueError, match="max_information=-1"):
        small(max_information=-1).fit(X, y, sensitive_features=s)
    sampled = small()
    sampled.estimator.set_params(prediction="sampled")
    with pytest.raises(ValueError, match="deterministic"):
        sampled.fit(X, y, sensitive_features=s)
