"""RUBi, LearnedMixin, EnD and ReBias: their formulas by brute force, and what their strength does."""

import copy
import warnings

import numpy as np
import pytest
import torch
from battery import one_quickly, problem, quick
from sklearn.metrics import roc_auc_score

from fairbits import EnDClassifier, LearnedMixinClassifier, ReBiasClassifier, RUBiClassifier
from fairbits.datasets import biased_digits
from fairbits.encoding import GroupEncoder
from fairbits.estimators import MissingSensitiveFeaturesWarning, VanillaClassifier, fit_stack
from fairbits.rivals.end import disentangling, entangling, members
from fairbits.rivals.learned_mixin import base_rates, what_groups_say
from fairbits.rivals.rebias import PatchFeatures
from fairbits.training import Batch

METHODS = [EnDClassifier, LearnedMixinClassifier, ReBiasClassifier, RUBiClassifier]
LABELLED = [EnDClassifier, LearnedMixinClassifier, RUBiClassifier]
STRENGTHS = {cls: ("gamma",) for cls in METHODS} | {EnDClassifier: ("alpha", "beta")}


def strong(cls, strength, **settings):
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


@pytest.mark.parametrize("cls", METHODS)
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
