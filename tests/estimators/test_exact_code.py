"""The exact objective against brute force, what the code that it trains keeps to, and what is released of it."""

from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
import torch
from battery import one_quickly, problem, quick
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from fairbits import ExactCodeClassifier, FairCodeClassifier, InputError, LinearCodeClassifier
from fairbits.estimators import fit_stack
from fairbits.estimators.exact_code import MISTAKE, STIFFNESS, ExactCodeNet, disparity_slope, information_slope
from fairbits.information import WeighedGroups, total_variation
from fairbits.nn import draw_bits, word_probabilities
from fairbits.training import Batch

BITS = 3


# ------------------------------------------------------------------ references, by loops over words, rows and groups


def word_shares(theta):
    """Return p(t|x) of every word.  (n, 2^m)"""
    words = list(product((0, 1), repeat=theta.shape[1]))
    return np.array(
        [[np.prod([p if bit else 1 - p for p, bit in zip(row, w, strict=True)]) for w in words] for row in theta]
    )


def label_entropy(theta, y):
    """Return H(Y|T) in bits."""
    words, found = word_shares(theta), 0.0
    for t in range(words.shape[1]):
        joint = [words[y == label, t].sum() / len(y) for label in np.unique(y)]
        found -= sum(p * np.log2(p / sum(joint)) for p in joint)
    return found


def largest_distance(theta, s):
    words = word_shares(theta)
    means = [words[s == group].mean(0) for group in np.unique(s)]
    return max(abs(a - b).sum() / 2 for a, b in combinations(means, 2))


def group_information(theta, s):
    words, found = word_shares(theta), 0.0
    mixture = words.mean(0)
    for group in np.unique(s):
        mean = words[s == group].mean(0)
        found += (s == group).mean() * (mean * np.log2(mean / mixture)).sum()
    return found


def objective(method, theta, y, s):
    """Return H(Y|T) + error / 2 + (1/2) stiffness excess^2 of every cell: what the first step descends."""
    leakage = {"disparity": largest_distance, "information": group_information}[method.measure]
    cells = [y == label for label in np.unique(y)] if method.condition_on_label else [np.ones(len(y), bool)]
    scale = 1 if method.measure == "disparity" else 1 / (2 * np.sqrt(method.limit))  # the slope of its root
    excess = [scale * (leakage(theta[cell], s[cell]) - method.limit) for cell in cells]
    error = 1 - np.max([word_shares(theta)[y == label].sum(0) / len(y) for label in np.unique(y)], axis=0).sum()
    return label_entropy(theta, y) + MISTAKE * error + sum(STIFFNESS * e**2 / 2 for e in excess if e > 0)


# ------------------------------------------------------------------ the loss


def first_step(method, theta, y, s, n_groups):
    """Return the terms of the first loss of theta, and the gradient of its total, in double precision."""
    method.classes_, method.groups_ = np.unique(y[y >= 0]), [[str(k) for k in range(n_groups)]]
    method.has_unlabelled_ = bool((y < 0).any())
    net = method.build(2, len(method.classes_)).double()
    net.features, net.logits = torch.nn.Identity(), torch.nn.Identity()  # the rows are the logits
    x = torch.logit(torch.tensor(theta)).requires_grad_()
    labels, groups = torch.tensor(y), torch.tensor(s)[:, None]
    weight = torch.full((len(y),), 1 / len(y), dtype=torch.float64)
    cells = [(WeighedGroups(*(t.double() for t in cell)), 1) for cell, _ in method.prepare(labels, groups, weight)]
    batch = Batch(x, labels, groups, weight, torch.zeros(theta.shape), cells)
    terms = method.loss(net, batch, {"limit": torch.tensor(method.limit).double()})
    terms["total"].backward()
    slope = x.grad.numpy() / (theta * (1 - theta))  # by theta
    return {name: float(value.detach()) for name, value in terms.items()}, slope


def rows_of(n_groups, n=24, seed=0, n_classes=3):
    rng = np.random.default_rng(seed)
    return rng.uniform(0.1, 0.9, (n, BITS)), np.arange(n) % n_classes, rng.permutation(np.arange(n) % n_groups)


@pytest.mark.parametrize("conditional", [False, True])
@pytest.mark.parametrize("measure", ["disparity", "information"])
@pytest.mark.parametrize("limit", [0.01, 1.0])
def test_the_first_step_descends_the_objective(measure, conditional, limit):
    """Fresh tables are those of the batch: values and gradient are those of brute force."""
    theta, y, s = rows_of(2)
    method = ExactCodeClassifier(code_size=BITS, measure=measure, limit=limit, condition_on_label=conditional)
    terms, slope = first_step(method, theta, y, s, 2)
    leakage = {"disparity": largest_distance, "information": group_information}[measure]
    cells = [y == label for label in range(3)] if conditional else [y >= 0]
    assert terms["cross_entropy"] == pytest.approx(label_entropy(theta, y), abs=1e-6)
    assert terms[measure] == pytest.approx(max(leakage(theta[c], s[c]) for c in cells), abs=1e-7)
    step = 1e-6
    for i, j in [(0, 0), (5, 1), (11, 2), (17, 0), (23, 2)]:
        up, down = theta.copy(), theta.copy()
        up[i, j] += step
        down[i, j] -= step
        expected = (objective(method, up, y, s) - objective(method, down, y, s)) / (2 * step)
        assert slope[i, j] == pytest.approx(expected, abs=2e-5)


def test_rows_without_a_label_count_in_the_leakage_alone():
    theta, y, s = rows_of(2)
    hidden = np.where(np.arange(len(y)) < 12, y, -1)
    terms, slope = first_step(ExactCodeClassifier(code_size=BITS, limit=0.01), theta, hidden, s, 2)
    assert terms["cross_entropy"] == pytest.approx(label_entropy(theta[:12], y[:12]), abs=1e-6)
    assert terms["disparity"] == pytest.approx(largest_distance(theta, s), abs=1e-7)
    assert np.abs(slope[12:]).max() > 0


def some_tables(seed, n_groups, words=8):
    return torch.from_numpy(np.random.default_rng(seed).dirichlet(np.ones(words), n_groups))


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_of_two_groups_the_slope_is_the_derivative(seed):
    tables = some_tables(seed, 2).requires_grad_()
    found, slope = disparity_slope(tables)
    distance = (tables[0] - tables[1]).abs().sum() / 2
    distance.backward()
    assert found == pytest.approx(distance.item())
    torch.testing.assert_close(slope, tables.grad)
    prior = torch.tensor([0.3, 0.7], dtype=torch.float64)
    fresh = tables.detach().requires_grad_()
    mixture = prior @ fresh
    information = (prior[:, None] * fresh * (fresh / mixture).log2()).sum()
    information.backward()
    found, slope = information_slope(fresh.detach(), prior)
    assert found == pytest.approx(information.item())
    apart = slope - fresh.grad  # tables sum to 1: a constant per group has no effect
    torch.testing.assert_close(apart, apart[:, :1].expand_as(apart))


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_of_noisy_tables_the_slope_is_the_derivative_too(seed):
    tables, noise = some_tables(seed, 2).requires_grad_(), torch.tensor([0.01, 0.002], dtype=torch.float64)
    found, slope = disparity_slope(tables, noise)
    variance = noise @ (tables * (1 - tables))
    distance = ((tables[0] - tables[1]) ** 2 + 2 / np.pi * variance).sqrt().sum() / 2
    distance.backward()
    assert found == pytest.approx(distance.item())
    torch.testing.assert_close(slope, tables.grad)


def test_noise_adds_what_samples_of_equal_groups_show():
    rng, shares, rows = np.random.default_rng(0), np.array([0.5, 0.3, 0.1, 0.05, 0.05]), np.array([400, 1_000])
    drawn = [rng.multinomial(n, shares, size=2_000) / n for n in rows]
    shown = np.abs(drawn[0] - drawn[1]).sum(1).mean() / 2
    found, _ = disparity_slope(torch.from_numpy(np.stack([shares, shares])), torch.from_numpy(1 / rows))
    assert float(found) == pytest.approx(shown, rel=0.03)


def test_the_noise_of_a_group_is_one_over_its_rows():
    method, net = ExactCodeClassifier(code_size=2), ExactCodeNet(2, (4,), 2, [2, 2], ())
    method.classes_, method.groups_ = np.arange(2), [["a", "b"]]
    y, s = torch.arange(10) % 2, (torch.arange(10) > 5).long()[:, None]
    method.initialise(net, y, s, torch.ones(10))
    torch.testing.assert_close(net.noise0, torch.tensor([1 / 6, 1 / 4]))


@pytest.mark.filterwarnings("ignore::fairbits.estimators.MissingSensitiveFeaturesWarning")
@pytest.mark.parametrize("method", [ExactCodeClassifier, LinearCodeClassifier])
def test_a_hard_code_is_as_hard_at_the_end_without_groups(method):
    """The last step of the training is the share 1 of all steps, by which the hardness has risen."""
    X, y, s = problem()
    for groups in (s, None):
        assert float(quick(method).fit(X, y, sensitive_features=groups).net_.progress[0]) == pytest.approx(1)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10_000), tied=st.booleans())
def test_of_five_groups_the_slope_lowers_the_largest_distance(seed, tied):
    tables = some_tables(seed, 5)
    if tied:
        tables[1] = tables[0]  # both are as far from the group that differs most
    before, slope = disparity_slope(tables)
    after, _ = disparity_slope(tables - 1e-4 * slope)
    assert after < before
    assert before == pytest.approx(max(float((a - b).abs().sum() / 2) for a, b in combinations(tables, 2)))


def test_groups_without_rows_are_left_out():
    tables = some_tables(0, 5)
    tables[[1, 4]] = 0
    found, slope = disparity_slope(tables)
    expected, own = disparity_slope(tables[[0, 2, 3]])
    assert found == expected
    torch.testing.assert_close(slope[[0, 2, 3]], own)
    assert not slope[[1, 4]].any()
    nobody, nothing = disparity_slope(torch.zeros(3, 4))
    assert (float(nobody), float(nothing.abs().sum())) == (0, 0)


def test_tables_run_and_keep_a_group_that_a_batch_lacks():
    net, first, second = ExactCodeNet(2, (4,), 2, [2, 3], ()), torch.rand(3, 4), torch.rand(3, 4)
    first[2] = second[1] = 0
    torch.testing.assert_close(net.run(1, first), first)
    blended = net.run(1, second)
    torch.testing.assert_close(blended[0], 0.95 * first[0] + 0.05 * second[0])
    torch.testing.assert_close(blended[1:], torch.stack([first[1], second[2]]))
    torch.testing.assert_close(net.running1, blended)


def test_straight_through_gradients_are_exact_on_average():
    """The chance of a word is linear in each bit, and bits are independent."""
    generator = torch.Generator().manual_seed(0)
    theta, price = torch.rand(2, BITS, generator=generator).requires_grad_(), torch.rand(2, 8, generator=generator)
    (exact,) = torch.autograd.grad((price * word_probabilities(theta)).sum(), theta)
    many = theta.repeat(20_000, 1, 1)
    drawn = word_probabilities(draw_bits(many, torch.rand(many.shape, generator=generator)))
    (summed,) = torch.autograd.grad((price * drawn).sum(), theta)
    torch.testing.assert_close(summed / 20_000, exact, atol=0.02, rtol=0)


# ------------------------------------------------------------------ what is released


@pytest.fixture(scope="module")
def hard():
    X, y, s = problem(2000, n_classes=3)
    return quick(ExactCodeClassifier, limit=0.2, code_size=4, min_steps=150).fit(X, y, sensitive_features=s)


def counted(words, labels, code_size, n_classes):
    """Return p(y|t) from weights of words (n, 2^m) and labels, half a row added."""
    counts = np.array([words[labels == label].sum(0) + 0.5 for label in range(n_classes)])
    return (counts / counts.sum(0)).T


def test_a_hard_code_is_one_and_the_same(hard):
    X, _, _ = problem(500, n_classes=3, seed=1)
    codes = hard.transform(X)
    assert codes.dtype == np.uint8
    assert len(np.unique(codes, axis=0)) > 2
    for again in (hard.transform(X), hard.transform(X[::-1])[::-1], hard.draw(X), hard.code_probabilities(X)):
        np.testing.assert_array_equal(again, codes)


def test_predictions_are_read_off_the_code(hard):
    X, _, _ = problem(500, n_classes=3, seed=1)
    codes, shown = hard.transform(X), hard.predict_proba(X)
    np.testing.assert_allclose(shown, hard.decode(codes), atol=1e-6)
    number = codes @ (1 << np.arange(3, -1, -1))
    for word in np.unique(number):
        assert np.ptp(shown[number == word], axis=0).max() == 0
    np.testing.assert_array_equal(hard.predict(X), hard.decode(codes).argmax(1))


@pytest.mark.parametrize("release", ["hard", "random"])
def test_the_decoder_is_counted_on_the_words_as_they_are_released(release):
    X, y, s = problem(2000, n_classes=3)
    weight = np.random.default_rng(1).integers(0, 3, len(y))
    model = quick(ExactCodeClassifier, code_size=BITS, release=release, min_steps=100)
    model.fit(X, y, sensitive_features=s, sample_weight=weight)
    rows = np.repeat(np.arange(len(y)), weight)
    words = word_shares(model.code_probabilities(X))
    expected = counted(words[rows], y[rows], BITS, 3)
    np.testing.assert_allclose(model.decode(list(product((0, 1), repeat=BITS))), expected, atol=1e-4)
    np.testing.assert_allclose(model.predict_proba(X), words @ expected, atol=1e-4)


def test_a_random_code_is_drawn():
    X, y, s = problem(2000)
    model = quick(ExactCodeClassifier, code_size=BITS, release="random", min_steps=100)
    model.fit(X, y, sensitive_features=s).set_params(random_state=None)
    theta, drawn = model.code_probabilities(X), np.stack([model.transform(X) for _ in range(50)])
    assert ((theta > 0.05) & (theta < 0.95)).any()
    assert np.abs(drawn.mean((0, 1)) - theta.mean(0)).max() < 0.01
    assert (drawn != drawn[0]).any()
    certificate = model.certify(problem(1000, seed=1)[0], sensitive_features=problem(1000, seed=1)[2])
    assert not certificate.release["hard"]
    assert model.certify(X[:1500] + 1, sensitive_features=s[:1500], eps=0.1, draws=2).release["draws"] == 2


@pytest.mark.parametrize("release", ["hard", "random"])
def test_another_release_than_that_of_the_fit_is_refused(release):
    X, y, s = problem()
    model = quick(ExactCodeClassifier, code_size=2, release=release).fit(X, y, sensitive_features=s)
    model.release = "random" if release == "hard" else "hard"
    for use in (model.transform, model.predict, model.predict_proba, model.code_probabilities):
        with pytest.raises(InputError, match=f"fitted for another release than {model.release!r}.*Fit again"):
            use(X)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("limit", -0.1),
        ("limit", 1.5),
        ("code_size", 11),
        ("measure", "both"),
        ("release", "soft"),
        ("gradient", "none"),
    ],
)
def test_settings_out_of_bounds_are_named(name, value):
    X, y, s = problem(100)
    with pytest.raises(InputError, match=f"{name}="):
        ExactCodeClassifier(**{name: value}).fit(X, y, sensitive_features=s)


# ------------------------------------------------------------------ populations of known truth


def mediated(n, seed=0, bias=0.4):
    """S acts on x through the label alone, P(y=1|s) = (1 +- bias)/2: every code T of x has TV_S(T) = bias TV_Y(T)."""
    rng = np.random.default_rng(seed)
    s = rng.integers(0, 2, n)
    y = (rng.random(n) < 0.5 + bias * (s - 0.5)).astype(int)
    return np.column_stack([y + 0.7 * rng.normal(size=n), rng.normal(size=n)]), y, s


def distance(theta, groups):
    return float(total_variation(torch.tensor(np.array(theta, float)), torch.tensor(np.array(groups))))


@pytest.fixture(scope="module")
def by_limit():
    """Return models to limits that bind, and one that does not, and the rows of their fit."""
    X, y, s = mediated(20_000, seed=3)
    shared = {"code_size": BITS, "max_epochs": 12, "batch_size": 512, "learning_rate": 0.01}
    models = [quick(ExactCodeClassifier, limit=limit, **shared) for limit in (0.0, 0.1, 0.15, 1.0)]
    fit_stack(models, X, y, sensitive_features=s)
    return models, X, y, s


def test_where_the_limit_binds_training_meets_it(by_limit):
    models, X, _, s = by_limit
    shown = [distance(m.code_probabilities(X), s) for m in models]
    assert shown[0] < 0.02
    assert shown[1] == pytest.approx(0.1, abs=0.02)
    assert shown[2] == pytest.approx(0.15, abs=0.02)
    assert shown[3] > 0.18


def test_a_smaller_limit_leaks_less_and_keeps_less(by_limit):
    """The truth of this population: leakage is the bias times what the code tells about the label."""
    models, *_ = by_limit
    X, y, s = mediated(100_000, seed=1)
    leaked, kept = zip(*((distance(m.transform(X), s), distance(m.transform(X), y)) for m in models), strict=True)
    assert np.all(np.diff(leaked) > 0.015)
    np.testing.assert_allclose(leaked, 0.4 * np.array(kept), atol=0.01)
    accuracy = [m.score(X, y) for m in models]
    assert np.all(np.diff(accuracy) > 0.01)
    assert accuracy[-1] == pytest.approx(0.762, abs=0.01)  # Phi(1 / 1.4), Bayes' rule


@pytest.mark.slow
def test_limits_of_the_information_are_met_in_bits():
    X, y, s = mediated(20_000, seed=3)
    shared = {"code_size": BITS, "max_epochs": 20, "batch_size": 512, "learning_rate": 0.01, "measure": "information"}
    models = [quick(ExactCodeClassifier, limit=limit, **shared) for limit in (0.01, 1.0)]
    fit_stack(models, X, y, sensitive_features=s)
    bound, free = (m.information(X, sensitive_features=s) for m in models)
    assert free > 0.03
    assert bound == pytest.approx(0.01, abs=0.005)


@pytest.mark.parametrize("gradient", ["exact", "straight-through"])
def test_both_gradients_train(gradient):
    X, y, s = problem(2000)
    settings = {"max_epochs": 15, "learning_rate": 0.01, "code_size": BITS}
    model = quick(ExactCodeClassifier, gradient=gradient, limit=0.1, **settings).fit(X, y, sensitive_features=s)
    assert roc_auc_score(y, model.predict_proba(X)[:, 1]) > 0.8
    assert distance(model.code_probabilities(X), s) < 0.2


def many_groups(n, seed=0):
    """Five groups, three classes: the group moves the label's chances a little, and x tells both."""
    rng = np.random.default_rng(seed)
    s = rng.choice(5, n, p=[0.3, 0.25, 0.2, 0.15, 0.1])
    y = np.minimum((rng.random(n) * 3 + 0.15 * (s - 2)).clip(0).astype(int), 2)
    return np.column_stack([1.5 * y, s, y + 0.5 * s]) + rng.normal(size=(n, 3)), y, s


def two_columns(n, seed=0):
    rng = np.random.default_rng(seed)
    sex, old = rng.integers(0, 2, (2, n))
    y = (rng.random(n) < 0.35 + 0.15 * sex + 0.15 * (sex & old)).astype(int)
    X = np.column_stack([2 * y, sex, old, y + sex - old]) + rng.normal(size=(n, 4))
    return X, y, pd.DataFrame({"sex": sex, "old": old})


def certified_and_true(model, population, y_too=False):
    """Return the certificate of 5,000 fresh rows, and 100,000 more rows with their codes."""
    X, y, s = population(5_000, seed=1)
    certificate = model.certify(X, sensitive_features=s, **({"y": y} if y_too else {}))
    X, y, s = population(100_000, seed=2)
    return certificate, model.transform(X), y, s


@pytest.mark.parametrize("limit", one_quickly([0.05, 1.0]))
def test_five_groups_and_three_classes(limit):
    X, y, s = many_groups(8_000)
    model = quick(ExactCodeClassifier, limit=limit, code_size=BITS, max_epochs=12, batch_size=512, learning_rate=0.02)
    certificate, codes, labels, groups = certified_and_true(model.fit(X, y, sensitive_features=s), many_groups)
    assert distance(codes, groups) <= certificate.total_variation
    assert distance(model.code_probabilities(X), s) < (0.15 if limit < 1 else 1)
    assert distance(codes, groups) > 0.25 or limit < 1
    assert (model.decode(codes).argmax(1) == labels).mean() > 0.45


@pytest.mark.parametrize("groups", ["intersection", "each"])
def test_two_sensitive_columns(groups):
    X, y, s = two_columns(8_000)
    settings = {"code_size": BITS, "max_epochs": 12, "batch_size": 512, "learning_rate": 0.02, "groups": groups}
    model = quick(ExactCodeClassifier, limit=0.05, **settings).fit(X, y, sensitive_features=s)
    certificate, codes, labels, truth = certified_and_true(model, two_columns)
    assert [b.column for b in certificate.bounds] == (["sex x old"] if groups == "intersection" else ["sex", "old"])
    for bound, column in zip(certificate.bounds, model.group_encoder_.transform(truth).T, strict=True):
        assert distance(codes, column) <= bound.total_variation
        assert distance(codes, column) < 0.13
    assert (model.decode(codes).argmax(1) == labels).mean() > 0.6


def test_equalised_odds():
    """Within labels the limit holds; across them a code that tells the label tells S, as the labels' shares differ."""
    X, y, s = two_columns(8_000)
    s = s["sex"]
    settings = {
        "code_size": BITS,
        "max_epochs": 12,
        "batch_size": 512,
        "learning_rate": 0.02,
        "condition_on_label": True,
    }
    model = quick(ExactCodeClassifier, limit=0.03, **settings).fit(X, y, sensitive_features=s)

    def population(n, seed):
        X, y, both = two_columns(n, seed)
        return X, y, both["sex"]

    certificate, codes, labels, sex = certified_and_true(model, population, y_too=True)
    within = [distance(codes[labels == label], sex[labels == label].to_numpy()) for label in (0, 1)]
    assert max(within) <= certificate.within_labels
    assert max(within) < 0.1
    assert distance(codes, sex.to_numpy()) > max(within)
    assert (model.decode(codes).argmax(1) == labels).mean() > 0.75


def test_columns_of_different_sizes_within_labels():
    """Every column and label has a table of its own."""
    X, y, s = problem(600, n_groups=3)
    both = {"three": s, "two": np.arange(600) % 2}
    settings = {"code_size": 2, "condition_on_label": True, "groups": "each"}
    model = quick(ExactCodeClassifier, **settings).fit(X, y, sensitive_features=both)
    assert [model.net_.get_buffer(f"running{i}").shape[0] for i in range(5)] == [2, 3, 3, 2, 2]
    tables = [model.net_.get_buffer(f"running{i}") for i in range(5)]
    assert all(torch.allclose(t.sum(-1), torch.ones(()), atol=1e-4) for t in tables[1:])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("groups", ["intersection", "each"])
def test_the_recommended_method_keeps_its_certificate_on_two_columns(groups, seed):
    X, y, s = two_columns(8_000, seed=10 + seed)
    model = FairCodeClassifier(limit=0.05, groups=groups, random_state=seed).fit(X, y, sensitive_features=s)
    certificate, codes, _, truth = certified_and_true(model, two_columns)
    for bound, column in zip(certificate.bounds, model.estimator_[-1].group_encoder_.transform(truth).T, strict=True):
        assert distance(codes, column) <= bound.total_variation


@pytest.mark.slow
@pytest.mark.parametrize("conditional", [False, True])
def test_the_recommended_method_on_five_groups_and_three_classes(conditional):
    X, y, s = many_groups(20_000)
    model = FairCodeClassifier(limit=0.05, condition_on_label=conditional, random_state=0)
    model.fit(X, y, sensitive_features=s)
    certificate, codes, labels, groups = certified_and_true(model, many_groups, y_too=True)
    assert distance(codes, groups) <= certificate.total_variation
    within = [distance(codes[labels == label], groups[labels == label]) for label in range(3)]
    assert max(within) <= certificate.within_labels
    assert (model.decode(codes).argmax(1) == labels).mean() > 0.45
