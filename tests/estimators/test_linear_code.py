"""Codes with linear scores, the form of the optimum: against the linear programme on a known truth."""

from dataclasses import fields

import numpy as np
import pytest
from battery import known_posteriors, problem
from sklearn.linear_model import LogisticRegression

from fairbits import ExactCodeClassifier, FairCodeClassifier, InputError, LinearCodeClassifier
from fairbits.estimators import fit_stack
from fairbits.estimators.decision_rule import estimated_cells, scored_words
from fairbits.estimators.optimal_front import optimal_front, word_information
from fairbits.estimators.posterior import PosteriorEncoder


def disparity(codes, s):
    words = codes @ (1 << np.arange(codes.shape[1]))
    shares = [np.bincount(words[s == g], minlength=2 ** codes.shape[1]) / (s == g).sum() for g in (0, 1)]
    return np.abs(shares[0] - shares[1]).sum() / 2


def bits_about(model, X, y):
    """Return I(T;Y) in bits, as the decoder sees it."""
    own = model.predict_proba(X)[np.arange(len(y)), y]
    p = y.mean()
    return -(p * np.log2(p) + (1 - p) * np.log2(1 - p)) + np.log2(own).mean()


@pytest.fixture(scope="module")
def path():
    X, y, s = known_posteriors(8_000)
    models = [LinearCodeClassifier(limit=limit, random_state=0) for limit in (0.03, 0.1, 0.3)]
    return fit_stack(models, X, y, sensitive_features=s)


def test_the_limits_hold_for_other_rows(path):
    X, _, s = known_posteriors(40_000, seed=1)
    found = [disparity(model.transform(X), s) for model in path]
    np.testing.assert_array_less(found, [0.04, 0.11, 0.31])
    assert found[2] > 0.2


def test_codes_are_near_the_optimum_of_the_linear_programme(path):
    """On a known truth: the share of I(T;Y) that a code keeps of what any code of p(y,s|x) can keep."""
    X, y, s = known_posteriors(40_000, seed=1)
    joint = known_posteriors(8_000)[0].reshape(-1, 2, 2).astype(float)
    limits = [disparity(model.transform(X), s) for model in path]
    best = optimal_front(joint.sum(2), joint.sum(1), limits, bins=16, starts=1).information
    kept = np.array([bits_about(model, X, y) for model in path]) / best
    np.testing.assert_array_less([0.87, 0.93, 0.96], kept)


def test_words_are_cells_with_straight_edges(path):
    """Half-way between two rows with one word lies no other word."""
    X = known_posteriors(2_000, seed=2)[0]
    words = path[1].transform(X) @ (1 << np.arange(4))
    for word in np.unique(words):
        rows = X[words == word]
        halves = (rows + rows[::-1]) / 2
        assert (path[1].transform(halves) @ (1 << np.arange(4)) == word).mean() > 0.999


def test_posteriors_come_from_the_encoder_and_words_may_be_limited_within_labels():
    X, y, s = problem(1_500, n_groups=3, n_classes=3)
    encoder = PosteriorEncoder(LogisticRegression(), features="probabilities")
    Z = encoder.fit_transform(X, y, sensitive_features=s)
    np.testing.assert_allclose(Z.sum(1), 1, atol=1e-5)
    np.testing.assert_allclose(encoder.posterior(Z).reshape(len(Z), -1), Z)
    np.testing.assert_allclose(encoder.label_probabilities(Z), encoder.posterior(Z).sum(2))
    other = PosteriorEncoder(LogisticRegression()).fit(X, y, sensitive_features=s)
    np.testing.assert_allclose(encoder.posterior(encoder.transform(X)), other.posterior(other.transform(X)), atol=1e-5)
    assert len(encoder.get_feature_names_out()) == Z.shape[1] == 9
    model = LinearCodeClassifier(limit=0.1, condition_on_label=True, max_epochs=100).fit(Z, y, sensitive_features=s)
    within = [max(disparity(model.transform(Z)[y == k], (s == g)[y == k]) for g in range(3)) for k in range(3)]
    assert max(within) < 0.15
    assert model.score(Z, y) > 0.6


def test_folds_in_one_stack_are_those_of_fits_alone():
    X, y, s = known_posteriors(600)
    halves = [np.arange(0, 600, 2), np.arange(1, 600, 2)]
    both = fit_stack([LinearCodeClassifier(max_epochs=30) for _ in halves], X, y, sensitive_features=s, rows=halves)
    for model, rows in zip(both, halves, strict=True):
        alone = LinearCodeClassifier(max_epochs=30).fit(X[rows], y[rows], sensitive_features=s[rows])
        np.testing.assert_allclose(model.predict_proba(X), alone.predict_proba(X), atol=1e-5)


def test_it_has_no_setting_of_a_network_that_it_does_not_take():
    network, own = ({field.name for field in fields(cls)} for cls in (ExactCodeClassifier, LinearCodeClassifier))
    assert "hidden_sizes" in network - own
    assert not [name for name in network - own if hasattr(LinearCodeClassifier(), name)]


def test_images_are_refused():
    pictures = np.zeros((40, 1, 4, 4), np.uint8)
    with pytest.raises(InputError, match="tables, not images"):
        LinearCodeClassifier().fit(pictures, np.arange(40) % 2, sensitive_features=np.arange(40) // 20)


@pytest.mark.parametrize(
    ("settings", "method"),
    [
        ({}, LinearCodeClassifier),
        ({"release": "random"}, ExactCodeClassifier),
        ({"encode_sensitive": True}, ExactCodeClassifier),
    ],
)
def test_a_hard_fair_code_that_is_not_told_the_groups_has_linear_scores(settings, method):
    assert type(FairCodeClassifier(**settings).pipeline()[-1]) is method


def test_few_words_are_those_of_a_narrower_code():
    X, y, s = problem(2_000)
    few, narrow = (
        LinearCodeClassifier(limit=0.1, max_epochs=60, random_state=0, **size).fit(X, y, sensitive_features=s)
        for size in ({"max_words": 4}, {"code_size": 2})
    )
    assert not few.transform(X)[:, :2].any()
    np.testing.assert_array_equal(few.transform(X)[:, 2:], narrow.transform(X))
    np.testing.assert_allclose(few.predict_proba(X), narrow.predict_proba(X), atol=1e-6)


def test_words_of_linear_programmes_are_those_of_the_optimal_front():
    """On a known truth the words keep the limit and, made hard, nearly the information of the optimal front."""
    X = known_posteriors(8_000)[0]
    joint = X.reshape(-1, 2, 2).astype(float)
    cells = estimated_cells(np.eye(5, 4).reshape(5, 2, 2), X, np.full(len(X), 1 / len(X)), [2], False)
    for limit in (0.05, 0.2):
        scores = scored_words(cells, 8, limit, mistake=0.0)
        words = (X @ scores[:, :-1].T + scores[:, -1]).argmax(1)
        law = np.eye(8)[words]
        groups = joint.sum(1) / joint.sum((0, 1))
        apart = np.abs(law.T @ (groups[:, 0] - groups[:, 1])).sum() / 2
        found = word_information(law.T @ joint.sum(2) / len(X))
        best = optimal_front(joint.sum(2), joint.sum(1), [apart], bins=16, starts=2).information[0]
        assert apart < limit + 0.02
        assert found > 0.95 * best
