"""Rows without a label count in the leakage only: domain adaptation."""

import numpy as np
import pytest
from battery import LEARNS, by_kind, problem, quick
from sklearn.metrics import roc_auc_score

from fairbits import BinaryMIClassifier, DebiasedMIClassifier
from fairbits.estimators import fit_stack
from fairbits.estimators.debiased import DebiasedCode


def domains(n=3000, seed=0):
    """Source (0) and target (1): x0 tells the label in both, x1 the opposite, and its mean gives the domain away."""
    rng = np.random.default_rng(seed)
    domain, y = rng.integers(0, 2, (2, n))
    shortcut = np.where(domain == 0, 3 * y, 3 * (1 - y) + 6)
    X = np.column_stack([1.5 * y, shortcut]) + rng.normal(size=(n, 2))
    return X, y, domain


def test_a_code_that_hides_the_domain_serves_the_one_without_labels():
    """Without the penalty the shortcut of the source misleads in the target."""
    X, y, domain = domains()
    models = [quick(BinaryMIClassifier, gamma=gamma, max_epochs=8, learning_rate=0.006) for gamma in (0.0, 0.9)]
    fit_stack(models, X, np.where(domain == 0, y, -1), sensitive_features=domain, unlabelled=-1)
    X, y, domain = domains(seed=1)
    target = domain == 1
    plain, adapted = (roc_auc_score(y[target], m.predict_proba(X[target])[:, 1]) for m in models)
    assert plain < 0.6
    assert adapted > 0.75


@pytest.mark.parametrize("cls", [case for case in by_kind() if not issubclass(case.values[0], DebiasedCode)])
def test_labels_that_are_missing_do_not_train_the_head(cls):
    """With the groups' columns empty of labels, classes are those of the labelled rows and training works."""
    X, y, s = problem()
    marked = np.where(np.arange(len(y)) % 2, y, 7)
    model = quick(cls, **LEARNS).fit(X, marked, sensitive_features=s, unlabelled=7)
    assert model.classes_.tolist() == [0, 1]
    assert roc_auc_score(y, model.predict_proba(X)[:, 1]) > 0.8


def test_unlabelled_rows_leave_an_unpenalised_fit_to_the_labelled_ones():
    """The cross-entropy is the mean over labelled rows, however many others there are."""
    import torch

    from fairbits.training import Batch

    log_p = torch.log_softmax(torch.randn(6, 3), -1)
    y, weight = torch.tensor([0, 2, -1, 1, -1, -1]), torch.full((6,), 1 / 6)
    batch = Batch(None, y, None, weight, None)
    model = BinaryMIClassifier()
    model.has_unlabelled_ = True
    own = model.cross_entropy(log_p, batch)
    known = [0, 1, 3]
    expected = -log_p[known, y[known]].mean() / np.log(2)
    assert float(own) == pytest.approx(float(expected), rel=1e-6)


def test_what_needs_labels_says_so():
    X, y, s = problem()
    with pytest.raises(ValueError, match="every row's label"):
        quick(DebiasedMIClassifier, rebalance="prior").fit(X, y, sensitive_features=s, unlabelled=7)
    with pytest.raises(ValueError, match="two classes"):
        quick(BinaryMIClassifier).fit(X, y, sensitive_features=s, unlabelled=0)
