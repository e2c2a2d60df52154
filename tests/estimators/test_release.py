"""What is released is what the certificate is about, and nobody gets more of it than that."""

import copy
import warnings
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import torch
from battery import CODES, problem, quick
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairbits import (
    BinaryMIClassifier,
    CertifiedClassifier,
    InputError,
    TradeoffPath,
    certify,
    fit_coarse_code,
    release,
)
from fairbits.certificate import (
    AlreadyReleasedError,
    Ledger,
    LostLedgerError,
    OtherPeopleError,
    OtherReleaseError,
    Release,
)
from fairbits.encoding.recognition import LeadingZerosError, person_numbers
from fairbits.information import total_variation


@pytest.fixture(scope="module")
def fitted():
    X, y, s = problem(2000)
    return quick(BinaryMIClassifier, code_size=6, gamma=0.3, min_steps=200).fit(X, y, sensitive_features=s), X, s


@pytest.mark.parametrize("cls", CODES)
def test_a_second_release_of_the_same_people_is_refused(cls, tmp_path):
    X, y, s = problem()
    model = quick(cls).fit(X, y, sensitive_features=s).set_params(random_state=None)
    ledger = tmp_path / "released.ledger"
    release(model, X[:100], ledger=ledger)
    release(model, X[100:], ledger=ledger)
    with pytest.raises(AlreadyReleasedError, match="All 100 people already have a code"):
        release(model, X[:100][::-1], ledger=ledger)
    release(model, X, ledger=tmp_path / "other.ledger")  # a ledger knows nothing of another one


def kinds_of(model, X):
    cells = fit_coarse_code(model, X, 4)
    return {
        "the same": {},
        "several draws": {"draws": 2},
        "noise": {"eps": 0.1},
        "coarse": {"coarse": cells},
        "another coarse": {"coarse": fit_coarse_code(model, X, 3)},
        "coarse, as a table": {"coarse": cells(np.indices([2] * 6).reshape(6, -1).T)},
    }


def test_a_second_release_is_refused_whatever_its_kind(fitted, tmp_path):
    """Eight coarse codes of the same people are eight draws."""
    model, X, _ = fitted
    kinds = kinds_of(model, X)
    for name, first in kinds.items():
        ledger, draws = tmp_path / f"{name}.ledger", first.get("draws", 1)
        assert release(model, X[:50], ledger=ledger, **first).new == 50
        for second in kinds.values():
            most = max(draws, second.get("draws", 1))
            with pytest.raises(AlreadyReleasedError, match="50 of 60 people already have"):
                release(model, X[:60], ledger=ledger, certified_draws=most, **second)
        again = release(model, X[:50], ledger=ledger, repeated="again", eps=0.3, certified_draws=draws)
        assert (again.again, again.most_draws, again.covered) == (50, draws + 1, False)


def test_reuse_gives_the_same_code_of_every_kind_and_no_other(fitted, tmp_path):
    model, X, _ = fitted
    kinds = kinds_of(model, X)
    for name, kind in kinds.items():
        ledger = tmp_path / f"{name}.ledger"
        first = release(model, X[:50], ledger=ledger, **kind)
        assert first.codes.shape == ((50, 1) if "coarse" in kind else (50, 6 * kind.get("draws", 1)))
        again = release(model, X[:60], ledger=ledger, repeated="reuse", **kind)
        np.testing.assert_array_equal(again.codes[:50], first.codes)
        assert (again.reused, again.new, again.most_draws) == (50, 10, kind.get("draws", 1))
    for name in ("coarse", "coarse, as a table"):  # the same cells, written in two ways
        release(model, X[:60], ledger=tmp_path / "coarse.ledger", repeated="reuse", **kinds[name])
    with pytest.raises(OtherReleaseError, match="60 people have a code from another kind of release"):
        release(model, X[:60], ledger=tmp_path / "noise.ledger", repeated="reuse")


def test_released_codes_are_draws_that_no_seed_makes_again(fitted, tmp_path):
    model, X, _ = fitted
    many = np.repeat(X[:20], 400, axis=0)  # identical rows in one call are different people
    released = release(model, many, ledger=tmp_path / "a.ledger", eps=0.1)
    assert (released.alike, released.new) == (20 * 399, 8000)
    mean, theta = released.codes.reshape(20, 400, 6).mean(1), model.code_probabilities(X[:20])
    assert np.abs(mean - (0.1 + 0.8 * theta)).max() < 5 * np.sqrt(0.25 / 400)
    seeded = copy.copy(model)
    seeded.random_state = 0
    drawn = [release(seeded, X, ledger=tmp_path / f"{name}.ledger").codes for name in "bc"]
    assert (drawn[0] != drawn[1]).any()


def test_people_may_be_identified(fitted, tmp_path):
    model, X, _ = fitted
    ledger, ids = tmp_path / "released.ledger", pd.Series(range(100), name="id")
    with Ledger(ledger, ["id"]) as opened:
        first = release(model, X[:100], person=ids, ledger=opened)
        with pytest.raises(AlreadyReleasedError, match=r"1 of 100 people already has a code \(recognised by id\)"):
            release(model, X[:100], person=ids + 99, ledger=opened)
        with pytest.raises(OtherPeopleError, match=r"recognises people by id\. Pass id as `person`"):
            release(model, X[:100], ledger=opened)
    moved = release(model, X[100:200], person=pd.DataFrame({"id": ids[::-1]}), ledger=ledger, repeated="reuse")
    np.testing.assert_array_equal(moved.codes, first.codes[::-1])
    for person, message in (
        (ids[:99], "99 identifiers for 100 rows"),
        (ids * 0, "99 rows have the same id"),
        (ids.where(ids != 6), "Row 7 has no value in id"),
    ):
        with pytest.raises(InputError, match=message):
            release(model, X[:100], person=person, ledger=ledger, repeated="again")
    unnamed = tmp_path / "unnamed.ledger"
    release(model, X[:3], person=["a", "b", "c"], ledger=unnamed)
    with pytest.raises(AlreadyReleasedError, match="2 of 3 people already have"):
        release(model, X[:3], person=np.array(["c", "b", "d"]), ledger=unnamed)


def test_models_in_pipelines_and_certified_ones_share_a_ledger_with_what_they_hold(tmp_path):
    X, y, s = problem(1500)
    method = make_pipeline(StandardScaler(), quick(BinaryMIClassifier, code_size=3))
    model = CertifiedClassifier(method, max_disparity=0.9, path=(0.5,), random_state=0)
    model.fit(X, y, sensitive_features=s)
    first = release(model, X, ledger=tmp_path / "a")
    inner = release(model.estimator_, X, ledger=tmp_path / "a", repeated="reuse")
    np.testing.assert_array_equal(inner.codes, first.codes)
    with pytest.raises(InputError, match="draws=2 is more than the certificate covers"):
        release(model, X, ledger=tmp_path / "b", draws=2)
    with pytest.raises(InputError, match="repeated='never'"):
        release(model, X, ledger=tmp_path / "b", repeated="never")
    with pytest.raises(InputError, match="no code to release"):
        release(StandardScaler().fit(X), X, ledger=tmp_path / "b")


def test_whether_a_release_is_covered_is_unknown_without_names(fitted, tmp_path):
    model, X, _ = fitted
    assert release(model, X[:9], ledger=tmp_path / "a").covered is None
    assert release(model, X[:9], ledger=tmp_path / "a", repeated="again").covered is False
    assert release(model, X[:9], ledger=tmp_path / "b", person=range(9)).covered is True
    assert release(model, X[:9], ledger=tmp_path / "b", person=range(9), repeated="reuse").covered is True
    (tmp_path / "b").unlink()
    with pytest.raises(LostLedgerError, match=r"no ledger in .*b, and .* had 9 entries"):
        release(model, X[:9], ledger=tmp_path / "b", person=range(9))
    for people in (range(9), range(9, 18)):  # once a loss was accepted, nobody can know
        found = release(model, X[:9], ledger=tmp_path / "b", person=people, accept_loss=True)
        assert (found.new, found.covered) == (9, None)


SAME = [
    (100, 100.0, "100", "100 ", "\t100", "100.0", np.int8(100), np.float32(100), Decimal("100.0")),
    ("Zoë", "Zoe\u0308", " Zoë\xa0"),
    ("1980-05-01", pd.Timestamp("1980-05-01"), date(1980, 5, 1), "1980-05-01 00:00:00"),
    (True, "True"),
]


@pytest.mark.parametrize("names", SAME, ids=lambda names: str(names[0]))
def test_a_person_has_one_name_however_it_was_read(fitted, tmp_path, names):
    model, X, _ = fitted
    release(model, X[:1], ledger=tmp_path / "a", person=names[:1])
    for name in names:
        with pytest.raises(AlreadyReleasedError):
            release(model, X[:1], ledger=tmp_path / "a", person=pd.Series([name], name="person"))
        assert len(set(person_numbers(pd.Series([names[0], name], dtype=object), 2))) == 1


def test_a_column_has_the_same_people_as_ints_floats_and_texts(fitted, tmp_path):
    model, X, _ = fitted
    file = pd.DataFrame({"id": [100, 101, None], "part": ["a", "b", "c"]})  # the gap makes it floats
    release(model, X[:3], ledger=tmp_path / "a", person=file)
    for kind in ("Int64", "str", "string", object):
        again = file[:2].astype({"id": "Int64"}).astype({"id": kind})
        with pytest.raises(AlreadyReleasedError, match="All 2 people"):
            release(model, X[:2], ledger=tmp_path / "a", person=again)
    different = ["1.1", "1.10", "a", "A", "100a", "1e2", "-1"]  # nothing else is merged
    assert len(set(person_numbers(different, 7))) == 7
    with pytest.raises(InputError, match="9007199254740992 was read as a decimal number"):
        release(model, X[:1], ledger=tmp_path / "b", person=[9007199254740993.0])


@pytest.mark.parametrize(("first", "second"), [("007", 7), (7, "007"), ("007", "07"), ("00", 0)])
def test_leading_zeros_are_asked_about(fitted, tmp_path, first, second):
    model, X, _ = fitted
    both, asks = pd.Series([first, second], dtype=object), pytest.raises(LeadingZerosError, match=r"Row \d and another")
    with asks:
        release(model, X[:2], ledger=tmp_path / "a", person=both)
    with pytest.raises(LeadingZerosError, match="Row 2 and an earlier one differ only in leading zeros"):
        person_numbers(both, 2)
    with pytest.raises(InputError, match="1 row has the same person as an earlier row"):
        release(model, X[:2], ledger=tmp_path / "a", person=both, leading_zeros="same")
    one = release(model, X[:1], ledger=tmp_path / "a", person=[first])
    with asks:
        release(model, X[:1], ledger=tmp_path / "a", person=[second])
    same = release(model, X[:1], ledger=tmp_path / "a", person=[second], leading_zeros="same", repeated="reuse")
    assert (same.reused, same.codes.tolist()) == (1, one.codes.tolist())
    two = release(model, X[:1], ledger=tmp_path / "a", person=[second], leading_zeros="different")
    assert (two.new, two.most_draws) == (1, 1)
    for people in ([first], [second], both):  # it has been said: nothing more to ask
        again = release(model, X[: len(people)], ledger=tmp_path / "a", person=people, repeated="reuse")
        assert again.reused == len(people)
    apart = release(model, X[:2], ledger=tmp_path / "b", person=both, leading_zeros="different")
    assert apart.new == 2
    with pytest.raises(InputError, match="leading_zeros='no'"):
        release(model, X[:2], ledger=tmp_path / "b", person=both, leading_zeros="no")


def test_identifiers_of_equal_length_with_zeros_are_no_question(fitted, tmp_path):
    model, X, _ = fitted
    people = [f"{i:03d}" for i in range(95, 105)]
    assert release(model, X[:10], ledger=tmp_path / "a", person=people).new == 10
    assert release(model, X[:10], ledger=tmp_path / "a", person=people[::-1], repeated="reuse").reused == 10


def test_a_ledger_for_two_models_notices_people_who_have_codes_of_both(fitted, tmp_path):
    model, X, s = fitted
    other = quick(BinaryMIClassifier, code_size=9, gamma=0.1).fit(X, s, sensitive_features=s)
    ids = pd.Series(range(100), name="id")
    first = release(model, X[:60], ledger=tmp_path / "a", person=ids[:60])
    second = release(other, X[40:100], ledger=tmp_path / "a", person=ids[40:])
    assert (first.other_models, second.other_models) == (0, 20)
    assert (second.new, second.again, second.codes.shape) == (60, 0, (60, 9))
    with pytest.raises(AlreadyReleasedError, match="20 of 60"):
        release(model, X[40:100], ledger=tmp_path / "a", person=ids[40:])
    again = release(model, X[:60], ledger=tmp_path / "a", person=ids[:60], repeated="reuse")
    assert again.other_models == 20
    np.testing.assert_array_equal(again.codes, first.codes)
    again = release(other, X[40:100], ledger=tmp_path / "a", person=ids[40:], repeated="reuse")
    np.testing.assert_array_equal(again.codes, second.codes)


def test_transforming_and_predicting_remember_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y, s = problem()
    path = TradeoffPath(quick(BinaryMIClassifier), [0.0, 0.5], cv=2).fit(X, y, sensitive_features=s)
    inner = path.estimators_[0].set_params(random_state=None)
    state = set(vars(inner))
    assert (inner.transform(X) != inner.transform(X)).any()
    inner.predict(X)
    inner.certify(problem(seed=1)[0], sensitive_features=s)
    inner.sampled_proba(X)
    assert set(vars(inner)) == state
    assert not list(tmp_path.iterdir())


def test_sampled_predictions_are_fresh_draws():
    X, y, s = problem()
    model = quick(BinaryMIClassifier, prediction="sampled").fit(X, y, sensitive_features=s)
    model.set_params(random_state=None)
    assert (model.predict_proba(X) != model.predict_proba(X)).any()


def test_names_are_those_of_one_draw(fitted):
    model, X, _ = fitted
    model.set_output(transform="pandas")
    assert model.transform(X[:50]).shape == (50, 6)
    assert model.draw(X[:50], draws=2).shape == (50, 12)
    model.set_output(transform="default")


def test_several_draws_stand_side_by_side_and_noise_flips_bits(fitted):
    model, X, _ = fitted
    model.random_state = np.random.RandomState(0)
    theta = model.code_probabilities(X)
    drawn = model.draw(X, draws=200, eps=0.2)
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
    drawn = release.cell_probabilities(theta.numpy(), 0)
    assert np.abs(drawn - per_cell.numpy()).max() < 5 * np.sqrt(0.25 / 64)
    out = model.draw(X_new, coarse=cells)
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
    some = certify(theta[:1000], sensitive_features=s[:1000], random_state=0)
    assert some.total_variation == 1
    cells = certify(theta, sensitive_features=s, coarse=lambda codes: codes[:, :2].astype(int) @ [2, 1])
    assert cells.total_variation < 0.1


def test_nonsense_is_refused(fitted):
    model, X, _ = fitted
    with pytest.raises(ValueError, match="draws=0"):
        model.draw(X, draws=0)
    with pytest.raises(ValueError, match=r"eps=0\.5"):
        model.draw(X, eps=0.5)
    with pytest.raises(ValueError, match="64 words"):
        model.draw(X, coarse=np.zeros(8, int))
    with pytest.raises(ValueError, match="whole number"):
        model.draw(X, coarse=lambda codes: codes.mean(1))
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


def test_a_hard_code_is_released_without_random_numbers():
    theta = np.array([[0.0, 1.0], [1.0, 0.0]])

    def refuse(n, m):
        raise AssertionError("drawn")

    assert Release(hard=True).draw(theta, refuse).tolist() == [[0, 1], [1, 0]]
    with pytest.raises(AssertionError, match="drawn"):
        Release().draw(theta, refuse)
    edge = Release().draw(np.array([[0.0, 0.5, 0.75, 1.0]]), lambda n, m: np.array([[0.0, 0.5, 0.5, 0.999]]))
    assert edge.tolist() == [[0, 0, 1, 1]]
    assert edge.dtype == np.uint8
