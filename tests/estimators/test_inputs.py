"""Nonsense gets a sentence that names the argument, the value and the remedy; nothing is left half-fitted."""

import numpy as np
import pandas as pd
import pytest
from battery import CODES, ESTIMATORS, problem, quick

from fairbits.estimators import SensitiveFeatureInXWarning

X, Y, S = problem(200)
WITH_GAP = np.where(np.arange(200) == 7, np.nan, S)
ONE_ODD = np.where(np.arange(200) < 3, 2, S)
TEXT = pd.DataFrame({"a": X[:, 0], "job": np.array(["cook", "clerk"])[Y]})
BAD_DATA = {
    "short S": ({"sensitive_features": S[:150]}, r"sensitive_features.*150.*200"),
    "short y": ({"y": Y[:150]}, r"inconsistent numbers of samples.*200.*150"),
    "short weight": ({"sample_weight": np.ones(150)}, r"sample_weight.*150"),
    "negative weight": ({"sample_weight": -np.ones(200)}, r"[Nn]egative.*sample_weight"),
    "NaN in S": ({"sensitive_features": WITH_GAP}, r"sensitive_features.*missing.*1 of 200.*drop"),
    "one class": ({"y": np.zeros(200, int)}, r"y has only one class, .*0.*two"),
    "one group": ({"sensitive_features": np.zeros(200)}, r"only one group.*'0'"),
    "small group": ({"sensitive_features": ONE_ODD}, r"'2'.*3 rows.*min_group_size=10.*merged"),
    "text in X": ({"X": TEXT}, r"X holds text.*'c.*TableEncoder"),
    "NaN in X": ({"X": np.where(X > 3, np.nan, X)}, r"X contains NaN"),
    "continuous y": ({"y": X[:, 0]}, r"[Uu]nknown label type.*continuous"),
}
BAD_SETTINGS = {
    "gamma": (1.5, "between|at least 0 and at most 1"),
    "code_size": (0, "at least 1"),
    "temperature": (0.0, "above 0"),
    "noise_floor": (0.5, "below 0.5"),
    "prediction": ("best", "'expected', 'sampled'"),
    "groups": ("both", "'intersection', 'each'"),
    "batch_size": (0, "at least 1"),
    "learning_rate": ("fast", "number above 0"),
    "validation_fraction": (1.0, "below 1"),
    "hidden_sizes": ((16, 0), "whole numbers"),
    "device": ("abacus", "abacus"),
}


@pytest.mark.parametrize("cls", ESTIMATORS)
@pytest.mark.parametrize("case", BAD_DATA)
def test_bad_data(cls, case):
    arguments, message = BAD_DATA[case]
    model = quick(cls)
    with pytest.raises(ValueError, match=message):
        model.fit(**{"X": X, "y": Y, "sensitive_features": S, **arguments})
    assert not hasattr(model, "net_")


@pytest.mark.parametrize("cls", CODES)
@pytest.mark.parametrize("name", BAD_SETTINGS)
def test_bad_settings(cls, name):
    value, message = BAD_SETTINGS[name]
    with pytest.raises(ValueError, match=message) as error:
        quick(cls, **{name: value}).fit(X, Y, sensitive_features=S)
    assert name in str(error.value)
    assert repr(value) in str(error.value)


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_a_failed_fit_leaves_the_earlier_one(cls):
    model = quick(cls).fit(X, Y, sensitive_features=S)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="one class"):
        model.fit(X, np.zeros(200, int), sensitive_features=S)
    np.testing.assert_array_equal(model.predict_proba(X), before)


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_sensitive_feature_inside_x_warns(cls):
    sex = pd.Series(np.array(["f", "m"])[S], name="sex")
    with pytest.warns(SensitiveFeatureInXWarning, match="'sex' of X has the name"):
        quick(cls).fit(pd.DataFrame({"a": X[:, 0], "sex": S}), Y, sensitive_features=sex)
    with pytest.warns(SensitiveFeatureInXWarning, match="'1' of X is one-to-one"):
        quick(cls).fit(np.column_stack([X[:, 0], 1 - 2 * S]), Y, sensitive_features=sex)


def test_information_of_an_unseen_group_is_refused():
    model = quick(CODES[0]).fit(X, Y, sensitive_features=S)
    with pytest.raises(ValueError, match="unseen"):
        model.information(X, sensitive_features=S + 1)
