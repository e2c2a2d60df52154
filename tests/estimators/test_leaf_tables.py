"""Boosted trees by tables have the numbers of scikit-learn, to the last bit."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from fairbits.estimators import leaf_tables
from fairbits.estimators.leaf_tables import tree_probabilities


def columns(n, seed, categories=40):
    """Return numbers, a few of them whole, and two columns of categories; some of everything is missing."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(n, 4))
    numbers[:, 1] = numbers[:, 1].round()
    X = np.column_stack([rng.integers(0, categories, n), numbers, rng.integers(0, 3, n)])
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


def labels(X, n_classes):
    score = np.nan_to_num(X[:, 1]) + np.nan_to_num(X[:, 0]) % 3 + np.isnan(X[:, 2])
    return np.digitize(score, np.quantile(score, np.linspace(0, 1, n_classes + 1)[1:-1]))


@pytest.mark.parametrize(("n_classes", "by_category"), [(2, [0, 5]), (2, []), (3, [0, 5])])
def test_probabilities_are_those_of_scikit_learn_to_the_last_bit(n_classes, by_category, monkeypatch):
    monkeypatch.setattr(leaf_tables, "FEWEST_ROWS", 1)
    X = columns(2_000, 0)
    settings = {"max_iter": 30, "early_stopping": False, "categorical_features": by_category}
    model = HistGradientBoostingClassifier(**settings).fit(X, labels(X, n_classes))
    later = columns(1_500, 1, categories=45)  # some categories are new
    thresholds = model._predictors[0][0].nodes["num_threshold"]
    later[: len(thresholds), 1] = thresholds  # a value may be the threshold itself
    later[-2:, 2] = np.inf, -np.inf
    tables = leaf_tables._leaf_tables(model)
    assert tables is not None
    monkeypatch.setattr(model, "_raw_predict", None)  # what the tables replace
    found = tree_probabilities(model, later)
    monkeypatch.undo()
    assert np.array_equal(found, model.predict_proba(later))


def test_trees_of_many_leaves_and_few_rows_are_left_to_scikit_learn(monkeypatch):
    X = columns(2_000, 0)
    large = HistGradientBoostingClassifier(max_iter=2, max_leaf_nodes=60, early_stopping=False).fit(X, labels(X, 2))
    assert leaf_tables._leaf_tables(large) is None
    small = HistGradientBoostingClassifier(max_iter=2, early_stopping=False).fit(X, labels(X, 2))
    monkeypatch.setattr(leaf_tables, "_leaf_tables", None)
    assert np.array_equal(tree_probabilities(small, X), small.predict_proba(X))
