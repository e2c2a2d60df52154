"""The Bayes rule: the most accurate decision within a limit, for any number of groups."""

import pickle

import numpy as np
import pandas as pd
import pytest
from battery import one_quickly
from posterior_problems import population
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairbits import InputError, audit
from fairbits.estimators.fitting import fit_seed
from fairbits.estimators.posterior import PosteriorEncoder
from fairbits.metrics import discrimination
from fairbits.rivals import BayesRuleClassifier, LinearProgrammeCode

LINEAR = LogisticRegression()


def rule(**settings):
    return BayesRuleClassifier(**({"estimators": LINEAR, "random_state": 0} | settings))


def disparity(decided, p_group):
    rates = decided @ p_group / p_group.sum(0)
    return rates.max() - rates.min()


@pytest.mark.parametrize("n_groups", one_quickly([2, 3, 5]))
def test_new_rows_keep_the_limit(n_groups):
    x, y, s, _ = population(3_000, n_groups)
    new, label, _, joint = population(20_000, n_groups, seed=1)
    assert disparity(joint[:, 1].sum(1) > 0.5, joint.sum(1)) > 0.2  # of the likelier class
    for limit in (0.0, 0.05, 0.15):
        decided = rule(limit=limit).fit(x, y, sensitive_features=s).predict(new)
        assert disparity(decided, joint.sum(1)) < limit + 0.03
        assert np.mean(decided == label) > 0.68


@pytest.mark.parametrize("n_groups", [2, 3])
def test_no_other_rule_within_the_limit_is_more_accurate(n_groups):
    """Other thresholds, other multipliers: with true posteriors, accuracy and disparity are known without labels."""
    _, y, s, joint = population(4_000, n_groups)
    label, group, rng = joint[:, 1].sum(1), joint.sum(1), np.random.default_rng(0)
    model = rule(limit=0.1)
    model.choose(joint, y, s)
    own = model._decide(joint, model.multipliers_)
    allowed, accuracy = disparity(own, group), np.mean(np.where(own, label, 1 - label))
    others = 0
    for _ in range(2_000):
        weights = model.multipliers_ + rng.normal(0, 0.1, n_groups)
        decided = label - rng.normal(0.5, 0.05) > group @ (weights / model.prior_)
        if disparity(decided, group) <= allowed:
            others += 1
            assert np.mean(np.where(decided, label, 1 - label)) <= accuracy + 1e-3
    assert others > 20


def test_without_a_limit_it_is_the_likelier_class():
    x, y, s, _ = population(1_000)
    model = rule(limit=1.0).fit(x, y, sensitive_features=s)
    np.testing.assert_allclose(model.multipliers_, 0, atol=1e-9)
    np.testing.assert_array_equal(model.predict(x), model.posterior(x)[:, 1].sum(1) > 0.5)


def test_multipliers_change_their_sign_with_the_names_of_the_groups():
    x, y, s, _ = population(3_000)
    first, second = (rule(limit=0.05).fit(x, y, sensitive_features=groups) for groups in (s, 1 - s))
    assert first.multipliers_[1] > 0 > first.multipliers_[0]
    np.testing.assert_allclose(first.multipliers_.sum(), 0, atol=1e-9)
    np.testing.assert_allclose(second.multipliers_, first.multipliers_[::-1], atol=0.02)
    assert np.mean(first.predict(x) != second.predict(x)) < 0.02


@pytest.mark.parametrize("n_groups", one_quickly([4, 2]))
def test_training_rows_keep_the_limit_out_of_fold(n_groups):
    x, y, s, _ = population(2_000, n_groups)
    models = [rule(limit=limit).fit(x, y, sensitive_features=s) for limit in (0.03, 0.1, 0.3)]
    encoder = clone(models[0].encoder_)
    held = encoder.posterior(encoder.fit_transform(x, y, sensitive_features=s))
    for model in models:
        assert discrimination(model._decide(held, model.multipliers_), sensitive_features=s) <= model.limit


def test_groups_that_are_not_in_x_cost_nothing():
    x, y, _, _ = population(2_000)
    s = np.random.default_rng(0).integers(0, 2, 2_000)
    plain, fair = (rule(limit=limit).fit(x, y, sensitive_features=s) for limit in (1.0, 0.05))
    np.testing.assert_array_equal(fair.predict(x), plain.predict(x))


def test_tables_text_and_pipelines():
    x, y, s, _ = population(400)
    table = pd.DataFrame({"a": x[:, 0], "b": np.where(x[:, 1] > 0, "high", "low")})
    names = pd.Series(np.where(s == 1, "m", "f"), name="sex")
    model = rule(estimators="default").fit(table, np.where(y == 1, "yes", "no"), sensitive_features=names)
    assert model.classes_.tolist() == ["no", "yes"]
    assert set(model.predict(table)) == {"no", "yes"}
    np.testing.assert_array_equal(model.predict_proba(table).argmax(1), model.predict(table) == "yes")
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(table), model.predict(table))
    assert clone(rule(limit=0.2)).limit == 0.2
    pipeline = make_pipeline(StandardScaler(), rule()).fit(x, y, bayesruleclassifier__sensitive_features=s)
    assert pipeline.score(x, y) > 0.6


def test_an_audit_certifies_the_decision():
    x, y, s, _ = population(2_000)
    new, label, group, _ = population(2_000, seed=1)
    model = rule(limit=0.1).fit(x, y, sensitive_features=s)
    found = audit(model, new, label, sensitive_features=group)
    shown = discrimination(model.predict(new), sensitive_features=group)
    assert found.certificate.bounds[0].estimated_total_variation == pytest.approx(shown)
    assert found.task["accuracy"] == pytest.approx(np.mean(model.predict(new) == label))


@pytest.mark.parametrize(
    ("settings", "labels", "sentence"),
    [
        ({}, lambda y: np.arange(len(y)) % 3, r"y has 3 classes, \[0, 1, 2\]; the Bayes rule takes two"),
        ({}, lambda y: 0 * y, r"y has only one class, \[0\]"),
        ({"limit": 1.5}, lambda y: y, "limit=1.5 must be a number at least 0 and at most 1"),
        ({"groups": "each"}, lambda y: y, "takes the intersections of several sensitive columns"),
    ],
)
def test_what_it_cannot_do_is_one_sentence(settings, labels, sentence):
    x, y, s, _ = population(200)
    columns = {"s": s, "t": 1 - s} if settings.get("groups") else s
    with pytest.raises(InputError, match=sentence):
        rule(**settings).fit(x, labels(y), sensitive_features=columns)


@pytest.mark.parametrize("rule", [BayesRuleClassifier, LinearProgrammeCode])
def test_rules_of_many_limits_share_an_encoder(rule):
    x, y, s, _ = population(2_000)
    encoder = PosteriorEncoder(LINEAR, columns=False, random_state=fit_seed(0))
    features = encoder.fit_transform(x, y, sensitive_features=s)
    rows, new = (encoder.posterior(part).reshape(-1, 4) for part in (features, encoder.transform(x[:500] + 1)))
    own, shared = (rule(estimators=given, limit=0.05, random_state=0) for given in (LINEAR, "given"))
    own.fit(x, y, sensitive_features=s)
    shared.fit(rows, y, sensitive_features=s)
    assert (own.predict(x[:500] + 1) == shared.predict(new)).all()
    with pytest.raises(InputError, match=r"X has 2 columns.*2 labels and 2 groups has 4"):
        shared.predict(x)
