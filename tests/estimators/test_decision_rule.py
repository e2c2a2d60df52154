"""Rules for decisions: against a linear programme of its own, and by what they must keep."""

import numpy as np
import pytest
from battery import known_posteriors
from sklearn.linear_model import LogisticRegression

from fairbits import CertifiedClassifier, FairCodeClassifier, InputError, LinearCodeClassifier
from fairbits.estimators.decision_rule import SHARES, decided, decision_rules, joint_estimates
from fairbits.estimators.fitting import fit_stack
from fairbits.estimators.optimal_front import constrained_law


def posteriors(n, n_classes, n_groups, seed=0):
    """Posteriors of cells that differ continuously, each with the mass 1 / n."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    scores = (np.exp(x @ rng.normal(size=(3, size))) for size in (n_classes, n_groups))
    return *(score / score.sum(1, keepdims=True) for score in scores), np.full(n, 1 / n)


def rates(p_group, mass, decision, n_classes):
    law = (p_group * mass[:, None] / (mass @ p_group)).T
    return law @ np.eye(n_classes)[decision]


def apart(found):
    return np.abs(found[:, None] - found).sum(-1).max() / 2


@pytest.mark.parametrize(("n_classes", "n_groups"), [(2, 2), (3, 2), (2, 4)])
def test_a_rule_is_as_accurate_as_the_optimum_of_its_limit(n_classes, n_groups):
    p_label, p_group, mass = posteriors(400, n_classes, n_groups)
    rules = decision_rules(p_label, [p_group], mass)
    plain = p_label.argmax(1)
    assert (decided(p_label, [p_group], mass, rules[0]) == plain).all()
    most = apart(rates(p_group, mass, plain, n_classes))
    law = (p_group * mass[:, None] / (mass @ p_group)).T
    for share in (4, 9, 14):
        limit = SHARES[share] * most
        decision = decided(p_label, [p_group], mass, rules[2 + 2 * share])
        best, _ = constrained_law(p_label * mass[:, None], law, limit)
        optimum = (best * p_label).sum(1).mean()
        assert apart(rates(p_group, mass, decision, n_classes)) <= limit + 0.02  # a cell or two are undecided
        assert p_label[np.arange(400), decision].mean() == pytest.approx(optimum, abs=0.01)


def test_rates_within_labels_meet_at_the_end_of_the_rules():
    p_label, _, mass = posteriors(600, 2, 2, seed=3)
    joint = p_label[:, :, None] * (0.2 + 0.6 * p_label)[:, None]  # p(s|x) follows p(y|x)
    within = [joint[:, label] for label in (0, 1)]
    rules = decision_rules(p_label, within, mass)
    first, last = (decided(p_label, within, mass, rules[place]) for place in (0, 2 * len(SHARES)))
    for own in within:
        assert apart(rates(own, mass, first, 2)) > 0.1
        assert apart(rates(own, mass, last, 2)) < 0.02


def test_groups_without_rows_and_tables_without_disparity_need_no_prices():
    p_label, p_group, mass = posteriors(50, 2, 2)
    absent = np.column_stack([p_group, np.zeros(50)])
    decision = decided(p_label, [absent], mass, decision_rules(p_label, [absent], mass)[-1])
    assert (decision == decided(p_label, [p_group], mass, decision_rules(p_label, [p_group], mass)[-1])).all()
    assert len(decision_rules(p_label, [np.full((50, 2), 0.5)], mass)) == 1
    assert len(decision_rules(p_label, [], mass)) == 1


def test_features_that_are_probabilities_are_taken_as_such_and_others_are_fitted():
    rng = np.random.default_rng(0)
    joint = rng.dirichlet(np.ones(4), 300)
    y, s = rng.integers(0, 2, 300), rng.integers(0, 2, (300, 1))
    found = joint_estimates(joint, y, s, np.ones(300), 2, [2])
    assert (np.tensordot(np.column_stack([joint, np.ones(300)]), found, 1).reshape(300, 4) == joint).all()
    fitted = joint_estimates(joint * 2, y, s, np.ones(300), 2, [2])
    estimates = np.tensordot(np.column_stack([joint * 2, np.ones(300)]), fitted, 1)
    assert estimates.sum((1, 2)) == pytest.approx(np.ones(300))
    known = (np.eye(2)[y][:, :, None] * np.eye(2)[s[:, 0]][:, None]).mean(0)
    assert estimates.mean(0) == pytest.approx(known)  # a linear fit with a constant keeps means


def test_without_a_limit_it_is_the_most_probable_class_and_limits_are_kept_on_the_rows():
    Z, y, s = known_posteriors(4_000)
    limits = [0.01, 0.05, 0.1, 1.0]
    given = [LinearCodeClassifier(limit=limit, objective="accuracy", random_state=0) for limit in limits]
    models = fit_stack(given, Z, y, sensitive_features=s)
    assert (models[-1].predict(Z) == (Z[:, 2:].sum(1) > Z[:, :2].sum(1))).all()
    decisions = np.array([model.predict(Z) for model in models])
    shown = abs(decisions[:, s == 0].mean(1) - decisions[:, s == 1].mean(1))
    assert shown[-1] > 0.2
    assert (shown <= limits).all()
    right = (decisions == y).mean(1)
    assert (np.diff(right) > 0).all()
    known = [(model.history_[-1]["disparity"], 1 - model.history_[-1]["total"]) for model in models]
    np.testing.assert_allclose(known, np.column_stack([shown, right]), atol=1e-5)  # single precision


def test_every_class_needs_a_word():
    X = np.random.default_rng(0).normal(size=(60, 2))
    method = LinearCodeClassifier(objective="accuracy", code_size=1)
    with pytest.raises(InputError, match="2 words for 3 classes"):
        method.fit(X, np.arange(60) % 3, sensitive_features=np.arange(60) // 3 % 2)


def test_a_certified_decision_is_the_least_protected_one_that_is_as_accurate_as_the_best():
    Z, y, s = known_posteriors(2_000)
    code = FairCodeClassifier(estimators=LogisticRegression(), random_state=0)
    model = CertifiedClassifier(code, promise="class", max_disparity=0.6, random_state=0)
    model.fit(Z[:, 1:], y, sensitive_features=s)
    assert model.estimator_[-1].objective == "accuracy"
    assert model.path_.passed.all()  # a limit that binds nothing
    assert model.path_.accuracy.idxmax() != model.path_.limit.idxmax()  # by chance
    assert model.estimator_[-1].limit == 1.0


def test_protection_that_is_significantly_more_accurate_is_kept():
    Z, y, s = known_posteriors(2_000)
    rules = LinearCodeClassifier(objective="accuracy", random_state=0)
    model = CertifiedClassifier(rules, promise="class", max_disparity=0.6, random_state=0)
    model.fit(Z, y, sensitive_features=s)
    safest = model.candidates_[0]
    assert model._test(model.candidates_, model._in_memory(Z, (Z, safest.predict(Z), s), None)) is safest
