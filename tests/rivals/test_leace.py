"""LEACE: what it erases, and that it changes nothing else."""

import numpy as np

from fairbits.rivals import LeaceClassifier


def rows(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    s = rng.integers(3, size=n)
    x = rng.normal(size=(n, 5)) @ rng.normal(size=(5, 5)) + np.eye(5)[s] * 2
    x = np.column_stack([x, x[:, 0]])  # a column twice: the covariance has no inverse
    return x, (x[:, 3] + rng.normal(size=n) > 0).astype(int), s


def test_no_linear_model_sees_the_groups():
    x, y, s = rows()
    model = LeaceClassifier(random_state=0).fit(x, y, sensitive_features=s)
    means = np.array([model.transform(x)[s == group].mean(0) for group in range(3)])
    assert np.abs(means - means[0]).max() < 1e-9
    assert np.abs(np.array([x[s == group].mean(0) for group in range(3)]) - x.mean(0)).max() > 0.5


def test_it_changes_the_rows_less_than_any_other_linear_erasure():
    x, y, s = rows()
    model = LeaceClassifier(random_state=0).fit(x, y, sensitive_features=s)
    centred, groups = x - x.mean(0), np.eye(3)[s] - np.eye(3)[s].mean(0)
    least = np.square(model.transform(x) - x).sum()
    orthogonal, *_ = np.linalg.svd(centred.T @ groups, full_matrices=False)
    orthogonal = orthogonal[:, :2]
    assert least < np.square(centred @ orthogonal @ orthogonal.T).sum()
    twice = LeaceClassifier(random_state=0).fit(model.transform(x), y, sensitive_features=s)
    assert np.abs(twice.transform(model.transform(x)) - model.transform(x)).max() < 1e-6, "erased is erased"


def test_a_share_of_nothing_leaves_the_rows_alone():
    x, y, s = rows()
    model = LeaceClassifier(share=0.0, random_state=0).fit(x, y, sensitive_features=s)
    assert (model.transform(x) == x.astype(np.float32)).all()
