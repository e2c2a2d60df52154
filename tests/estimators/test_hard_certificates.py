"""What is certified of a code without draws, released of it, and chosen by it."""

import numpy as np
import pytest
import torch
from battery import problem, quick

from fairbits import (
    BinaryMIClassifier,
    CertifiedClassifier,
    ExactCodeClassifier,
    InputError,
    LinearCodeClassifier,
    NotCertifiedError,
    audit,
    certify,
    fit_coarse_code,
    release,
)
from fairbits.certificate import AlreadyReleasedError, Release
from fairbits.certificate.decision_rates import equal_limit
from fairbits.estimators.certified import code_loss
from fairbits.estimators.promises import CalibrationRows
from fairbits.information import total_variation

LIMITS = (0.02, 0.05, 0.1, 0.3, 0.6)


def distance(codes, groups):
    return float(total_variation(torch.tensor(np.array(codes, float)), torch.tensor(groups)))


def exact(**settings):
    shared = {"code_size": 3, "max_epochs": 20, "batch_size": 512, "learning_rate": 0.02}
    return quick(ExactCodeClassifier, **{**shared, **settings})


@pytest.fixture(scope="module")
def models():
    X, y, s = problem(2_000)
    return {
        kind: exact(release=kind, limit=0.3, max_epochs=8).fit(X, y, sensitive_features=s)
        for kind in ("hard", "random")
    }


@pytest.fixture(scope="module")
def chosen():
    X, y, s = problem(8_000)
    model = CertifiedClassifier(exact(), path=LIMITS, max_disparity=0.15, random_state=0)
    return model.fit(X, y, sensitive_features=s)


def test_a_hard_certificate_says_what_it_is_about(models):
    X, y, s = problem(1_500, seed=1)
    hard, drawn = (models[kind].certify(X, sensitive_features=s, y=y) for kind in ("hard", "random"))
    assert hard.release == {"draws": 1, "eps": 0.0, "coarse": None, "hard": True}
    assert drawn.release == hard.release | {"hard": False}
    assert (hard.release_words, drawn.release_words) == ("the code of a person", "one draw of the code per person")
    assert "for anyone who receives the code of a person," in hard.covers
    text = " ".join(hard.does_not_cover)
    assert not any(word in text for word in ("draw", "random", "seed"))
    assert "the bits' probabilities, logits or earlier layers" in hard.does_not_cover
    assert "more draws of the same person" in drawn.does_not_cover[0]
    assert any("fixed seed" in words for words in drawn.does_not_cover)
    assert (hard.seeded, drawn.seeded, hard.to_dict()["release"]["hard"]) == (False, True, True)


def test_what_rows_show_of_a_hard_code_is_the_distance_of_its_words(models):
    X, _, s = problem(1_500, seed=1)
    certificate = models["hard"].certify(X, sensitive_features=s)
    assert certificate.bounds[0].estimated_total_variation == pytest.approx(distance(models["hard"].transform(X), s))
    by_codes = certify(models["hard"].transform(X).astype(int), sensitive_features=s)
    assert by_codes.total_variation == certificate.total_variation
    found = audit(models["hard"], X, sensitive_features=s).certificate
    assert (found.release["hard"], found.total_variation) == (True, certificate.total_variation)


def test_noise_and_further_draws_of_a_hard_code_are_refused(models, tmp_path):
    model, (X, _, s) = models["hard"], problem(500, seed=1)
    for change in ({"draws": 2}, {"eps": 0.1}):
        name = next(iter(change))
        for use in (
            lambda change=change: model.certify(X, sensitive_features=s, **change),
            lambda change=change: release(model, X, **change),
            lambda change=change: model.draw(X, **change),
            lambda change=change: Release(hard=True, **change),
        ):
            with pytest.raises(InputError, match=f"{name}=.* is for random codes"):
                use()


def test_a_hard_code_is_released_without_a_ledger_and_a_random_one_with_it(models, tmp_path):
    X, _, _ = problem(500, seed=1)
    first = release(models["hard"], X)
    np.testing.assert_array_equal(first.codes, models["hard"].transform(X))
    assert (first.new, first.most_draws, first.covered) == (500, 1, True)
    with pytest.raises(InputError, match=r"random code is released with a ledger.*`ledger`"):
        release(models["random"], X)
    with pytest.raises(InputError, match=r"People are counted in a ledger\. Pass the path"):
        release(models["hard"], X, person=np.arange(500))


def test_a_ledger_notices_hard_codes_of_two_models_and_no_repeat_of_one(models, tmp_path):
    X, y, s = problem(500, seed=1)
    other = exact(release="hard", limit=0.1, max_epochs=2).fit(X, y, sensitive_features=s)
    ids, path = np.arange(500), tmp_path / "a.ledger"
    for first in (release(models["hard"], X, ledger=path, person=ids) for _ in range(2)):
        assert (first.again, first.most_draws, first.other_models, first.covered) == (0, 1, 0, True)
        np.testing.assert_array_equal(first.codes, models["hard"].transform(X))
    for model in (other, models["random"]):
        found = release(model, X[400:], ledger=path, person=ids[400:])
        assert (found.new, found.other_models) == (100, 100)
    assert release(models["hard"], X, ledger=path, person=ids).other_models == 100
    unnamed = tmp_path / "unnamed.ledger"  # models that read the same values recognise them
    assert release(models["hard"], X, ledger=unnamed).covered
    assert release(other, X[:7], ledger=unnamed).other_models == 7


def test_a_second_hard_code_of_a_person_with_other_values_is_refused(models, tmp_path):
    X, _, _ = problem(500, seed=1)
    codes, ids, path = models["hard"].transform(X), np.arange(500), tmp_path / "a.ledger"
    turned = (codes != codes[::-1]).any(1)  # people whose code changes if they get each other's values
    assert 0 < turned.sum() < 500
    release(models["hard"], X, ledger=path, person=ids)
    with pytest.raises(AlreadyReleasedError, match=f"{turned.sum()} of 500 people already have a code"):
        release(models["hard"], X[::-1], ledger=path, person=ids)
    reused = release(models["hard"], X[::-1], ledger=path, person=ids, repeated="reuse")
    np.testing.assert_array_equal(reused.codes, codes)
    again = release(models["hard"], X[::-1], ledger=path, person=ids, repeated="again")
    np.testing.assert_array_equal(again.codes, codes[::-1])
    assert (again.again, again.most_draws, again.covered) == (turned.sum(), 2, False)


def test_cells_of_a_hard_code_may_be_released(models):
    model, (X, _, s) = models["hard"], problem(1_500, seed=1)
    cells = fit_coarse_code(model, problem(2_000)[0], 2)
    certificate = model.certify(X, sensitive_features=s, coarse=cells)
    assert certificate.release_words == "the coarse code of a person"
    np.testing.assert_array_equal(release(model, X, coarse=cells).codes[:, 0], cells(model.transform(X)))
    assert certificate.bounds[0].estimated_total_variation <= distance(model.transform(X), s) + 1e-9


# ------------------------------------------------------------------ choosing along a path of limits


def test_the_promise_holds_on_fresh_rows(chosen):
    X, y, s = problem(100_000, seed=1)
    codes, classes = chosen.transform(X), chosen.predict(X)
    assert distance(codes, s) <= 0.15
    assert abs(classes[s == 0].mean() - classes[s == 1].mean()) <= 0.15
    assert (classes == y).mean() > 0.7


def test_code_probabilities_and_class_are_one(chosen):
    X, _, _ = problem(1_000, seed=1)
    inner, codes = chosen.estimator_, chosen.transform(X)
    np.testing.assert_array_equal(codes, chosen.transform(X))
    np.testing.assert_allclose(chosen.predict_proba(X), inner.decode(codes), atol=1e-6)
    np.testing.assert_array_equal(chosen.predict(X), inner.classes_[inner.decode(codes).argmax(1)])
    np.testing.assert_array_equal(release(chosen, X).codes, codes)
    assert chosen.score(X, chosen.predict(X)) == 1


def test_the_path_is_of_limits_from_the_safest_and_the_best_that_passed_is_kept(chosen):
    path = chosen.path_
    bounds = ["code_total_variation", "shown_code_total_variation"]  # the class needs no claim
    assert list(path.columns) == ["limit", *bounds, "passed", "loss"]
    assert path.passed.iloc[0]
    assert path.passed.tolist() == sorted(path.passed, reverse=True)
    assert sorted(m.limit for m in chosen.candidates_) == list(LIMITS)
    X, _, s = problem(8_000)
    shown = [distance(m.transform(X), s) for m in chosen.candidates_]
    assert np.all(np.diff(shown) > -0.02)
    passed = path[path.passed]
    assert len(passed) >= 2
    assert chosen.estimator_.limit == passed.limit[passed.loss.idxmin()]
    assert chosen.certificate_.total_variation == pytest.approx(path.code_total_variation[passed.loss.idxmin()])
    assert (
        "any decision made from the code alone differ between two groups by at most 0.15" in chosen.certificate_.covers
    )
    assert "draw" not in str(chosen.certificate_)


def test_the_other_release_than_the_certified_one_is_refused(models):
    X, y, s = problem(3_000)
    new = problem(100, seed=1)[0]
    for kind, other in (("hard", "random"), ("random", "hard")):
        model = CertifiedClassifier(exact(release=kind, max_epochs=5), path=(0.6,), max_disparity=0.95, random_state=0)
        model.fit(X, y, sensitive_features=s)
        model.estimator_.release = other
        for use in (model.predict, model.transform, model.predict_proba, lambda rows, m=model: release(m, rows)):
            with pytest.raises(
                InputError, match=f"about the {kind} code, .* releases the {other} one.*release={kind!r}"
            ):
                use(new)


def test_where_no_limit_can_be_proved_the_rows_needed_are_told():
    X, y, s = problem(2_000)
    model = CertifiedClassifier(exact(min_steps=150), path=(0.0, 0.01), max_disparity=0.05, random_state=0)
    with pytest.raises(NotCertifiedError, match=r"disparity of at most 0\.05.*At least about [\d,]+ calibr") as caught:
        model.fit(X, y, sensitive_features=s)
    error = caught.value
    assert (error.limit, error.of, error.rows) == (0.05, "code", 600)
    groups = np.full(2, error.rows_needed // 2)  # about as large
    assert equal_limit(groups, 0.05, "hard") == pytest.approx(0.05, rel=0.05)
    assert len(model.candidates_) == 2


def test_a_limit_that_more_rows_would_not_prove_says_so():
    rng = np.random.default_rng(0)
    s = rng.integers(0, 2, 2_000)
    X = np.column_stack([s, rng.normal(size=2_000)]) + 0.1 * rng.normal(size=(2_000, 2))
    model = CertifiedClassifier(exact(max_epochs=8), path=(1.0,), max_disparity=0.1, random_state=0)
    with pytest.raises(NotCertifiedError, match="Try a larger limit, a larger table") as caught:
        model.fit(X, s, sensitive_features=s)
    assert caught.value.rows_needed is None
    assert caught.value.estimate > 0.9


MANY = np.array([10_000, 10_000])


def test_limits_of_a_hard_code_and_gammas_of_a_random_one_have_their_own_default_path():
    limits = [m.limit for m in CertifiedClassifier(max_disparity=0.1)._stacks(ExactCodeClassifier(), MANY)[0]]
    assert min(limits) == pytest.approx(0.005)
    assert max(limits) == pytest.approx(0.1)
    gammas = [m.gamma for m in CertifiedClassifier(max_disparity=0.1)._stacks(BinaryMIClassifier(), MANY)[0]]
    assert (gammas[0], max(gammas)) == (0.0, 0.999)


@pytest.mark.slow
def test_the_promise_is_broken_no_more_often_than_stated():
    """Confidence 0.5, 40 tables: of a promise that holds half of the time, 27 failures are a chance of 1 in 50."""
    broken, kept = 0, 0
    X_new, _, s_new = problem(100_000, seed=999)
    for seed in range(40):
        X, y, s = problem(4_000, seed=seed)
        model = CertifiedClassifier(
            exact(max_epochs=8), path=LIMITS, max_disparity=0.1, confidence=0.5, random_state=seed
        )
        try:
            model.fit(X, y, sensitive_features=s)
        except NotCertifiedError:
            continue
        kept += 1
        broken += distance(model.transform(X_new), s_new) > 0.1
    assert kept > 10
    assert broken <= 27


def test_linear_codes_start_twice_and_tight_limits_also_get_codes_of_few_words():
    model = CertifiedClassifier(max_disparity=0.5)
    labels, optimum = model._stacks(LinearCodeClassifier(), MANY)
    assert {m.start for m in labels} == {"labels"}
    assert {m.start for m in optimum} == {"optimum"}
    wide, narrow = ([m.limit for m in labels if m.max_words == words] for words in (1024, 4))
    assert len(wide) == 16
    assert (narrow, [m.limit for m in optimum]) == (wide[:4], wide)
    (given,) = model.set_params(path=(0.1, 0.4))._stacks(LinearCodeClassifier(), MANY)
    assert [(m.max_words, m.start) for m in given] == [(1024, "best")] * 2


def test_small_groups_also_get_codes_of_two_words():
    """Where chance alone costs more than half the limit, four words have little left to say anything within it."""
    model = CertifiedClassifier(max_disparity=0.1)
    for size, words in ((250, {1024, 4, 2}), (400, {1024, 4})):
        labels, _ = model._stacks(LinearCodeClassifier(), np.array([size, 10**6]))
        assert {m.max_words for m in labels} == words
        assert sum(m.max_words == 2 for m in labels) == 4 * (2 in words)
    s = np.repeat([0, 1, 2], [70, 700, 1_400])
    rows = model._expected_rows(LinearCodeClassifier(), np.column_stack([s, s > 0]), len(s))
    assert rows.tolist() == pytest.approx([30, 300, 600])


def test_columns_that_are_too_many_to_cross_are_counted_each():
    columns = np.random.default_rng(0).integers(0, 9, (600, 4))
    method, model = LinearCodeClassifier(groups="each"), CertifiedClassifier(max_disparity=0.1)
    smallest = min((np.bincount(column) for column in columns.T), key=min)
    assert model._expected_rows(method, columns, 600).tolist() == pytest.approx((smallest * 3 / 7).tolist())


def test_a_code_that_is_no_better_than_a_safer_one_is_left_out():
    X, y, s = problem(2_000)
    model = CertifiedClassifier(LinearCodeClassifier(max_epochs=5), max_disparity=0.5, random_state=0)
    model.fit(X, y, sensitive_features=s, calibration=np.arange(1_400, 2_000))
    seen = CalibrationRows(X[:1_400], y[:1_400])
    losses = [code_loss(m, seen) for m in model.candidates_]
    assert np.all(np.diff(losses) < 0)
    assert 1 < len(losses) < 36


def test_the_loss_that_chooses_is_the_log_loss_plus_half_the_errors():
    X, y, s = problem(6_000)
    rows = np.arange(3_000, 6_000)
    model = CertifiedClassifier(exact(max_epochs=4), path=(0.3,), max_disparity=0.9)
    model.fit(X, y, sensitive_features=s, calibration=rows)
    p = model.predict_proba(X[rows])[np.arange(3_000), y[rows]]
    wrong = (model.predict(X[rows]) != y[rows]).mean()
    assert model.path_.loss[0] == pytest.approx(-np.log2(p).mean() + wrong / 2, rel=1e-6)
