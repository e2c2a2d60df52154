"""Bounds at all times: laws, a reference by integration, coverage, and states that survive a file."""

import json
import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import binom, norm

from benchmarks import coverage
from fairbits import CertificateMonitor, InputError, certify
from fairbits.certificate.anytime import TwoGroups, Watched, anytime_slack, log_evidence
from fairbits.certificate.confidence_bounds import GroupSums
from fairbits.encoding import GroupEncoder

LIMIT, DELTA = 0.1, 0.05
WATCHED = Watched(LIMIT, DELTA)


def mixture(gain, weight):
    """Integrate the evidence at every bet over half a normal law of bets."""
    law = norm(scale=2 * LIMIT)
    return quad(lambda bet: 2 * law.pdf(bet) * np.exp(bet * gain - bet**2 * weight / 8), 0, 40 * LIMIT, limit=500)[0]


def people(n, seed):
    rng = np.random.default_rng(seed)
    s = rng.integers(0, 3, n)
    return rng.normal(size=(n, 3)) + 0.3 * s[:, None], s


@pytest.fixture(params=["hard", "random"])
def model(request):
    """Return what a monitor needs of a fitted model with a code of three bits."""
    hard = request.param == "hard"
    known = {"group_encoder_": GroupEncoder().fit(np.arange(30) % 3), "is_hard": hard, "random_state": None}
    code = (lambda X: (X > 0).astype(float)) if hard else expit
    return SimpleNamespace(**known, predict=None, code_probabilities=code)


def decisions(n, seed, told=0.0, groups=2):
    rng = np.random.default_rng(seed)
    s = rng.integers(0, groups, n)
    return np.where(rng.random(n) < 0.5 + told * (s == 0), "yes", "no"), s


def watched(batches, told=0.0, n=1000, seed=0, groups=2, **options):
    monitor = CertificateMonitor(LIMIT, **options)
    for i in range(batches):
        values, s = decisions(n, seed + i, told, groups)
        monitor.add(values, sensitive_features=s, batch=f"day {i}")
    return monitor


@pytest.mark.parametrize(("gain", "weight"), [(5.0, 30.0), (-8.0, 200.0), (40.0, 900.0)])
def test_the_evidence_is_that_of_all_bets_and_of_all_starts(gain, weight):
    level = 0.03
    one = log_evidence(np.array([gain]), np.array([weight]), level, LIMIT)
    assert np.exp(one) == pytest.approx(mixture(gain - level * weight, weight) / 2, rel=1e-7)
    two = log_evidence(np.array([3.0, gain]), np.array([10.0, weight]), level, LIMIT)
    parts = mixture(gain - level * weight, weight) / 2 + mixture(gain - 3 - level * (weight - 10), weight - 10) / 6
    assert np.exp(two) == pytest.approx(parts, rel=1e-7)


@pytest.mark.parametrize("weight", [1.0, 100.0, 794.0, 1e5])
def test_the_slack_is_where_the_evidence_reaches_its_level(weight):
    slack = anytime_slack(weight, LIMIT, DELTA)
    assert mixture(weight * slack, weight) == pytest.approx(1 / DELTA, rel=1e-6)
    hoeffding = math.sqrt(math.log(1 / DELTA) / 2 / weight)
    assert slack > hoeffding
    if weight == 794.0:  # the planned size
        assert slack < 1.14 * hoeffding


@pytest.mark.parametrize(("p", "q"), [(0.5, 0.5), (0.55, 0.45), (0.1, 0.02), (1.0, 0.0)])
def test_the_evidence_is_at_most_1_on_average(p, q):
    """Sum over the exact law of two binomials: the heart of the proof."""
    n, m = 12, 30
    weight = n * m / (n + m)
    gains = weight * (np.arange(n + 1)[:, None] / n - np.arange(m + 1) / m)
    chances = binom.pmf(np.arange(n + 1), n, p)[:, None] * binom.pmf(np.arange(m + 1), m, q)
    evidence = 2 * np.exp(log_evidence(gains[..., None], np.array([weight]), p - q, LIMIT))
    assert (chances * evidence).sum() <= 1 + 1e-9


def test_false_statements_are_rare_at_all_times_together():
    """A hard bit near a fair coin at the limit is the worst case; it is looked at after each of 30 batches."""
    rng, streams, n, truth = np.random.default_rng(0), 2000, 80, LIMIT
    shown = (rng.binomial(n, 0.55, (streams, 30)) - rng.binomial(n, 0.45, (streams, 30))) / n
    weights = np.arange(1, 31) * n / 2
    pooled = np.abs(np.cumsum(n / 2 * shown, 1)) / weights
    slack = np.array([anytime_slack(w, LIMIT, DELTA) for w in weights])
    below = (pooled + slack < truth).any(1)
    before = np.sign(np.cumsum(shown, 1))[:, :-1]  # the set that the batches before choose
    gains = np.cumsum(n / 2 * before * shown[:, 1:], 1)
    evidence = [log_evidence(gains[:, :t], weights[:t], truth, LIMIT) for t in range(1, 30)]
    above = (np.max(evidence, 0) > math.log(1 / DELTA)).sum()
    assert 0 < below.sum() <= binom.isf(1e-3, streams, DELTA)
    assert 0 < above <= binom.isf(1e-3, streams, DELTA)
    fixed = (pooled + np.sqrt(math.log(1 / DELTA) / 2 / weights) < truth).any(1)
    assert below.sum() < fixed.sum()  # a bound for one look, looked at 30 times


def test_one_batch_is_close_to_the_certificate_of_one_time():
    values, s = decisions(3200, 0)
    once = certify(values, sensitive_features=s, theorem="Hoeffding")
    found = CertificateMonitor(LIMIT).add(values, sensitive_features=s)
    shown = once.bounds[0].estimated_total_variation
    assert once.total_variation < found.at_most < shown + 1.14 * (once.total_variation - shown)
    assert found.at_least == 0.0  # no batch before it has chosen a set


def test_the_order_of_rows_and_the_names_of_groups_do_not_matter():
    values, s = decisions(900, 0, groups=3)
    order = np.random.default_rng(1).permutation(900)
    one = CertificateMonitor(LIMIT).add(values, sensitive_features=s)
    other = CertificateMonitor(LIMIT).add(values[order], sensitive_features=np.array(list("cab"))[s[order]])
    assert one.at_most == pytest.approx(other.at_most, abs=1e-12)


def test_verdicts_and_their_history():
    assert CertificateMonitor(LIMIT).verdict == "open"
    fair, unfair = watched(6), watched(6, told=0.3)
    assert fair.verdict == "proved"
    assert unfair.verdict == "contradicted"
    assert fair.history.verdict.tolist()[0] == unfair.history.verdict.tolist()[0] == "open"
    for monitor, truth in ((fair, 0.0), (unfair, 0.3)):
        assert monitor.at_least <= truth <= monitor.at_most
        assert monitor.history.rows.tolist() == [1000 * i for i in range(1, 7)]
        assert monitor.history.at_most.is_monotonic_decreasing
        assert monitor.history.at_least.is_monotonic_increasing
        assert json.loads(json.dumps(monitor.to_dict()))["verdict"] == monitor.verdict
    assert "at 95% confidence" in str(fair)
    assert "at most 0.1" in str(fair)


def test_a_change_after_the_proof_is_noticed_in_either_direction():
    monitor = watched(8, told=-0.05)
    assert monitor.verdict == "proved"
    for i in range(12):
        values, s = decisions(1000, 50 + i, told=0.25)
        monitor.add(values, sensitive_features=s)
    assert monitor.verdict == "contradicted"
    assert "The population changed: the disparity is at least" in str(monitor)


def test_rows_of_one_group_wait_for_the_other():
    values, s = decisions(600, 0)
    waiting, whole = CertificateMonitor(LIMIT), CertificateMonitor(LIMIT)
    values, s = [np.concatenate([part, part[:300]]) for part in (values, s)]
    first = np.flatnonzero(np.arange(900) < 600)
    whole.add(values[first], sensitive_features=s[first])
    waiting.add(values[first], sensitive_features=s[first])
    for group in (0, 1):
        rows = np.flatnonzero((np.arange(900) >= 600) & (s == group))
        before = waiting.at_most
        waiting.add(values[rows], sensitive_features=s[rows])
        assert (waiting.at_most == before) == (group == 0)
    whole.add(values[600:], sensitive_features=s[600:])
    assert waiting.at_most == whole.at_most
    assert waiting._pairs[0].gains == whole._pairs[0].gains


def test_a_group_without_rows_leaves_the_limit_open(model):
    X, s = people(400, 3)
    monitor = CertificateMonitor(0.9).add(model, X[s < 2], sensitive_features=s[s < 2])
    assert monitor.at_most == 1.0
    assert monitor.waiting == ["sensitive_features: 2"]
    assert "No rows yet from: sensitive_features: 2" in str(monitor)
    assert monitor.add(model, X, sensitive_features=s).waiting == []


def test_codes_are_watched_as_they_are_certified(model):
    X, s = people(2000, 1)
    once = certify(model, X, sensitive_features=s, theorem="Hoeffding").bounds[0]
    monitor = CertificateMonitor(0.2).add(model, X, sensitive_features=s)
    assert once.estimated_total_variation == pytest.approx(max(pair.shown for pair in monitor._pairs), abs=1e-9)
    assert monitor.at_most > once.total_variation
    with pytest.raises(InputError, match="another kind of code"):
        monitor.add(np.zeros(2000, int), sensitive_features=s)


def test_people_count_once():
    values, s = decisions(400, 0)
    person = np.arange(400)
    once = CertificateMonitor(LIMIT).add(values, sensitive_features=s, person=person)
    rows = np.repeat(person, 5)
    often = CertificateMonitor(LIMIT).add(values[rows], sensitive_features=s[rows], person=rows)
    assert often.at_most == pytest.approx(once.at_most, abs=1e-12)
    assert often.rows == 400
    with pytest.raises(InputError, match="person"):
        often.add(values, sensitive_features=s)


def test_new_decisions_and_several_columns():
    values, s = decisions(800, 0)
    table = pd.DataFrame({"sex": np.where(s, "F", "M"), "old": np.arange(800) % 2})
    each = CertificateMonitor(LIMIT, groups="each").add(values, sensitive_features=table)
    crossed = CertificateMonitor(LIMIT).add(values, sensitive_features=table)
    assert (len(each._pairs), len(crossed._pairs)) == (2, 6)
    each.add(np.where(np.arange(800) % 3, values, "later"), sensitive_features=table)
    assert each.decisions == ["no", "yes", "later"]
    assert [len(pair.table) for pair in each._pairs] == [3, 3]
    swapped = CertificateMonitor(LIMIT).add(values[::-1], sensitive_features=table[::-1])  # other decisions come first
    swapped.add(values, sensitive_features=table)
    crossed.add(values, sensitive_features=table)
    assert swapped.at_most == pytest.approx(crossed.at_most, abs=1e-12)


@pytest.mark.parametrize("groups", [2, 3])
def test_a_state_goes_on_from_its_file_to_the_byte(groups, tmp_path):
    through = watched(5, told=0.2, groups=groups, about="loans")
    through.save(tmp_path / "through.json")
    monitor = CertificateMonitor(LIMIT, about="loans")
    for i in range(5):
        monitor.save(tmp_path / "part.json")
        monitor = CertificateMonitor.load(tmp_path / "part.json")
        values, s = decisions(1000, i, 0.2, groups)
        monitor.add(values, sensitive_features=s, batch=f"day {i}")
    monitor.save(tmp_path / "part.json")
    assert (tmp_path / "part.json").read_bytes() == (tmp_path / "through.json").read_bytes()
    read = CertificateMonitor.load(tmp_path / "part.json")
    for one, other in zip(read._pairs, through._pairs, strict=True):
        assert np.array_equal(one.recent, other.recent)
        assert np.array_equal(one.table, other.table)
    with pytest.raises(InputError, match="added before"):
        read.add(values, sensitive_features=s, batch="day 3")


def test_a_refused_batch_leaves_the_state_as_it_was(tmp_path):
    monitor = watched(2)
    monitor.save(tmp_path / "before.json")
    values, s = decisions(100, 9)
    for wrong in ({"sensitive_features": s + 5}, {"sensitive_features": s, "person": s[:5]}):
        with pytest.raises(InputError):
            monitor.add(values, **wrong)
    with pytest.raises(InputError, match="levels"):
        monitor.add(np.linspace(0, 1, 100), sensitive_features=s)
    monitor.save(tmp_path / "after.json")
    assert (tmp_path / "after.json").read_bytes() == (tmp_path / "before.json").read_bytes()
    for wrong in ({"limit": 0}, {"limit": 1.0}, {"limit": 0.1, "confidence": 1}):
        with pytest.raises(InputError, match="above 0 and below 1"):
            CertificateMonitor(**wrong)


@pytest.mark.parametrize(
    "damage",
    [
        lambda c: c.update(limit=1.5),
        lambda c: c.update(more=1),
        lambda c: c.update(format=2),
        lambda c: c.update(groups="none"),
        lambda c: c.update(cells=[0, 5]),
        lambda c: c["batches"].pop(),
        lambda c: c["history"].pop(),
        lambda c: c["history"][0].__setitem__(0, 10**9),
        lambda c: c["history"][0].__setitem__(2, 0.0),
        lambda c: c["pairs"].pop(),
        lambda c: c["sensitive"][0]["labels"].append("third"),
        lambda c: c["pairs"][0]["table"].pop(),
        lambda c: c["pairs"][0]["table"].__setitem__(0, 1e9),
        lambda c: c["pairs"][0]["people"].__setitem__(0, 3),
        lambda c: c["pairs"][0]["gains"].__setitem__(0, 1e9),
        lambda c: c["pairs"][0]["weights"].pop(),
        lambda c: c["pairs"][0].update(at_most=0.001),
        lambda c: c["pairs"][0].update(weight=float("nan")),
    ],
)
def test_a_damaged_file_gets_a_sentence(damage, tmp_path):
    watched(3, n=100).save(file := tmp_path / "state.json")
    content = json.loads(file.read_text())
    damage(content)
    file.write_text(json.dumps(content))
    with pytest.raises(InputError, match="damaged"):
        CertificateMonitor.load(file)


def test_a_file_that_is_cut_off_or_absent_gets_a_sentence(tmp_path):
    watched(2, n=100).save(file := tmp_path / "state.json")
    file.write_bytes(file.read_bytes()[:-20])
    for path in (file, tmp_path / "absent.json"):
        with pytest.raises(InputError, match=r"damaged|No such file"):
            CertificateMonitor.load(path)


def test_the_streams_of_the_benchmark_are_those_of_two_groups():
    law, size = np.array([[0.2, 0.3, 0.5], [0.4, 0.3, 0.3]]), coverage.SIZE
    shown, gains, weights = coverage.streams(np.random.default_rng(5), [law] * 12, 3)
    alarms, rng = coverage.alarms(gains, weights, 0.05), np.random.default_rng(5)
    pairs = [TwoGroups.empty(3) for _ in range(3)]
    assert alarms.any()
    for t in range(12):
        for pair, words in zip(pairs, rng.multinomial(size, law, (3, 2)).astype(float), strict=True):
            pair.add(GroupSums(words, np.array([size, size])), coverage.WATCHED)
        assert np.allclose([pair.shown for pair in pairs], shown[:, t])
        assert [pair.at_least > 0.05 for pair in pairs] == [0 < alarm <= t for alarm in alarms]
    assert np.allclose([pair.gains for pair in pairs], gains)


def test_two_groups_of_unequal_size_and_one_of_many_pairs():
    sums = GroupSums(np.array([[300.0, 100.0], [50.0, 50.0]]), np.array([400, 100]))
    found = []
    for pairs in (1, 10):
        pair = TwoGroups.empty(2)
        pair.add(sums, Watched(LIMIT, DELTA, pairs))
        assert pair.shown == 0.25
        assert pair.at_most == pytest.approx(0.25 + anytime_slack(80.0, LIMIT, DELTA))
        for _ in range(9):
            pair.add(sums, Watched(LIMIT, DELTA, pairs))
        at_the_bound = log_evidence(np.array(pair.gains), np.array(pair.weights), pair.at_least, LIMIT)
        assert np.exp(at_the_bound) == pytest.approx(pairs / DELTA, rel=1e-3)
        found.append(pair.at_least)
    assert 0.25 > found[0] > found[1] > 0
