"""Decisions of any model, scores in levels, people with several rows, several models together."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairbits import InputError, certify
from fairbits.datasets import make_shifted_bits

RNG = np.random.default_rng(0)
S = np.arange(2000) % 2
ACCEPTED = RNG.random(2000) < np.where(S, 0.6, 0.4)


def test_a_decision_is_a_decision_whatever_it_is_called():
    names = np.where(ACCEPTED, "accept", "reject")
    found = [certify(d, sensitive_features=S) for d in (ACCEPTED, names, ACCEPTED.astype(int), ACCEPTED[:, None])]
    shown = abs(ACCEPTED[S == 1].mean() - ACCEPTED[S == 0].mean())
    assert {c.total_variation for c in found} == {found[0].total_variation}
    assert found[0].bounds[0].estimated_total_variation == pytest.approx(shown)
    assert found[0].bounds[0].theorem == "exact binomial, Berger and Boos"
    assert "the decision about a person" in found[0].covers
    assert "score behind the decision" in str(found[0])
    assert certify(pd.Series(names), sensitive_features=pd.Series(S)) == certify(names, sensitive_features=S)


def test_any_fitted_classifier_is_certified_by_its_decisions_or_its_levels():
    X = np.column_stack([RNG.normal(size=2000) + S, RNG.normal(size=2000)])
    y = (X.sum(1) + RNG.normal(size=2000) > 0).astype(int)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[:1000], y[:1000])
    held, s = X[1000:], S[1000:]
    assert certify(model, held, sensitive_features=s) == certify(model.predict(held), sensitive_features=s)
    scores = model.predict_proba(held)[:, 1]
    cut = [certify(model, held, sensitive_features=s, levels=levels) for levels in ([0.5], [0.25, 0.5, 0.75])]
    assert cut[0].total_variation == certify(scores >= 0.5, sensitive_features=s).total_variation
    assert cut[1] == certify(scores, sensitive_features=s, levels=[0.25, 0.5, 0.75])
    assert cut[1].bounds[0].estimated_total_variation >= cut[0].bounds[0].estimated_total_variation


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"source": RNG.random(2000)}, "in levels"),
        ({"source": RNG.random(2000), "levels": [0.5, 0.2]}, "rising cuts"),
        ({"source": np.where(ACCEPTED, "yes", None)}, "missing"),
        ({"source": ACCEPTED.astype(str), "levels": [0.5]}, "rising cuts of numbers"),
        ({"source": LinearRegression(), "X": np.eye(2), "levels": [0.5]}, "LinearRegression has no predict_proba"),
        ({"source": LogisticRegression()}, "calibration rows are missing"),
        ({"source": ACCEPTED, "person": np.arange(1999)}, "1,999 identifiers for 2,000"),
        ({"source": ACCEPTED, "person": np.arange(2000) // 2}, "1,000 people have rows in two groups"),
        ({"source": ACCEPTED, "person": pd.Series([None, *range(1999)])}, "identifiers of people are missing"),
        ({"source": ACCEPTED, "beside": [ACCEPTED[:5]]}, "same rows"),
        ({"source": ACCEPTED[:, None] * 3}, "probabilities of shape"),
        ({"source": ACCEPTED, "beside": [ACCEPTED], "eps": 0.1}, "cannot be combined with beside"),
    ],
)
def test_nonsense_gets_a_sentence(arguments, message):
    with pytest.raises(InputError, match=message):
        certify(**arguments, sensitive_features=S)


def test_an_option_that_is_gone_is_named():
    with pytest.raises(TypeError, match=r"certify has no option 'asymptotic'\. Leave it out"):
        certify(ACCEPTED, sensitive_features=S, asymptotic=True)


def test_rows_of_one_person_count_once():
    """200 people with 10 equal rows each: as many values as people, and a bound for values between 0 and 1."""
    person = np.arange(2000) % 200
    accepted = (np.random.default_rng(1).random(200) < 0.5)[person]
    alone, together = certify(accepted, sensitive_features=S), certify(accepted, sensitive_features=S, person=person)
    assert together.rows == {"sensitive_features: 0": 100, "sensitive_features: 1": 100}
    assert together.bounds[0].estimated_total_variation == pytest.approx(alone.bounds[0].estimated_total_variation)
    assert together.total_variation > alone.total_variation + 0.05
    assert "exact" not in together.bounds[0].theorem
    assert "Each person counts once" in together.covers
    assert "Each row counts as a different person" in alone.covers
    named = pd.DataFrame({"name": person // 20, "born": person % 20})
    assert certify(accepted, sensitive_features=S, person=named) == together


def test_the_mean_of_a_persons_rows_counts_however_many_they_are():
    theta, groups = np.array([[0.0], [1.0], [1.0], [0.5], [0.5]]), np.array([0, 0, 0, 0, 1])
    with pytest.warns(UserWarning, match="So few rows alone may add"):
        found = certify(theta, sensitive_features=groups, person=["a", "a", "b", "b", "c"]).bounds[0]
    assert found.estimated_total_variation == pytest.approx(abs((0.5 + 0.75) / 2 - 0.5))
    assert found.rows == {"0": 2, "1": 1}


def test_two_models_reveal_together_what_none_reveals_alone():
    """A fair coin, and the same coin turned over for one group: each is the same for both groups, the pair is not."""
    coin = RNG.integers(0, 2, (2000, 1))
    turned = coin ^ S[:, None]
    alone, both = certify(turned, sensitive_features=S), certify(turned, sensitive_features=S, beside=[coin])
    assert alone.total_variation < 0.1
    assert both.total_variation == 1
    assert both.bounds[0].estimated_total_variation > 0.99
    assert any("another model" in line for line in alone.does_not_cover)
    assert not any("another model" in line for line in both.does_not_cover)


def test_random_codes_beside_each_other_are_independent_draws():
    data = make_shifted_bits(1000, n_bits=4, delta=0.2, random_state=0)
    whole = certify(data.theta, sensitive_features=data.groups)
    parts = certify(data.theta[:, :3], sensitive_features=data.groups, beside=[data.theta[:, 3:]])
    assert parts.bounds == whole.bounds


def test_a_wide_hard_code_is_counted_exactly():
    codes = RNG.integers(0, 2, (500, 2)).repeat(20, 1)  # 40 bits, four different words
    found, narrow = (certify(c, sensitive_features=S[:500]) for c in (codes, codes[:, [0, -1]]))
    assert found.exact
    assert found.bounds == narrow.bounds
