"""Parity and HSIC: the penalties against brute force, and what they do to a network."""

import numpy as np
import pytest
import torch
from battery import one_quickly, problem, quick
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict

from fairbits import HSICClassifier, ParityClassifier
from fairbits.estimators import MissingSensitiveFeaturesWarning, VanillaClassifier, fit_stack
from fairbits.information import weigh_groups
from fairbits.rivals.hsic import gaussian_kernel, hsic, normalised_hsic
from fairbits.rivals.parity import parity_gap
from fairbits.rivals.penalised import group_variance
from fairbits.training import Batch

METHODS = [HSICClassifier, ParityClassifier]
DISTANCES = ["relative", "squared", "absolute"]


def biased(n=1500, seed=0):
    """The problem, with labels that agree with the group in two rows of three."""
    X, y, s = problem(n, seed=seed)
    kept = (y == s) | (np.random.default_rng(seed).random(n) < 0.5)
    return X[kept], y[kept], s[kept]


def batch_of(model, X, y, s, weight=None):
    s = torch.as_tensor(s).reshape(len(y), -1)
    weight = torch.full((len(y),), 1 / len(y)) if weight is None else weight
    x, y = torch.as_tensor(X, dtype=torch.float32), torch.as_tensor(y)
    return Batch(x, y, s, weight, torch.zeros(len(y), 0), model.prepare(y, s, weight))


def random_rows(n=12, d=2, n_groups=3, seed=0):
    """Probabilities, groups and uneven weights, one of them 0."""
    g = torch.Generator().manual_seed(seed)
    p = torch.softmax(torch.randn(n, d, generator=g, dtype=torch.float64), -1)
    s = torch.arange(n) % n_groups
    w = torch.rand(n, generator=g, dtype=torch.float64)
    w[1] = 0
    return p, s, w


def weighed(s, w, n_groups=3):
    return weigh_groups(s, weights=w, n_groups=n_groups, dtype=torch.float64)


# ---------------------------------------------------------------------- the measures


def test_group_variance_against_the_rows():
    p, s, w = random_rows()
    groups = weighed(s, w)
    means = groups.row_weights @ p
    found = group_variance(means @ means.mT, groups.row_weights @ p.square().sum(-1), groups)
    p, s, w = p.numpy(), s.numpy(), w.numpy() / w.sum().item()
    mean = w @ p
    share = [w[s == k].sum() for k in range(3)]
    between = sum(share[k] * ((np.average(p[s == k], 0, w[s == k]) - mean) ** 2).sum() for k in range(3))
    assert found.between.item() == pytest.approx(between)
    assert found.total.item() == pytest.approx((w @ (p - mean) ** 2).sum())


@pytest.mark.parametrize("sizes", [(3, 9), (2, 4, 30)])
def test_squares_are_unbiased(sizes):
    """Of rows that are drawn alike whatever their group, and of rows whose groups differ."""
    s = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    groups = weigh_groups(s, n_groups=len(sizes), dtype=torch.float64)
    draws = torch.randn(40_000, len(s), 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for shift in (0.0, 0.5):
        measured = torch.func.vmap(lambda x: parity_gap(x, groups, "squared"))(draws + shift * s.unsqueeze(-1))
        truth = shift**2 * (groups.prior @ torch.arange(len(sizes)).double().square())
        truth = truth - (shift * groups.prior @ torch.arange(len(sizes)).double()) ** 2
        assert float(measured.mean()) == pytest.approx(float(truth), abs=4 * float(measured.std()) / 200)


def test_absolute_distance_is_its_formula():
    p, s, w = random_rows()
    p, s, w = p.numpy(), s.numpy(), w.numpy() / w.sum().item()
    gaps = [w[s == k].sum() * np.abs(np.average(p[s == k], 0, w[s == k]) - w @ p).sum() for k in range(3)]
    found = parity_gap(*(torch.from_numpy(p), weighed(torch.from_numpy(s), torch.from_numpy(w))), "absolute")
    assert found.item() == pytest.approx(sum(gaps))


def test_normalised_hsic_is_the_hsic_over_its_largest_value():
    x, s, w = random_rows(d=4)
    groups = weighed(s, w)
    kernel = gaussian_kernel(x, w)
    same_group = (s.unsqueeze(0) == s.unsqueeze(1)) / groups.prior[s]
    largest = 1 - (w @ kernel @ w) / w.sum() ** 2
    variance = group_variance(groups.row_weights @ kernel @ groups.row_weights.mT, torch.ones(3).double(), groups)
    torch.testing.assert_close(variance.between, hsic(kernel, same_group, w))
    torch.testing.assert_close(variance.total, largest)
    torch.testing.assert_close(variance.share, normalised_hsic(x, groups))


@pytest.mark.parametrize("measure", [parity_gap, normalised_hsic])
def test_shares_know_no_scale_no_names_and_no_padding(measure):
    x, s, w = random_rows()
    value = measure(x, weighed(s, w))
    torch.testing.assert_close(measure(5 * x - 2, weighed(s, w)), value, rtol=1e-4, atol=0)
    torch.testing.assert_close(measure(x, weighed((s + 1) % 3, w)), value)
    padded = torch.cat([x, x.new_full((4, 2), 9.0)])
    more = weighed(torch.cat([s, s[:4]]), torch.cat([w, w.new_zeros(4)]))
    torch.testing.assert_close(measure(padded, more), value)


@pytest.mark.parametrize("measure", [parity_gap, normalised_hsic])
def test_shares_of_clear_cases(measure):
    g = torch.Generator().manual_seed(0)
    x, s = torch.randn(2000, 2, generator=g), torch.arange(2000) % 2
    groups = weigh_groups(s, n_groups=2)
    assert measure(x, groups).item() == pytest.approx(0, abs=2e-3)
    assert measure(s.unsqueeze(-1).float().expand(-1, 2), groups).item() == pytest.approx(1, abs=1e-3)
    if measure is normalised_hsic:  # equal means, but another spread
        assert measure(x * (1 + 2 * s.unsqueeze(-1)), groups).item() > 0.02


@pytest.mark.parametrize("measure", [parity_gap, normalised_hsic])
@pytest.mark.parametrize("counts", [(6, 0, 0), (6, 1, 0), (5, 1, 1), (1, 1, 0)])
def test_absent_and_single_rows_are_harmless(measure, counts):
    s = torch.repeat_interleave(torch.arange(3), torch.tensor(counts))
    x = torch.randn(len(s), 2, generator=torch.Generator().manual_seed(0)).requires_grad_()
    for rows in (x, torch.zeros_like(x).requires_grad_()):
        value = measure(rows, weigh_groups(s, n_groups=3))
        (slope,) = torch.autograd.grad(value, rows)
        assert slope.isfinite().all()
        assert abs(value.item()) < 1.1
    if counts[1] == 0:
        assert value.item() == pytest.approx(0, abs=1e-6)


# ---------------------------------------------------------------------- the loss


def fitted(cls, X, y, s, **settings):
    return quick(cls, **settings).fit(X, y, sensitive_features=s)


@pytest.mark.parametrize("cls", METHODS)
def test_the_loss_is_its_formula(cls):
    X, y, s = problem(200, n_groups=3)
    model = fitted(cls, X, y, s)
    batch = batch_of(model, X, y, s)
    scalars = {"gamma": torch.tensor(0.3), "ramp": torch.tensor(0.5)}
    terms = model.loss(model.net_, batch, scalars)
    out = model.net_(batch.x)
    own = torch.softmax(out.logits, -1)[torch.arange(200), batch.y]
    torch.testing.assert_close(terms["cross_entropy"], -own.log2().mean())
    groups = weigh_groups(torch.as_tensor(s), n_groups=3)
    hidden = 16 * normalised_hsic(out.hidden, groups)
    penalty = hidden if cls is HSICClassifier else parity_gap(torch.softmax(out.logits, -1), groups)
    torch.testing.assert_close(terms["penalty"], penalty)
    torch.testing.assert_close(terms["total"], 0.85 * terms["cross_entropy"] + 0.15 * penalty)


@pytest.mark.parametrize("cls", METHODS)
def test_columns_add_up_and_labels_mix(cls):
    X, y, s = problem(300)
    other = np.arange(300) % 3
    both = np.column_stack([s, other])
    model = fitted(cls, X, y, both, groups="each")
    scalars = {"gamma": torch.tensor(0.5), "ramp": torch.tensor(1.0)}
    joint = model.loss(model.net_, batch_of(model, X, y, both), scalars)["penalty"]
    names = model.groups_
    parts = []
    for column, own in zip(both.T, names, strict=True):
        model.groups_ = [own]
        parts.append(model.loss(model.net_, batch_of(model, X, y, column), scalars)["penalty"])
    torch.testing.assert_close(joint, sum(parts))
    model.condition_on_label, model.groups_ = True, names[:1]
    within = model.loss(model.net_, batch_of(model, X, y, s), scalars)["penalty"]
    model.condition_on_label = False
    by_label = [model.loss(model.net_, batch_of(model, X[y == c], y[y == c], s[y == c]), scalars) for c in (0, 1)]
    torch.testing.assert_close(within, sum((y == c).mean() * by_label[c]["penalty"] for c in (0, 1)).float())


@pytest.mark.parametrize("cls", METHODS)
def test_every_parameter_has_a_gradient(cls):
    X, y, s = problem(300)
    model = fitted(cls, X, y, s)
    net = model.build(3, 2)
    total = model.loss(net, batch_of(model, X, y, s), {"gamma": torch.tensor(0.5), "ramp": torch.tensor(1.0)})["total"]
    for slope in torch.autograd.grad(total, list(net.parameters())):
        assert slope.abs().max() > 0


# ---------------------------------------------------------------------- fits


@pytest.mark.parametrize("cls", METHODS)
def test_zero_strength_is_the_plain_network(cls):
    X, y, s = problem()
    plain = fitted(VanillaClassifier, X, y, s).predict_proba(X)
    np.testing.assert_allclose(fitted(cls, X, y, s, gamma=0.0).predict_proba(X), plain, atol=1e-6)


@pytest.mark.parametrize("distance", one_quickly(DISTANCES))
def test_parity_falls_with_gamma(distance):
    X, y, s = biased()
    strengths = (0.0, 0.7, 0.99 if distance == "squared" else 0.9)
    models = [quick(ParityClassifier, max_epochs=40, gamma=g, distance=distance) for g in strengths]
    fit_stack(models, X, y, sensitive_features=s)
    scores = [m.predict_proba(X)[:, 1] for m in models]
    gaps = [abs(p[s == 0].mean() - p[s == 1].mean()) for p in scores]
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < gaps[0] / 4
    assert roc_auc_score(y, scores[2]) > 0.6


@pytest.mark.slow
def test_parity_within_labels_falls_with_gamma():
    X, y, s = biased()
    models = [quick(ParityClassifier, max_epochs=40, gamma=g, condition_on_label=True) for g in (0.0, 0.9)]
    fit_stack(models, X, y, sensitive_features=s)
    scores = [m.predict_proba(X)[:, 1] for m in models]
    gaps = [max(abs(p[(s == 0) & (y == c)].mean() - p[(s == 1) & (y == c)].mean()) for c in (0, 1)) for p in scores]
    assert gaps[1] < gaps[0] / 2
    assert roc_auc_score(y, scores[1]) > 0.7


@pytest.mark.slow
def test_hsic_hides_the_group_in_the_layer():
    X, y, s = problem(1000)
    models = [quick(HSICClassifier, max_epochs=60, gamma=g, patience=60) for g in (0.0, 0.1, 0.5)]
    fit_stack(models, X, y, sensitive_features=s)
    groups = weigh_groups(torch.as_tensor(s), n_groups=2, dtype=torch.float64)
    shares = [normalised_hsic(torch.as_tensor(m.transform(X)), groups).item() for m in models]
    assert shares[0] > 0.05
    assert shares[0] > 2 * shares[1] > 4 * shares[2]
    probe = LogisticRegression(max_iter=1000)
    found = [
        roc_auc_score(s, cross_val_predict(probe, m.transform(X), s, cv=3, method="predict_proba")[:, 1])
        for m in models
    ]
    assert found[2] < found[0] - 0.05
    assert roc_auc_score(y, models[2].predict_proba(X)[:, 1]) > 0.85


@pytest.mark.parametrize("cls", METHODS)
@pytest.mark.parametrize("extra", one_quickly([{"groups": "each"}, {"condition_on_label": True}, {}]))
def test_a_stack_of_strengths_equals_solo_fits(cls, extra):
    X, y, s = problem(300, n_groups=3)
    s = np.column_stack([s, np.arange(300) % 2])

    def models():
        return [quick(cls, gamma=g, random_state=k, batch_size=64, **extra) for k, g in enumerate((0.0, 0.4, 0.9))]

    stacked = fit_stack(models(), X, y, sensitive_features=s)
    for together, alone in zip(stacked, models(), strict=True):
        alone.fit(X, y, sensitive_features=s)
        np.testing.assert_allclose(together.predict_proba(X), alone.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("cls", METHODS)
def test_rare_groups_and_small_batches_give_no_nan(cls):
    X, y, s = problem(200)
    s[:] = 0
    s[:10], s[10:20] = 1, 2
    model = fitted(cls, X, y, s, batch_size=4, gamma=0.9, condition_on_label=True, max_epochs=1)
    assert np.isfinite([list(record.values()) for record in model.history_]).all()


@pytest.mark.parametrize("cls", METHODS)
def test_without_sensitive_features_it_is_the_plain_network_and_warns(cls):
    X, y, _ = problem()
    with pytest.warns(MissingSensitiveFeaturesWarning, match="nothing is protected"):
        model = quick(cls).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), quick(VanillaClassifier).fit(X, y).predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("cls", METHODS)
def test_images(cls):
    _, y, s = problem(120)
    images = np.random.default_rng(0).integers(0, 256, (120, 1, 8, 8)).astype(np.uint8)
    model = fitted(cls, images, y, s, channels=(4,), max_epochs=1, min_steps=0)
    assert model.transform(images).shape == (120, 16)


def test_hsic_needs_a_layer():
    X, y, s = problem(100)
    with pytest.raises(ValueError, match="hidden_sizes"):
        HSICClassifier(hidden_sizes=()).fit(X, y, sensitive_features=s)
