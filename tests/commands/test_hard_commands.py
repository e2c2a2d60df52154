"""Hard codes on the command line: nothing is drawn, a ledger is kept on request, and predictions are covered."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
from people import population

import fairbits as library
from fairbits.modelfile.manifest import write_record
from fairbits.tables import table_file as files

BITS = [f"bit{i}" for i in range(4)]


@pytest.fixture
def place(hard, seeing, tmp_path, monkeypatch):
    """Return a folder with a model, one that reads the sensitive column, and new people."""
    shutil.copytree(hard / "m", tmp_path / "m")
    shutil.copytree(seeing / "m", tmp_path / "e")
    population(300, 7).to_csv(tmp_path / "new.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_codes_are_the_same_at_every_call_and_leave_no_trace(place, fairbits):
    before = contents(place / "m")
    first = fairbits("transform", "m", "new.csv", "-o", "a.csv")
    assert first.code == 0, first.err
    assert "300 codes written to a.csv. The same data always give the same codes." in first.out
    assert "The certificate covers them" in first.out
    assert fairbits("transform", "m", "new.csv", "-o", "b.csv").code == 0
    assert (place / "a.csv").read_text() == (place / "b.csv").read_text()
    assert contents(place / "m") == before
    assert "does not know whether a recipient also gets the output of another model" in first.out
    assert "pass --person, and the same --ledger for all models" in first.out


def test_a_ledger_notices_a_second_model_and_no_repeat_of_the_first(place, fairbits):
    people, shared = population(300, 7), ["--person", "id", "--ledger", "shared.ledger"]
    for output in ("a.csv", "b.csv"):
        ended = fairbits("transform", "m", "new.csv", "-o", output, *shared)
        assert ended.out.splitlines()[1:] == ["The certificate covers them, and everything made from them alone."]
    fairbits("transform", "m", "new.csv", "-o", "c.csv")
    assert (place / "a.csv").read_text() == (place / "b.csv").read_text() == (place / "c.csv").read_text()
    ended = fairbits("predict", "e", "new.csv", *shared, "--json")
    record = json.loads(ended.out)
    assert (record["other_models"], record["new"], record["covered"]) == (300, 300, True)
    assert "300 also got a code of another model" in fairbits("transform", "m", "new.csv", *shared).out
    people.assign(grade=people.grade.to_numpy()[::-1]).to_csv("changed.csv", index=False)
    assert "of 300 people already have a code" in fairbits("transform", "m", "changed.csv", "-o", "d.csv", *shared).err
    ended = fairbits("transform", "m", "changed.csv", "-o", "d.csv", *shared, "--again")
    assert "people now have up to 2 codes, because their data changed" in ended.out
    assert "covers them" not in ended.out
    ended = fairbits("transform", "m", "new.csv", "-o", "f.csv", "--ledger", "unnamed.ledger", "--accept-loss")
    assert "does not know whether a recipient" in ended.out


def test_codes_are_those_of_the_model_whatever_the_order_the_pieces_and_the_file(place, fairbits, monkeypatch):
    fairbits("transform", "m", "new.csv", "-o", "a.csv")
    people = population(300, 7)
    model = library.load("m/model")
    expected = model.transform(people.assign(day=pd.to_datetime(people.day))[["grade", "height", "job", "day"]])
    np.testing.assert_array_equal(pd.read_csv("a.csv")[BITS], expected)
    people[::-1].to_parquet("turned.parquet")
    monkeypatch.setattr(files, "PIECE_ROWS", 70)
    assert fairbits("transform", "m", "turned.parquet", "-o", "b.csv", "--keep", "id").code == 0
    turned = pd.read_csv("b.csv")
    np.testing.assert_array_equal(turned[BITS][::-1], expected)
    assert turned.id.tolist() == people.id.tolist()[::-1]


def test_predictions_are_functions_of_the_code_and_covered(place, fairbits):
    fairbits("transform", "m", "new.csv", "-o", "bits.csv")
    ended = fairbits("predict", "m", "new.csv", "-o", "p.csv", "--keep", "id", "--probabilities")
    assert ended.code == 0, ended.err
    assert "The certificate covers them" in ended.out
    assert "does not cover the columns you kept (id)" in ended.out
    found = pd.read_csv("p.csv")
    assert found.columns.tolist() == ["id", "prediction", "probability_no", "probability_yes"]
    codes = pd.read_csv("bits.csv")[BITS]
    decoded = library.load("m/model")[-1].decode(codes.to_numpy())
    np.testing.assert_allclose(found[["probability_no", "probability_yes"]], decoded, atol=1e-6)
    assert (found.prediction == np.where(found.probability_yes > 0.5, "yes", "no")).all()
    assert found.groupby([codes[bit] for bit in BITS]).probability_yes.nunique().max() == 1
    record = json.loads(fairbits("predict", "m", "new.csv", "-o", "q.csv", "--json").out)
    assert record == {"output": "q.csv", "rows": 300, "covered": True, "notes": []}
    pd.testing.assert_frame_equal(pd.read_csv("q.csv"), found[["prediction"]])  # the class alone, unless you ask


def test_labels_are_for_limits_within_them(place, fairbits):
    assert "has no limit within labels. Leave --label out" in fairbits("certify", "m", "new.csv", "--label", "paid").err


def test_a_model_that_could_not_be_certified_says_so(place, fairbits):
    record = json.loads((place / "m" / "audit.json").read_text()) | {"certified": False}
    write_record(place / "m", record)
    ended = fairbits("transform", "m", "new.csv", "-o", "a.csv")
    assert "Warning: the limit of the fit could not be certified" in ended.out
    assert "covers them" not in ended.out
    assert not json.loads(fairbits("predict", "m", "new.csv", "-o", "b.csv", "--json").out)["covered"]


def test_new_rows_confirm_or_contradict(place, fairbits):
    population(3000, 5).to_csv("alike.csv", index=False)
    ended = fairbits("certify", "m", "alike.csv", "--json")
    assert ended.code == 0, ended.err
    record = json.loads(ended.out)
    assert record["verdict"] == "confirmed"
    assert [(c["of"], c["what"], c["said"]) for c in record["compared"]] == [("code", "disparity", 0.7)]
    assert record["certificate"]["release"]["hard"]
    assert "any decision made from the code of a person differ" in fairbits("certify", "m", "alike.csv").out
    population(3000, 5, told=3.0).to_csv("told.csv", index=False)
    assert fairbits("certify", "m", "told.csv").code == 4


@pytest.mark.parametrize("model", ["m", "e"])
@pytest.mark.parametrize("change", ["none", "order", "label missing"])
def test_the_table_of_the_fit_is_recognised(place, fairbits, monkeypatch, model, change):
    table = population(600, 0)
    if change == "order":
        table = table.sample(frac=1, random_state=0)
    if change == "label missing":
        table = pd.concat([population(30, 9).assign(paid=None), table])
    table.to_csv("again.csv", index=False)
    monkeypatch.setattr(files, "PIECE_ROWS", 170)  # the fit reads it in other pieces
    ended = fairbits("certify", model, "again.csv")
    assert ended.code == 3, ended.out
    assert "Invalid: these rows were used in the fit." in ended.out


def test_an_audit_is_of_the_code(place, fairbits):
    ended = fairbits("audit", "new.csv", "--model", "m", "--label", "paid", "--json")
    assert ended.code == 0, ended.err
    (found,) = json.loads(ended.out)["audits"]
    assert found["subject"] == "LinearCodeClassifier"
    assert found["task"]["auc"] > 0.7
    assert {p["view"] for p in found["probes"]} == {"code"}


def test_a_model_that_reads_the_sensitive_column_reads_it_from_the_table(place, fairbits):
    ended = fairbits("transform", "e", "new.csv", "-o", "a.csv")
    assert ended.code == 0, ended.err
    people = population(300, 7)
    X = people.assign(day=pd.to_datetime(people.day))[["grade", "height", "job", "day"]]
    model = library.load("e/model")
    seen = model[0].transform(X, sensitive_features=people[["sex"]])
    np.testing.assert_array_equal(pd.read_csv("a.csv")[BITS], model[-1].transform(seen))
    assert fairbits("predict", "e", "new.csv", "-o", "p.csv").code == 0


def test_rows_of_unknown_groups_are_left_out_of_its_certificate(place, fairbits):
    table = population(900, 5)
    table.loc[:9, "sex"] = "X"
    table.loc[600:619, "sex"] = None
    table.to_csv("odd.csv", index=False)
    known = table[table.sex.isin(["F", "M"])]
    known.to_csv("known.csv", index=False)
    odd, alone = (json.loads(fairbits("certify", "e", name, "--json").out) for name in ("odd.csv", "known.csv"))
    assert odd["rows"] == 870
    assert odd["certificate"]["bounds"] == alone["certificate"]["bounds"]
    assert fairbits("audit", "odd.csv", "--model", "e", "--label", "paid").code == 0


@pytest.mark.parametrize("command", ["transform", "predict"])
def test_kept_cells_are_made_harmless_on_request(place, fairbits, command):
    table = pd.read_csv("new.csv").assign(note="=HYPERLINK(1)", change="-5")
    table.to_csv("risky.csv", index=False)
    for more, note in (([], "=HYPERLINK(1)"), (["--safe-cells"], "'=HYPERLINK(1)")):
        ended = fairbits(command, "m", "risky.csv", "-o", f"{len(more)}.csv", "--keep", "note,change,grade", *more)
        assert ended.code == 0, ended.err
        written = pd.read_csv(f"{len(more)}.csv")
        assert set(written.note) == {note}
        assert set(written.change) == {-5}
        assert written.grade.tolist() == table.grade.tolist()


def test_a_model_that_promises_its_class_writes_nothing_else(tmp_path, monkeypatch, fairbits):
    limits = ["--max-disparity", "0.9", "--max-odds-disparity", "0.95", "--odds-label", "yes"]
    population(600, 0).to_csv(tmp_path / "pay.csv", index=False)
    population(300, 7).to_csv(tmp_path / "new.csv", index=False)
    monkeypatch.chdir(tmp_path)
    named = ["--label", "paid", "--sensitive", "sex", "--epochs", "2", "--code-size", "3", "--seed", "0", *limits]
    ended = fairbits("fit", "pay.csv", *named, "-o", "m")
    assert ended.code == 0, ended.err
    record = json.loads((tmp_path / "m" / "audit.json").read_text())
    assert record["certificate"]["release"]["decision"]
    promise = record["certificate"]["promise"]
    assert "the rates of the decision differ between two groups by at most 0.9, in the population that" in promise
    assert "among people with label yes, the rates of the decision differ between two groups by at most 0.95" in promise
    (ratio,) = record["decision"]["ratios"]
    rates = pd.DataFrame(record["decision"]["rates"]).set_index("group")
    assert rates.rows.sum() == record["task"]["rows"]["test"]
    assert ratio["shown"] == pytest.approx(rates.selected.min() / rates.selected.max())
    assert ratio["at_least"] <= ratio["shown"]
    assert (rates.true_positive_low <= rates.true_positive).all()
    card, page = (" ".join((tmp_path / "m" / f).read_text("utf-8").split()) for f in ("model_card.md", "report.html"))
    for text in (" ".join(ended.out.split()), card, page.replace("&#39;", "'")):
        assert "by at most 0.95" in text
        assert "The favourable class is 'yes'." in text
        assert f"The smallest ratio of two groups is {ratio['shown']:.3f} on these rows" in text
    for text in (card, page):
        assert f"{rates.selected['F']:.3f} (" in text.replace("<small>", "")
    for command in ("transform", "predict"):
        told = fairbits(command, "m", "new.csv", "-o", f"{command}.csv")
        assert told.code == 0, told.err
        assert "300 decisions written" in told.out
        assert "this model was fitted to guarantee the class alone" in told.out
        assert "--again is for random codes" in fairbits(command, "m", "new.csv", "--again").err
    decided = pd.read_csv("transform.csv")
    pd.testing.assert_frame_equal(decided, pd.read_csv("predict.csv"))
    people = population(300, 7)
    model = library.load("m/model")
    rows = people.assign(day=pd.to_datetime(people.day))
    assert decided.prediction.tolist() == model.predict(rows).tolist()  # it ignores the other columns, too
    with pytest.raises(library.InputError, match="about the predicted class alone"):
        model.transform(rows)
    shared = ["--person", "id", "--ledger", "shared.ledger"]
    for command in ("transform", "predict"):
        counted = fairbits(command, "m", "new.csv", "-o", "counted.csv", *shared)
        assert "does not know whether a recipient" not in counted.out, counted.err
        pd.testing.assert_frame_equal(decided, pd.read_csv("counted.csv"))
    assert json.loads(fairbits("transform", "m", "new.csv", *shared, "--json").out)["reused"] == 300
    found = json.loads(fairbits("certify", "m", "new.csv", "--json").out)
    assert [(c["of"], c["label"], c["said"]) for c in found["compared"]] == [
        ("class", None, 0.9),
        ("class", "yes", 0.95),
    ]
    proof = library.certify(decided.prediction, sensitive_features=people.sex, y=people.paid)
    assert [c["at_most"] for c in found["compared"]] == [proof.total_variation, proof.bounds[2].total_variation]
    (audited,) = json.loads(fairbits("audit", "new.csv", "--model", "m", "--json").out)["audits"]
    assert {probe["view"] for probe in audited["probes"]} == {"decision"}
    assert audited["certificate"]["total_variation"] == proof.total_variation
    watched = fairbits("watch", "m", "new.csv", "--state", "w.json", "--json")
    assert watched.code == 0, watched.err
    monitor = library.CertificateMonitor(0.9).add(decided.prediction, sensitive_features=people.sex)
    assert json.loads(watched.out)["at_most"] == pytest.approx(monitor.at_most)
    people.drop(columns="paid").to_csv("unlabelled.csv", index=False)
    assert "Name the label with --label." in fairbits("certify", "m", "unlabelled.csv").err
