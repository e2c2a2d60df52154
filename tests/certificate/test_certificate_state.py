"""Sums that add up: parts of the rows, places that share no rows, files that are damaged."""

import copy
import json

import numpy as np
import pytest
from battery import LEARNS, quick
from scipy.special import expit

from fairbits import BinaryMIClassifier, CertificateState, ExactCodeClassifier, InputError, certify
from fairbits.encoding import GroupEncoder

SHARDS = 20


def problem(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    s = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 4)) + 0.3 * s[:, None]
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int), s


@pytest.fixture(scope="module", params=["hard", "random"])
def model(request):
    cls, code_size = (ExactCodeClassifier, 3) if request.param == "hard" else (BinaryMIClassifier, 6)
    X, y, s = problem(800)
    return quick(cls, code_size=code_size, **LEARNS).fit(X, y, sensitive_features=s)


def states(model, X, y, s, **options):
    for rows in np.array_split(np.random.default_rng(0).permutation(len(X)), SHARDS):
        person = {"person": rows} if options.get("by_person") else {}
        yield CertificateState(model, **options).add(X[rows], sensitive_features=s[rows], y=y[rows], **person)


@pytest.mark.parametrize("by_person", [False, True])
def test_twenty_shards_give_the_certificate_of_the_whole(model, by_person, tmp_path, monkeypatch):
    X, y, s = problem(seed=1)
    if not model.is_hard:  # the network's own depend on the size of a batch, in the eighth digit
        monkeypatch.setattr(model, "code_probabilities", lambda X: expit(np.column_stack([X, X[:, :2] - X[:, 2:]])))
    person = {"person": np.arange(len(X))} if by_person else {}
    whole = certify(model, X, sensitive_features=s, y=y, **person)
    merged = None
    for i, state in enumerate(states(model, X, y, s, labels=[0, 1], by_person=by_person)):
        state.save(tmp_path / f"{i}.json", min_group_size=1)
        state = CertificateState.load(tmp_path / f"{i}.json")
        merged = state if merged is None else merged.merge(state)
    found = merged.finish()
    if model.is_hard and not by_person:
        assert found == whole
    for one, other in zip(found.bounds, whole.bounds, strict=True):
        assert (one.column, one.label, one.rows, one.theorem) == (other.column, other.label, other.rows, other.theorem)
        assert one.estimated_total_variation == pytest.approx(other.estimated_total_variation, abs=1e-12)
        assert one.total_variation == pytest.approx(other.total_variation, abs=1e-12)
        assert one.information == pytest.approx(other.information, abs=1e-12)
    assert found.covers == whole.covers


@pytest.mark.parametrize("decisions", [["no", "yes"], ["a", "b", "c"]])
def test_decisions_add_up_too(decisions, tmp_path):
    _, y, s = problem(seed=1)
    decided, encoder = np.array(decisions)[(y + s) % len(decisions)], GroupEncoder(min_group_size=1).fit(s)
    merged = CertificateState(decisions, groups=encoder, labels=[0, 1])
    for rows in np.array_split(np.arange(len(s)), SHARDS):
        part = CertificateState(decisions, groups=encoder, labels=[0, 1])
        part.add(decided[rows], sensitive_features=s[rows], y=y[rows]).save(tmp_path / "part.json", min_group_size=1)
        merged.merge(CertificateState.load(tmp_path / "part.json"))
    assert merged.finish() == certify(decided, sensitive_features=s, y=y)
    with pytest.raises(InputError, match=r"one of the decisions \['"):
        merged.add(np.array(["maybe"]), sensitive_features=s[:1], y=y[:1])
    with pytest.raises(InputError, match="different codes"):
        merged.merge(CertificateState([*decisions, "more"], groups=encoder, labels=[0, 1]))


def test_states_of_different_models_are_not_merged(model, tmp_path):
    X, _, s = problem(200, seed=1)
    other = copy.deepcopy(model)
    next(iter(other.net_.parameters())).data.add_(1)
    CertificateState(other).add(X, sensitive_features=s).save(tmp_path / "other.json")
    same = CertificateState(copy.deepcopy(model)).add(X, sensitive_features=s)
    same.seeded = True
    state = CertificateState(model)
    for another in (CertificateState(other), CertificateState.load(tmp_path / "other.json")):
        with pytest.raises(InputError, match="of different models"):
            state.merge(another)
    assert state.merge(same).seeded
    assert "anyone who knows the fixed seed that this model draws with" in state.finish().does_not_cover


def test_a_state_keeps_growing_after_a_certificate(model):
    X, _, s = problem(seed=1)
    state = CertificateState(model).add(X[:1000], sensitive_features=s[:1000])
    first = state.finish()
    second = state.add(X[1000:], sensitive_features=s[1000:]).finish()
    assert second.total_variation < first.total_variation
    assert second.bounds[0].rows == certify(model, X, sensitive_features=s).bounds[0].rows


def test_nonsense_gets_a_sentence(model, tmp_path):
    X, y, s = problem(60, seed=1)
    state = CertificateState(model)
    cases = [
        (
            "a second group|needs an identifier|counts rows as people",
            lambda: state.add(X, sensitive_features=s, person=s),
        ),
        ("y must be among", lambda: CertificateState(model, labels=[0, 1]).add(X, sensitive_features=s)),
        ("y must be among", lambda: CertificateState(model, labels=[0]).add(X, sensitive_features=s, y=y)),
        ("different codes", lambda: state.merge(CertificateState(model, labels=[0, 1]))),
        ("no code", lambda: CertificateState(object())),
    ]
    for message, call in cases:
        with pytest.raises(InputError, match=message):
            call()
    few = CertificateState(model).add(X[:9], sensitive_features=s[:9])
    with pytest.raises(InputError, match="not shared"):
        few.save(tmp_path / "few.json")
    assert not (tmp_path / "few.json").exists()
    state.add(X, sensitive_features=s).save(tmp_path / "state.json")
    with pytest.raises(InputError, match="cannot add rows to a state"):
        CertificateState.load(tmp_path / "state.json").add(X, sensitive_features=s)


@pytest.mark.parametrize(
    "damage",
    [
        lambda c: c.update(bits=40),
        lambda c: c.update(hard="no"),
        lambda c: c.update(more=1),
        lambda c: c.update(format=2),
        lambda c: c["sums"].clear(),
        lambda c: c["sums"][0]["people"].append(1),
        lambda c: c["sums"][0]["people"].__setitem__(0, 10**6),
        lambda c: c["sums"][0]["words"][0].pop(),
        lambda c: c["sums"][0]["words"][0].__setitem__(0, -1.0),
        lambda c: c["sums"][0]["names"].pop(),
    ],
)
def test_an_edited_file_is_refused(model, damage, tmp_path):
    X, _, s = problem(200, seed=1)
    CertificateState(model).add(X, sensitive_features=s).save(tmp_path / "state.json")
    content = json.loads((tmp_path / "state.json").read_text())
    damage(content)
    (tmp_path / "state.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match="damaged"):
        CertificateState.load(tmp_path / "state.json")
    with pytest.raises(InputError):
        CertificateState.load(tmp_path / "absent.json")
