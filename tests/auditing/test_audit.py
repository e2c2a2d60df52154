"""The audit says what is there, and what cannot be known."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from fairbits import (
    BinaryMIClassifier,
    CertifiedClassifier,
    MissingSensitiveFeaturesWarning,
    VanillaClassifier,
    audit,
)
from fairbits.auditing.auditor import LessFairWarning, worse_than_unmitigated
from fairbits.certificate import SmallGroupWarning, TrainingRowsWarning
from fairbits.datasets import make_independent, make_shifted_bits, make_xor


def table(n=3000, seed=0):
    """x1 tells the label, x2 the group, x3 both."""
    rng = np.random.default_rng(seed)
    y, s = rng.integers(0, 2, (2, n))
    return np.column_stack([2 * y, 2 * s, y + s]) + rng.normal(size=(n, 3)), y, s


@pytest.fixture(scope="module")
def model():
    X, y, s = table()
    settings = {"max_epochs": 10, "hidden_sizes": (16,), "code_size": 4, "random_state": 0}
    return BinaryMIClassifier(gamma=0.5, **settings).fit(X, y, sensitive_features=s)


@pytest.fixture(scope="module")
def found(model):
    X, y, s = table(seed=1)
    return audit(model, X, y, sensitive_features=s)


def test_bit_by_bit_xor_is_innocent_and_the_audit_is_not_fooled():
    data = make_xor(4000, random_state=0)
    result = audit(data.draw_codes(0), sensitive_features=data.groups)
    (leakage,) = result.leakage
    assert leakage.total < 0.005
    assert leakage.lower < leakage.joint
    assert leakage.joint == pytest.approx(data.information, abs=0.03)
    assert result.certificate.total_variation >= data.total_variation
    assert result.adversaries[0].by == "boosting"
    truth = (1 + data.total_variation) / 2
    assert 0.7 < result.adversaries[0].reached <= truth <= result.adversaries[0].at_most
    by_model = {p.model: p for p in result.probes}
    assert by_model["logistic"].auc < 0.55
    assert by_model["boosting"].auc > 0.75


def test_a_model_with_a_code_gets_every_row(found):
    assert not found.unavailable
    assert {(p.view, p.model) for p in found.probes} == {
        (view, probe) for view in ("one draw", "16 draws", "theta") for probe in ("logistic", "boosting")
    }
    assert len(found.leakage[0].each_bit) == 4
    assert found.leakage[0].total == pytest.approx(sum(found.leakage[0].each_bit))
    assert found.certificate.within_labels is not None
    assert {"auc", "one_draw_auc", "gpa", "information"} <= set(found.task)
    assert found.task["information"] == pytest.approx(found.leakage[0].joint, abs=1e-6)


def test_several_draws_tell_more_than_one_and_theta_the_most(found):
    auc = {p.view: p.auc for p in found.probes if p.model == "boosting"}
    assert auc["one draw"] < auc["16 draws"] < auc["theta"] + 0.02


def test_what_a_probe_reaches_is_below_what_nobody_passes(found):
    assert 0.5 <= found.adversaries[0].reached <= found.adversaries[0].at_most


def test_the_record_is_json_and_text(found):
    again = json.loads(json.dumps(found.to_dict()))
    assert again["certificate"]["total_variation"] == found.certificate.total_variation
    assert again["probes"][0]["model"] == "logistic"
    for part in ("Task", "Leakage about", "Certificate", "one draw", "no attack can exceed"):
        assert part in str(found)


def test_a_real_valued_representation_is_told_what_cannot_be_known():
    X, y, s = table(1000)
    for values in (X, pd.DataFrame(X, columns=["a", "b", "c"]).assign(d=np.where(X[:, 0] > 0, "yes", "no"))):
        result = audit(values, y=y, sensitive_features=s)
        assert set(result.unavailable) >= {"certificate", "joint information", "several draws, theta", "task"}
        assert "1000 different values in 1000 rows" in result.unavailable["certificate"]
        assert result.certificate is None
        assert result.adversaries[0].at_most is None
        assert max(p.auc for p in result.probes) > 0.8
        json.dumps(result.to_dict())


def test_a_table_of_few_values_is_a_code():
    """Cells, words and bits are different names of the same values."""
    data = make_shifted_bits(2000, n_bits=3, random_state=0)
    bits = data.draw_codes(0)
    cells = bits @ [4, 2, 1]
    a, b, c = (audit(v, sensitive_features=data.groups) for v in (bits, cells, np.array(list("abcdefgh"))[cells]))
    for other in (b, c):
        assert other.leakage[0].joint == pytest.approx(a.leakage[0].joint, abs=1e-9)
        assert other.certificate.total_variation == pytest.approx(a.certificate.total_variation, abs=1e-9)
    assert (a.subject, b.subject, b.leakage[0].each_bit) == ("the representation", "the decision", None)
    assert a.certificate.total_variation >= data.total_variation


def test_independent_bits_are_acquitted():
    data = make_independent(4000, random_state=0)
    result = audit(data.draw_codes(0), sensitive_features=data.groups)
    assert min(p.p_value for p in result.probes) > 0.01
    assert result.adversaries[0].reached == 0.5
    assert result.leakage[0].lower <= 0.001


def test_other_models_and_pipelines(model):
    X, y, s = table(seed=1)
    plain = make_pipeline(StandardScaler(), VanillaClassifier(max_epochs=3, random_state=0)).fit(X, y)
    X, y, s = table(seed=2)
    hidden = audit(plain, X, y, sensitive_features=s)
    assert "certificate" in hidden.unavailable
    assert hidden.task["auc"] > 0.8
    scores = audit(LogisticRegression().fit(X, y), X, y, sensitive_features=s)
    assert scores.task["auc"] > 0.8
    assert scores.probes[0].view == "as given"


def test_two_columns_and_three_groups(model):
    X, y, s = table(900)
    other = np.array(["a", "b", "c"])[np.arange(900) % 3]
    columns = pd.DataFrame({"sex": s, "city": other})
    each = BinaryMIClassifier(max_epochs=2, groups="each", random_state=0).fit(X, y, sensitive_features=columns)
    X, y, s = table(900, seed=1)
    result = audit(each, X, y, sensitive_features=columns.assign(sex=s))
    assert [leakage.column for leakage in result.leakage] == ["sex", "city"]
    assert [a.column for a in result.adversaries] == ["sex", "city"]
    assert {p.column for p in result.probes} == {"sex", "city"}


def test_concerns_are_recorded_and_raised(model):
    X, y, s = table()
    with pytest.warns(TrainingRowsWarning):
        result = audit(model, X, y, sensitive_features=s)
    assert "played no part in that" in result.concerns[0]
    plain = VanillaClassifier(max_epochs=2, random_state=0).fit(X, y)
    with pytest.warns(TrainingRowsWarning):
        audit(plain, X, y, sensitive_features=s)
    X, y, s = table(seed=1)
    fair = LogisticRegression().fit(X[:, :1], y)
    with pytest.warns(LessFairWarning, match="rates of the class"):
        result = audit(
            make_pipeline(LogisticRegression()).fit(X, s), X, y, sensitive_features=s, unmitigated=_Only(fair)
        )
    assert "Warning: " in str(result)
    tiny = np.where(np.arange(len(s)) < 5, 2, s)
    with pytest.warns(SmallGroupWarning, match="5 calibration rows"):
        audit(make_shifted_bits(len(s), random_state=0).draw_codes(0), sensitive_features=tiny)


class _Only:
    """A model that looks at the first column only."""

    def __init__(self, model):
        self.model, self.classes_ = model, model.classes_

    def predict_proba(self, X):
        return self.model.predict_proba(X[:, :1])


def test_a_certified_model_is_audited_as_the_model_it_chose():
    X, y, s = table(6000)
    inner = BinaryMIClassifier(max_epochs=5, hidden_sizes=(16,), code_size=4, random_state=0)
    chosen = CertifiedClassifier(inner, path=(0.9, 0.97), max_disparity=0.3, random_state=0)
    chosen.fit(X, y, sensitive_features=s)
    X, y, s = table(2000, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert audit(chosen, X, y, sensitive_features=s).subject == "BinaryMIClassifier"


def test_large_tables_are_probed_in_part_and_tiny_groups_do_not_stop_it():
    data = make_shifted_bits(50_000, random_state=0)
    s = np.where(np.arange(50_000) < 6, 2, data.groups)
    with pytest.warns(SmallGroupWarning):
        result = audit(data.draw_codes(0), sensitive_features=s)
    assert {p.rows for p in result.probes} <= {9_999, 10_000}
    assert sum(result.leakage[0].rows.values()) == 50_000


def test_the_audit_is_repeatable(model, found):
    X, y, s = table(seed=1)
    model.random_state = None
    assert audit(model, X, y, sensitive_features=s).task == found.task
    model.random_state = 0


def test_a_model_fitted_without_groups_and_text_labels():
    X, y, _ = table(1500)
    y = np.array(["no", "yes"])[y]
    with pytest.warns(MissingSensitiveFeaturesWarning):
        blind = BinaryMIClassifier(max_epochs=3, random_state=0).fit(X, y)
    X, y, s = table(1500, seed=1)
    result = audit(blind, X, np.array(["no", "yes"])[y], sensitive_features=pd.Series(s, name="sex"))
    assert [b.label for b in result.certificate.bounds] == [None, "no", "yes"]
    assert result.certificate.seeded
    assert all(b.information < 1 for b in result.certificate.bounds)


def test_a_row_more_than_the_quick_probes_take():
    data = make_shifted_bits(20_001, random_state=0)
    assert {p.rows for p in audit(data.draw_codes(0), sensitive_features=data.groups).probes} <= {9_999, 10_000, 10_001}


def test_a_sparse_table_is_a_table():
    data = make_shifted_bits(500, random_state=0)
    dense = audit(data.draw_codes(0), sensitive_features=data.groups)
    assert audit(csr_array(data.draw_codes(0)), sensitive_features=data.groups) == dense


def test_nonsense_is_refused(model):
    X, y, s = table(100)
    with pytest.raises(ValueError, match="draws=0"):
        audit(model, X, sensitive_features=s, draws=0)
    with pytest.raises(ValueError, match="LinearSVC has neither"):
        audit(LinearSVC().fit(X, y), X, sensitive_features=s)
    with pytest.raises(ValueError, match="Pass y"):
        audit(model, X, sensitive_features=s, unmitigated=model)
    with pytest.raises(ValueError, match="probes='many'"):
        audit(X, sensitive_features=s, probes="many")
    with pytest.raises(ValueError, match="X is None"):
        audit(model, sensitive_features=s)
    with pytest.raises(ValueError, match="X=None"):
        audit(X, X, sensitive_features=s)
    with pytest.raises(ValueError, match="finite"):
        audit(np.full((100, 2), np.nan), sensitive_features=s)


def test_scores_that_nobody_receives_are_not_called_less_fair():
    rng = np.random.default_rng(0)
    s = rng.integers(0, 2, 4000)
    X, y = np.column_stack([rng.normal(size=4000), s]), rng.random(4000) < 0.1 + 0.3 * s  # everybody is decided alike
    old, new = slice(2000), slice(2000, None)
    fair = _Only(LogisticRegression().fit(X[:, :1], y))
    decider = CertifiedClassifier([LogisticRegression()], promise="class", max_disparity=0.5, random_state=0)
    decider.fit(X[old], y[old], sensitive_features=s[old])
    for subject, times in ((decider, 0), (LogisticRegression().fit(X[old], y[old]), 1)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            audit(subject, X[new], y[new], sensitive_features=s[new], unmitigated=fair)
        assert sum(issubclass(w.category, LessFairWarning) for w in caught) == times


def test_less_fair_than_unmitigated_is_told_beyond_chance():
    groups = np.arange(4000)[:, None] % 2
    plain = {"gpa": 0.1, "audc": 0.1, "discrimination": 0.1}
    assert worse_than_unmitigated(plain | {"gpa": 0.11}, plain, groups) == []
    (concern,) = worse_than_unmitigated(plain | {"audc": 0.2}, plain, groups)
    assert "scores (AUDC) 0.200 instead of 0.100" in str(concern)
