"""VFAE and VIB: their distributions against torch's, what their penalties do, and who may know S."""

import math

import numpy as np
import pytest
import torch
from battery import one_quickly, problem, quick
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from torch.distributions import Normal as Reference
from torch.distributions import kl_divergence

from fairbits import VFAEClassifier, VIBClassifier
from fairbits.estimators import VanillaClassifier, fit_stack
from fairbits.information import weigh_groups
from fairbits.rivals.group_columns import GroupCells
from fairbits.rivals.latent import LOG_VARIANCES, Normal, NormalLayers, divergence, normal_quantiles
from fairbits.rivals.vfae import FourierFeatures, mean_discrepancy, standardised
from fairbits.training import Batch

BOTH = [VFAEClassifier, VIBClassifier]
STRENGTH = {VFAEClassifier: "beta", VIBClassifier: "gamma"}


def gaussian(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return Normal(torch.randn(*shape, generator=generator), torch.randn(*shape, generator=generator))


def reference(q):
    return Reference(q.mean, (q.log_variance / 2).exp())


def rows(model, n=40, n_groups=2, columns=1, seed=0):
    """A batch for the network of a fitted model."""
    rng = torch.Generator().manual_seed(seed)
    y = torch.randint(0, len(model.classes_), (n,), generator=rng)
    s = torch.randint(0, n_groups, (n, columns), generator=rng)
    weight = torch.full((n,), 1 / n)
    x, noise = torch.randn(n, 3, generator=rng), torch.rand(n, model.net_.noise_size, generator=rng)
    return Batch(x, y, s, weight, noise, model.prepare(y, s, weight))


def scalars(model, **changed):
    values = {name: getattr(model, name) for name in model.stacked_settings} | {"ramp": 1.0} | changed
    return {name: torch.tensor(float(value)) for name, value in values.items()}


def exact_discrepancy(x, s, width):
    """The unbiased squared MMD of two groups with the kernel exp(-|x - x'|^2 / width), pair by pair."""
    a, b = x[s == 0], x[s == 1]
    k = [torch.exp(-(torch.cdist(u, v) ** 2) / width) for u, v in ((a, a), (b, b), (a, b))]
    within = [(m.sum() - m.diagonal().sum()) / (len(m) * (len(m) - 1)) for m in k[:2]]
    return (within[0] + within[1] - 2 * k[2].mean()).item()


# ---------------------------------------------------------------------- distributions


def test_divergence_and_density_are_those_of_torch():
    q, p = gaussian(7, 3), gaussian(7, 3, seed=1)
    expected = kl_divergence(reference(q), reference(p)).sum(-1) / math.log(2)
    torch.testing.assert_close(divergence(q, p), expected)
    standard = kl_divergence(reference(q), Reference(0.0, 1.0)).sum(-1) / math.log(2)
    torch.testing.assert_close(divergence(q), standard)
    x = torch.randn(7, 3)
    torch.testing.assert_close(q.bits(x), -reference(q).log_prob(x).sum(-1) / math.log(2))


def test_draws_have_the_mean_and_deviation_of_their_row():
    q = gaussian(2, 3)
    draws = Normal(*(part.expand(20_000, 2, 3) for part in q)).draw(torch.rand(20_000, 2, 3))
    torch.testing.assert_close(draws.mean(0), q.mean, atol=0.1, rtol=0)
    torch.testing.assert_close(draws.std(0), (q.log_variance / 2).exp(), atol=0, rtol=0.05)


def test_the_ends_of_the_uniforms_give_finite_normals():
    assert normal_quantiles(torch.tensor([0.0, 1.0])).isfinite().all()


def test_log_variances_stay_within_limits():
    layers, decoder = NormalLayers((2, 4), 3), NormalLayers((2, 4), 3, spread=False)
    for sign in (1, -1):
        q = layers(torch.full((1, 2), sign * 1e6))
        assert LOG_VARIANCES[0] <= q.log_variance.min() <= q.log_variance.max() <= LOG_VARIANCES[1]
    assert decoder(torch.zeros(5, 2)).bits(torch.zeros(5, 3)).shape == (5,)


# ---------------------------------------------------------------------- discrepancy


@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_fourier_discrepancy_is_that_of_the_gaussian_kernel(shift):
    s = (torch.arange(150) % 3 == 0).long()
    x = torch.randn(150, 4, generator=torch.Generator().manual_seed(1)) + shift * s[:, None]
    groups = weigh_groups(s, n_groups=2)
    many = mean_discrepancy(FourierFeatures(4, width=8.0, n_features=100_000)(x), groups).item()
    few = mean_discrepancy(FourierFeatures(4, width=8.0)(x), groups).item()
    expected = exact_discrepancy(x, s, 8.0)
    assert many == pytest.approx(expected, abs=2e-3)
    assert few == pytest.approx(expected, abs=2e-2)
    assert (expected > 0.1) == (shift > 0)


def test_discrepancy_of_equal_groups_is_nothing_on_average_whatever_their_size():
    features, values = FourierFeatures(2, width=4.0), []
    s = (torch.arange(40) < 5).long()
    for seed in range(300):
        x = torch.randn(40, 2, generator=torch.Generator().manual_seed(seed))
        values.append(mean_discrepancy(features(x), weigh_groups(s, n_groups=2)).item())
    assert abs(np.mean(values)) < 3 * np.std(values) / np.sqrt(300)
    assert np.std(values) / np.sqrt(300) < 0.01  # the biased estimate would be about 0.1


def test_discrepancy_of_three_groups_is_the_weighted_mean_of_pairs():
    s = torch.tensor([0] * 10 + [1] * 20 + [2] * 30)
    x = torch.randn(60, 2, generator=torch.Generator().manual_seed(0)) + s[:, None]
    psi = FourierFeatures(2, width=4.0)(x)
    total = mean_discrepancy(psi, weigh_groups(s, n_groups=3)).item()
    expected, mass = 0.0, 0.0
    for i, j in ((0, 1), (0, 2), (1, 2)):
        own = (s == i) | (s == j)
        pair = mean_discrepancy(psi[own], weigh_groups((s[own] == j).long(), n_groups=2)).item()
        share = (s == i).float().mean().item() * (s == j).float().mean().item()
        expected, mass = expected + share * pair, mass + share
    assert total == pytest.approx(expected / mass, abs=1e-5)


@pytest.mark.parametrize("s", [[0, 0, 1, 1], [0, 0, 0, 0], [0, 0, 1, 2], [0, 1, 2, 2]])
def test_absent_and_single_groups_leave_value_and_gradient_finite(s):
    x = torch.randn(4, 2, requires_grad=True)
    psi = FourierFeatures(2, width=4.0)(x)
    value = mean_discrepancy(psi, weigh_groups(torch.tensor(s), n_groups=4))
    (1e4 * value).backward()
    assert value.isfinite()
    assert x.grad.isfinite().all()
    if len([g for g in set(s) if s.count(g) > 1]) < 2:
        assert value == 0


def test_the_scale_of_a_column_does_not_matter_once_standardised():
    x, weight = torch.randn(50, 3), torch.rand(50)
    weight[:5] = 0
    z = standardised(x, weight)
    torch.testing.assert_close(standardised(x * torch.tensor([1e-2, 1.0, 1e3]) + 5, weight), z, atol=1e-3, rtol=0)
    torch.testing.assert_close(weight @ z / weight.sum(), torch.zeros(3), atol=1e-5, rtol=0)
    assert standardised(x, torch.zeros(50)).isfinite().all()


# ---------------------------------------------------------------------- groups that are not known


def test_cells_count_every_combination_by_weight():
    cells = GroupCells((2, 3))
    s, weight = torch.tensor([[0, 0], [1, 2], [1, 2], [0, 1]]), torch.tensor([1.0, 2.0, 3.0, 2.0])
    cells.count(s, weight)
    shares = {tuple(code.tolist()): share.item() for code, share in zip(cells.codes, cells.shares, strict=True)}
    assert shares[1, 0, 1, 0, 0] == pytest.approx(1 / 8)
    assert shares[0, 1, 0, 0, 1] == pytest.approx(5 / 8)
    assert sum(shares.values()) == pytest.approx(1)
    torch.testing.assert_close(cells.mean(lambda code: code, 1)[0], (weight / 8) @ cells(s))
    drawn = cells.draw(torch.rand(20_000, generator=torch.Generator().manual_seed(0)))
    torch.testing.assert_close(drawn.mean(0), (weight / 8) @ cells(s), atol=0.02, rtol=0)


def test_vfae_predicts_by_the_mean_over_groups():
    X, y, s = problem(n_groups=3)
    s[:300] = 0
    model = quick(VFAEClassifier).fit(X, y, sensitive_features=s)
    net, x = model.net_, torch.tensor(X, dtype=torch.float32)
    shares = np.bincount(s) / len(s)
    np.testing.assert_allclose(net.cells.shares, shares, atol=0.01)  # of the training rows
    expected = 0
    for group in range(3):
        z1 = net.first(net.features(x), net.cells(torch.full((len(x), 1), group))).mean
        expected = expected + net.cells.shares[group] * torch.softmax(net.head(z1), -1)
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-6)


def test_a_vfae_encoder_that_is_not_told_s_does_not_use_it():
    X, y, s = problem()
    model = quick(VFAEClassifier, encode_sensitive=False).fit(X, y, sensitive_features=s)
    batch = rows(model)
    other = batch._replace(s=1 - batch.s)
    told = quick(VFAEClassifier).fit(X, y, sensitive_features=s).net_
    for net, same in ((model.net_, True), (told, False)):
        z1, flipped = (net(b.x, b.y, b.s, b.noise).z1 for b in (batch, other))
        assert torch.equal(z1, flipped) == same


# ---------------------------------------------------------------------- losses


def test_vfae_loss_is_the_published_sum():
    """Term by term with torch's distributions, the noise of each row its own."""
    X, y, s = problem(n_groups=3)
    model = quick(VFAEClassifier, alpha=3.0, beta=7.0).fit(X, y, sensitive_features=s)
    batch, net, m = rows(model, n_groups=3), model.net_, model.latent_size
    terms = model.loss(net, batch, scalars(model, ramp=0.5))
    label, groups = torch.eye(2)[batch.y], torch.eye(3)[batch.s[:, 0]]
    normals = Reference(0.0, 1.0).icdf(batch.noise.clamp(1e-6, 1 - 1e-6))
    q1 = reference(net.first(batch.x, groups))
    z1 = q1.mean + q1.stddev * normals[:, :m]
    q2 = reference(net.second(z1, label))
    p1 = reference(net.prior(q2.mean + q2.stddev * normals[:, m:], label))
    z = (z1 - z1.mean(0)) / z1.std(0, correction=0)
    expected = {
        "cross_entropy": torch.nn.functional.cross_entropy(net.head(z1), batch.y) / math.log(2),
        "reconstruction": -reference(net.decoder(z1, groups)).log_prob(batch.x).sum(-1).mean() / math.log(2),
        "divergence": (kl_divergence(q1, p1) + kl_divergence(q2, Reference(0.0, 1.0))).sum(-1).mean() / math.log(2),
        "discrepancy": mean_discrepancy(net.fourier(z), weigh_groups(batch.s[:, 0], n_groups=3)),
    }
    total = expected["reconstruction"] + expected["divergence"] + 3 * expected["cross_entropy"]
    expected["total"] = total + 0.5 * 7 * expected["discrepancy"]
    for name, value in expected.items():
        assert terms[name].item() == pytest.approx(value.item(), rel=2e-5, abs=1e-6)


def test_vib_loss_is_the_published_sum():
    X, y, s = problem()
    model = quick(VIBClassifier, gamma=0.3, beta=0.2).fit(X, y, sensitive_features=s)
    batch, net = rows(model), model.net_
    terms = model.loss(net, batch, scalars(model, ramp=0.5))
    q = reference(net.encoder(batch.x))
    z = q.mean + q.stddev * Reference(0.0, 1.0).icdf(batch.noise.clamp(1e-6, 1 - 1e-6))
    rate = kl_divergence(q, Reference(0.0, 1.0)).sum(-1).mean()
    p = reference(net.decoder(z, torch.eye(2)[batch.s[:, 0]]))
    label_loss = torch.nn.functional.cross_entropy(net.head(z), batch.y)
    expected = label_loss + 0.2 * rate + 0.5 * 0.3 * (rate - p.log_prob(batch.x).sum(-1).mean())
    assert terms["total"].item() == pytest.approx(expected.item() / math.log(2), rel=1e-4)


@pytest.mark.parametrize("cls", BOTH)
def test_two_columns_add_up_and_an_absent_group_is_no_nan(cls):
    X, y, s = problem(n_groups=3)
    both = np.column_stack([s, np.arange(600) % 2])
    model = quick(cls, groups="each").fit(X, y, sensitive_features=both)
    batch = rows(model, columns=2)  # group 2 of the first column is absent
    terms = model.loss(model.net_, batch, scalars(model))
    assert all(value.isfinite() for value in terms.values())
    if cls is VFAEClassifier:
        z1 = model.net_(batch.x, batch.y, batch.s, batch.noise).z1
        alone = [model.discrepancy(model.net_, z1, batch._replace(prepared=(part,))) for part in batch.prepared]
        assert terms["discrepancy"].item() == pytest.approx(sum(alone).item(), abs=1e-6)


@pytest.mark.parametrize("cls", BOTH)
def test_noise_is_fresh_for_every_row(cls):
    X, y, s = problem()
    model = quick(cls).fit(X, y, sensitive_features=s)
    same = np.repeat(X[:1], 50, 0)
    assert len(np.unique(model.transform(same)[:, 0])) == 50
    model.set_params(representation="mean")
    assert len(np.unique(model.transform(same)[:, 0])) == 1


@pytest.mark.parametrize("cls", BOTH)
def test_draws_are_around_the_mean_and_repeat_only_with_a_seed(cls):
    X, y, s = problem()
    model = quick(cls).fit(X, y, sensitive_features=s)
    np.testing.assert_array_equal(model.transform(X), model.transform(X))
    model.random_state = None
    draws = np.mean([model.transform(X[:20]) for _ in range(400)], axis=0)
    mean = model.set_params(representation="mean").transform(X[:20])
    assert np.abs(draws - mean).max() < 6 * 3 / np.sqrt(400)
    assert list(model.get_feature_names_out()[:2]) == ["latent0", "latent1"]


# ---------------------------------------------------------------------- what the penalties do


def strengths(cls, values, **settings):
    settings = {"max_epochs": 30, "min_steps": 200, **settings}
    return [quick(cls, **{STRENGTH[cls]: value}, **settings) for value in values]


@pytest.mark.slow
@pytest.mark.parametrize("cls", BOTH)
def test_without_strength_it_is_as_good_as_the_plain_network(cls):
    X, y, s = problem(2000)
    plain = quick(VanillaClassifier, max_epochs=30, min_steps=200).fit(X[:1500], y[:1500])
    free = strengths(cls, [0.0])[0].fit(X[:1500], y[:1500], sensitive_features=s[:1500])
    aucs = [roc_auc_score(y[1500:], m.predict_proba(X[1500:])[:, 1]) for m in (plain, free)]
    assert aucs[1] > aucs[0] - 0.02


@pytest.mark.slow
def test_a_larger_beta_brings_the_groups_together():
    X, y, s = problem(1500)
    models = strengths(VFAEClassifier, [0.0, 3000.0], encode_sensitive=False)
    fit_stack(models, X, y, sensitive_features=s)
    gaps = [abs(np.subtract(*(m.predict_proba(X)[s == g, 1].mean() for g in (0, 1)))) for m in models]
    groups = weigh_groups(torch.tensor(s), n_groups=2)
    free, strict = (
        mean_discrepancy(
            FourierFeatures(8, width=16.0)(standardised(torch.tensor(z).float(), torch.ones(1500))), groups
        )
        for z in (m.transform(X) for m in models)
    )
    assert strict < free / 5
    assert gaps[1] < gaps[0] / 2


@pytest.mark.slow
def test_a_larger_gamma_lowers_the_bound_and_the_leak():
    """A probe of one draw of z; the label is kept."""
    X, y, s = problem(1500)
    models = strengths(VIBClassifier, [0.0, 1.0], max_epochs=60, min_steps=500)
    free, strict = fit_stack(models, X, y, sensitive_features=s)
    assert strict.history_[-1]["validation_bound"] < free.history_[-1]["validation_bound"]
    codes = [m.transform(X) for m in models]
    leaks = [roc_auc_score(s, LogisticRegression().fit(z, s).decision_function(z)) for z in codes]
    assert leaks[1] - 0.5 < (leaks[0] - 0.5) / 2
    assert roc_auc_score(y, strict.predict_proba(X)[:, 1]) > 0.9


@pytest.mark.parametrize("cls", one_quickly(BOTH))
def test_a_replica_equals_its_solo_fit(cls):
    X, y, s = problem(n_groups=3)
    both = np.column_stack([s, np.arange(600) % 2])
    settings = {"groups": "each", "max_epochs": 3, "min_steps": 0, "batch_size": 64}

    def models():
        return [quick(cls, random_state=k, **{STRENGTH[cls]: v}, **settings) for k, v in enumerate((0.0, 0.1, 5.0))]

    for together, alone in zip(fit_stack(models(), X, y, sensitive_features=both), models(), strict=True):
        alone.fit(X, y, sensitive_features=both)
        np.testing.assert_allclose(together.predict_proba(X), alone.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("cls", BOTH)
def test_images_are_rows_of_pixels_to_the_decoder(cls):
    rng = np.random.default_rng(0)
    y, s = rng.integers(0, 2, (2, 120))
    X = rng.integers(0, 80, (120, 3, 8, 8)).astype(np.uint8)
    X[:, 0] += (150 * y[:, None, None]).astype(np.uint8)
    model = quick(cls, channels=(4,), min_steps=60, validation_fraction=0.2).fit(X, y, sensitive_features=s)
    assert model.score(X, y) > 0.9
    assert model.transform(X).shape == (120, 8)
