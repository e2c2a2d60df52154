"""AdvCls: the game against its formulas, the probe against brute force, and what becomes of the representation."""

import copy

import numpy as np
import pytest
import torch
from battery import one_quickly, problem, quick
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict

from fairbits import AdversarialClassifier
from fairbits.encoding import TableEncoder
from fairbits.estimators import MissingSensitiveFeaturesWarning, VanillaClassifier, fit_stack
from fairbits.information import weigh_groups
from fairbits.rivals.adversarial import linear_information
from fairbits.training import Batch


def fitted(X, y, s, **settings):
    return quick(AdversarialClassifier, **settings).fit(X, y, sensitive_features=s)


def batch_of(model, X, y, s):
    s, weight = torch.as_tensor(s).reshape(len(y), -1), torch.full((len(y),), 1 / len(y))
    x, y = torch.as_tensor(X, dtype=torch.float32), torch.as_tensor(y)
    return Batch(x, y, s, weight, torch.zeros(len(y), 0), model.prepare(y, s, weight))


def scalars(gamma, ramp=1.0):
    return {"gamma": torch.tensor(gamma), "ramp": torch.tensor(ramp)}


def entropy(s):
    share = np.bincount(s) / len(s)
    return -(share * np.log2(share)).sum()


def slopes(total, net, part):
    """Return the derivative with respect to the adversary's parameters or to all the others, as one vector."""
    mine = [p for name, p in net.named_parameters() if name.startswith("adversary.") == (part == "adversary")]
    return torch.cat([g.flatten() for g in torch.autograd.grad(total, mine, materialize_grads=True, retain_graph=True)])


@pytest.fixture
def game():
    """A model, a fresh network whose adversary knows something, and a batch."""
    X, y, s = problem(400, n_groups=3)
    model = fitted(X, y, s)
    net = copy.deepcopy(model.net_).requires_grad_(True)
    return model, net, batch_of(model, X, y, s)


# ---------------------------------------------------------------------- the game


def test_the_losses_are_their_formulas(game):
    model, net, batch = game
    terms = model.loss(net, batch, scalars(0.4, ramp=0.5))
    hidden, rows = net.features(batch.x), torch.arange(400)
    of_y = -torch.log_softmax(net.head(hidden), -1)[rows, batch.y].mean() / np.log(2)
    of_s = -torch.log_softmax(net.adversary[0](hidden), -1)[rows, batch.s[:, 0]].mean() / np.log(2)
    known = entropy(batch.s[:, 0].numpy()) - of_s
    assert known > 0.1
    torch.testing.assert_close(terms["information"], known.float())
    torch.testing.assert_close(terms["total"], (0.8 * of_y + 0.2 * known).float())
    torch.testing.assert_close(model.opponent_loss(net, batch, scalars(0.4))["total"], of_s)


def test_the_others_climb_what_the_adversary_descends(game):
    model, net, batch = game
    gain = slopes(model.loss(net, batch, scalars(1.0))["total"], net, "others")
    hidden = net.features(batch.x)
    error = sum(model.errors(net.adversary, hidden, batch))
    torch.testing.assert_close(gain, -slopes(error, net, "others"))
    assert gain.abs().max() > 0
    own = model.opponent_loss(net, batch, scalars(1.0))["total"]
    torch.testing.assert_close(slopes(own, net, "adversary"), slopes(error, net, "adversary"))


@pytest.mark.parametrize("gamma", [0.0, 0.3, 0.9])
def test_reversal_is_the_same_game_in_one_step_and_gamma_does_not_slow_the_adversary(game, gamma):
    model, net, batch = game
    in_turn = slopes(model.loss(net, batch, scalars(gamma))["total"], net, "others")
    own = slopes(model.opponent_loss(net, batch, scalars(gamma))["total"], net, "adversary")
    model.reversal = True
    total = model.loss(net, batch, scalars(gamma))["total"]
    torch.testing.assert_close(slopes(total, net, "others"), in_turn)
    torch.testing.assert_close(slopes(total, net, "adversary"), own)
    assert model.opponent is None


def test_an_adversary_that_errs_beyond_ignorance_is_worth_nothing(game):
    model, net, batch = game
    with torch.no_grad():
        net.adversary[0][-1].weight.mul_(-3)
    terms = model.loss(net, batch, scalars(1.0))
    assert terms["information"] == 0
    assert slopes(terms["total"], net, "others").abs().max() == 0
    assert slopes(model.opponent_loss(net, batch, scalars(1.0))["total"], net, "adversary").abs().max() > 0


def test_every_parameter_has_a_gradient(game):
    model, _, batch = game
    net = model.build(3, 2)
    losses = {
        "adversary": model.opponent_loss(net, batch, scalars(0.5)),
        "others": model.loss(net, batch, scalars(0.5)),
    }
    for part, terms in losses.items():
        mine = [p for name, p in net.named_parameters() if name.startswith("adversary.") == (part == "adversary")]
        assert all(g.abs().max() > 0 for g in torch.autograd.grad(terms["total"], mine))


def test_each_player_moves_at_its_own_rate():
    X, y, s = problem(200)
    still, adversary, others = (
        dict(fitted(X, y, s, learning_rate=a, opponent_learning_rate=b, patience=1).net_.named_parameters())
        for a, b in ((1e-12, 1e-12), (1e-12, 1e-2), (1e-2, 1e-12))
    )
    for name, start in still.items():
        own = name.startswith("adversary.")
        assert torch.allclose(adversary[name], start, atol=1e-6) != own
        assert torch.allclose(others[name], start, atol=1e-6) == own


# ---------------------------------------------------------------------- the probe of the validation rows


def random_rows(n=40, d=3, n_groups=3, seed=0):
    rng = np.random.default_rng(seed)
    s, w = np.arange(n) % n_groups, rng.uniform(0.1, 1, n)
    return rng.normal(size=(n, d)) + s[:, None] * 0.5, s, w / w.sum()


def refitted_information(x, s, w):
    """The same by refitting the ridge regression without each row; means and scales are those of all rows."""
    n_groups, prior = s.max() + 1, np.bincount(s, w)
    x = x - w @ x
    variance = w @ x**2
    z = x / np.sqrt(variance + 1e-6 * variance.mean())
    z = np.column_stack([np.ones(len(z)), z])
    target = np.eye(n_groups)[s] - prior
    ridge = 1e-3 * np.diag([0.0] + [1.0] * x.shape[1])
    left = np.empty_like(target)
    for i in range(len(z)):
        v = np.where(np.arange(len(z)) == i, 0, w)[:, None]
        left[i] = target[i] - z[i] @ np.linalg.solve(z.T @ (v * z) + ridge, z.T @ (v * target))
    phi = ((w @ target**2 - w @ left**2) / prior).sum() / (n_groups - 1)
    return -(n_groups - 1) / 2 * np.log2(1 - phi)


@pytest.mark.parametrize("n_groups", [2, 3])
def test_linear_information_is_leaving_one_out(n_groups):
    x, s, w = random_rows(n_groups=n_groups)
    groups = weigh_groups(torch.from_numpy(s), weights=torch.from_numpy(w), n_groups=n_groups, dtype=torch.float64)
    expected = refitted_information(x, s, w)
    assert expected > 0.01
    assert linear_information(torch.from_numpy(x), groups).item() == pytest.approx(expected, rel=1e-6)


def test_linear_information_of_known_cases():
    rng = np.random.default_rng(0)
    n, s = 20_000, np.arange(20_000) % 2
    groups = weigh_groups(torch.from_numpy(s), n_groups=2, dtype=torch.float64)
    x = rng.normal(size=(n, 5))
    assert linear_information(torch.from_numpy(x), groups).item() == pytest.approx(0, abs=1e-3)
    near = x + 0.3 * s[:, None] * np.eye(5)[0]  # two normals 0.3 apart: I = 0.01623 bits
    assert linear_information(torch.from_numpy(near), groups).item() == pytest.approx(0.01623, abs=3e-3)
    assert linear_information(torch.from_numpy(s[:, None] * np.ones(5)), groups).item() == pytest.approx(1)
    few = weigh_groups(torch.from_numpy(s[:60]), n_groups=2, dtype=torch.float64)
    chance = [linear_information(torch.from_numpy(rng.normal(size=(60, 30))), few).item() for _ in range(50)]
    assert np.mean(chance) < 0.01


def test_linear_information_ignores_padding_scale_and_absent_groups():
    x, s, w = random_rows(n_groups=2)
    x, s, w = torch.from_numpy(x), torch.from_numpy(s), torch.from_numpy(w)

    def value(x, s, w, k=2):
        return linear_information(x, weigh_groups(s, weights=w, n_groups=k, dtype=torch.float64))

    torch.testing.assert_close(value(7 * x + 3, s, w), value(x, s, w))
    padded = torch.cat([x, x[:5] + 100]), torch.cat([s, s[:5]]), torch.cat([w, w.new_zeros(5)])
    torch.testing.assert_close(value(*padded), value(x, s, w))
    assert value(x, s, w, k=4).isfinite()
    assert value(x, torch.zeros_like(s), w) == 0
    assert value(torch.zeros_like(x), s, w) == 0


def test_a_blind_adversary_does_not_make_a_leak_look_small():
    X, y, s = problem(1000)
    model = fitted(X, y, s, gamma=0.0, opponent_learning_rate=1e-12, max_epochs=30)
    last = model.history_[-1]
    assert last["information"] < 0.02
    assert last["validation_information"] > 0.1
    expected = 1.0 * last["validation_cross_entropy"]
    assert last["validation_total"] == pytest.approx(expected, rel=1e-5)


# ---------------------------------------------------------------------- fits


def found_by_a_probe(model, X, s):
    guesses = cross_val_predict(LogisticRegression(max_iter=1000), model.transform(X), s, cv=3, method="predict_proba")
    return roc_auc_score(s, guesses[:, 1])


@pytest.mark.slow
@pytest.mark.parametrize(("reversal", "limit"), [(False, 0.75), (True, 0.88)])
def test_the_group_disappears_and_the_label_stays(reversal, limit):
    X, y, s = problem(1000)
    settings = {"max_epochs": 40, "patience": 40, "batch_size": 64, "learning_rate": 3e-3, "reversal": reversal}
    models = [quick(AdversarialClassifier, gamma=g, **settings) for g in (0.0, 0.5)]
    fit_stack(models, X, y, sensitive_features=s)
    found = [found_by_a_probe(m, X, s) for m in models]
    assert found[0] > 0.9
    assert found[1] < limit
    assert roc_auc_score(y, models[1].predict_proba(X)[:, 1]) > 0.9


@pytest.mark.slow
def test_zero_strength_is_as_good_as_the_plain_network_and_the_adversary_still_learns():
    X, y, s = problem(1000)
    plain = quick(VanillaClassifier, max_epochs=40).fit(X, y, sensitive_features=s)
    model = fitted(X, y, s, gamma=0.0, max_epochs=40)
    aucs = [roc_auc_score(y, m.predict_proba(X)[:, 1]) for m in (plain, model)]
    assert aucs[1] > aucs[0] - 0.01
    assert model.history_[-1]["information"] > 0.3


@pytest.mark.parametrize("extra", one_quickly([{"groups": "each"}, {"reversal": True}, {"opponent_steps": 3}, {}]))
def test_a_stack_of_strengths_equals_solo_fits(extra):
    X, y, s = problem(300, n_groups=3)
    s = np.column_stack([s, np.arange(300) % 2])

    def models():
        settings = zip((0.0, 0.4, 0.9), (1e-3, 3e-3, 1e-2), strict=True)
        return [
            quick(AdversarialClassifier, gamma=g, opponent_learning_rate=r, random_state=k, batch_size=64, **extra)
            for k, (g, r) in enumerate(settings)
        ]

    stacked = fit_stack(models(), X, y, sensitive_features=s)
    for together, alone in zip(stacked, models(), strict=True):
        alone.fit(X, y, sensitive_features=s)
        assert len(alone.net_.adversary) == (2 if "groups" in extra else 1)
        np.testing.assert_allclose(together.predict_proba(X), alone.predict_proba(X), atol=1e-4)


def test_columns_add_up():
    X, y, s = problem(300)
    both = np.column_stack([s, np.arange(300) % 3])
    model = fitted(X, y, both, groups="each", max_epochs=30, gamma=0.0)
    batch = batch_of(model, X, y, both)
    known = model.found(model.net_.adversary, model.net_.features(batch.x), batch)
    assert len(known) == 2
    torch.testing.assert_close(model.loss(model.net_, batch, scalars(0.5))["information"], known[0] + known[1])
    assert known[0] > known[1]


def test_rare_groups_and_small_batches_give_no_nan():
    X, y, s = problem(200)
    s[:] = 0
    s[:10], s[10:20] = 1, 2
    model = fitted(X, y, s, batch_size=4, gamma=0.9, learning_rate=1e-2, max_epochs=1)
    assert np.isfinite([list(record.values()) for record in model.history_]).all()


def test_without_sensitive_features_it_is_a_plain_network_and_warns():
    X, y, _ = problem()
    for reversal in (False, True):
        with pytest.warns(MissingSensitiveFeaturesWarning, match="nothing is protected"):
            model = quick(AdversarialClassifier, max_epochs=40, reversal=reversal).fit(X, y)
        assert len(model.net_.adversary) == 0
        assert roc_auc_score(y, model.predict_proba(X)[:, 1]) > 0.9


def test_images_and_names():
    _, y, s = problem(120)
    images = np.random.default_rng(0).integers(0, 256, (120, 1, 8, 8)).astype(np.uint8)
    model = fitted(images, y, s, channels=(4,), max_epochs=1, min_steps=0, representation_size=3)
    assert model.transform(images).shape == (120, 3)
    assert list(model.get_feature_names_out()) == ["hidden0", "hidden1", "hidden2"]


@pytest.mark.slow
@pytest.mark.parametrize("reversal", [False, True])
def test_twenty_seeds_on_compas_stay_finite(reversal):
    from fairbits.datasets import load_compas

    data = load_compas()
    models = [AdversarialClassifier(gamma=0.9, random_state=k, reversal=reversal) for k in range(20)]
    fit_stack(models, TableEncoder().fit_transform(data.X), data.y, sensitive_features=data.s)
    for model in models:
        assert np.isfinite([list(record.values()) for record in model.history_]).all()
