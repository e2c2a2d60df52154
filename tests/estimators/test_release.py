"""What leaves the house is what the certificate is about."""

import warnings

import numpy as np
import pytest
import torch
from battery import CODES, problem, quick

from fairbits import BinaryMIClassifier, TradeoffPath, certify, fit_coarse_code
from fairbits.certificate import Release
from fairbits.estimators import RepeatedDrawWarning
from fairbits.information import total_variation


@pytest.fixture(scope="module")
def fitted():
    X, y, s = problem(2000)
    return quick(BinaryMIClassifier, code_size=6, gamma=0.3, min_steps=200).fit(X, y, sensitive_features=s), X, s


@pytest.mark.parametrize("cls", CODES)
def test_drawing_a_table_again_warns_unless_the_draws_are_the_same(cls):
    X, y, s = problem()
    model = quick(cls, random_state=None).fit(X, y, sensitive_features=s)
    model.transform(X[:100])
    model.transform(X[100:])
    with pytest.warns(RepeatedDrawWarning, match="draws=2"):
        model.transform(X[:100][::-1])
    seeded = quick(cls, random_state=0).fit(X, y, sensitive_features=s)
    np.testing.assert_array_equal(seeded.transform(X), seeded.transform(X))
    model.fit(X, y, sensitive_features=s).transform(X)  # a new model, a new ledger


def test_predicting_scoring_and_certifying_release_nothing():
    X, y, s = problem()
    model = quick(BinaryMIClassifier, random_state=None)
    path = TradeoffPath(model, [0.0, 0.5], cv=2).fit(X, y, sensitive_features=s)
    inner = path.estimators_[0]
    inner.predict(X)
    inner.predict(X)
    inner.certify(problem(seed=1)[0], sensitive_features=s)
    inner.sampled_proba(X)
    assert inner.ledger_.tables == {}


def test_sampled_predictions_are_draws():
    """They name the code, so two of them tell as much as two codes."""
    X, y, s = problem()
    model = quick(BinaryMIClassifier, random_state=None, prediction="sampled").fit(X, y, sensitive_features=s)
    model.predict_proba(X)
    with pytest.warns(RepeatedDrawWarning):
        model.predict(X)


def test_names_are_those_of_one_draw(fitted):
    model, X, _ = fitted
    model.set_output(transform="pandas")
    assert model.transform(X[:50]).shape == (50, 6)
    with pytest.raises(ValueError, match="set_output"):
        model.transform(X[:50], draws=2)
    model.set_output(transform="default")


def test_several_draws_stand_side_by_side_and_noise_flips_bits(fitted):
    model, X, _ = fitted
    model.random_state = np.random.RandomState(0)
    theta = model.code_probabilities(X)
    drawn = model.transform(X, draws=200, eps=0.2)
    assert drawn.shape == (len(X), 200 * 6)
    assert drawn.dtype == np.uint8
    mean = drawn.reshape(len(X), 200, 6).mean(1)
    assert np.abs(mean - (0.2 + 0.6 * theta)).max() < 5 * np.sqrt(0.25 / 200)


def test_the_certificate_of_a_release_is_about_that_release(fitted):
    """Noise lowers what rows show, more draws raise it, a function of the code cannot raise it."""
    model, _, _ = fitted
    X, _, s = problem(3000, seed=1)
    shown = {
        name: model.certify(X, sensitive_features=s, **release).bounds[0].estimated_total_variation
        for name, release in {
            "one": {},
            "noise": {"eps": 0.1},
            "two": {"draws": 2},
            "coarse": {"coarse": fit_coarse_code(model, problem(2000)[0], 4)},
        }.items()
    }
    assert shown["noise"] < shown["one"] < shown["two"]
    assert shown["coarse"] <= shown["one"] + 1e-12


def test_a_coarse_code_is_summed_over_its_words(fitted):
    """Against the tables of the cells by brute force, and against drawing."""
    model, X, _ = fitted
    X_new, _, s_new = problem(1500, seed=2)
    cells = fit_coarse_code(model, X, 5)
    release = Release(coarse=cells)
    theta = torch.from_numpy(model.code_probabilities(X_new))
    words = torch.tensor(np.indices([2] * 6).reshape(6, -1).T)
    chance = torch.where(words.bool(), theta[:, None], 1 - theta[:, None]).prod(-1)
    per_cell = torch.stack([chance[:, torch.from_numpy(cells(words.numpy()) == c)].sum(1) for c in range(5)], 1)
    tables = [per_cell[torch.from_numpy(s_new == g)].mean(0) for g in (0, 1)]
    truth = float((tables[0] - tables[1]).abs().sum() / 2)
    shown = certify(theta, sensitive_features=s_new, coarse=cells).bounds[0].estimated_total_variation
    assert shown == pytest.approx(truth, abs=1e-12)
    as_table = certify(theta, sensitive_features=s_new, coarse=cells(words.numpy())).bounds[0]
    assert as_table.estimated_total_variation == pytest.approx(truth, abs=1e-12)
    drawn = release.cell_probabilities(theta, torch.Generator().manual_seed(0))
    assert (drawn - per_cell).abs().max() < 5 * np.sqrt(0.25 / 64)
    out = model.transform(X_new, coarse=cells)
    assert out.shape == (1500, 1)
    assert set(out.ravel()) <= set(range(5))


def test_a_coarse_code_keeps_what_tells_the_label(fitted):
    model, X, _ = fitted
    X_new, y_new, _ = problem(2000, seed=3)
    cells = fit_coarse_code(model, X, 4)
    words = np.indices([2] * 6).reshape(6, -1).T
    theta = model.code_probabilities(X_new)[:, None]
    chance = np.where(words, theta, 1 - theta).prod(-1)  # (n, words): accuracies in expectation, without luck of a draw
    own = (chance * (model.decode(words).argmax(1) == y_new[:, None])).sum(1).mean()
    mass = np.array([[chance[y_new == y][:, cells(words) == c].sum() for y in (0, 1)] for c in range(4)])
    assert mass.max(1).sum() / mass.sum() > own - 0.02


def test_a_wide_hard_code_is_vacuous_and_its_coarse_code_is_not():
    """64 sure bits: the bound on the code is 1 because that is what the rows show; 4 cells of it are provable."""
    rng = np.random.default_rng(0)
    theta = (rng.random((4000, 64)) < 0.5).astype(float)
    s = rng.integers(0, 2, 4000)
    assert certify(theta, sensitive_features=s, generator=torch.Generator().manual_seed(0)).total_variation == 1
    cells = certify(theta, sensitive_features=s, coarse=lambda codes: codes[:, :2].astype(int) @ [2, 1])
    assert cells.total_variation < 0.1


def test_nonsense_is_refused(fitted):
    model, X, _ = fitted
    with pytest.raises(ValueError, match="draws=0"):
        model.transform(X, draws=0)
    with pytest.raises(ValueError, match=r"eps=0\.5"):
        model.transform(X, eps=0.5)
    with pytest.raises(ValueError, match="64 words"):
        model.transform(X, coarse=np.zeros(8, int))
    with pytest.raises(ValueError, match="whole number"):
        model.transform(X, coarse=lambda codes: codes.mean(1))
    with pytest.raises(ValueError, match="n_cells=1"):
        fit_coarse_code(model, X, 1)
    with pytest.raises(ValueError, match="different codes"):
        fit_coarse_code(model, X[:2], 1000)


def test_one_draw_by_default_agrees_with_the_information(fitted):
    model, X, s = fitted
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shown = model.certify(X, sensitive_features=s).bounds[0].estimated_total_variation
    expected = total_variation(torch.from_numpy(model.code_probabilities(X)), torch.from_numpy(s))
    assert shown == pytest.approx(float(expected), abs=1e-9)
