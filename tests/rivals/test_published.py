"""The paper's own variants do what is said of them, and ours do not."""

import numpy as np
import pytest
import torch
from battery import quick

from fairbits import AdversarialClassifier, BinaryMIClassifier, VFAEClassifier
from fairbits.datasets import make_shifted_bits
from fairbits.estimators.fitting import fit_stack
from fairbits.information import counted_information, weigh_groups
from fairbits.rivals import published

DATA = make_shifted_bits(600, random_state=0)
X = np.asarray(DATA.X, dtype=np.float32)


def fitted(cls, **settings):
    return quick(cls, **{"max_epochs": 5, "random_state": 0, **settings}).fit(X, DATA.y, sensitive_features=DATA.s)


@pytest.mark.parametrize("bits", [1, 3, 40])
@pytest.mark.parametrize("n_groups", [2, 3])
@pytest.mark.filterwarnings("ignore::fairbits.information.sampling.SparseCountsWarning")
def test_counts_without_sorting_are_those_of_the_histogram(bits, n_groups):
    generator = torch.Generator().manual_seed(0)
    codes = torch.randint(2, (80, bits), generator=generator).float()
    groups = torch.randint(n_groups, (80,), generator=generator)
    own = published.counted_words(codes, weigh_groups(groups, n_groups=n_groups))
    assert float(own) == pytest.approx(float(counted_information(codes, groups)), abs=1e-6)


def test_the_count_trains_nothing_and_the_exact_penalty_does():
    """With the cross-entropy out of the way, gamma 1, the counted network stays where it began."""

    def moved(cls):
        models = [quick(cls, code_size=3, gamma=1.0, max_epochs=k, random_state=0) for k in (1, 6)]
        for model in models:
            model.set_params(schedule=model.training.__class__(min_steps=0, selection="last", warmup_epochs=0))
            fit_stack([model], X, DATA.y, sensitive_features=DATA.s)
        first, last = (model.code_probabilities(X) for model in models)
        return np.abs(first - last).max()

    assert moved(published.CountedMIClassifier) < 1e-6
    assert moved(BinaryMIClassifier) > 1e-3


def test_the_deterministic_neuron_is_the_papers_formula():
    model = fitted(published.ThresholdCodeClassifier, max_epochs=40, learning_rate=0.01, code_size=4, gamma=0.0)
    hidden = model._by_rows(X, lambda net, x: net.features(x))
    weights = model.net_.logits.weight.numpy()
    means = (hidden[:, None, :] * weights).mean(-1)  # (n, bits)
    np.testing.assert_array_equal(model.transform(X), means >= 0.5)
    assert 0 < model.transform(X).mean() < 1
    assert np.mean(model.predict(X) == DATA.y) > 0.6


def test_in_the_joint_game_gamma_weighs_the_adversarys_own_learning():
    """At gamma 0 the adversary learns nothing; the one that plays in turns does."""

    def movement(cls):
        models = [quick(cls, gamma=0.0, max_epochs=k, random_state=0) for k in (1, 6)]
        for model in models:
            model.set_params(schedule=model.training.__class__(min_steps=0, selection="last"))
            model.fit(X, DATA.y, sensitive_features=DATA.s)
        first, last = (torch.cat([p.flatten() for p in m.net_.adversary.parameters()]) for m in models)
        return float((first - last).abs().max())

    assert movement(published.JointAdversarialClassifier) < 1e-6
    assert movement(AdversarialClassifier) > 1e-3


def test_the_joint_game_hides_what_it_is_asked_to_hide():
    open_, hidden = (
        fitted(published.JointAdversarialClassifier, gamma=g, max_epochs=30, learning_rate=0.01) for g in (0.0, 0.6)
    )
    gaps = [
        abs(np.corrcoef(model.predict_proba(X)[:, 1], np.unique(DATA.s, return_inverse=True)[1])[0, 1])
        for model in (open_, hidden)
    ]
    assert gaps[1] < gaps[0]


def test_the_published_vfae_predicts_by_the_group_it_is_given():
    model = fitted(published.GroupVFAEClassifier, max_epochs=20)
    s = np.asarray(DATA.s)
    told = model.predict_proba(X, sensitive_features=s)
    names = np.unique(s)
    other = model.predict_proba(X, sensitive_features=np.where(s == names[0], names[1], names[0]))
    assert np.abs(told - other).max() > 1e-4
    shares = [np.mean(s == name) for name in names]
    each = [model.predict_proba(X, sensitive_features=np.repeat(name, len(X))) for name in names]
    unknown = model.predict_proba(X)
    np.testing.assert_allclose(unknown, shares[0] * each[0] + shares[1] * each[1], atol=5e-3)
    same = fitted(VFAEClassifier, max_epochs=20)
    np.testing.assert_array_equal(unknown, same.predict_proba(X))  # without the group it is ours
