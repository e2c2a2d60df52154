"""The code of the linear programme: hard, within its limit, below the front, and certified like any other code."""

import pickle
from functools import cache

import numpy as np
import pytest
import torch
from posterior_problems import population
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from fairbits import InputError, audit, certify
from fairbits.estimators.codes import held_out_scores
from fairbits.estimators.optimal_front import optimal_front, word_information
from fairbits.information import total_variation
from fairbits.rivals import LinearProgrammeCode


def code(**settings):
    return LinearProgrammeCode(**({"estimators": LogisticRegression(), "bins": 8, "random_state": 0} | settings))


@cache
def fitted(limit=0.1, n=3_000, n_groups=2, n_classes=2, **settings):
    x, y, s, _ = population(n, n_groups, n_classes)
    return code(limit=limit, **settings).fit(x, y, sensitive_features=s)


def apart(model, x, s):
    return float(total_variation(torch.from_numpy(model.code_probabilities(x)), torch.from_numpy(s)))


@pytest.mark.parametrize(("n_classes", "n_groups"), [(2, 2), pytest.param(3, 3, marks=pytest.mark.slow)])
def test_new_rows_keep_the_limit_and_the_label_is_kept(n_classes, n_groups):
    x, y, s, _ = population(10_000, n_groups, n_classes, seed=1)
    tight, loose = (fitted(limit, n_classes=n_classes, n_groups=n_groups) for limit in (0.1, 1.0))
    assert apart(tight, x, s) < 0.15
    assert apart(loose, x, s) > 0.2
    shares = np.bincount(y) / len(y)
    tight, loose = (np.mean(np.log2(m.predict_proba(x)[np.arange(len(y)), y] / shares[y])) for m in (tight, loose))
    assert loose > tight > 0.1


@pytest.mark.slow
def test_it_is_below_the_front_and_close():
    model = fitted(n=6_000, bins=12)
    joint = population(6_000, seed=1)[3]
    label, group = joint.sum(2), joint.sum(1)
    hard = np.eye(8)[model.code_.word_probabilities(label, group).argmax(1)]
    rates = hard.T @ group / group.sum(0)
    found = word_information(hard.T @ label / len(label))
    front = optimal_front(label, group, np.abs(rates[:, 0] - rates[:, 1]).sum() / 2, bins=16)["information"].item()
    assert 0.92 * front < found < 1.01 * front  # cells of 144 and of 256


def test_a_row_has_one_code():
    model = fitted()
    x = population(300, seed=1)[0]
    codes = model.transform(x)
    assert codes.dtype == np.uint8
    assert codes.shape == (300, model.code_size) == (300, len(model.get_feature_names_out())) == (300, 3)
    np.testing.assert_array_equal(codes, model.transform(x))
    np.testing.assert_array_equal(model.decode(codes), model.predict_proba(x))
    np.testing.assert_array_equal(codes[:5], model.transform(x[:5]))
    np.testing.assert_array_equal(codes, pickle.loads(pickle.dumps(model)).transform(x))
    assert len(np.unique(model.predict_proba(x), axis=0)) <= 8


def test_the_decoder_is_the_share_of_the_training_rows():
    model = fitted()
    x, y, _, _ = population(3_000)
    score = model.predict_proba(x)
    assert roc_auc_score(y, score[:, 1]) > 0.65
    for value in np.unique(score[:, 1]):
        own = score[:, 1] == value
        assert y[own].mean() == pytest.approx(value, abs=0.1 if own.sum() > 200 else 1)


def test_certificates_and_audits():
    model = fitted()
    x, y, s, _ = population(3_000, seed=1)
    certificate = model.certify(x, sensitive_features=s)
    assert certificate == certify(model, x, sensitive_features=s)
    assert certificate.total_variation == certify(model.transform(x), sensitive_features=s).total_variation
    assert certificate.bounds[0].estimated_total_variation == pytest.approx(apart(model, x, s))
    found = audit(model, x, y, sensitive_features=s)
    assert found.certificate.total_variation == pytest.approx(certificate.total_variation)
    assert found.task["auc"] == pytest.approx(held_out_scores(model, x, y, s[:, None])["auc"])


def test_a_limit_of_0_is_the_code_closest_to_it():
    x, y, s, _ = population(6_000, seed=1)
    model = fitted(0.0)
    assert apart(model, x, s) < 0.06
    assert roc_auc_score(y, model.predict_proba(x)[:, 1]) > 0.7


@pytest.mark.parametrize("codes", [np.zeros((4, 2)), np.full((4, 3), 2)])
def test_what_is_no_code_gets_a_sentence(codes):
    with pytest.raises(InputError, match=r"codes must be bits of shape \(n, 3\)"):
        fitted().decode(codes)
