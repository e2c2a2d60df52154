"""LFR: the published formulas, and what parity costs."""

import numpy as np
import pytest
import torch
from battery import problem, quick
from sklearn.metrics import roc_auc_score

from fairbits import LFRClassifier
from fairbits.estimators import VanillaClassifier, fit_stack
from fairbits.information import weigh_groups
from fairbits.rivals.lfr import LFRNet, membership_gap
from fairbits.training import Batch


def batch_of(model, n=30, n_groups=2, columns=1):
    rng = torch.Generator().manual_seed(0)
    y, s = torch.randint(0, 2, (n,), generator=rng), torch.randint(0, n_groups, (n, columns), generator=rng)
    weight = torch.full((n,), 1 / n)
    return Batch(torch.randn(n, 3, generator=rng), y, s, weight, torch.zeros(n, 0), model.prepare(y, s, weight))


def scalars(model):
    return {name: torch.tensor(float(getattr(model, name))) for name in model.stacked_settings} | {
        "ramp": torch.tensor(1.0)
    }


def test_memberships_are_a_softmax_of_weighted_distances():
    net, x = LFRNet(3, 4, 2), torch.randn(6, 3)
    net.log_weights.data = torch.randn(3)
    distances = torch.stack([(net.log_weights.exp() * (x - v) ** 2).sum(-1) for v in net.prototypes], -1)
    torch.testing.assert_close(net.memberships(x), torch.softmax(-distances, -1))


def test_the_loss_is_the_published_sum():
    X, y, s = problem()
    model = quick(LFRClassifier, A_x=0.3, A_y=2.0, A_z=5.0).fit(X, y, sensitive_features=s)
    batch, net = batch_of(model), model.net_
    m = net.memberships(batch.x)
    expected = 0.3 * ((batch.x - m @ net.prototypes) ** 2).sum(-1).mean()
    p = (m @ torch.softmax(net.labels, -1))[torch.arange(30), batch.y]
    expected = expected - 2 * p.log2().mean()
    occupancy = [m[batch.s[:, 0] == g].mean(0) for g in (0, 1)]
    expected = expected + 5 * (occupancy[0] - occupancy[1]).abs().sum()
    assert model.loss(net, batch, scalars(model))["total"].item() == pytest.approx(expected.item(), rel=1e-5)


def test_parity_of_three_groups_is_the_weighted_mean_of_pairs_and_of_one_group_nothing():
    s = torch.tensor([0] * 2 + [1] * 3 + [2] * 5)
    m = torch.softmax(torch.randn(10, 4), -1)
    expected, mass = 0.0, 0.0
    for i, j in ((0, 1), (0, 2), (1, 2)):
        share = (s == i).float().mean() * (s == j).float().mean()
        expected = expected + share * (m[s == i].mean(0) - m[s == j].mean(0)).abs().sum()
        mass = mass + share
    torch.testing.assert_close(membership_gap(m, weigh_groups(s, n_groups=4)), expected / mass)
    alone = membership_gap(m.requires_grad_(), weigh_groups(torch.zeros(10).long(), n_groups=2))
    (1e4 * alone).backward()
    assert alone == 0
    assert not m.grad.any()


def test_two_columns_add_up_and_an_absent_group_is_no_nan():
    X, y, s = problem(n_groups=3)
    model = quick(LFRClassifier, groups="each").fit(X, y, sensitive_features=np.column_stack([s, np.arange(600) % 2]))
    batch = batch_of(model, columns=2)  # group 2 of the first column is absent
    terms = model.loss(model.net_, batch, scalars(model))
    m = model.net_.memberships(batch.x)
    assert all(value.isfinite() for value in terms.values())
    assert terms["parity"].item() == pytest.approx(
        sum(membership_gap(m, part).item() for part, _ in batch.prepared), abs=1e-6
    )


@pytest.mark.slow
def test_parity_costs_accuracy_and_none_costs_little():
    X, y, s = problem(1500)
    models = [quick(LFRClassifier, A_z=a, max_epochs=40, min_steps=400) for a in (0.0, 1.0, 10.0)]
    fit_stack(models, X, y, sensitive_features=s)
    groups = weigh_groups(torch.tensor(s), n_groups=2)
    gaps = [membership_gap(torch.tensor(m.transform(X)).float(), groups).item() for m in models]
    assert gaps[0] > 3 * gaps[1] > 3 * gaps[2] / 2
    plain = quick(VanillaClassifier, max_epochs=40, min_steps=400).fit(X, y)
    aucs = [roc_auc_score(y, m.predict_proba(X)[:, 1]) for m in (plain, *models)]
    assert aucs[1] > aucs[0] - 0.02
    assert aucs[3] < aucs[1]


def test_transform_gives_named_memberships():
    X, y, s = problem()
    model = quick(LFRClassifier, n_prototypes=4).fit(X, y, sensitive_features=s)
    np.testing.assert_allclose(model.transform(X).sum(1), 1, atol=1e-6)
    assert list(model.get_feature_names_out()) == [f"prototype{k}" for k in range(4)]


def test_a_replica_equals_its_solo_fit():
    X, y, s = problem(n_groups=3)
    settings = {"max_epochs": 3, "min_steps": 0, "batch_size": 64}

    def models():
        return [quick(LFRClassifier, random_state=k, A_z=a, A_x=a / 10, **settings) for k, a in enumerate((0, 1, 9))]

    for together, alone in zip(fit_stack(models(), X, y, sensitive_features=s), models(), strict=True):
        alone.fit(X, y, sensitive_features=s)
        np.testing.assert_allclose(together.predict_proba(X), alone.predict_proba(X), atol=1e-4)


def test_images_are_rows_of_pixels():
    rng = np.random.default_rng(0)
    y, s = rng.integers(0, 2, (2, 120))
    X = rng.integers(0, 80, (120, 3, 8, 8)).astype(np.uint8)
    X[:, 0] += (150 * y[:, None, None]).astype(np.uint8)
    assert (
        quick(LFRClassifier, min_steps=100, validation_fraction=0.2).fit(X, y, sensitive_features=s).score(X, y) > 0.9
    )
