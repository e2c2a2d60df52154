"""Methods against shortcuts: their formulas by brute force, and what their strength does."""

import copy
import warnings

import numpy as np
import pytest
import torch
from battery import one_quickly, problem, quick
from sklearn.metrics import roc_auc_score

from fairbits import (
    BiasBalancedClassifier,
    BiasContrastiveClassifier,
    DebiasedBernoulliClassifier,
    EnDClassifier,
    FairKLClassifier,
    LearnedMixinClassifier,
    ReBiasClassifier,
    RUBiClassifier,
)
from fairbits.datasets import biased_digits
from fairbits.encoding import GroupEncoder
from fairbits.estimators import MissingSensitiveFeaturesWarning, VanillaClassifier, fit_stack
from fairbits.nn import HiddenOutput
from fairbits.rivals.contrastive import SMALLEST_VARIANCE, divergence, supervised_contrast
from fairbits.rivals.end import disentangling, entangling, members
from fairbits.rivals.learned_mixin import base_rates, what_groups_say
from fairbits.rivals.rebias import PatchFeatures
from fairbits.training import Batch

LABELLED = [
    BiasBalancedClassifier,
    BiasContrastiveClassifier,
    EnDClassifier,
    FairKLClassifier,
    LearnedMixinClassifier,
    RUBiClassifier,
]
METHODS = [*LABELLED, ReBiasClassifier]
PLAIN = [cls for cls in METHODS if cls is not FairKLClassifier]  # the plain network if its strengths are 0
STRENGTHS = {cls: ("gamma",) for cls in METHODS} | {
    BiasContrastiveClassifier: ("gamma", "alpha"),
    EnDClassifier: ("alpha", "beta"),
    FairKLClassifier: ("alpha", "beta"),
}


def strong(cls, strength, **settings):
    settings |= {"normalise": False} if cls is EnDClassifier else {}
    return quick(cls, **{name: strength for name in STRENGTHS[cls]}, **settings)


def biased_problem(n, agreement, seed=0):
    """x1 tells the label a little, x2 the group plainly; group and label agree in this share of the rows."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    s = np.where(rng.random(n) < agreement, y, 1 - y)
    return np.column_stack([1.5 * y, 4.0 * s]) + rng.normal(size=(n, 2)), y, s


def images(n=120, seed=0):
    rng = np.random.default_rng(seed)
    y, s = rng.integers(0, 2, n), rng.integers(0, 2, n)
    X = rng.integers(0, 60, (n, 3, 8, 8))
    X[:, 0] += 100 * s[:, None, None]
    X[:, :, 2:6, 2:4] += 100 * y[:, None, None, None]
    return X.astype(np.uint8), y, s


def prepared(cls, *, sizes=(3,), n_classes=3, n=40, seed=0, **settings):
    """An estimator that knows its groups, its network and a batch with uneven weights, two of them 0."""
    rng = np.random.default_rng(seed)
    model = quick(cls, **settings)
    model.groups_, model.classes_ = [[str(g) for g in range(k)] for k in sizes], np.arange(n_classes)
    y = torch.from_numpy(rng.integers(0, n_classes, n))
    s = torch.from_numpy(np.column_stack([rng.integers(0, k, n) for k in sizes]))
    weight = torch.from_numpy(rng.uniform(0.5, 2, n)).float()
    weight[-2:] = 0
    weight /= weight.sum()
    torch.manual_seed(seed)
    net = model.build(5, n_classes)
    model.initialise(net, y, s, weight * n)
    return model, net, Batch(torch.randn(n, 5), y, s, weight, torch.zeros(n, 0))


def scalars(**values):
    return {name: torch.tensor(float(value)) for name, value in {"ramp": 1, **values}.items()}


def log_softmax(z):
    return z - np.log(np.exp(z).sum(-1, keepdims=True))


def cross_entropy(logits, batch):
    own = log_softmax(logits)[np.arange(len(batch.y)), batch.y.numpy()]
    return -float(batch.weight.numpy() @ own) / np.log(2)


def gradients(total, net, part):
    named = [p for name, p in net.named_parameters() if name.startswith(part)]
    return torch.cat(
        [g.flatten() for g in torch.autograd.grad(total, named, retain_graph=True, materialize_grads=True)]
    )


# ---------------------------------------------------------------------- formulas


@pytest.mark.parametrize("gamma", [0.0, 0.3, 1.0])
def test_rubi_is_the_masked_cross_entropy(gamma):
    model, net, batch = prepared(RUBiClassifier, sizes=(3, 2))
    f = net(batch.x).logits.detach().numpy()
    w, b = (p.detach().numpy() for p in net.biased.parameters())
    g = b + w[:, batch.s[:, 0]].T + w[:, 3 + batch.s[:, 1]].T
    masked = cross_entropy(f / (1 + np.exp(-g)), batch)
    expected = (1 - gamma) * cross_entropy(f, batch) + gamma * masked
    terms = model.loss(net, batch, scalars(gamma=gamma))
    np.testing.assert_allclose(terms["total"].item(), expected + cross_entropy(g, batch), rtol=1e-5)
    np.testing.assert_allclose(
        model.evaluate(net, batch, scalars(gamma=gamma))["total"].item(), expected, rtol=1e-5, atol=1e-6
    )


def test_rubis_mask_teaches_the_biased_branch_nothing():
    model, net, batch = prepared(RUBiClassifier)
    terms = model.loss(net, batch, scalars(gamma=1))
    assert not gradients(terms["masked_cross_entropy"], net, "biased").any()
    assert gradients(terms["total"], net, "biased").all()


def shares(y, s, weight, group, n_classes):
    """p(y|s) with one uniform row added."""
    mass = np.array([weight[(s == group) & (y == k)].sum() for k in range(n_classes)]) + 1 / n_classes
    return mass / mass.sum()


def test_the_biased_models_start_from_the_shares_of_labels():
    _, net, batch = prepared(RUBiClassifier)
    y, s, weight = batch.y.numpy(), batch.s[:, 0].numpy(), batch.weight.numpy() * len(batch.y)
    said = what_groups_say(batch.y, batch.s, torch.from_numpy(weight), [3], 3)
    for group in range(3):
        p = torch.softmax(net.biased(torch.eye(3)[group]), -1).detach().numpy()
        np.testing.assert_allclose(p, shares(y, s, weight, group, 3), rtol=1e-4)
        base = shares(y, np.zeros_like(s), weight, 0, 3)
        np.testing.assert_allclose(said[group], np.log(shares(y, s, weight, group, 3) / base), rtol=1e-4, atol=1e-5)


def test_rows_without_a_label_say_nothing():
    _, _, batch = prepared(RUBiClassifier)
    y = batch.y.clone()
    y[:7] = -1
    given, expected = [
        (what_groups_say(y[r], batch.s[r], batch.weight[r] * 40, [3], 3), base_rates(y[r], batch.weight[r] * 40, 3))
        for r in (slice(None), slice(7, None))
    ]
    for a, b in zip(given, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


@pytest.mark.parametrize("gamma", [0.0, 0.3, 1.0])
def test_learned_mixin_is_the_ensemble_and_its_entropy(gamma):
    model, net, batch = prepared(LearnedMixinClassifier, sizes=(3, 2))
    out = net(batch.x)
    f = log_softmax(out.logits.detach().numpy())
    trust = np.log1p(np.exp(net.trust(out.hidden).detach().numpy()))
    trusted = trust * net.said.numpy()[batch.s[:, 0] * 2 + batch.s[:, 1]]
    p = np.exp(log_softmax(trusted))
    entropy = -float(batch.weight.numpy() @ (p * np.log2(p)).sum(1))
    expected = (1 - gamma) * cross_entropy(f, batch) + gamma * (cross_entropy(f + trusted, batch) + 0.36 * entropy)
    terms = model.loss(net, batch, scalars(gamma=gamma, entropy_weight=0.36))
    np.testing.assert_allclose(terms["total"].item(), expected, rtol=1e-5)


def pairs(z, y, s, weight, wanted):
    """The weighted mean of a function of all ordered pairs of different rows."""
    found = [
        (weight[i] * weight[j], value)
        for i in range(len(z))
        for j in range(len(z))
        if i != j and (value := wanted(float(z[i] @ z[j]), y[i] == y[j], s[i] == s[j])) is not None
    ]
    mass, values = np.array(found).T
    return (mass @ values) / mass.sum()


def test_end_is_a_mean_over_pairs():
    _, _, batch = prepared(EnDClassifier)
    z = torch.nn.functional.normalize(torch.rand(40, 4), dim=-1)
    y, s, weight = batch.y.tolist(), batch.s[:, 0].tolist(), batch.weight.tolist()
    groups = members(batch.s[:, 0], 3) * batch.weight
    apart = disentangling(z, groups)
    together = entangling(z, members(batch.y, 3).unsqueeze(1) * groups)
    by_group = pairs(z, y, s, weight, lambda dot, same_y, same_s: dot if same_s else None)
    by_class = pairs(z, y, s, weight, lambda dot, same_y, same_s: (1 - dot) / 2 if same_y and not same_s else None)
    np.testing.assert_allclose(apart.item(), by_group, rtol=1e-4)
    np.testing.assert_allclose(together.item(), by_class, rtol=1e-4)


def test_end_ends_at_orthogonal_groups_and_parallel_classes():
    eye = torch.eye(4)
    weight, s, y = torch.full((4,), 0.25), torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1, 0, 1])
    groups = members(s, 2) * weight
    cells = members(y, 2).unsqueeze(1) * groups
    assert disentangling(eye, groups) == 0
    assert entangling(eye[y], cells) == 0
    assert entangling(eye[s], cells) == 0.5
    assert disentangling(eye[s], groups) == 1


@pytest.mark.parametrize("inputs", [5, (3, 8, 8)])
@pytest.mark.parametrize("cls", [EnDClassifier, FairKLClassifier])
def test_the_head_reads_unit_vectors_of_both_signs(cls, inputs):
    model = quick(cls, channels=(4, 4))
    model.groups_, model.classes_ = [["a", "b"]], np.arange(2)
    net = model.build(inputs, 2)
    seen = []
    net.head.register_forward_hook(lambda head, given, out: seen.append(given[0].detach()))
    out = net(torch.randn(7, 5) if inputs == 5 else torch.randn(7, *inputs))
    torch.testing.assert_close(seen[0].norm(dim=-1), torch.ones(7))
    torch.testing.assert_close(seen[0], out.hidden)
    assert out.hidden.min() < 0 < out.hidden.max()  # of a ReLU they would not be
    assert any(isinstance(layer, torch.nn.ReLU) for layer in net.modules()) == (inputs != 5)  # none but the last goes


@pytest.mark.parametrize("gamma", [0.0, 0.4, 1.0])
def test_bias_balanced_learning_adds_the_prior(gamma):
    model, net, batch = prepared(BiasBalancedClassifier)
    y, s, weight = batch.y.numpy(), batch.s[:, 0].numpy(), batch.weight.numpy() * len(batch.y)
    prior = np.stack([shares(y, s, weight, group, 3) for group in range(3)])[s]
    logits = net(batch.x).logits.detach().numpy() + gamma * np.log(prior)
    terms = model.loss(net, batch, scalars(gamma=gamma))
    np.testing.assert_allclose(terms["total"].item(), cross_entropy(logits, batch), rtol=1e-5)


def test_bias_balanced_learning_corrects_logits_as_debiased_codes_do():
    model, net, batch = prepared(BiasBalancedClassifier, sizes=(3, 2))
    code, code_net, _ = prepared(DebiasedBernoulliClassifier, sizes=(3, 2), rebalance="prior")
    logits = torch.randn(len(batch.y), 3)
    corrected = torch.log_softmax(code._corrected(code_net, logits, batch.s), -1)
    found = model.corrected_loss(net, HiddenOutput(logits, logits), batch, scalars(gamma=1))["total"]
    torch.testing.assert_close(found, code.cross_entropy(corrected, batch))


def contrast(z, partners, weight, temperature, crowded):
    """Row by row."""
    n, total = len(z), 0.0
    rows = [j for j in range(n) if weight[j] > 0]
    for i in rows:
        own = [j for j in rows if j != i and partners[i, j]]
        for j in own:
            crowd = [k for k in rows if k != i and (crowded or k == j or k not in own)]
            share = np.exp(z[i] @ z[j] / temperature) / sum(np.exp(z[i] @ z[k] / temperature) for k in crowd)
            total -= weight[i] * np.log2(share) / len(own)
    return total


@pytest.mark.parametrize(("cls", "crowded"), [(BiasContrastiveClassifier, True), (FairKLClassifier, False)])
def test_the_contrast_by_brute_force(cls, crowded):
    model, net, batch = prepared(cls, temperature=0.5)
    z = torch.nn.functional.normalize(net(batch.x).hidden, dim=-1).detach().numpy()
    y, s = batch.y.numpy(), batch.s[:, 0].numpy()
    partners = (y[:, None] == y) & ((s[:, None] != s) if crowded else True)
    terms = model.loss(net, batch, scalars(gamma=1, alpha=2, beta=0))
    expected = contrast(z, partners, batch.weight.numpy(), 0.5, crowded)
    np.testing.assert_allclose(terms["contrast"].item(), expected, rtol=1e-4)
    plain = (terms["total"] - 2 * terms["contrast"]).item()
    np.testing.assert_allclose(plain, terms["cross_entropy"].item(), rtol=1e-4)


def test_the_contrast_of_perfect_partners_is_that_of_the_crowd():
    z = torch.eye(4)[torch.tensor([0, 0, 1, 1])]
    partners = torch.block_diag(1 - torch.eye(2), 1 - torch.eye(2))
    found = supervised_contrast(z, partners, torch.full((4,), 0.25), 0.1)
    torch.testing.assert_close(found, torch.tensor(np.log2(1 + 2 * np.exp(-10)), dtype=torch.float32))


def test_the_divergence_is_that_of_normals():
    torch.manual_seed(0)
    similarity, aligned = torch.randn(30, 30), (torch.rand(30, 30) < 0.5).float()
    pairs = torch.rand(30, 30)
    a, b = (
        torch.distributions.Normal(mean, (((w * (similarity - mean) ** 2).sum() / w.sum()) + SMALLEST_VARIANCE) ** 0.5)
        for w in (pairs * aligned, pairs * (1 - aligned))
        for mean in [(w * similarity).sum() / w.sum()]
    )
    expected = torch.distributions.kl_divergence(a, b) / np.log(2)
    torch.testing.assert_close(divergence(similarity, pairs, aligned), expected)
    assert divergence(similarity, pairs, torch.ones(30, 30)) == 0


def test_end_without_pairs_is_0():
    z = torch.nn.functional.normalize(torch.rand(3, 4), dim=-1).requires_grad_()
    groups = torch.diag(torch.tensor([0.3, 0.3, 0.4]))
    total = disentangling(z, groups) + entangling(z, torch.stack([groups[:1], groups[1:2], groups[2:]]))
    assert total == 0
    assert torch.autograd.grad(total, z)[0].isfinite().all()


def test_rebias_is_a_game_over_the_hsic():
    model, net, batch = prepared(ReBiasClassifier)
    own, game = model.loss(net, batch, scalars(gamma=7)), model.opponent_loss(net, batch, scalars(gamma=7))
    weight = batch.weight.numpy()
    kernels = [gaussian(out.hidden.detach().numpy(), weight) for out in (net(batch.x), net.biased(batch.x))]
    k, l = (centred(kernel, weight) for kernel in kernels)
    dependence = float(weight @ (k * l) @ weight)
    for terms, logits, sign in ((own, net(batch.x).logits, 7), (game, net.biased(batch.x).logits, -7)):
        expected = cross_entropy(logits.detach().numpy(), batch) + sign * dependence
        np.testing.assert_allclose(terms["total"].item(), expected, rtol=1e-4)
    assert gradients(own["hsic"], net, "features").any()
    assert not gradients(own["total"], net, "biased").any()
    assert gradients(game["hsic"], net, "biased.features").any()
    assert not gradients(game["total"], net, "features").any()


def gaussian(x, weight):
    squares = ((x[:, None] - x[None]) ** 2).sum(-1)
    return np.exp(-squares / 2 / (weight @ np.sqrt(squares) @ weight) ** 2)


def centred(k, weight):
    h = np.eye(len(k)) - weight[None]
    return h @ k @ h.T


def test_rebias_opponent_is_linear_for_tables_and_local_for_images():
    _, net, batch = prepared(ReBiasClassifier)
    a, b = batch.x[:1], batch.x[1:2]
    parts = [net.biased(x).logits for x in ((a + b) / 2, a, b)]
    torch.testing.assert_close(parts[0], (parts[1] + parts[2]) / 2)
    model = quick(ReBiasClassifier, channels=(4, 4))
    model.groups_, model.classes_ = [], np.arange(2)
    net = model.build((3, 8, 8), 2).eval()
    x = torch.rand(5, 3, 8, 8)
    tiles = x.unfold(2, 2, 2).unfold(3, 2, 2)[:, :, torch.randperm(4)]
    moved = tiles.permute(0, 1, 2, 4, 3, 5).reshape(x.shape)
    torch.testing.assert_close(net.biased(x).logits, net.biased(moved).logits)
    assert not torch.allclose(net(x).logits, net(moved).logits)


@pytest.mark.parametrize("kernel", [1, 3, 5])
@pytest.mark.parametrize("rows", [72, 64, 8, 80, 16, 7])
def test_rebias_patches_are_those_of_a_strided_convolution(kernel, rows):
    """Value and gradient against double precision; as one 1 x 1 convolution of stride 2 this crashed on AVX2."""
    torch.manual_seed(0)
    features = PatchFeatures((3, 8, 6), (4,), kernel).train()
    weight = features.blocks[0].weight
    x = torch.rand(rows, 3, 8, 6)
    value = features(x)
    (found,) = torch.autograd.grad(value.square().sum(), weight)
    exact = weight.detach().double().requires_grad_()
    strided = torch.nn.functional.conv2d(x.double(), exact, stride=2, padding=kernel // 2)
    normal = torch.nn.functional.batch_norm(strided, None, None, training=True, eps=features.blocks[1].eps)
    expected = normal.relu().mean((2, 3))
    torch.testing.assert_close(value.double(), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(
        found.double(), torch.autograd.grad(expected.square().sum(), exact)[0], rtol=1e-3, atol=1e-4
    )


# ---------------------------------------------------------------------- fits


@pytest.mark.parametrize("cls", PLAIN)
def test_zero_strength_is_the_plain_network(cls):
    X, y, s = problem()
    plain = quick(VanillaClassifier).fit(X, y, sensitive_features=s)
    model = strong(cls, 0.0).fit(X, y, sensitive_features=s)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), atol=1e-5)
    np.testing.assert_allclose(model.transform(X), plain.transform(X), atol=1e-5)
    assert list(model.get_feature_names_out()[:2]) == ["hidden0", "hidden1"]


@pytest.mark.parametrize("cls", LABELLED)
def test_without_sensitive_features_it_is_the_plain_network(cls):
    X, y, _ = problem()
    with pytest.warns(MissingSensitiveFeaturesWarning, match="nothing is protected"):
        model = quick(cls).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), quick(VanillaClassifier).fit(X, y).predict_proba(X))


def test_rebias_does_not_look_at_sensitive_features():
    X, y, _ = problem()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = quick(ReBiasClassifier, gamma=10.0).fit(X, y)
    assert not np.allclose(model.predict_proba(X), quick(VanillaClassifier).fit(X, y).predict_proba(X), atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("cls", [LearnedMixinClassifier, RUBiClassifier])
def test_strength_helps_where_group_and_label_no_longer_agree(cls):
    train, test = biased_problem(1500, 0.95), biased_problem(1500, 0.5, seed=1)
    models = [strong(cls, g, max_epochs=15, batch_size=64, learning_rate=3e-3) for g in (0.0, 1.0)]
    fit_stack(models, *train[:2], sensitive_features=train[2])
    aucs = [roc_auc_score(test[1], m.predict_proba(test[0])[:, 1]) for m in models]
    assert aucs[1] > aucs[0] + 0.04


@pytest.mark.slow
def test_end_helps_on_coloured_digits():
    train, test = biased_digits(0.9), biased_digits(0.1, "test")
    short = {"max_epochs": 20, "min_steps": 0, "batch_size": 128, "channels": (8, 16)}
    short["groups"] = GroupEncoder(min_group_size=1)
    models = [strong(EnDClassifier, g, **short, learning_rate=3e-3) for g in (0.0, 3.0)]
    accuracies = [m.fit(train.X, train.y, sensitive_features=train.s).score(test.X, test.y) for m in models]
    assert accuracies[1] > accuracies[0] + 0.04


@pytest.mark.slow
@pytest.mark.parametrize(("cls", "term"), [(EnDClassifier, "disentangling"), (ReBiasClassifier, "hsic")])
def test_the_penalty_falls_as_the_strength_rises(cls, term):
    X, y, s = problem()
    models = [strong(cls, g, max_epochs=20, min_steps=200) for g in (0.0, 3.0, 30.0)]
    fit_stack(models, X, y, sensitive_features=s)
    values = [next(r for r in m.history_ if r["epoch"] == m.best_epoch_)[f"validation_{term}"] for m in models]
    assert values[0] > values[1] > values[2]


@pytest.mark.slow
def test_beta_alone_pulls_groups_together():
    X, y, s = problem()
    models = [quick(EnDClassifier, alpha=0.0, beta=b, min_steps=200) for b in (0.0, 10.0)]
    fit_stack(models, X, y, sensitive_features=s)
    far, near = (m.history_[-1]["entangling"] for m in models)
    assert near < 0.75 * far


@pytest.mark.parametrize("cls", one_quickly(METHODS))
def test_a_stack_of_strengths_with_two_columns_equals_solo_fits(cls):
    X, y, s = problem(n_groups=3)
    both = np.column_stack([s, np.arange(len(s)) % 2])
    short = {"max_epochs": 4, "min_steps": 0, "batch_size": 64, "groups": "each"}
    stacked, alone = ([strong(cls, g, random_state=g, **short) for g in (0, 1)] for _ in range(2))
    fit_stack(stacked, X, y, sensitive_features=both)
    for together, solo in zip(stacked, alone, strict=True):
        solo.fit(X, y, sensitive_features=both)
        np.testing.assert_allclose(together.predict_proba(X), solo.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("cls", METHODS)
def test_a_batch_with_one_group_and_one_class_is_finite(cls):
    model, net, batch = prepared(cls)
    batch = batch._replace(s=torch.zeros_like(batch.s), y=torch.zeros_like(batch.y))
    names = {"gamma", "alpha", "beta", "entropy_weight"}
    terms = model.loss(net, batch, scalars(**dict.fromkeys(names, 1)))
    assert all(value.isfinite() for value in terms.values())
    assert gradients(terms["total"], net, "").isfinite().all()


@pytest.mark.parametrize("cls", METHODS)
def test_images_fit_alone_and_stacked_and_everything_moves(cls, monkeypatch):
    X, y, s = images()
    initial = []
    start = cls.initialise
    monkeypatch.setattr(
        cls, "initialise", lambda self, net, *rows: (start(self, net, *rows), initial.append(copy.deepcopy(net)))
    )
    short = {"max_epochs": 2, "min_steps": 0, "batch_size": 32, "channels": (4, 4)}
    models = [strong(cls, 1.0, random_state=k, **short) for k in range(2)]
    fit_stack(models, X, y, sensitive_features=s)
    for before, model in zip(initial, models, strict=True):
        after = dict(model.net_.named_parameters())
        assert not [name for name, p in before.named_parameters() if torch.equal(p, after[name])]
    alone = strong(cls, 1.0, random_state=1, **short).fit(X, y, sensitive_features=s)
    np.testing.assert_allclose(alone.predict_proba(X), models[1].predict_proba(X), atol=1e-4)
