"""Nonsense gets a sentence that names the argument, the value and the remedy; nothing is left half-fitted."""

import numpy as np
import pandas as pd
import pytest
from battery import CODES, ESTIMATORS, WAYS, by_kind, problem, quick

from fairbits.estimators import BinaryMIClassifier, SensitiveFeatureInXWarning, fit_stack

X, Y, S = problem(200)
WITH_GAP = np.where(np.arange(200) == 7, np.nan, S)
ONE_ODD = np.where(np.arange(200) < 3, 2, S)
TEXT = pd.DataFrame({"a": X[:, 0], "job": np.array(["cook", "clerk"])[Y]})
BAD_DATA = {
    "short S": ({"sensitive_features": S[:150]}, r"sensitive_features.*150.*200"),
    "short y": ({"y": Y[:150]}, r"inconsistent numbers of samples.*200.*150"),
    "short weight": ({"sample_weight": np.ones(150)}, r"sample_weight.*150"),
    "weight 0 for a group": ({"sample_weight": (S == 0) * 1.0}, r"only one group"),
    "negative weight": ({"sample_weight": -np.ones(200)}, r"[Nn]egative.*sample_weight"),
    "NaN in S": ({"sensitive_features": WITH_GAP}, r"sensitive_features.*missing.*1 of 200.*Drop"),
    "one class": ({"y": np.zeros(200, int)}, r"y has only one class, .*0.*two"),
    "one group": ({"sensitive_features": np.zeros(200)}, r"only one group.*'0'"),
    "small group": ({"sensitive_features": ONE_ODD}, r"'2'.*3 rows.*Merge.*min_group_size=10"),
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
    "batch_size": (10.5, "whole number at least 1"),
    "learning_rate": (float("inf"), "number above 0"),
    "max_epochs": ("many", "whole number"),
    "validation_fraction": (1.0, "at most 0.9"),
    "hidden_sizes": ((16, 0), "whole numbers"),
    "device": ("abacus", "abacus"),
}


@pytest.mark.parametrize("cls", by_kind(kinds=WAYS))
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


@pytest.mark.parametrize("cls", by_kind(kinds=WAYS))
def test_a_failed_fit_leaves_the_earlier_one(cls):
    """Also if the failing table has other columns, and if training itself is interrupted."""
    model = quick(cls).fit(X, Y, sensitive_features=S)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="one class"):
        model.fit(X[:, :2], np.zeros(200, int), sensitive_features=S)

    def interrupt(done, most):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_stack([model], X[:, :2], Y, sensitive_features=S, on_epoch=interrupt)
    np.testing.assert_array_equal(model.predict_proba(X), before)


@pytest.mark.parametrize("cls", CODES)
def test_a_diverged_fit_says_so(cls):
    with pytest.raises(FloatingPointError, match="learning_rate"):
        quick(cls, learning_rate=1e38).fit(1e30 * X, Y, sensitive_features=S)


@pytest.mark.parametrize("cls", [cls for cls in ESTIMATORS if "schedule" in cls().get_params()])
def test_the_paper_selection_needs_every_class_among_the_validation_rows(cls):
    rare = np.where(np.arange(200) < 4, 2, Y)
    with pytest.raises(ValueError, match=r"selection='paper'.*validation_fraction"):
        quick(cls, selection="paper").fit(X, rare, sensitive_features=S)


@pytest.mark.parametrize(
    "rows",
    [[], [np.arange(0)], [np.array([0, 0, 1])], [np.array([5, 999])], [np.array([0.5])], [np.flatnonzero(Y == 0)]],
)
def test_bad_rows_of_a_stack_are_named(rows):
    with pytest.raises(ValueError, match="rows"):
        fit_stack([quick(CODES[0])], X, Y, sensitive_features=S, rows=rows)


def test_a_mask_is_as_good_as_row_numbers():
    mask = np.arange(200) % 3 > 0
    first, second = quick(CODES[0]), quick(CODES[0])
    fit_stack([first], X, Y, sensitive_features=S, rows=[mask])
    fit_stack([second], X, Y, sensitive_features=S, rows=[np.flatnonzero(mask)])
    np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(X))


def test_running_tables_have_a_limit():
    with pytest.raises(ValueError, match="code_size=40"):
        quick(BinaryMIClassifier, running_tables=True, code_size=40, wide="draws").fit(X, Y, sensitive_features=S)


def test_codes_to_decode_must_be_codes():
    model = quick(CODES[0]).fit(X, Y, sensitive_features=S)
    np.testing.assert_allclose(model.decode(model.transform(X)).sum(1), 1)
    for bad in (np.zeros((2, 3)), np.full((2, 8), 0.5)):
        with pytest.raises(ValueError, match=r"bits of shape \(n, 8\)"):
            model.decode(bad)


def test_information_of_one_group_is_refused():
    model = quick(CODES[0]).fit(X, Y, sensitive_features=S)
    with pytest.raises(ValueError, match="at least two groups"):
        model.information(X[S == 0], sensitive_features=S[S == 0])


@pytest.mark.parametrize("cls", by_kind(kinds=WAYS))
def test_sensitive_feature_inside_x_warns(cls):
    sex = pd.Series(np.array(["f", "m"])[S], name="sex")
    with pytest.warns(SensitiveFeatureInXWarning, match="'sex' has the name"):
        quick(cls).fit(pd.DataFrame({"a": X[:, 0], "sex": S}), Y, sensitive_features=sex)
    with pytest.warns(SensitiveFeatureInXWarning, match="'1' is one-to-one"):
        quick(cls).fit(np.column_stack([X[:, 0], 1 - 2 * S]), Y, sensitive_features=sex)


@pytest.mark.parametrize("cls", by_kind(kinds=WAYS))
def test_unknown_column_names_are_named(cls):
    model = quick(cls).fit(pd.DataFrame(X, columns=list("abc")), Y, sensitive_features=S)
    with pytest.raises(ValueError, match=r"(?s)feature names.*d"):
        model.predict(pd.DataFrame(X, columns=list("abd")))


def test_a_column_name_is_no_column():
    with pytest.raises(TypeError, match="'sex' is not a column"):
        quick(CODES[0]).fit(X, Y, sensitive_features="sex")


def test_information_of_an_unseen_group_is_refused():
    model = quick(CODES[0]).fit(X, Y, sensitive_features=S)
    with pytest.raises(ValueError, match="unseen"):
        model.information(X, sensitive_features=S + 1)
