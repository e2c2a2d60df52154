"""FARE's tree against scikit-learn's, and what its weight of the groups does."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from fairbits.rivals import FairTreeClassifier


def rows(n=3000, seed=0):
    """Columns about the label, about the group, and about both."""
    rng = np.random.default_rng(seed)
    s = rng.integers(2, size=n)
    y = (rng.random(n) < 0.3 + 0.4 * s).astype(int)
    x = np.column_stack([y, s, y + s]) + rng.normal(size=(n, 3))
    return x.round(2), y, s


def test_without_a_weight_of_the_groups_it_is_an_ordinary_tree():
    x, y, s = rows()
    ours = FairTreeClassifier(gamma=0.0, max_words=9, min_rows=50, random_state=0).fit(x, y, sensitive_features=s)
    theirs = DecisionTreeClassifier(max_leaf_nodes=9, min_samples_leaf=50, random_state=0).fit(x, y)
    pairs = np.unique(np.column_stack([ours.words(x), theirs.apply(x)]), axis=0)
    assert len(pairs) == 9, "each leaf of one tree is a leaf of the other"


def test_the_weight_of_the_groups_mixes_them():
    x, y, s = rows()
    shown = []
    for gamma in (0.0, 0.5, 0.9):
        model = FairTreeClassifier(gamma=gamma, max_words=8, random_state=0).fit(x, y, sensitive_features=s)
        shown.append(apart(model.words(x), s))
    assert shown[0] > shown[1] > shown[2]


def apart(words, s):
    """Return the total variation between the groups' words."""
    tables = [np.bincount(words[s == group], minlength=words.max() + 1) / (s == group).sum() for group in (0, 1)]
    return np.abs(tables[0] - tables[1]).sum() / 2


def test_the_leaves_are_a_code_that_can_be_certified():
    x, y, s = rows(6000)
    model = FairTreeClassifier(gamma=0.5, random_state=0).fit(x[:3000], y[:3000], sensitive_features=s[:3000])
    certificate = model.certify(x[3000:], sensitive_features=s[3000:])
    assert apart(model.words(x[3000:]), s[3000:]) < certificate.total_variation < 1
    assert (model.transform(x) == model.transform(x)).all()
    assert (model.decode(model.transform(x)) == model.predict_proba(x)).all()


@pytest.mark.parametrize("min_rows", [10, 200])
def test_no_leaf_is_smaller_than_asked(min_rows):
    x, y, s = rows()
    model = FairTreeClassifier(max_words=64, min_rows=min_rows, random_state=0).fit(x, y, sensitive_features=s)
    assert np.bincount(model.words(x)).min() >= min_rows
